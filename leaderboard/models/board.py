"""A board of models: every skill of a prompt set by the metrics that judge it, in any filter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.model_boards import (
    LEVEL,
    Consensus,
    Estimates,
    SliceScores,
    Tests,
    combine_tests,
    compared,
    consensus,
    estimates,
    tiers_down,
)
from benchmarks.statistics.better_or_tied import least_prompts
from benchmarks.statistics.multiplicity import holm_of_pairs
from benchmarks.statistics.paired import PairedMany, TStatistics
from leaderboard.models.board_types import (
    BoardQuery,
    Disagreement,
    Judge,
    Mean,
    ModelBoard,
    ModelSummary,
    PairTest,
    SkillBoard,
)
from leaderboard.models.judges import RULE, why_unheard
from leaderboard.models.reading import ModelReader
from leaderboard.models.selection import JudgeColumns, Selection, selection
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.publication.reader import View
from leaderboard.ranking.rank_ranges import ranges_left

MAX_MISSING = 0.01
"""Of the images of a whole set: with more missing a model could choose the prompts it is ranked by."""
MAX_MISSING_IN_SLICE = 0.05
"""Of the images of one slice: a hundredth of a set may be most of a small skill."""


def why_unranked(
    entry: ModelEntry, columns: JudgeColumns, place: int, prompts: IntArray, judge: str
) -> str:
    """Why a model has no rank on a slice; empty where it may have one."""
    images, wanted = columns.images[:, place], int(columns.wanted[place])
    if not wanted:
        return "It has fewer seeds."
    if not images.any():
        return f"{judge} has not scored it."
    if not images[prompts].any():
        return f"{judge} gave no score on these prompts."
    of_set = _missing(images, wanted)
    if of_set > MAX_MISSING:
        withheld = sum(entry.images.withheld.values())
        told = f"; its maker withheld {withheld:,}" if withheld else ""
        return (
            f"{_percent(of_set)} of its images have no score from {judge}, and at most "
            f"{MAX_MISSING:.0%} may lack one{told}."
        )
    of_slice = _missing(images[prompts], wanted)
    if of_slice > MAX_MISSING_IN_SLICE:
        return (
            f"{_percent(of_slice)} of its images of these prompts have no score from {judge}, and "
            f"at most {MAX_MISSING_IN_SLICE:.0%} may lack one."
        )
    return ""


def _missing(images: IntArray, wanted: int) -> float:
    """Share of the images of some prompts that have no score."""
    every = wanted * len(images)
    return (every - int(images.sum())) / every


def _percent(share: float) -> str:
    """Rounded up, so that it never reads as the limit it exceeds."""
    return f"{math.ceil(share * 1000.0) / 10.0:.1f} %"


def ranked_means(
    scores: SliceScores, counts: FloatArray, able: BoolArray, tests: TStatistics
) -> tuple[Mean, ...]:
    """Mean of every model by one metric, or as people rated it; ranks among those that may rank."""
    found: Estimates = estimates(scores, counts)
    enough = found.n_prompts >= least_prompts(int(able.sum()))
    kept = np.where(able & enough, found.means, np.nan)
    told = np.zeros((len(able), len(able)), bool)
    told[np.ix_(able, able)] = holm_of_pairs(tests.p) < LEVEL
    better = told & (kept[:, None] > kept)
    ranges = ranges_left(kept, better, np.asarray(better.any(axis=0)))
    in_tiers = tiers_down(told, np.argsort(-kept, kind="stable")[: np.isfinite(kept).sum()])
    n_prompts = len(scores.sums)
    return tuple(
        Mean(
            value=_number(found.means[m]),
            ci_low=_number(found.ci_low[m]),
            ci_high=_number(found.ci_high[m]),
            n_prompts=int(found.n_prompts[m]),
            n_missing=n_prompts - int(found.n_prompts[m]),
            rank=range_.rank if range_ else None,
            rank_low=range_.low if range_ else None,
            rank_high=range_.high if range_ else None,
            tier=int(in_tiers[m]) or None,
        )
        for m, range_ in enumerate(ranges)
    )


def pair_test(
    many: PairedMany,
    pair: tuple[int, int],
    p_corrected: float,
    *,
    judge: str,
    skill: str | None,
    unit: float = 1.0,
) -> PairTest:
    """The tests of two models, as they stand among those of many."""
    a, b = pair
    return PairTest(
        judge=judge,
        skill=skill,
        n_prompts=int(many.n[a, b]),
        n_missing=int(many.n_missing[a, b]),
        difference=unit * float(many.difference[a, b]),
        ci_low=unit * float(many.difference_interval.low[a, b]),
        ci_high=unit * float(many.difference_interval.high[a, b]),
        t=float(many.t[a, b]),
        t_p=float(many.t_p[a, b]),
        t_p_holm=p_corrected,
        wilcoxon_w=float(many.wilcoxon_w[a, b]),
        wilcoxon_p=float(many.wilcoxon_p[a, b]),
        dominance=float(many.dominance[a, b]),
        dominance_back=float(many.dominance[b, a]),
    )


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


NOBODY = "No qualified metric on this skill, so no model is ranked on it."
NOTHING_TESTS = "No prompt that the filter leaves tests this skill."
NO_ORDER = "No significant difference between any two models."
WHOLE_PROMPTS = (
    "With one seed, metrics that score elements count with their scores of whole images here."
)


def model_board(reader: ModelReader, view: View, query: BoardQuery) -> ModelBoard:
    """The board of a prompt set within a filter."""
    chosen = selection(reader, view, query)
    return reader.memory.of_view(view).boards.of(chosen.state, lambda: _made(chosen))


def too_few_prompts(n_models: int) -> str:
    """That so many models are not ordered, and by how many prompts they would be."""
    return f"Fewer than {least_prompts(n_models)} prompts: too few to order {n_models} models."


def lead_of(chosen: Selection, judging: Sequence[Judge]) -> Judge | None:
    """The judge whose means come first: it scored the most models, then has the most behind it."""
    scored = [int(chosen.columns(one.entry_id).scored.sum()) for one in judging]
    return (
        max(zip(scored, reversed(range(len(judging))), judging, strict=True))[2]
        if judging
        else None
    )


def reasons_for(chosen: Selection, skill: str | None, lead: Judge | None) -> tuple[str, ...]:
    """Why each model has no rank on a skill, in the order of the entries; empty where it has one."""
    places = chosen.testing(skill)
    if lead is None:
        return (NOBODY,) * len(chosen.entries)
    if len(places) < least_prompts(len(chosen.entries)):
        return (too_few_prompts(len(chosen.entries)),) * len(chosen.entries)
    columns = chosen.columns(lead.entry_id)
    return tuple(
        why_unranked(entry, columns, m, places, lead.title)
        for m, entry in enumerate(chosen.entries)
    )


def _made(chosen: Selection) -> ModelBoard:
    with chosen.reader.memory.turn:
        skills = {skill: _skill_board(chosen, skill) for skill in chosen.skills}
    return ModelBoard(
        query=chosen.query,
        entries={one.submission_id: one for one in chosen.entries},
        skills=skills,
        rule=RULE,
        left_out=chosen.left_out,
    )


def _skill_board(chosen: Selection, skill: str | None) -> SkillBoard:
    places = chosen.testing(skill)
    judges, judging = chosen.judges(skill), chosen.judging(skill)
    shown = judging if chosen.query.judge else judges
    lead = lead_of(chosen, judging)
    reasons = reasons_for(chosen, skill, lead)
    able = np.array([not reason for reason in reasons], bool)
    scores = {
        one.entry_id: chosen.columns(one.entry_id).slice(chosen.slices, skill, places)
        for one in shown
    }
    counts = chosen.counts[:, places]
    kept = np.flatnonzero(able)
    tests = {judge: compared(one.of_models(kept)) for judge, one in scores.items()}
    means = {judge: ranked_means(one, counts, able, tests[judge]) for judge, one in scores.items()}
    witnesses = chosen.distinct(judging)
    found, relations = _consensus(
        combine_tests([tests[one] for one in witnesses], len(kept)),
        able,
        scores[lead.entry_id] if lead else None,
    )
    standings = _model_summaries(chosen, means, reasons, found, lead)
    board = SkillBoard(
        skill=skill,
        title=chosen.title(skill),
        n_prompts=len(places),
        judges=judges,
        lead=lead.entry_id if lead else None,
        standings=standings,
        disagreements=_disagreements(chosen, witnesses, able, found, relations),
    )
    return replace(board, note=_note(chosen, board, found, relations))


def _consensus(
    tests: Tests, able: BoolArray, lead: SliceScores | None
) -> tuple[Consensus, IntArray]:
    """How the models that may rank stand to each other, and what each metric says of them."""
    relations = tests.relations()
    values = np.full(int(able.sum()), np.nan) if lead is None else lead.means[able]
    return consensus(relations, values), relations


def _model_summaries(
    chosen: Selection,
    means: Mapping[str, tuple[Mean, ...]],
    reasons: Sequence[str],
    found: Consensus,
    lead: Judge | None,
) -> dict[str, ModelSummary]:
    """In the order of the board; those without a rank come last, by their means and titles."""
    ids = [one.submission_id for one in chosen.entries]
    own = [{judge: of[m] for judge, of in means.items()} for m in range(len(ids))]
    able = [m for m, reason in enumerate(reasons) if not reason]
    names = [ids[m] for m in able]
    standings: dict[str, ModelSummary] = {}
    for place in found.order:
        better, worse = found.better[place], found.better[:, place]
        standings[names[place]] = ModelSummary(
            submission_id=names[place],
            means=own[able[place]],
            better_than=frozenset(names[i] for i in np.flatnonzero(better)),
            worse_than=frozenset(names[i] for i in np.flatnonzero(worse)),
            rank_low=int(found.rank_low[place]),
            rank_high=int(found.rank_high[place]),
            tier=int(found.tiers[place]),
        )

    def last(m: int) -> tuple[float, str, str]:
        value = None if lead is None else own[m][lead.entry_id].value
        return math.inf if value is None else -value, chosen.entries[m].title.casefold(), ids[m]

    for m in sorted((m for m, reason in enumerate(reasons) if reason), key=last):
        standings[ids[m]] = ModelSummary(ids[m], own[m], unranked=reasons[m])
    return standings


def _disagreements(
    chosen: Selection,
    metrics: Sequence[str],
    able: BoolArray,
    found: Consensus,
    relations: IntArray,
) -> tuple[Disagreement, ...]:
    names = [chosen.entries[m].submission_id for m in np.flatnonzero(able)]
    place_of = {int(place): i for i, place in enumerate(found.order)}
    pairs = [
        sorted((int(a), int(b)), key=place_of.__getitem__)
        for a, b in np.argwhere(np.triu(found.disputed))
    ]
    return tuple(
        Disagreement(
            first=names[a],
            second=names[b],
            for_first=tuple(metrics[int(j)] for j in np.flatnonzero(relations[:, a, b] > 0)),
            for_second=tuple(metrics[int(j)] for j in np.flatnonzero(relations[:, a, b] < 0)),
        )
        for a, b in sorted(pairs, key=lambda pair: [place_of[i] for i in pair])
    )


def _note(chosen: Selection, board: SkillBoard, found: Consensus, relations: IntArray) -> str:
    if not board.n_prompts:
        return NOTHING_TESTS
    notes: list[str] = []
    if board.lead is None and chosen.metrics:
        notes += filter(None, (why_unheard(board.judges), NOBODY))
    elif board.n_prompts < least_prompts(len(chosen.entries)):
        notes.append(too_few_prompts(len(chosen.entries)))
    elif len(found.order) > 1 and not relations.any():
        notes.append(NO_ORDER)
    in_parts = board.skill is not None and len(chosen.slices.elements(board.skill)) > 0
    if chosen.query.seed is not None and in_parts:
        notes.append(WHOLE_PROMPTS)
    return " ".join(notes)
