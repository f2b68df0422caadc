"""Robustness of metrics' scores to the one-pixel change of Re-Thinking.

Every channel value below 255 is raised by one: no person sees it. A metric whose scores move by as
much as the models on the board differ by says little of which is better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from leaderboard.models.board import model_board
from leaderboard.models.board_selection import Selection, selection
from leaderboard.models.board_types import BoardQuery, Judge, SkillBoard
from leaderboard.models.reading import ModelReader
from leaderboard.publication.reader import View


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
    alone = BoardQuery(
        prompt_set=chosen.query.prompt_set,
        split=chosen.query.split,
        words=chosen.query.words,
        judge=judge.entry_id,
        models=chosen.query.models,
        seed=chosen.query.seed,
        skills=(None,),
    )
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
