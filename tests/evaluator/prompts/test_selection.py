"""Choice of prompts by integer programming, against all choices that there are."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import OptimizeResult

from benchmarks.errors import PlatformError
from evaluator.prompts.selection import Dimension, balance_of, select
from tests.evaluator.scorers.common import refusal


def pool(size: int, seed: int = 0, *categories: int) -> list[Dimension]:
    """Labels whose shares fall steeply: the first two dimensions with several, the last with one."""
    draw, found = np.random.default_rng(seed), []
    sizes = categories or (5, 4, 3)
    for number, count in enumerate(sizes):
        share = np.arange(1, count + 1) ** -1.2
        share /= share.sum()
        if number < len(sizes) - 1:
            labels = draw.random((size, count)) < 1.4 * share
        else:
            labels = np.zeros((size, count), dtype=bool)
            labels[np.arange(size), draw.choice(count, size, p=share)] = True
        found.append(Dimension(f"d{number}", tuple(map(str, range(count))), labels))
    return found


def test_targets_are_whole_and_even_and_keep_the_labels_of_a_prompt() -> None:
    labels = np.array([[1, 0, 1], [0, 1, 1], [0, 0, 1], [0, 0, 1]], dtype=bool)
    of = Dimension("d", ("a", "b", "c"), labels)
    assert of.targets(2).tolist() == [1, 1, 1]  # 6 labels of 4 prompts: 3 of 2
    assert of.targets(3).tolist() == [1, 1, 2]  # 4.5, to the even 4; the rest to the most frequent
    single = pool(50)[-1]
    assert [int(single.targets(n).sum()) for n in (7, 11, 20)] == [7, 11, 20]


@pytest.mark.parametrize("seed", range(6))
def test_of_few_prompts_the_choice_is_the_best_of_all_there_are(seed: int) -> None:
    dimensions = pool(14, seed)
    labels = np.concatenate([one.labels for one in dimensions], axis=1)
    targets = np.concatenate([one.targets(5) for one in dimensions])
    every = (labels[list(places)] for places in combinations(range(14), 5))
    best = min(balance_of(one, targets).l1 for one in every)
    found = select(dimensions, 5, seed)
    assert found.balance.l1 == best
    assert found.bound <= best
    assert found.optimal == (found.bound == best)


def test_of_many_prompts_every_target_is_met_and_proved_to_be() -> None:
    dimensions = pool(20_000, 1, 13, 6, 5, 7)
    found = select(dimensions, 400, 1)
    assert (found.balance.l1, found.bound, found.shortfall, found.optimal) == (0, 0, 0, True)
    assert found.greedy.l1 > 100 and found.random.l1 > 1000
    assert len(set(found.chosen.tolist())) == 400
    for one in dimensions:
        counted = one.labels[found.chosen].sum(axis=0)
        np.testing.assert_array_equal(found.counts[one.name], counted)
        np.testing.assert_array_equal(found.targets[one.name], counted)


def test_what_the_pool_lacks_is_told_and_bounds_every_choice() -> None:
    rare = np.zeros((1000, 4), dtype=bool)
    rare[np.arange(1000), np.r_[np.zeros(970, int), np.repeat([1, 2, 3], 10)]] = True
    found = select([Dimension("d", ("a", "b", "c", "d"), rare)], 200, 3)
    assert found.targets["d"].tolist() == [50, 50, 50, 50]
    assert found.counts["d"].tolist() == [170, 10, 10, 10]
    assert (found.shortfall, found.balance.l1, found.balance.largest) == (120, 240, 120)
    assert (found.bound, found.optimal) == (240, True)


def test_a_seed_gives_the_same_choice_and_the_order_of_the_pool_decides_nothing() -> None:
    dimensions = pool(2000, 5)
    first, again, other = (select(dimensions, 100, seed).chosen for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    same = [Dimension("d", ("a",), np.ones((2000, 1), dtype=bool))]
    assert np.median(select(same, 200, 1).chosen) == pytest.approx(1000, abs=200)


@pytest.mark.parametrize("solver", ["milp", "linprog"])
def test_a_solver_without_a_choice_is_our_fault(
    monkeypatch: pytest.MonkeyPatch, solver: str
) -> None:
    nothing = OptimizeResult(x=None, message="It is infeasible.", status=2)
    monkeypatch.setattr(f"evaluator.prompts.selection.{solver}", lambda *_, **__: nothing)
    with refusal("no_selection", "infeasible", kind=PlatformError):
        select(pool(40), 5, 0)


@pytest.mark.parametrize(("solver", "bounded"), [("milp", True), ("linprog", False)])
def test_where_time_runs_out_the_best_choice_by_then_is_taken(
    monkeypatch: pytest.MonkeyPatch, solver: str, bounded: bool
) -> None:
    whole = select(pool(300, 2), 40, 0)
    late = OptimizeResult(x=None, message="Time limit reached.", status=1)
    monkeypatch.setattr(f"evaluator.prompts.selection.{solver}", lambda *_, **__: late)
    found = select(pool(300, 2), 40, 0)
    assert (whole.stopped, found.stopped) == (False, True)
    assert found.balance == found.greedy == whole.greedy
    assert found.bound == (whole.bound if bounded else found.shortfall)


def test_greedy_takes_the_prompt_that_lowers_the_sum_most() -> None:
    dimensions = pool(60, 4)
    labels = np.concatenate([one.labels for one in dimensions], axis=1)
    targets = np.concatenate([one.targets(12) for one in dimensions])
    order, taken = np.random.default_rng(9).permutation(60), list[int]()
    for _ in range(12):
        left = [place for place in order if place not in taken]
        after = [np.abs(labels[[*taken, one]].sum(axis=0) - targets).sum() for one in left]
        taken.append(left[int(np.argmin(after))])
    assert select(dimensions, 12, 9).greedy == balance_of(labels[taken], targets)
