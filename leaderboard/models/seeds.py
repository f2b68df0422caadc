"""Does the order of the models hold when only the random seed changes (Re-Thinking)?

Models were drawn with seeds of their own, so the k-th seed of one meets the k-th of every other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.rethinking.measures import MetricScores, model_scores, stability
from benchmarks.statistics.resampling import mean_of_defined
from leaderboard.models.board_selection import Selection, selection
from leaderboard.models.board_types import BoardQuery, Judge
from leaderboard.models.reading import ModelReader
from leaderboard.models.scores import ImageScores
from leaderboard.models.seeds_types import JudgeSeeds, SeedReport, SeedVariation
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
