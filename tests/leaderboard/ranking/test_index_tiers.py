"""Tiers of the index: a paired test over the blocks of all benchmarks, never too bold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.arrays import FloatArray
from benchmarks.schema import Scale
from benchmarks.statistics.sign_flips import flip_bound, flip_tests, squared_differences
from leaderboard.ranking.index import Comparison, Headlines, Standing
from leaderboard.ranking.rank_ranges import tiers

BLOCKS, B = 60, 40
SCALES = {"errors": (1.2, 0.1), "graphs": (0.0, 0.9), "ratings": (0.4, 0.7)}
"""Chance and ceiling; of the first, lower is better."""


def headlines(
    worth: Mapping[str, float], name: str, *, noise: float = 0.1, seed: int = 0
) -> Headlines:
    """Rescaled values at their worth, whose blocks scatter by `noise` times the whole."""
    chance, ceiling = SCALES[name]
    rng = np.random.default_rng([seed, *name.encode()])
    rescaled = np.array(list(worth.values()))
    values = chance + rescaled * (ceiling - chance)
    scatter = noise * (ceiling - chance) * rng.normal(size=(len(worth), BLOCKS)) / BLOCKS**0.5
    shares = values[:, None] / BLOCKS + scatter - scatter.mean(axis=1, keepdims=True)
    resamples = values[:, None] + 0.02 * rng.normal(size=(len(worth), B))
    scale = Scale(chance=chance, ceiling=ceiling, ceiling_is="made up", source="a test")
    return Headlines(name, scale, tuple(worth), values, resamples, shares)


def tiers_of(
    boards: list[Headlines], weights: Mapping[str, float] | None = None
) -> dict[str, int | None]:
    return {one.metric: one.tier for one in Comparison(boards).standings(weights)}


def on_all(worth: Mapping[str, float], **options: float) -> list[Headlines]:
    return [headlines(worth, name, **options) for name in SCALES]  # type: ignore[arg-type]


def shuffled(board: Headlines, order: FloatArray) -> Headlines:
    assert board.contributions is not None
    return replace(
        board,
        metrics=tuple(board.metrics[i] for i in order),
        values=board.values[order],
        resamples=board.resamples[order],
        contributions=board.contributions[order],
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Headlines], dict[str, float]]:
    """Metrics with ties, on three benchmarks, under any weights."""
    n = draw(st.integers(1, 7))
    worth = {f"m{i}": draw(st.integers(0, 8)) / 8 for i in range(n)}
    noise, seed = draw(st.sampled_from([0.02, 0.3, 1.0])), draw(st.integers(0, 999))
    weights = {name: float(draw(st.integers(0, 3))) for name in SCALES}
    weights["graphs"] += not any(weights.values())
    return on_all(worth, noise=noise, seed=seed), weights


# --- properties -------------------------------------------------------------------------------


@given(cases(), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_the_order_in_which_metrics_and_benchmarks_come_changes_no_tier(case, random) -> None:  # type: ignore[no-untyped-def]
    boards, weights = case
    again = []
    for board in boards:
        order = list(range(len(board.metrics)))
        random.shuffle(order)
        again.append(shuffled(board, np.array(order)))
    random.shuffle(again)
    assert tiers_of(again, weights) == tiers_of(boards, weights)


@given(cases())
@settings(max_examples=40, deadline=None)
def test_tiers_rise_with_the_rank_and_equal_ranks_share_one(case) -> None:  # type: ignore[no-untyped-def]
    boards, weights = case
    standings = [one for one in Comparison(boards).standings(weights) if one.rank]
    found = sorted((one.rank.rank, one.tier or 0) for one in standings if one.rank)
    assert [tier for _, tier in found] == sorted(tier for _, tier in found)
    assert found[0][1] == 1
    assert all(later[1] - one[1] in {0, 1} for one, later in pairwise(found))
    by_rank: dict[int, set[int]] = {}
    for rank, tier in found:
        by_rank.setdefault(rank, set()).add(tier)
    assert all(len(of) == 1 for of in by_rank.values())


@given(cases())
@settings(max_examples=40, deadline=None)
def test_metrics_with_the_same_scores_share_a_tier(case) -> None:  # type: ignore[no-untyped-def]
    boards, weights = case
    twins = []
    for board in boards:
        assert board.contributions is not None
        # As another summation would give it.
        nearly = board.contributions[:1] * (1 + 1e-15 * np.arange(BLOCKS))
        twins.append(
            replace(
                board,
                metrics=(*board.metrics, "twin"),
                values=np.append(board.values, board.values[0]),
                resamples=np.vstack([board.resamples, board.resamples[:1]]),
                contributions=np.vstack([board.contributions, nearly]),
            )
        )
    found = tiers_of(twins, weights)
    assert found["twin"] == found["m0"]


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_a_clear_gap_separates_and_noise_does_not(seed: int) -> None:
    worth = {"a": 0.801, "b": 0.8, "c": 0.3, "d": 0.299}
    found = tiers_of(on_all(worth, noise=0.05, seed=seed))
    assert found == {"a": 1, "b": 1, "c": 2, "d": 2}


@given(cases(), st.sampled_from([0.25, 3.0, 1000.0]))
@settings(max_examples=20, deadline=None)
def test_only_ratios_of_weights_and_no_unit_of_a_benchmark_matter(case, factor: float) -> None:  # type: ignore[no-untyped-def]
    boards, weights = case
    expected = tiers_of(boards, weights)
    assert tiers_of(boards, {name: factor * weight for name, weight in weights.items()}) == expected
    in_percent = [
        replace(
            board,
            scale=board.scale.model_copy(
                update={"chance": 64 * board.scale.chance, "ceiling": 64 * board.scale.ceiling}
            ),
            values=64 * board.values,
            resamples=64 * board.resamples,
            contributions=64 * board.contributions,
        )
        for board in boards
    ]
    assert tiers_of(in_percent, weights) == expected


# --- the test behind them ---------------------------------------------------------------------


@given(st.lists(st.floats(-1, 1, width=16), min_size=1, max_size=10))
@settings(max_examples=200, deadline=None)
def test_the_p_value_is_never_below_the_share_of_all_patterns_of_signs(d: list[float]) -> None:
    of = np.array(d)
    sums = np.array([np.dot(signs, of) for signs in product((-1, 1), repeat=of.size)])
    exact = float((np.abs(sums) >= abs(of.sum()) - 1e-12).mean())
    bound = float(flip_bound(np.array(of.sum()), np.array(np.square(of).sum())))
    assert bound >= exact - 1e-12
    assert bound <= 1.0


def test_over_one_benchmark_it_is_the_board_test_within_its_factor() -> None:
    rng = np.random.default_rng(3)
    shares = 0.002 * rng.normal(size=(12, 250)) + np.linspace(0.0, 0.0006, 12)[:, None]
    drawn = flip_tests(shares, 7)
    totals = shares.sum(axis=1)
    bound = flip_bound(np.subtract.outer(totals, totals), squared_differences(shares))
    told = ~np.eye(12, dtype=bool) & (drawn.p_value > 1e-3) & (bound < 1.0)
    assert told.sum() > 20
    ratio = bound[told] / drawn.p_value[told]
    assert ratio.min() > 1.5 and ratio.max() < 5.0


@pytest.mark.slow
def test_equal_metrics_are_told_apart_as_rarely_as_promised() -> None:
    told = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        boards = []
        for name in SCALES:
            board = headlines(dict.fromkeys("abcd", 0.5), name)
            noise = 0.05 * rng.normal(size=(4, BLOCKS)) / BLOCKS**0.5
            shares = board.values[:, None] / BLOCKS + noise
            boards.append(replace(board, values=shares.sum(axis=1), contributions=shares))
        told += max(tier or 0 for tier in tiers_of(boards).values()) > 1
    assert told / 400 <= 0.05  # 0.05 is the limit of the family; the bound stays well below it.


def test_opposite_differences_on_two_benchmarks_do_not_make_a_difference() -> None:
    boards = [
        headlines({"a": 0.9, "b": 0.1}, "graphs", noise=0.05),
        headlines({"a": 0.1, "b": 0.9}, "ratings", noise=0.05),
    ]
    assert tiers_of(boards) == {"a": 1, "b": 1}
    assert tiers_of(boards, {"graphs": 1.0, "ratings": 0.5}) == {"a": 1, "b": 2}


def test_squared_differences_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(0)
    shares = 5.0 + rng.normal(size=(6, 30))
    shares[4] = shares[0]
    shares[5] = shares[0]
    shares[5, 3] += 1e-5
    shares[2, 7] = np.nan
    found = squared_differences(shares)
    expected = np.square(shares[:, None] - shares[None]).sum(axis=2)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert found[0, 4] == 0.0
    assert np.isnan(found[2]).all()
    assert np.isnan(squared_differences(np.zeros((3, 0)))).all()


# --- where there is nothing to test with -------------------------------------------------------


def by_name(boards: list[Headlines]) -> dict[str, Standing]:
    return {one.metric: one for one in Comparison(boards).standings()}


def test_without_contributions_there_are_ranks_and_no_tiers() -> None:
    boards = on_all({"a": 0.9, "b": 0.1})
    boards[1] = replace(boards[1], contributions=None)
    found = by_name(boards)
    assert found["a"].rank is not None and found["a"].rank.rank == 1
    assert [one.tier for one in found.values()] == [None, None]
    # The benchmark without them has no weight: then the others can be tested.
    assert tiers_of(boards, {"errors": 1.0, "graphs": 0.0, "ratings": 1.0}) == {"a": 1, "b": 2}


def test_a_metric_without_contributions_alone_has_no_tier() -> None:
    boards = on_all({"a": 0.9, "b": 0.8, "c": 0.1}, noise=0.02)
    shares = boards[0].contributions
    assert shares is not None
    lost = shares.copy()
    lost[1] = np.nan
    boards[0] = replace(boards[0], contributions=lost)
    assert tiers_of(boards) == {"a": 1, "b": None, "c": 2}


def test_a_metric_that_lacks_a_benchmark_has_no_tier() -> None:
    whole = on_all({"a": 0.9, "b": 0.1})
    part = headlines({"a": 0.9, "b": 0.1, "c": 0.5}, "graphs")
    found = tiers_of([whole[0], part, whole[2]])
    assert found == {"a": 1, "b": 2, "c": None}


def test_contributions_of_other_metrics_are_refused() -> None:
    board = headlines({"a": 0.9, "b": 0.1}, "graphs")
    with pytest.raises(ValueError, match="as many contributions"):
        replace(board, contributions=np.zeros((3, BLOCKS)))


def test_equal_values_are_put_into_tiers_together() -> None:
    """Else the tier of one would depend on which of two equals is looked at first."""
    corrected = np.ones((3, 3))
    corrected[0, 2] = corrected[2, 0] = 0.01
    for order in ([0, 1, 2], [0, 2, 1], [2, 1, 0]):
        values = np.array([0.9, 0.5, 0.5])[order]
        found = tiers(values, corrected[np.ix_(order, order)])
        assert [found[order.index(i)] for i in range(3)] == [1, 2, 2]
