"""One index over benchmarks: the mean of what is there, honest about what is not, and its tiers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks.schema import Scale
from benchmarks.statistics.joint_tests import JointTests
from leaderboard.ranking.index import Comparison, Headlines, IndexRank, borda_points, index_tests
from leaderboard.ranking.rank_ranges import tiers

B, BLOCKS = 60, 60
SCALES = {"errors": (1.2, 0.1), "graphs": (0.0, 0.9), "ratings": (0.4, 0.7)}
"""Chance and ceiling; of the first, lower is better."""
Weighed = tuple[list[Headlines], dict[str, float]]


def scale(chance: float = 0.0, ceiling: float = 1.0) -> Scale:
    return Scale(chance=chance, ceiling=ceiling, ceiling_is="made up", source="a test")


def board(
    name: str,
    values: Mapping[str, float],
    *,
    chance: float = 0.0,
    ceiling: float = 1.0,
    noise: float = 0.0,
    scatter: float | None = None,
    seed: int = 0,
) -> Headlines:
    """Resamples around the values, whose blocks scatter by so much of the whole if they are given.

    Noise that all metrics share leaves their order alone.
    """
    rng = np.random.default_rng([seed, *name.encode()])
    of = np.array(list(values.values()), np.float64)
    resamples = of[:, None] + noise * rng.normal(size=(of.size, B)) + 0.01 * rng.normal(size=B)
    shares = None
    if scatter is not None:
        off = scatter * (ceiling - chance) * rng.normal(size=(of.size, BLOCKS)) / BLOCKS**0.5
        shares = of[:, None] / BLOCKS + off - off.mean(axis=1, keepdims=True)
    return Headlines(name, scale(chance, ceiling), tuple(values), of, resamples, shares)


def on_all(worth: Mapping[str, float], scatter: float = 0.1, seed: int = 0) -> list[Headlines]:
    """Rescaled values at their worth, on each of the scales."""
    return [
        board(name, {m: low + v * (high - low) for m, v in worth.items()},
              chance=low, ceiling=high, scatter=scatter, seed=seed)
        for name, (low, high) in SCALES.items()
    ]  # fmt: skip


def chosen(one: Headlines, order: Sequence[int], *new: str) -> Headlines:
    """These metrics in this order; behind them copies of the first one by new names."""
    rows, shares = [*order, *[0 for _ in new]], one.contributions
    return replace(
        one,
        metrics=(*(one.metrics[i] for i in order), *new),
        values=one.values[rows],
        resamples=one.resamples[rows],
        contributions=None if shares is None else shares[rows],
    )


def moved(one: Headlines, factor: float, shift: float) -> Headlines:
    """The same in another unit."""
    shares = one.contributions
    return replace(
        one,
        scale=scale(factor * one.scale.chance + shift, factor * one.scale.ceiling + shift),
        values=factor * one.values + shift,
        resamples=factor * one.resamples + shift,
        contributions=None if shares is None else factor * shares + shift / BLOCKS,
    )


def ranks_of(
    boards: Sequence[Headlines], weights: Mapping[str, float] | None = None
) -> dict[str, IndexRank]:
    return {one.metric: one for one in Comparison(boards).index_ranks(weights)}


def tiers_of(
    boards: Sequence[Headlines], weights: Mapping[str, float] | None = None
) -> dict[str, int | None]:
    return {name: one.tier for name, one in ranks_of(boards, weights).items()}


def same_numbers(one: Mapping[str, IndexRank], other: Mapping[str, IndexRank]) -> None:
    """Every number of a standing but the name, ranks and tiers included."""
    for name, standing in one.items():
        found, expected = (
            [*s.index, *s.common, *s.borda, s.best_share, *(s.rank or ()), s.borda_rank or 0, s.tier or 0]
            for s in (other[name], standing)
        )  # fmt: skip
        assert list(map(float, found)) == pytest.approx(
            list(map(float, expected)), abs=1e-9, nan_ok=True
        )


@st.composite
def boards(draw: st.DrawFn, *, gaps: bool = True) -> list[Headlines]:
    """Up to four benchmarks of up to five metrics on grids (so there are ties), with gaps."""
    n, found = draw(st.integers(1, 5)), []
    for k in range(draw(st.integers(1, 4))):
        names = [f"m{i}" for i in range(n) if not gaps or draw(st.integers(0, 3))]
        values = {name: draw(st.integers(-4, 8)) / 8.0 for name in names or ["m0"]}
        chance, length = draw(st.integers(-2, 2)) / 4.0, draw(st.sampled_from([-1.0, -0.25, 0.5]))
        noise, scatter = draw(st.sampled_from([0.05, 0.3])), draw(st.sampled_from([0.02, 0.3, 1.0]))
        found.append(
            board(f"b{k}", values, chance=chance, ceiling=chance + length, noise=noise,
                  scatter=scatter, seed=draw(st.integers(0, 99)))
        )  # fmt: skip
    return found


@st.composite
def weighed(draw: st.DrawFn) -> Weighed:
    found = draw(boards())
    weights = {b.benchmark: float(draw(st.integers(0, 3))) for b in found}
    weights[found[0].benchmark] += not any(weights.values())
    return found, weights


# Values
@given(weighed())
@settings(max_examples=60, deadline=None)
def test_the_index_is_the_weighted_mean_of_what_a_metric_has(case: Weighed) -> None:
    found, weights = case
    for standing in Comparison(found).index_ranks(weights):
        total, weight, drawn = 0.0, 0.0, np.zeros(B)
        for b in found:
            if weights[b.benchmark] and standing.metric in b.metrics:
                row, length = b.metrics.index(standing.metric), b.scale.ceiling - b.scale.chance
                total += weights[b.benchmark] * (b.values[row] - b.scale.chance) / length
                drawn += weights[b.benchmark] * (b.resamples[row] - b.scale.chance) / length
                weight += weights[b.benchmark]
        if not weight:
            assert math.isnan(standing.index.value) and "none of" in standing.note
            continue
        ends = np.quantile(drawn / weight, [0.025, 0.975])
        assert standing.index == pytest.approx((total / weight, *ends))


@given(weighed())
@settings(max_examples=25, deadline=None)
def test_the_borda_share_is_points_over_comparisons(case: Weighed) -> None:
    found, weights = case

    def naive(metric: str, draw: int | None) -> float:
        points = compared = 0.0
        for b in found:
            if metric in b.metrics:
                column = b.values if draw is None else b.resamples[:, draw]
                rises = np.sign(b.scale.ceiling - b.scale.chance)
                own = rises * column[b.metrics.index(metric)]
                others = rises * np.delete(column, b.metrics.index(metric))
                won = (own > others).sum() + (own == others).sum() / 2
                points += weights[b.benchmark] * won
                compared += weights[b.benchmark] * others.size
        return points / compared if compared else math.nan

    for standing in Comparison(found).index_ranks(weights):
        drawn = [naive(standing.metric, draw) for draw in range(B)]
        expected = (naive(standing.metric, None), *np.quantile(drawn, [0.025, 0.975]))
        assert standing.borda == pytest.approx(expected, nan_ok=True)


def test_values_beyond_chance_and_ceiling_are_not_clipped_and_lower_may_be_better() -> None:
    found = ranks_of([board("a", {"bad": 0.4, "guess": 0.5, "human": 0.7, "better": 0.8},
                             chance=0.5, ceiling=0.7)])  # fmt: skip
    index = {name: standing.index.value for name, standing in found.items()}
    assert index == pytest.approx({"bad": -0.5, "guess": 0.0, "human": 1.0, "better": 1.5})
    errors = ranks_of([board("a", {"good": 0.2, "bad": 0.9}, chance=1.0, ceiling=0.0)])
    assert [s.index.value for s in errors.values()] == pytest.approx([0.8, 0.1])
    assert (errors["good"].rank, errors["good"].borda.value) == ((1, 1, 2), 1.0)  # untested


def test_who_is_undefined_in_a_draw_meets_nobody_there() -> None:
    points, met = borda_points(np.array([[0.9, np.nan], [0.5, 0.5], [0.5, 0.1]]))
    np.testing.assert_array_equal(points, [[2.0, np.nan], [0.5, 1.0], [0.5, 0.0]])
    np.testing.assert_array_equal(met, [2.0, 1.0])


# What is missing
def test_a_missing_benchmark_is_listed_is_not_zero_and_costs_the_rank() -> None:
    easy, hard = board("easy", {"a": 0.6, "b": 0.99}, noise=0.1), board("hard", {"a": 0.5})
    first, second = Comparison([hard, easy]).index_ranks()
    assert (first.metric, second.metric) == ("a", "b")  # full coverage first, whatever the value
    assert (second.missing, second.present) == (("hard",), ("easy",))
    assert second.index.value == pytest.approx(0.99) and "hard" in second.note
    assert second.index.low < second.index.value < second.index.high
    assert (first.rank, first.borda_rank) == ((1, 1, 1), 1)
    assert {second.rank, second.borda_rank, second.tier} == {None}
    assert math.isnan(second.best_share)
    assert (first.common.value, second.common.value) == pytest.approx((0.6, 0.99))  # of easy
    zero = board("hard", {"a": 0.5, "b": 0.0})
    assert ranks_of([easy, zero])["b"].index.value == pytest.approx(0.495)


def test_the_order_is_by_coverage_and_then_by_value() -> None:
    lowest = {"all low": 0.1, "all high": 0.2}
    x = board("x", {**lowest, "two": 0.9, "one": 1.0})
    y, z = board("y", {**lowest, "two": 0.9}), board("z", {**lowest, "other one": 0.95})
    assert list(ranks_of([x, y, z])) == ["all high", "all low", "two", "one", "other one"]


def test_without_a_common_benchmark_there_is_no_common_index() -> None:
    for standing in Comparison([board("x", {"a": 0.6}), board("y", {"b": 0.7})]).index_ranks():
        assert math.isnan(standing.common.value) and math.isnan(standing.borda.value)
        assert {"no common index", "no Borda share"} <= {
            n.split(":")[0] for n in standing.note.split("; ")
        }


def test_an_undefined_headline_is_a_missing_one() -> None:
    x, y = board("x", {"a": 0.6, "b": 0.5}), board("y", {"a": 0.4, "b": math.nan})
    undefined, absent = (ranks_of([x, other]) for other in (y, chosen(y, [0])))
    assert repr(undefined) == repr(absent)
    assert undefined["b"].missing == ("y",)


def test_a_headline_without_resamples_gives_a_value_without_interval_and_says_so() -> None:
    x, y = board("x", {"a": 0.6, "b": 0.5}), board("y", {"a": 0.4, "b": 0.3}, noise=0.1)
    y.resamples[1] = np.nan
    a, b = ranks_of([x, y]).values()
    assert b.index.value == pytest.approx(0.4) and "interval" in b.note
    assert np.isnan([b.index.low, b.best_share]).all()
    assert b.rank == (2, 1, 2)  # anywhere, for all one knows
    assert (a.note, a.best_share) == ("", 1.0)


# Invariances
@given(weighed(), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_the_order_of_metrics_and_benchmarks_is_irrelevant(case: Weighed, random) -> None:  # type: ignore[no-untyped-def]
    found, weights = case
    shuffled = [chosen(b, random.sample(range(len(b.metrics)), len(b.metrics))) for b in found]
    random.shuffle(shuffled)
    one = Comparison(found).index_ranks(weights)
    other = Comparison(shuffled).index_ranks(dict(reversed(weights.items())))
    assert repr(one) == repr(other)  # to the last digit; repr, since NaN is not NaN


def test_an_index_does_not_depend_on_how_many_others_there_are() -> None:
    """A sum of weights that a product of matrices rounds another way for one row than for two."""
    weights = {"b0": 1.0, "b1": 1.0, "b2": 3.0, "b3": 1.0}
    for n in range(2, 9):
        values = {f"m{i}": 0.1 * i for i in range(n)}
        many = [board(name, values, noise=0.1) for name in weights]
        alone = [chosen(b, [0]) for b in many]
        one, among = (ranks_of(b, weights)["m0"] for b in (alone, many))
        assert repr(one.index) == repr(among.index)


@pytest.mark.slow
@given(
    weighed(),
    st.sampled_from([(0.01, -7.0), (3.0, 0.5), (64.0, 0.0), (100.0, 20.0)]),
    st.sampled_from([1e-300, 0.1, 8.0, 1e300]),
)
@settings(max_examples=60, deadline=None)
def test_only_ratios_of_weights_and_no_unit_of_a_benchmark_matter(
    case: Weighed, unit: tuple[float, float], factor: float
) -> None:
    found, weights = case
    one = ranks_of(found, weights)
    same_numbers(one, ranks_of([moved(found[0], *unit), *found[1:]], weights))
    same_numbers(one, ranks_of(found, {name: factor * weight for name, weight in weights.items()}))


@given(boards(gaps=False))
@settings(max_examples=40, deadline=None)
def test_a_weight_of_zero_removes_a_benchmark(found: list[Headlines]) -> None:
    gone = board("gone", {"m0": 0.5, "only here": 0.9})
    zero = ranks_of([*found, gone], {**{b.benchmark: 1.0 for b in found}, "gone": 0.0})
    assert zero.pop("only here").present == ()
    assert repr(zero) == repr(ranks_of(found))
    tiny = {found[0].benchmark: 1e300, "gone": 1e-300}  # beside another it is zero
    first = [found[0], gone]
    assert repr(ranks_of(first, tiny)) == repr(ranks_of(first, {**tiny, "gone": 0.0}))


# Ranks
@given(boards(gaps=False))
@settings(max_examples=40, deadline=None)
def test_ranks_are_competition_ranks_with_tiers_that_rise_and_shares_of_the_best(
    found: list[Headlines],
) -> None:
    ordered = Comparison(found).index_ranks()
    values = np.array([s.index.value for s in ordered]).round(12)
    assert sum(s.best_share for s in ordered) == pytest.approx(1.0)
    for standing, value in zip(ordered, values, strict=True):
        assert standing.rank is not None
        assert standing.rank.rank == 1 + (values > value).sum()
        assert standing.rank.low <= standing.rank.rank <= standing.rank.high
    steps = [(s.rank.rank, s.tier or 0) for s in ordered if s.rank]
    assert steps[0] == (1, 1)
    for (rank, tier), (next_rank, next_tier) in pairwise(steps):
        assert next_tier - tier in ({0} if rank == next_rank else {0, 1})


def test_sums_of_the_same_parts_are_tied_however_they_round() -> None:
    parts = [0.1, 0.2, 0.3, 0.7]
    found = [board(f"b{k}", {"a": parts[k], "b": parts[3 - k]}, seed=k) for k in range(4)]
    for standing in Comparison(found).index_ranks():
        assert standing.rank is not None
        assert (standing.rank.rank, standing.borda.value) == (1, 0.5)


def test_whoever_leads_in_every_resample_is_best_for_certain_whatever_noise_all_share() -> None:
    scattered = board("x", {"a": 0.9, "b": 0.2, "c": 0.2}, scatter=0.1)
    found = Comparison([scattered]).index_ranks()
    assert [(s.best_share, s.rank) for s in found] == [(1.0, (1, 1, 1)), *[(0.0, (2, 2, 3))] * 2]
    resamples = np.array([0.52, 0.50])[:, None] + np.random.default_rng(0).normal(size=B)
    a, b = Comparison(
        [Headlines("x", scale(), ("a", "b"), np.array([0.52, 0.5]), resamples)]
    ).index_ranks()
    assert a.index.low < b.index.value < b.index.high
    assert (a.rank, a.best_share) == ((1, 1, 2), 1.0)


def test_borda_counts_places_and_not_distances() -> None:
    others = {"outlier": 0.49, "steady": 0.5, "last": 0.1}
    found = ranks_of([board("one", {**others, "outlier": 1.0}), *(board(b, others) for b in "xy")])
    outlier, steady = found["outlier"], found["steady"]
    assert outlier.rank and outlier.rank.rank == steady.borda_rank == 1
    assert (steady.borda.value, outlier.borda.value) == pytest.approx((5 / 6, 4 / 6))


# Tiers: a paired test over the blocks of all benchmarks, never too bold
@given(boards(gaps=False))
@settings(max_examples=40, deadline=None)
def test_metrics_with_the_same_scores_share_a_tier(found: list[Headlines]) -> None:
    twins = []
    for twin in (chosen(b, range(len(b.metrics)), "twin") for b in found):
        assert twin.contributions is not None
        twin.contributions[-1] *= 1 + 1e-15 * np.arange(BLOCKS)  # as another summation gives it
        twins.append(twin)
    tier = tiers_of(twins)
    assert tier["twin"] == tier["m0"]


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_a_clear_gap_separates_and_noise_does_not(seed: int) -> None:
    worth = {"a": 0.801, "b": 0.8, "c": 0.3, "d": 0.299}
    assert tiers_of(on_all(worth, 0.05, seed)) == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_over_one_benchmark_they_are_the_tests_of_its_board() -> None:
    rng = np.random.default_rng(3)
    shares = 0.002 * rng.normal(size=(12, 250)) + np.linspace(0.0, 0.0006, 12)[:, None]
    found, of_board = index_tests([shares], np.ones(1)), JointTests.of(shares, 0)
    np.testing.assert_array_equal(found.p_value, of_board.p_value)
    # A few clusters that all scatter comes from are not made many by those of another benchmark.
    few, still = rng.normal(size=(12, 9)), np.full((12, 250), 0.5)
    np.testing.assert_allclose(
        index_tests([few, still], np.ones(2)).p_value, JointTests.of(few, 0).p_value
    )
    twice = index_tests([shares, shares], np.array([1.0, 3.0]))
    np.testing.assert_allclose(twice.difference, found.difference, atol=1e-12)


@pytest.mark.slow
def test_equal_metrics_are_told_apart_as_rarely_as_promised() -> None:
    told = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        found = []
        for b in on_all(dict.fromkeys("abcd", 0.5)):
            noise = 0.05 * rng.normal(size=(4, BLOCKS)) / BLOCKS**0.5
            shares = b.values[:, None] / BLOCKS + noise
            found.append(replace(b, values=shares.sum(axis=1), contributions=shares))
        told += max(tier or 0 for tier in tiers_of(found).values()) > 1
    assert told / 400 <= 0.08  # 5 % are promised; 32 of 400 come up with a chance of 0.6 %.


def test_opposite_differences_on_two_benchmarks_do_not_make_a_difference() -> None:
    one = board("one", {"a": 0.9, "b": 0.1}, scatter=0.05)
    other = board("other", {"a": 0.1, "b": 0.9}, scatter=0.05)
    assert tiers_of([one, other]) == {"a": 1, "b": 1}
    assert tiers_of([one, other], {"one": 1.0, "other": 0.5}) == {"a": 1, "b": 2}


def test_without_contributions_or_a_benchmark_there_are_ranks_and_no_tiers() -> None:
    first, second, third = on_all({"a": 0.9, "b": 0.8, "c": 0.1}, 0.02)
    bare = [first, replace(second, contributions=None), third]
    assert [(s.rank is not None, s.tier) for s in ranks_of(bare).values()] == [(True, None)] * 3
    # The benchmark without them has no weight: then the others can be tested.
    weights = {"errors": 1.0, "graphs": 0.0, "ratings": 1.0}
    assert tiers_of(bare, weights)["c"] == 3
    assert second.contributions is not None
    lost = second.contributions.copy()
    lost[1] = np.nan
    assert tiers_of([first, replace(second, contributions=lost), third]) == {
        "a": 1,
        "b": None,
        "c": 2,
    }
    assert tiers_of([first, chosen(second, [0, 2]), third]) == {"a": 1, "c": 2, "b": None}


def test_equal_values_are_put_into_tiers_together() -> None:
    """Else the tier of one would depend on which of two equals is looked at first."""
    tests = JointTests.of(np.random.default_rng(0).normal(size=(3, 20)), 1)
    better = np.zeros((3, 3), bool)
    better[0, 2] = True
    told = replace(tests, better=better, p_best=np.ones(3))
    for order in ([0, 1, 2], [0, 2, 1], [2, 1, 0]):
        values = np.array([0.9, 0.5, 0.5])[order]
        found = tiers(values, told.at(np.array(order)))
        assert [found[order.index(i)] for i in range(3)] == [1, 2, 2]


# Mistakes
@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"x": 1.0, "y": -0.5}, "y has -0.5"), ({"x": 1.0, "y": math.nan}, "y has nan"),
        ({"x": math.inf, "y": 1.0}, "x has inf"), ({"x": 0.0, "y": 0.0}, "positive"),
        ({"x": 1.0}, "y"), ({"x": 1.0, "y": 1.0, "z": 1.0}, "z"),
    ],
)  # fmt: skip
def test_wrong_weights_are_refused(weights: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ranks_of([board("x", {"a": 0.5}), board("y", {"a": 0.5})], weights)


def test_headlines_and_boards_that_do_not_fit_are_refused() -> None:
    x = board("x", {"a": 0.5, "b": 0.4})
    for wrong in ([x, x], []):
        with pytest.raises(ValueError, match="different"):
            Comparison(wrong)
    with pytest.raises(ValueError, match="resamples"):
        Comparison([x, replace(x, benchmark="y", resamples=x.resamples[:, :9])])
    for change, match in (
        ({"metrics": ("a", "a")}, "twice"), ({"values": x.values[:1]}, "shape"),
        ({"resamples": x.resamples[:, :0]}, "shape"), ({"values": np.array([0.5, np.inf])}, "infinite"),
        ({"contributions": np.zeros((3, BLOCKS))}, "contributions"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            replace(x, **change)


def test_what_a_comparison_keeps_is_what_its_boards_hold() -> None:
    one, two = board("one", {"m": 0.5, "n": 0.4}), board("two", {"n": 0.1})
    # Each board is laid out for all metrics of both.
    assert sum(Comparison([each]).nbytes for each in (one, two)) < Comparison([one, two]).nbytes
    assert Comparison([one]).nbytes == 2 * 1 + 2 * 2 * (B + 1) * 8 + (B + 1) * 8


def test_intervals_are_expanded_as_for_the_benchmark_with_the_fewest_clusters() -> None:
    whole = board("a", {"x": 0.4, "y": 0.6}, noise=0.1)
    other = board("b", {"x": 0.5, "y": 0.7}, noise=0.1)

    def width(*clusters: int) -> float:
        of = [
            replace(one, n_clusters=np.array([n, 2]) if n else None)  # the other metric has two
            for one, n in zip((whole, other), clusters, strict=True)
        ]
        standing = next(one for one in Comparison(of).index_ranks() if one.metric == "x")
        return standing.index.high - standing.index.low

    unknown, many, few = width(0, 0), width(10_000, 10_000), width(10, 10_000)
    assert unknown == pytest.approx(many, rel=1e-3)
    ratio = math.sqrt(10 / 9) * stats.t.ppf(0.975, 9) / stats.norm.ppf(0.975)
    assert few / many == pytest.approx(ratio, rel=0.15)
