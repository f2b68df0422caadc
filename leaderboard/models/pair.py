"""Two models compared: tests by every metric on every skill, and the prompts that decide."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.errors import SubmitterError
from benchmarks.model_boards import compared, holm_over_metrics
from benchmarks.statistics.paired import paired_many
from leaderboard.models.board import lead_of, model_board, pair_test, reasons_for
from leaderboard.models.board_types import (
    BoardQuery,
    PairMatrix,
    PairReport,
    PairTest,
    PromptDifference,
)
from leaderboard.models.reading import ModelReader
from leaderboard.models.selection import Selection, selection
from leaderboard.publication.reader import View


def pair_report(
    reader: ModelReader, view: View, first_id: str, second_id: str, query: BoardQuery
) -> PairReport:
    """Compare two models of a board."""
    chosen = selection(reader, view, query)
    pair = np.array([_place(chosen, first_id), _place(chosen, second_id)], np.intp)
    if pair[0] == pair[1]:
        raise SubmitterError("same_model", f"{first_id} is compared with itself.", "Choose two.")
    skills = chosen.skills
    return PairReport(
        first=chosen.entries[pair[0]],
        second=chosen.entries[pair[1]],
        tests=tuple(test for skill in skills for test in _tests(chosen, skill, pair)),
        judges={skill: chosen.judges(skill) for skill in skills},
        deciding=_deciding(chosen, query.skills[0] if len(query.skills) == 1 else None, pair),
    )


def pair_matrix(
    reader: ModelReader, view: View, query: BoardQuery, skill: str | None, judge: str
) -> PairMatrix:
    """Each two models of a board by one metric on one skill."""
    chosen = selection(reader, view, query)
    if judge not in chosen.metrics:
        raise SubmitterError(
            "unknown_judge",
            f"{judge[:120]!r} is no metric on the boards that scored these models.",
            f"Metrics that did: {', '.join(chosen.metrics) or 'none yet'}.",
        )
    found = model_board(reader, view, replace(query, skills=(skill,))).skills[skill]
    order = np.array([_place(chosen, one) for one in found.standings], np.intp)
    places = chosen.testing(skill)
    scores = chosen.columns(judge).slice(chosen.slices, skill, places).of_models(order)
    many = paired_many(scores.in_range)
    corrected = _Corrected(chosen, skill, np.empty(0, np.intp)).by(judge)
    return PairMatrix(
        judge=judge,
        skill=skill,
        models=tuple(found.standings),
        dominance=many.dominance,
        difference=scores.unit * many.difference,
        t_p_holm=corrected[np.ix_(order, order)],
        wilcoxon_p=many.wilcoxon_p,
    )


def _place(chosen: Selection, submission_id: str) -> int:
    for place, entry in enumerate(chosen.entries):
        if entry.submission_id == submission_id:
            return place
    raise SubmitterError(
        "unknown_model",
        f"{submission_id[:120]!r} is no model on this board of {chosen.prompt_set.name}.",
        "The board lists the models that drew its prompts as they are now.",
    )


def _tests(chosen: Selection, skill: str | None, pair: IntArray) -> list[PairTest]:
    """By every metric that scored both; trusted ones first."""
    places = chosen.testing(skill)
    counts = chosen.counts[:, places]
    corrected = _Corrected(chosen, skill, pair)
    found = []
    for judge in chosen.judges(skill):
        scores = chosen.columns(judge.entry_id).slice(chosen.slices, skill, places)
        of_pair = scores.of_models(pair)
        many, unit = paired_many(of_pair.in_range, counts), of_pair.unit
        if not many.n[0, 1]:
            continue
        p = float(corrected.by(judge.entry_id)[pair[0], pair[1]])
        found.append(pair_test(many, (0, 1), p, judge=judge.entry_id, skill=skill, unit=unit))
    return found


class _Corrected:
    """P-values between all models of a board on one skill, corrected as the board corrects them."""

    def __init__(self, chosen: Selection, skill: str | None, more: IntArray) -> None:
        self._chosen, self._skill = chosen, skill
        judging = chosen.judging(skill)
        able = [not reason for reason in reasons_for(chosen, skill, lead_of(chosen, judging))]
        self._models = np.union1d(np.flatnonzero(able), more).astype(np.intp)
        self._judging = {one.entry_id for one in judging}
        self._witnesses = chosen.distinct(judging)

    def by(self, judge: str) -> FloatArray:
        """Shape (M, M), by one metric; NaN where a model has no rank."""
        size = len(self._chosen.entries)
        found = np.full((size, size), np.nan)
        square = np.ix_(self._models, self._models)
        if judge not in self._judging:
            found[square] = holm_over_metrics(self._p(judge)[None])[0]
        else:
            digest = self._chosen.columns(judge).digest
            same = [self._chosen.columns(one).digest == digest for one in self._witnesses]
            found[square] = self._of_witnesses[same.index(True)]
        return found

    @cached_property
    def _of_witnesses(self) -> FloatArray:
        return holm_over_metrics(np.array([self._p(one) for one in self._witnesses]))

    def _p(self, judge: str) -> FloatArray:
        places = self._chosen.testing(self._skill)
        scores = self._chosen.columns(judge).slice(self._chosen.slices, self._skill, places)
        return compared(scores.of_models(self._models)).p


def _deciding(
    chosen: Selection, skill: str | None, pair: IntArray
) -> dict[str, tuple[PromptDifference, ...]]:
    """By each metric that judges the skill, or by all where none does."""
    judges = chosen.judging(skill) or chosen.judges(skill)
    return {one.entry_id: _differences(chosen, skill, one.entry_id, pair) for one in judges}


def _differences(
    chosen: Selection, skill: str | None, judge: str, pair: IntArray
) -> tuple[PromptDifference, ...]:
    """Those that say most for the first model first; prompts that one lacks come last."""
    places = chosen.testing(skill)
    first, second = chosen.columns(judge).values[np.ix_(places, pair)].T
    difference = first - second
    total = float(np.nansum(difference))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = difference / total if total else np.full(len(places), np.nan)
    order = np.argsort(-difference, kind="stable")  # NaN comes last
    ids = chosen.slices.ids
    return tuple(
        PromptDifference(ids[places[i]], float(first[i]), float(second[i]), float(share[i]))
        for i in order
    )
