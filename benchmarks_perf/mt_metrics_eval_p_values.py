"""P-values of permutation tests against those of mt-metrics-eval, which draws by itself.

Over all items its own z-scores are swapped. By prompt that is another test than ours, whose scores
are standardised within prompts, to ranks for rank correlations: what a metric adds to all images of
a prompt becomes spread of its hybrids, and ranks of a few images often coincide. There it is given
scores standardised our way (see `mt_metrics_eval_swaps`); what it says of raw ones is shown beside,
not compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import get_args

import numpy as np

from benchmarks.statistics.permutation.pair_nulls import Statistic
from benchmarks.statistics.permutation.pair_swaps import pair_swaps
from benchmarks.statistics.permutation.perm_both import perm_both
from benchmarks_perf.mt_metrics_eval_peer import Board, Evaluator
from benchmarks_perf.mt_metrics_eval_swaps import SAME_HYBRIDS, made_up, swapped_alike

OUR_DRAWS = 4000


@dataclass(frozen=True)
class PValues:
    """P-values of one test.

    Attributes:
        name: what is tested.
        peer: the peer's, two-sided.
        doubled: twice the peer's own one-sided p-value, of the side of the sample.
        ours: ours.
        allowed: three standard deviations of the difference of two drawn ones.
        rounded_off: draws of the peer that equal the sample's difference but for rounding, and
            are not counted by it.
        compared: whether they have to agree; False where the standardisation makes a difference.
    """

    name: str
    peer: float
    doubled: float
    ours: float
    allowed: float
    rounded_off: int
    compared: bool = True

    @property
    def agree(self) -> bool:
        """Whether the difference is within chance, or not looked at."""
        return not self.compared or abs(self.peer - self.ours) <= self.allowed


def p_values(peer: Evaluator, n_draws: int) -> Iterator[PValues]:
    """Every test on metrics that are about as good, somewhat and much better."""
    for lead in (0.0, 0.15, 0.5):
        for statistic in get_args(Statistic):
            for where in ("flat", "by prompt"):
                board = made_up("continuous", lead=lead, flat=where == "flat")
                name = f"{statistic} {where}, lead {lead}"
                yield _correlation_p(peer, board, statistic, name, n_draws)
        if peer.swaps_pairs:
            for uneven in (False, True):
                board = made_up("continuous", lead=lead, uneven=uneven)
                name = f"accuracy by {'uneven ' if uneven else ''}prompts, lead {lead}"
                yield _pair_p(peer, board, name, n_draws)
    for statistic in get_args(Statistic):
        board = made_up("tied", lead=0.15, flat=True)
        yield _correlation_p(peer, board, statistic, f"{statistic} flat, tied metrics", n_draws)
    for offsets in (0.0, 3.0):
        board = made_up("continuous", lead=0.5, offsets=offsets)
        for statistic in get_args(Statistic):
            name = f"{statistic} by prompt, raw, offsets {offsets}"
            yield _correlation_p(peer, board, statistic, name, n_draws, raw=True)


def _correlation_p(
    peer: Evaluator,
    board: Board,
    statistic: Statistic,
    name: str,
    n_draws: int,
    *,
    raw: bool = False,
) -> PValues:
    test = peer.swapped if raw or board.sizes is None else partial(swapped_alike, peer)
    found = test(board, statistic, n_draws)
    ours = perm_both(board.scores, board.gold, statistic, groups=board.groups, n_draws=OUR_DRAWS)
    p = float(ours.p_values[0, 1])
    allowed = _three_deviations(p, n_draws, 1 / OUR_DRAWS)
    doubled = _doubled(found.reported)
    return PValues(name, found.p_value, doubled, p, allowed, found.rounded_off, not raw)


def _pair_p(peer: Evaluator, board: Board, name: str, n_draws: int) -> PValues:
    found = peer.swapped_pairs(board, n_draws)
    ours = pair_swaps(board.scores, board.gold, groups=board.groups, n_draws=OUR_DRAWS)
    p = float(ours.p_values[0, 1])
    assert abs(float(ours.differences[0, 1]) - found.observed) < SAME_HYBRIDS
    allowed = _three_deviations(p, n_draws, 1 / ours.n_draws if ours.n_draws else 0.0)
    doubled = _doubled(found.reported)
    return PValues(name, found.p_value, doubled, p, allowed, found.rounded_off)


def _doubled(one_sided: float) -> float:
    return 2.0 * min(one_sided, 1.0 - one_sided)


def _three_deviations(p: float, n_draws: int, of_ours: float) -> float:
    return float(3.0 * np.sqrt(max(p * (1 - p), 1e-3) * (1 / n_draws + of_ours)))
