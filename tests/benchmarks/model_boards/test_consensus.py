"""What several metrics say together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from benchmarks.model_boards.estimates import consensus, tiers_down


@st.composite
def relations(draw: st.DrawFn) -> np.ndarray:
    """Relations of up to three metrics between up to seven models, any at all."""
    n_metrics, n_models = draw(st.integers(0, 3)), draw(st.integers(0, 7))
    found = draw(hnp.arrays(np.int64, (n_metrics, n_models, n_models), elements=st.integers(-1, 1)))
    upper = np.triu(found, 1)
    return np.asarray(upper - upper.swapaxes(1, 2))


@given(relations())
def test_better_is_antisymmetric_and_disputes_are_symmetric(found: np.ndarray) -> None:
    one = consensus(found, np.zeros(found.shape[1]))
    assert not (one.better & one.better.T).any()
    assert (one.disputed == one.disputed.T).all()
    assert not (one.better & one.disputed).any()


@pytest.mark.slow
@given(relations())
def test_rank_ranges_count_the_better_and_the_worse(found: np.ndarray) -> None:
    one = consensus(found, np.zeros(found.shape[1]))
    n = found.shape[1]
    assert (one.rank_low == 1 + one.better.sum(axis=0)).all()
    assert (one.rank_high == n - one.better.sum(axis=1)).all()
    assert ((one.rank_low >= 1) & (one.rank_low <= one.rank_high) & (one.rank_high <= n)).all()


@given(relations(), st.integers(0, 2))
def test_a_metric_that_is_asked_twice_changes_nothing(found: np.ndarray, which: int) -> None:
    if not len(found):
        return
    lead = np.arange(found.shape[1], dtype=float)
    twice = np.concatenate([found, found[[which % len(found)]]])
    one, other = consensus(found, lead), consensus(twice, lead)
    assert (one.better == other.better).all() and (one.disputed == other.disputed).all()
    assert (one.order == other.order).all() and (one.tiers == other.tiers).all()


@given(relations())
def test_one_metric_disputes_nothing(found: np.ndarray) -> None:
    assert not consensus(found[:1], np.zeros(found.shape[1])).disputed.any()


@given(relations(), st.integers(0, 99))
def test_the_order_in_which_models_are_given_has_no_say(found: np.ndarray, seed: int) -> None:
    n = found.shape[1]
    lead = np.arange(n, dtype=float)[::-1] / 7
    shuffled = np.random.default_rng(seed).permutation(n)
    one = consensus(found, lead)
    other = consensus(found[:, shuffled][:, :, shuffled], lead[shuffled])
    assert (one.rank_low[shuffled] == other.rank_low).all()
    assert (one.tiers[shuffled] == other.tiers).all()
    assert (shuffled[other.order] == one.order).all()


@given(relations())
def test_no_two_models_of_a_tier_are_told_apart(found: np.ndarray) -> None:
    one = consensus(found, np.zeros(found.shape[1]))
    told = one.better | one.better.T
    same = one.tiers[:, None] == one.tiers
    assert not (told & same).any()
    assert sorted(set(one.tiers)) == list(range(1, one.tiers.max(initial=0) + 1))
    assert (np.diff(one.tiers[one.order]) >= 0).all()


@given(hnp.arrays(np.float64, st.integers(1, 8), elements=st.floats(-5, 5, width=16)))
def test_without_circles_nobody_stands_below_a_model_it_is_better_than(quality: np.ndarray) -> None:
    # Better by more than one: transitive in no way that rank ranges alone would keep.
    found = np.sign(np.round(quality[:, None] - quality))[None].astype(np.int64)
    one = consensus(found, -quality)
    place = np.argsort(one.order)
    a, b = np.nonzero(one.better)
    assert (place[a] < place[b]).all()


def test_a_relation_that_is_not_transitive_keeps_the_better_model_above() -> None:
    # a beats b alone; c and d beat a alone: b has fewer that are better than a has.
    found = np.zeros((1, 4, 4), np.int64)
    for better, worse in ((0, 1), (2, 0), (3, 0)):
        found[0, better, worse], found[0, worse, better] = 1, -1
    one = consensus(found, np.zeros(4))
    assert list(one.order) == [2, 3, 0, 1]
    assert list(one.tiers) == [2, 3, 1, 1]


def test_models_better_than_each_other_in_a_circle_are_all_shown() -> None:
    found = np.zeros((1, 3, 3), np.int64)
    for better, worse in ((0, 1), (1, 2), (2, 0)):
        found[0, better, worse], found[0, worse, better] = 1, -1
    one = consensus(found, np.array([0.1, 0.3, 0.2]))
    assert sorted(one.order) == [0, 1, 2] and one.order[0] == 1


def test_tiers_leave_out_who_is_not_in_the_order() -> None:
    told = np.zeros((3, 3), bool)
    told[0, 2] = told[2, 0] = True
    assert list(tiers_down(told, np.array([2, 0]))) == [2, 0, 1]
