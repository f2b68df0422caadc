"""Variation over what should not matter: the random seed, and one pixel (Re-Thinking).

Models were drawn with seeds of their own, so the k-th seed of one meets the k-th of every other.
The one-pixel change raises every channel value below 255 by one: no person sees it. A metric whose
scores move by as much as the models on the board differ by says little of which is better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.rethinking.measures import MetricScores, model_scores, stability
from benchmarks.statistics.resampling import mean_of_defined
from leaderboard.models.board import model_board
from leaderboard.models.board_types import (
    BoardQuery,
    Judge,
    JudgeSeeds,
    SeedReport,
    SeedVariation,
    SkillBoard,
)
from leaderboard.models.reading import ImageScores, ModelReader
from leaderboard.models.selection import Selection, selection
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.publication.reader import View


def seed_report(reader: ModelReader, view: View, query: BoardQuery) -> SeedReport:
    """How models and ranks vary over seeds, by every metric."""
    chosen = selection(reader, view, query)
    made: SeedReport = reader.memory.of_view(view).further.of(
        ("seeds", chosen.state), lambda: _made(chosen)
    )
    return made


def _made(chosen: Selection) -> SeedReport:
    query = chosen.query
    skill = query.skills[0] if len(query.skills) == 1 else None
    tagged = chosen.slices.tagged(skill)[chosen.places]
    places = chosen.places[tagged]
    judges = [j for j in chosen.judges(skill) if query.judge in ("", j.entry_id)]
    return SeedReport(
        skill=skill,
        n_prompts=len(places),
        entries={one.submission_id: one for one in chosen.entries},
        judges=tuple(_by_judge(chosen, judge, places) for judge in judges),
        one_seed=tuple(e.submission_id for e in chosen.entries if len(e.images.seeds) < 2),
    )


def _by_judge(chosen: Selection, judge: Judge, places: IntArray) -> JudgeSeeds:
    read = (
        (one, chosen.reader.scores.of(one, judge.entry_id, chosen.slices.ids))
        for one in chosen.entries
    )
    found = [(one, scores) for one, scores in read if scores is not None]
    variation = tuple(_variation(one, scores, places) for one, scores in found)
    several = [(one, scores) for one, scores in found if len(scores.seeds) > 1]
    if len(several) < 2 or not len(places):
        note = "Fewer than two models have two seeds or more."
        return JudgeSeeds(judge, None, (), variation, note if len(places) else "No prompt.")
    table = _table(judge, several, chosen.slices.ids, places)
    plan = chosen.plan
    return JudgeSeeds(
        judge,
        stability(table, plan),
        model_scores(table, plan),
        variation,
        _note([scores for _, scores in several], len(table.seeds)),
    )


def _table(
    judge: Judge,
    several: Sequence[tuple[ModelEntry, ImageScores]],
    ids: Sequence[str],
    places: IntArray,
) -> MetricScores:
    """The k-th seed of each model, as many as the model with the fewest has."""
    n_seeds = min(len(scores.seeds) for _, scores in several)
    values = np.stack([scores.scores[:n_seeds, places] for _, scores in several], axis=1)
    return MetricScores(
        metric=judge.entry_id,
        models=tuple(one.submission_id for one, _ in several),
        seeds=tuple(str(k + 1) for k in range(n_seeds)),
        prompts=tuple(ids[place] for place in places),
        scores=values,
        perturbed=np.full_like(values, np.nan),
    )


def _note(several: Sequence[ImageScores], n_seeds: int) -> str:
    more = sum(len(scores.seeds) > n_seeds for scores in several)
    if not more:
        return ""
    whose = "1 model has" if more == 1 else f"{more:,} models have"
    return f"Compared over {n_seeds} seeds: {whose} more, and the others count with the first."


def _variation(entry: ModelEntry, scores: ImageScores, places: IntArray) -> SeedVariation:
    of = scores.scores[:, places]
    means = mean_of_defined(of, axis=1)
    known = means[np.isfinite(means)]
    by_prompt = mean_of_defined(of, axis=0)
    by_prompt = by_prompt[np.isfinite(by_prompt)]
    return SeedVariation(
        submission_id=entry.submission_id,
        seeds=scores.seeds,
        means=tuple(float(mean) for mean in means),
        spread=float(known.std(ddof=1)) if known.size > 1 else math.nan,
        within=_within(of),
        between=float(by_prompt.std(ddof=1)) if by_prompt.size > 1 else math.nan,
    )


def _within(scores: FloatArray) -> float:
    """Root of the mean variance over the seeds of one prompt; scores of shape (S, P)."""
    n = np.isfinite(scores).sum(axis=0)
    several = scores[:, n > 1]
    if not several.size:
        return math.nan
    return float(np.sqrt(np.nanvar(several, axis=0, ddof=1).mean()))


@dataclass(frozen=True)
class Robustness:
    """One metric after the one-pixel change."""

    judge: Judge  # the metric, in its role over all prompts
    n_images: int  # images of all models that it scored again; 0: none, and no figures
    # mean absolute change of their scores, in units of the metric; None without
    mean_change: float | None
    max_change: float | None  # the largest; None likewise
    # standard deviation (n - 1) of its scores of all images of the models, in units of the
    # metric; None below two
    spread: float | None
    # the mean change as a share of the spread; None where either is missing
    in_spreads: float | None
    # the smallest significant difference between two models by this metric, in its units;
    # None where it tells no two apart
    smallest_gap: float | None
    # the mean change as a share of that gap: from 1 on, a change nobody sees moves an image
    # by as much as what two models differ by on average; None likewise
    in_gaps: float | None


def robustness(reader: ModelReader, view: View, query: BoardQuery) -> tuple[Robustness, ...]:
    """The one-pixel change by every metric that scored the models, trusted ones first."""
    chosen = selection(reader, view, query)
    return tuple(
        _of_judge(chosen, judge)
        for judge in chosen.judges(None)
        if query.judge in ("", judge.entry_id)
    )


def _of_judge(chosen: Selection, judge: Judge) -> Robustness:
    runs = [entry.judges.get(judge.entry_id) for entry in chosen.entries]
    changed = [
        (run.perturbed, run.mean_change, run.max_change)
        for run in runs
        if run is not None and run.perturbed and run.mean_change is not None
    ]
    n_images = sum(n for n, _, _ in changed)
    mean = sum(n * change for n, change, _ in changed) / n_images if n_images else None
    largest = max((most for _, _, most in changed if most is not None), default=None)
    spread, gap = _spread(chosen, judge), _smallest_gap(chosen, judge)
    return Robustness(
        judge=judge,
        n_images=n_images,
        mean_change=mean,
        max_change=largest,
        spread=spread,
        in_spreads=_share(mean, spread),
        smallest_gap=gap,
        in_gaps=_share(mean, gap),
    )


def _spread(chosen: Selection, judge: Judge) -> float | None:
    read = (
        chosen.reader.scores.of(entry, judge.entry_id, chosen.slices.ids)
        for entry in chosen.entries
    )
    parts = [one.scores[np.isfinite(one.scores)] for one in read if one is not None]
    scores = np.concatenate(parts) if parts else np.empty(0)
    return float(scores.std(ddof=1)) if scores.size > 1 else None


def _smallest_gap(chosen: Selection, judge: Judge) -> float | None:
    """Of the models that this metric alone tells apart, over all prompts of the query."""
    alone = replace(chosen.query, judge=judge.entry_id, skills=(None,))
    found: SkillBoard = model_board(chosen.reader, chosen.view, alone).skills[None]
    values = {name: one.means[judge.entry_id].value for name, one in found.standings.items()}
    gaps = [
        abs(own - other)
        for name, one in found.standings.items()
        for worse in one.better_than
        if (own := values[name]) is not None and (other := values[worse]) is not None
    ]
    return min(gaps, default=None)


def _share(part: float | None, whole: float | None) -> float | None:
    if part is None or not whole:
        return None
    share = part / whole
    return share if math.isfinite(share) else None
