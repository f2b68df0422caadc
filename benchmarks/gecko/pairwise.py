"""Pair-wise agreement: side-by-side comparisons of two models' images of one prompt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.gecko.aligned import Aligned
from benchmarks.gecko.parts import Part
from benchmarks.rows import MeasuredBuilder, Row


def right(scores: FloatArray, winner: IntArray, loser: IntArray) -> FloatArray:
    """1 where scores (n, ...) strictly prefer the winner, else 0: for ties and missing scores."""
    # A comparison with NaN is False.
    return (scores[winner] > scores[loser]).astype(np.float64)


def add_pairwise(builder: MeasuredBuilder, row: Row, part: Part, data: Aligned) -> None:
    """Accuracy over the part's decided comparisons: a ratio of sums over prompts."""
    winner, loser = data.comparisons.decided()
    chosen = part.chosen[winner]
    winner, loser = winner[chosen], loser[chosen]
    if winner.size == 0:
        for metric in data.metrics:
            builder.add(replace(row, metric=metric, note="no comparison with a preference"))
        return
    n_prompts = data.draws.shape[1]
    correct = np.zeros((n_prompts, len(data.metrics)))
    np.add.at(correct, data.prompts[winner], right(data.scores, winner, loser))
    sizes = np.bincount(data.prompts[winner], minlength=n_prompts).astype(np.float64)
    with np.errstate(invalid="ignore"):
        values = (data.draws @ correct) / (data.draws @ sizes)[:, None]
    unscored = np.isnan(data.scores[np.union1d(winner, loser)]).sum(axis=0)
    for column, metric in enumerate(data.metrics):
        n_missing = int(unscored[column])
        note = f"images without a score, whose comparisons are wrong: {n_missing}"
        filled = replace(
            row,
            metric=metric,
            value=float(values[0, column]),
            n_items=winner.size,
            n_clusters=int((sizes > 0).sum()),
            n_missing=n_missing,
            note=note if n_missing else "",
        )
        builder.add(filled, values[1:, column], members=np.flatnonzero(sizes))
