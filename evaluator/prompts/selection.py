"""Choice of N of K prompts with near-uniform shares of categories, by mixed-integer programming.

EvalMuse-40K (section 3.1, supplement 8) minimises the sum over categories of how far the number of
chosen prompts is from its target. The whole program over 100,000 prompts finds no feasible point in
minutes; here targets are whole numbers (a choice that meets them all is then proved to be optimal),
the relaxation to shares of prompts is solved, and the program again over the prompts whose share
it leaves open and a random sample of the others. What comes out is compared with the relaxation's
lower bound, so that it is known how far from the optimum a choice can be at most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, linprog, milp

from benchmarks.errors import PlatformError

WHOLE_UP_TO = 500
"""Prompts up to which the whole program is solved."""
MORE_ZEROS, MORE_ONES = 300, 75
"""Prompts beside those with open shares that may still change, of those left out and of those taken."""
_OPEN = _TOLERANCE = 1e-6
_TIME_RAN_OUT = 1
"""Status of both of SciPy's solvers."""
_RANDOM_DRAWS = 20


@dataclass(frozen=True)
class Dimension:
    """Categories that prompts are told apart by, as `subject` or `style`.

    Attributes:
        name: of the dimension.
        categories: its H categories, in order.
        labels: which prompts have which, of shape (K, H).
    """

    name: str
    categories: tuple[str, ...]
    labels: NDArray[np.bool_]

    def targets(self, n: int) -> NDArray[np.int64]:
        """How many of n prompts are to have each category, of shape (H,).

        The mean number of labels of a prompt stays what it is in the pool, and is shared evenly;
        what is left over goes to the categories with most prompts.
        """
        count = len(self.categories)
        total = round(n * float(self.labels.sum()) / len(self.labels))
        shared = np.full(count, total // count, dtype=np.int64)
        most = np.argsort(-self.labels.sum(axis=0), kind="stable")[: total % count]
        shared[most] += 1
        return shared


@dataclass(frozen=True)
class Balance:
    """How far the counts of a choice are from their targets."""

    l1: float  # sum over all categories
    largest: float  # of one category


@dataclass(frozen=True)
class Selection:
    """The prompts that were chosen, and how good the choice is.

    Attributes:
        chosen: their places in the pool, ascending, of shape (N,).
        targets: by dimension, of each category.
        counts: by dimension, of the prompts that were chosen.
        pool: by dimension, of all prompts.
        balance: of the choice.
        bound: no choice has a smaller sum.
        shortfall: what is missing in the pool itself: no choice can have these.
        greedy: of a choice that takes the best prompt each time.
        random: mean over draws at random.
        stopped: whether a solution ended at the limit of time, so that another machine may choose
            otherwise.
    """

    chosen: NDArray[np.int64]
    targets: Mapping[str, NDArray[np.int64]]
    counts: Mapping[str, NDArray[np.int64]]
    pool: Mapping[str, NDArray[np.int64]]
    balance: Balance
    bound: int
    shortfall: int
    greedy: Balance
    random: Balance
    stopped: bool = False

    @property
    def optimal(self) -> bool:
        """Whether it is proved that no choice is better."""
        return self.balance.l1 <= self.bound


def select(dimensions: Sequence[Dimension], n: int, seed: int, limit_s: float = 30.0) -> Selection:
    """Choose n prompts.

    Args:
        dimensions: at least one, all about the same K > n prompts.
        n: how many, at least 1.
        seed: of the order in which prompts are looked at, so that that of the file decides nothing,
            and of samples; the same gives the same choice where no time ran out.
        limit_s: bound on the time of each of two solutions; the best choice by then is taken, at
            least the greedy one.

    Raises:
        PlatformError: `no_selection`; the solver gives no choice, with what it says.
    """
    draw = np.random.default_rng(seed)
    whole = np.concatenate([one.labels for one in dimensions], axis=1)
    targets = np.concatenate([one.targets(n) for one in dimensions])
    pool = whole.sum(axis=0)
    shortfall = int(np.maximum(targets - pool, 0).sum())
    order = draw.permutation(len(whole))
    labels = whole[order]
    greedy = _greedy(labels, targets, n)
    program = _Program(labels, targets, n, limit_s)
    found, bound = [greedy], shortfall
    if (relaxed := program.relaxed()) is not None:
        shares, bound = relaxed
        solved = program.whole(_free(shares, draw), shares)
        found += [] if solved is None else [np.flatnonzero(solved)]
    best = min(found, key=lambda one: balance_of(labels[one], targets).l1)
    drawn = [draw.choice(len(whole), n, replace=False) for _ in range(_RANDOM_DRAWS)]
    at_random = [balance_of(labels[one], targets) for one in drawn]
    return Selection(
        chosen=np.sort(order[best]),
        targets=_by_dimension(dimensions, targets),
        counts=_by_dimension(dimensions, labels[best].sum(axis=0)),
        pool=_by_dimension(dimensions, pool),
        balance=balance_of(labels[best], targets),
        bound=bound,
        shortfall=shortfall,
        greedy=balance_of(labels[greedy], targets),
        random=Balance(
            float(np.mean([one.l1 for one in at_random])),
            float(np.mean([one.largest for one in at_random])),
        ),
        stopped=program.stopped,
    )


def _free(shares: NDArray[np.float64], draw: np.random.Generator) -> NDArray[np.bool_]:
    """Which prompts the program decides: those with open shares, and a sample of the others."""
    if len(shares) <= WHOLE_UP_TO:
        return np.ones(len(shares), dtype=bool)
    free = (shares > _OPEN) & (shares < 1 - _OPEN)
    for settled, more in ((shares <= _OPEN, MORE_ZEROS), (shares >= 1 - _OPEN, MORE_ONES)):
        places = np.flatnonzero(settled)
        free[draw.choice(places, min(more, len(places)), replace=False)] = True
    return free


def balance_of(labels: NDArray[np.bool_], targets: NDArray[np.int64]) -> Balance:
    """Of chosen prompts, whose labels have shape (N, H)."""
    off = np.abs(labels.sum(axis=0) - targets)
    return Balance(float(off.sum()), float(off.max()))


def _by_dimension(
    dimensions: Sequence[Dimension], numbers: NDArray[np.int64]
) -> dict[str, NDArray[np.int64]]:
    """Numbers of all categories, apart by dimension."""
    ends = np.cumsum([len(one.categories) for one in dimensions])[:-1]
    parts = np.split(numbers, ends)
    return {one.name: part for one, part in zip(dimensions, parts, strict=True)}


@dataclass
class _Program:
    """Minimise the deviations z, with |labels' x - targets| <= z and sum x = n."""

    labels: NDArray[np.bool_]
    targets: NDArray[np.int64]
    n: int
    limit_s: float
    stopped: bool = False  # whether time ran out

    def relaxed(self) -> tuple[NDArray[np.float64], int] | None:
        """Shares of prompts, and the least sum of deviations that any choice can have."""
        matrix, upper, lower = self._rows(np.ones(len(self.labels), dtype=bool), 0)
        count = len(self.targets)
        solved = linprog(
            self._aim(len(self.labels)),
            A_ub=matrix[: 2 * count],
            b_ub=upper[: 2 * count],
            A_eq=matrix[2 * count :],
            b_eq=lower[2 * count :],
            bounds=[(0, 1)] * len(self.labels) + [(0, None)] * count,
            method="highs",
            options={"time_limit": self.limit_s},
        )
        if not self._solved(solved) or solved.status == _TIME_RAN_OUT:
            return None
        # Targets and counts are whole, so the sum is, too.
        return solved.x[: len(self.labels)], max(0, math.ceil(solved.fun - _TOLERANCE))

    def whole(
        self, free: NDArray[np.bool_], shares: NDArray[np.float64]
    ) -> NDArray[np.bool_] | None:
        """Which prompts are chosen, of shape (K,); those not free are as their share is rounded."""
        settled = ~free & (shares > 0.5)
        matrix, upper, lower = self._rows(free, int(settled.sum()), settled)
        count, open_ = len(self.targets), int(free.sum())
        solved = milp(
            self._aim(open_),
            constraints=LinearConstraint(matrix, lower, upper),
            integrality=np.r_[np.ones(open_), np.zeros(count)],
            bounds=Bounds(0, np.r_[np.ones(open_), np.full(count, np.inf)]),
            options={"time_limit": self.limit_s},
        )
        if not self._solved(solved):
            return None
        chosen = settled.copy()
        chosen[free] = solved.x[:open_] > 0.5
        return chosen

    def _solved(self, solved: OptimizeResult) -> bool:
        """Whether there is a solution; none is an error, unless time ran out."""
        ran_out = solved.status == _TIME_RAN_OUT
        self.stopped |= ran_out
        if solved.x is None and not ran_out:
            raise PlatformError(
                "no_selection",
                f"The solver gives no choice: {solved.message}",
                "Tell us, with the table: there always is one.",
            )
        return solved.x is not None

    def _aim(self, prompts: int) -> NDArray[np.float64]:
        return np.concatenate([np.zeros(prompts), np.ones(len(self.targets))])

    def _rows(
        self, free: NDArray[np.bool_], taken: int, settled: NDArray[np.bool_] | None = None
    ) -> tuple[sparse.csr_array, NDArray[np.float64], NDArray[np.float64]]:
        """Two rows a category and one for how many, with their upper and lower limits."""
        counts = sparse.csr_array(self.labels[free].T).astype(float)
        deviations = sparse.eye_array(len(self.targets))
        left = self.targets - (0 if settled is None else self.labels[settled].sum(axis=0))
        number = sparse.csr_array(np.ones((1, int(free.sum()))))
        matrix = sparse.block_array(
            [[counts, -deviations], [-counts, -deviations], [number, None]], format="csr"
        )
        exactly = float(self.n - taken)
        upper = np.r_[left, -left, exactly].astype(float)
        lower = np.r_[np.full(2 * len(left), -np.inf), exactly]
        return matrix, upper, lower


def _greedy(labels: NDArray[np.bool_], targets: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Take the prompt that lowers the sum of deviations most, one after the other."""
    left, counted = targets.copy(), sparse.csr_array(labels).astype(np.int64)
    taken: list[int] = []
    free = np.ones(len(labels), dtype=bool)
    worth = costs = np.empty(0)
    for _ in range(n):
        if not np.array_equal(now := np.where(left > 0, -1, 1), worth):
            worth = now
            costs = np.where(free, counted @ worth, np.inf)
        place = int(np.argmin(costs))
        taken.append(place)
        costs[place], free[place] = np.inf, False
        left -= labels[place]
    return np.array(taken, dtype=np.int64)
