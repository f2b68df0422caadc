"""Permutation tests against those of mt-metrics-eval on the same swaps.

Where its definitions differ, they are made equal or the difference is kept and said:

- It standardises by z-scores over all items, ours within the prompt over which is averaged, and
  for rank correlations by ranks: so it is given scores standardised our way.
- Equal ranks of two metrics tie for it, and shrink the denominator. For us they are no tie of the
  data and count as ordered both ways, half each: so it is asked twice, with the second metric's
  ranks moved up and down by less than a rank, and the mean is compared.
- It leaves out prompts with an undefined correlation, or counts them all as 0. We leave out those
  of constant gold and count hybrids that are constant as 0. It is asked for 0; no prompt here has
  constant gold.
- Its p-value is one-sided, without the sample among the draws, and compares floating-point numbers
  exactly. Differences of accuracies take few values, so that its pair swaps miss draws that equal
  the sample's but for the rounding of a mean: they are counted. The two-sided p-value is computed
  from the hybrids it returns, where such draws count.
- Pair swaps fail there for a prompt with a single image, which ours leave out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from benchmarks.statistics.permutation.pair_nulls import Statistic, nulls
from benchmarks.statistics.permutation.pearson import standardised
from benchmarks.statistics.permutation.ranks import Ranks
from benchmarks.statistics.permutation.right_pairs import ItemPairs
from benchmarks.statistics.permutation.sample import Sample
from benchmarks.statistics.permutation.signs import SwapSigns
from benchmarks_perf.mt_metrics_eval_peer import Board, Evaluator, Swapped

SAME_HYBRIDS = 1e-9
SAME_SWAPS = 40
N_PROMPTS, N_IMAGES = 20, 8


def made_up(
    kind: str, *, lead: float = 0.0, offsets: float = 0.0, uneven: bool = False, flat: bool = False
) -> Board:
    """Two metrics of 20 prompts with up to 8 images.

    Args:
        kind: `continuous`, or `tied` for scores rounded to a few levels, not the same ones.
        lead: how much more noise the second metric has.
        offsets: standard deviation of what a metric adds to all images of a prompt.
        uneven: prompts of 3 to 8 images.
        flat: one pool of images.
    """
    rng = np.random.default_rng(4)
    sizes = rng.integers(3, N_IMAGES + 1, N_PROMPTS) if uneven else np.full(N_PROMPTS, N_IMAGES)
    gold = rng.integers(1, 6, (sizes.sum(), 3)).mean(axis=1)
    for start in np.append(0, np.cumsum(sizes)[:-1]):
        gold[start : start + 2] = 1.0, 5.0  # no prompt of constant gold
    noise = rng.normal(size=(gold.size, 2)) * [1.0, 1.0 + lead]
    noise += np.repeat(offsets * rng.normal(size=(N_PROMPTS, 2)), sizes, axis=0)
    scores = gold[:, None] + noise
    if kind == "tied":
        scores = np.round(scores * [1.0, 1.7])
    return Board(scores, gold, None if flat else sizes)


def same_swaps(peer: Evaluator) -> Iterator[tuple[str, float]]:
    """For each statistic and kind of board, the largest difference between hybrids' differences."""
    for statistic in get_args(Statistic):
        for where in ("flat", "by prompt", "by uneven prompts"):
            for kind in ("continuous", "tied"):
                board = made_up(kind, flat=where == "flat", uneven="uneven" in where)
                yield f"{statistic} {where}, {kind}", _largest_difference(peer, board, statistic)
    yield (
        "pearson flat, its own z-scores",
        _largest_difference(peer, made_up("continuous", flat=True), "pearson", own_z_scores=True),
    )
    if peer.swaps_pairs:
        for uneven in (False, True):
            name = f"accuracy by {'uneven ' if uneven else ''}prompts, pair swaps"
            yield name, _largest_pair_difference(peer, made_up("continuous", uneven=uneven))


def _largest_difference(
    peer: Evaluator, board: Board, statistic: Statistic, *, own_z_scores: bool = False
) -> float:
    sample = _sample(board)
    signs = np.hstack(list(SwapSigns(board.gold.size, SAME_SWAPS, 0).blocks()))
    null = next(nulls(sample, statistic, np.array([0]), np.array([1])))[1]
    ours = np.append(null.deltas(signs)[0], null.observed[0])
    if own_z_scores:
        found = peer.swapped(board, statistic, SAME_SWAPS, stays=signs.T > 0)
    else:
        found = swapped_alike(peer, board, statistic, SAME_SWAPS, stays=signs.T > 0)
    return float(np.abs(ours - np.append(found.deltas, found.observed)).max())


def swapped_alike(
    peer: Evaluator,
    board: Board,
    statistic: Statistic,
    n_draws: int,
    *,
    stays: NDArray[np.bool_] | None = None,
) -> Swapped:
    """The peer's test of scores standardised our way; its draws, unless masks are given."""
    sample = _sample(board)
    if statistic == "pearson":
        handed = [standardised(sample)]
    else:
        ranks = [Ranks.of(column, sample).doubled / 2.0 for column in sample.scores.T]
        handed = [np.stack([ranks[0], ranks[1] + step], axis=1) for step in (-0.25, 0.25)]
    found = [
        peer.swapped(
            replace(board, scores=scores), statistic, n_draws, stays=stays, standardised=True
        )
        for scores in handed
    ]
    observed = float(np.mean([one.observed for one in found]))
    deltas = np.mean([one.deltas for one in found], axis=0)
    return Swapped(observed, deltas, float(np.mean(deltas <= observed)))


def _sample(board: Board) -> Sample:
    n_items = board.gold.size
    return Sample.of(board.scores, board.gold, board.groups, np.arange(n_items), n_items)


def _largest_pair_difference(peer: Evaluator, board: Board) -> float:
    """Swapped verdicts, right or wrong, against swapped orders and ties of which all is counted."""
    assert board.sizes is not None
    rng = np.random.default_rng(0)
    masks = [
        [rng.integers(0, 2, (size, size)).astype(np.bool_) for size in board.sizes]
        for _ in range(SAME_SWAPS)
    ]
    pairs = ItemPairs(board.gold, board.bounds)
    limits = [pairs.threshold(column) for column in board.scores.T]
    found = peer.swapped_pairs(
        board,
        SAME_SWAPS,
        limits=(limits[0], limits[1]),
        stays=[mask for draw in masks for mask in draw],
    )
    ours = [_swapped_verdicts(pairs, board, limits, draw) for draw in masks]
    return float(np.abs(np.array(ours) - found.deltas).max())


def _swapped_verdicts(
    pairs: ItemPairs, board: Board, limits: list[float], masks: list[NDArray[np.bool_]]
) -> float:
    assert board.groups is not None
    total = 0.0
    for block in pairs.blocks:
        right = [block.right(x, e) for x, e in zip(board.scores.T, limits, strict=True)]
        won = right[0].astype(np.float64) - right[1]
        group = board.groups[block.low]
        start = board.bounds[group]
        i, j = np.minimum(block.low, block.high) - start, np.maximum(block.low, block.high) - start
        stay = [masks[g][a, b] for g, a, b in zip(group, i, j, strict=True)]
        total += float((won * np.where(stay, 1.0, -1.0) / pairs.pairs_of_group[group]).sum())
    return total / pairs.pairs_of_group.size
