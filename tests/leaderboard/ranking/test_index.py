"""One index over benchmarks: the mean of what is there, honest about what is not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.arrays import FloatArray
from benchmarks.schema import Scale
from leaderboard.ranking.borda import borda_points
from leaderboard.ranking.index import Comparison, Headlines, Standing

B = 60


def scale(chance: float = 0.0, ceiling: float = 1.0) -> Scale:
    return Scale(chance=chance, ceiling=ceiling, ceiling_is="made up", source="a test")


def board(
    name: str,
    values: dict[str, float],
    *,
    chance: float = 0.0,
    ceiling: float = 1.0,
    noise: float = 0.0,
    seed: int = 0,
) -> Headlines:
    """Resamples around the values; noise that all metrics share leaves their order alone."""
    rng = np.random.default_rng([seed, *name.encode()])
    of = np.array(list(values.values()), np.float64)
    resamples = of[:, None] + noise * rng.normal(size=(of.size, B)) + 0.01 * rng.normal(size=B)
    return Headlines(name, scale(chance, ceiling), tuple(values), of, resamples)


def by_name(standings: Sequence[Standing]) -> dict[str, Standing]:
    return {standing.metric: standing for standing in standings}


def numbers(standing: Standing) -> list[float]:
    """Every number of a standing but the name, ranks included."""
    ranks = [*(standing.rank or ()), *(standing.borda_rank or ())]
    shares = [*standing.index, *standing.common, *standing.borda, standing.p_best]
    return [*shares, *map(float, ranks)]


@st.composite
def boards(draw: st.DrawFn, *, gaps: bool = True) -> list[Headlines]:
    """Up to four benchmarks of up to five metrics on grids (so there are ties), with gaps."""
    n = draw(st.integers(1, 5))
    found = []
    for k in range(draw(st.integers(1, 4))):
        names = [f"m{i}" for i in range(n) if not gaps or draw(st.integers(0, 3))]
        values = {name: draw(st.integers(-4, 8)) / 8.0 for name in names or ["m0"]}
        chance = draw(st.integers(-2, 2)) / 4.0
        length = draw(st.sampled_from([-1.0, -0.25, 0.5, 1.0]))
        noise, seed = draw(st.sampled_from([0.05, 0.3])), draw(st.integers(0, 99))
        found.append(
            board(f"b{k}", values, chance=chance, ceiling=chance + length, noise=noise, seed=seed)
        )
    return found


@st.composite
def weighed(draw: st.DrawFn) -> tuple[list[Headlines], dict[str, float]]:
    found = draw(boards())
    weights = {b.benchmark: float(draw(st.integers(0, 3))) for b in found}
    weights[found[0].benchmark] += not any(weights.values())
    return found, weights


# --- values ---------------------------------------------------------------------------------


@given(weighed())
@settings(max_examples=60, deadline=None)
def test_the_index_is_the_weighted_mean_of_what_a_metric_has(
    case: tuple[list[Headlines], dict[str, float]],
) -> None:
    found, weights = case
    for standing in Comparison(found).standings(weights):
        total, weight, drawn = 0.0, 0.0, np.zeros(B)
        for b in found:
            if weights[b.benchmark] and standing.metric in b.metrics:
                row, length = b.metrics.index(standing.metric), b.scale.ceiling - b.scale.chance
                total += weights[b.benchmark] * (b.values[row] - b.scale.chance) / length
                drawn += weights[b.benchmark] * (b.resamples[row] - b.scale.chance) / length
                weight += weights[b.benchmark]
        if not weight:
            assert math.isnan(standing.index.value)
            assert "none of the selected benchmarks" in standing.note
            continue
        ends = np.quantile(drawn / weight, [0.025, 0.975])
        assert standing.index == pytest.approx((total / weight, *ends))


@given(weighed())
@settings(max_examples=60, deadline=None)
def test_the_borda_share_is_points_over_comparisons(
    case: tuple[list[Headlines], dict[str, float]],
) -> None:
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

    for standing in Comparison(found).standings(weights):
        drawn = [naive(standing.metric, draw) for draw in range(B)]
        ends = np.quantile(drawn, [0.025, 0.975])
        expected = (naive(standing.metric, None), *ends)
        assert standing.borda == pytest.approx(expected, nan_ok=True)


def test_values_beyond_chance_and_ceiling_are_not_clipped() -> None:
    found = board("a", {"bad": 0.4, "guess": 0.5, "human": 0.7, "better": 0.8}, chance=0.5,
                  ceiling=0.7)  # fmt: skip
    index = {name: s.index.value for name, s in by_name(Comparison([found]).standings()).items()}
    assert index == pytest.approx({"bad": -0.5, "guess": 0.0, "human": 1.0, "better": 1.5})


def test_a_lower_is_better_headline_counts_the_other_way_round() -> None:
    errors = board("a", {"good": 0.2, "bad": 0.9}, chance=1.0, ceiling=0.0)
    found = by_name(Comparison([errors]).standings())
    assert found["good"].index.value == pytest.approx(0.8)
    assert found["bad"].index.value == pytest.approx(0.1)
    assert found["good"].rank is not None
    assert found["good"].rank.rank == 1
    assert found["good"].borda.value == 1.0


# --- what is missing ------------------------------------------------------------------------


def test_a_missing_benchmark_is_listed_and_is_not_zero() -> None:
    easy, hard = board("easy", {"a": 0.9, "b": 0.8}), board("hard", {"a": 0.5})
    found = by_name(Comparison([easy, hard]).standings())
    assert found["b"].index.value == pytest.approx(0.8)
    assert found["b"].missing == ("hard",)
    assert found["b"].present == ("easy",)
    zero = board("hard", {"a": 0.5, "b": 0.0})
    assert by_name(Comparison([easy, zero]).standings())["b"].index.value == pytest.approx(0.4)


def test_a_metric_with_gaps_has_a_value_and_an_interval_but_no_rank_and_the_reason() -> None:
    easy, hard = board("easy", {"a": 0.6, "b": 0.99}, noise=0.1), board("hard", {"a": 0.5})
    first, second = Comparison([hard, easy]).standings()
    assert (first.metric, second.metric) == ("a", "b")  # full coverage first, whatever the value
    assert second.index.value > first.index.value
    assert first.rank == first.borda_rank == (1, 1, 1)
    assert second.rank is second.borda_rank is None
    assert math.isnan(second.p_best)
    assert second.index.low < second.index.value < second.index.high
    assert second.note == "no rank: it has none on hard"


def test_the_order_is_by_coverage_and_then_by_value() -> None:
    x = board("x", {"all low": 0.1, "all high": 0.2, "two": 0.9, "one": 1.0})
    y = board("y", {"all low": 0.1, "all high": 0.2, "two": 0.9})
    z = board("z", {"all low": 0.1, "all high": 0.2, "other one": 0.95})
    found = Comparison([x, y, z]).standings()
    names = [standing.metric for standing in found]
    assert names == ["all high", "all low", "two", "one", "other one"]


def test_over_the_common_benchmarks_all_are_comparable() -> None:
    easy = board("easy", {"a": 0.6, "b": 0.7})
    hard = board("hard", {"a": 0.2})
    found = by_name(Comparison([easy, hard]).standings())
    assert found["a"].index.value == pytest.approx(0.4)
    assert found["a"].common.value == pytest.approx(0.6)
    assert found["b"].common.value == pytest.approx(0.7)


def test_without_a_common_benchmark_there_is_no_common_index() -> None:
    found = Comparison([board("x", {"a": 0.6}), board("y", {"b": 0.7})]).standings()
    for standing in found:
        assert math.isnan(standing.common.value)
        assert math.isnan(standing.borda.value)
        assert "no common index" in standing.note
        assert "no Borda share" in standing.note


def test_an_undefined_headline_is_a_missing_one() -> None:
    x, y = board("x", {"a": 0.6, "b": 0.5}), board("y", {"a": 0.4, "b": math.nan})
    without = replace(y, metrics=("a",), values=y.values[:1], resamples=y.resamples[:1])
    undefined, absent = (Comparison([x, other]).standings() for other in (y, without))
    assert repr(undefined) == repr(absent)
    assert by_name(undefined)["b"].missing == ("y",)


def test_a_headline_without_resamples_gives_a_value_without_interval_and_says_so() -> None:
    x, y = board("x", {"a": 0.6, "b": 0.5}), board("y", {"a": 0.4, "b": 0.3}, noise=0.1)
    resamples = y.resamples.copy()
    resamples[1] = np.nan
    found = by_name(Comparison([x, replace(y, resamples=resamples)]).standings())
    assert found["b"].index.value == pytest.approx(0.4)
    assert math.isnan(found["b"].index.low)
    assert math.isnan(found["b"].p_best)
    assert "no interval" in found["b"].note
    assert found["b"].rank == (2, 1, 2)  # anywhere, for all one knows
    assert found["a"].note == ""
    assert found["a"].p_best == 1.0


# --- invariances ----------------------------------------------------------------------------


@given(weighed())
@settings(max_examples=40, deadline=None)
def test_the_order_of_metrics_and_benchmarks_is_irrelevant(
    case: tuple[list[Headlines], dict[str, float]],
) -> None:
    found, weights = case
    shuffled = []
    for b in reversed(found):
        order = np.random.default_rng(len(b.metrics)).permutation(len(b.metrics))
        names = tuple(b.metrics[i] for i in order)
        shuffled.append(
            replace(b, metrics=names, values=b.values[order], resamples=b.resamples[order])
        )
    reversed_weights = dict(reversed(weights.items()))
    one = Comparison(found).standings(weights)
    other = Comparison(shuffled).standings(reversed_weights)
    assert repr(one) == repr(other)  # to the last digit; repr, since NaN is not NaN


@given(weighed())
@settings(max_examples=40, deadline=None)
def test_adding_a_metric_moves_no_other_index(
    case: tuple[list[Headlines], dict[str, float]],
) -> None:
    found, weights = case
    before = by_name(Comparison(found).standings(weights))
    more = [
        replace(
            b,
            metrics=(*b.metrics, "new"),
            values=np.append(b.values, 0.3),
            resamples=np.vstack([b.resamples, np.full(B, 0.3)]),
        )
        for b in found[:2]
    ]
    after = by_name(Comparison([*more, *found[2:]]).standings(weights))
    for name, standing in before.items():
        assert repr(after[name].index) == repr(standing.index)


@given(weighed(), st.sampled_from([0.01, 3.0, 100.0]), st.sampled_from([-7.0, 0.5, 20.0]))
@settings(max_examples=40, deadline=None)
def test_the_unit_of_a_benchmark_changes_nothing(
    case: tuple[list[Headlines], dict[str, float]], factor: float, shift: float
) -> None:
    found, weights = case
    first = found[0]
    moved = replace(
        first,
        scale=scale(factor * first.scale.chance + shift, factor * first.scale.ceiling + shift),
        values=factor * first.values + shift,
        resamples=factor * first.resamples + shift,
    )
    one = by_name(Comparison(found).standings(weights))
    other = by_name(Comparison([moved, *found[1:]]).standings(weights))
    for name, standing in one.items():
        assert numbers(other[name]) == pytest.approx(numbers(standing), abs=1e-9, nan_ok=True)


@given(weighed(), st.sampled_from([1e-300, 0.1, 8.0, 1e300]))
@settings(max_examples=40, deadline=None)
def test_only_ratios_of_weights_matter(
    case: tuple[list[Headlines], dict[str, float]], factor: float
) -> None:
    found, weights = case
    scaled = {name: factor * weight for name, weight in weights.items()}
    one = by_name(Comparison(found).standings(weights))
    other = by_name(Comparison(found).standings(scaled))
    for name, standing in one.items():
        assert numbers(other[name]) == pytest.approx(numbers(standing), abs=1e-9, nan_ok=True)


@given(boards(gaps=False))
@settings(max_examples=40, deadline=None)
def test_a_weight_of_zero_removes_a_benchmark(found: list[Headlines]) -> None:
    gone = board("gone", {"m0": 0.5, "only here": 0.9})
    weights = {**{b.benchmark: 1.0 for b in found}, "gone": 0.0}
    without = by_name(Comparison(found).standings())
    zero = by_name(Comparison([*found, gone]).standings(weights))
    assert zero.pop("only here").present == ()
    assert repr(zero) == repr(without)


def test_a_weight_too_small_beside_another_is_zero() -> None:
    found = Comparison([board("x", {"a": 0.5}), board("y", {"b": 0.5})])
    assert repr(found.standings({"x": 1e300, "y": 1e-300})) == repr(
        found.standings({"x": 1.0, "y": 0.0})
    )


# --- ranks ----------------------------------------------------------------------------------


@given(boards(gaps=False))
@settings(max_examples=40, deadline=None)
def test_with_full_coverage_ranks_are_competition_ranks_and_p_best_adds_up_to_one(
    found: list[Headlines],
) -> None:
    standings = Comparison(found).standings()
    values = np.array([s.index.value for s in standings]).round(12)
    assert sum(s.p_best for s in standings) == pytest.approx(1.0)
    for standing, value in zip(standings, values, strict=True):
        assert standing.rank is not None
        assert standing.rank.rank == 1 + (values > value).sum()
        assert standing.rank.low <= standing.rank.rank <= standing.rank.high


def test_sums_of_the_same_parts_are_tied_however_they_round() -> None:
    parts = [0.1, 0.2, 0.3, 0.7]
    found = [board(f"b{k}", {"a": parts[k], "b": parts[3 - k]}, seed=k) for k in range(len(parts))]
    a, b = Comparison(found).standings()
    assert a.rank is not None
    assert b.rank is not None
    assert a.rank.rank == b.rank.rank == 1
    assert a.borda.value == b.borda.value == 0.5


def test_whoever_leads_in_every_resample_is_best_for_certain() -> None:
    a, b, c = Comparison([board("x", {"a": 0.9, "b": 0.2, "c": 0.2})]).standings()
    assert (a.p_best, b.p_best, c.p_best) == (1.0, 0.0, 0.0)
    assert a.rank == (1, 1, 1)
    assert b.rank == (2, 2, 2)


def test_differences_are_paired_because_resamples_are_shared() -> None:
    """Noise that all metrics share widens the intervals, but leaves the ranks certain."""
    common = np.random.default_rng(0).normal(size=B)
    resamples = np.array([0.52, 0.50])[:, None] + common
    shared = Headlines("x", scale(), ("a", "b"), np.array([0.52, 0.5]), resamples)
    a, b = Comparison([shared]).standings()
    assert a.index.low < b.index.value < b.index.high
    assert a.rank == (1, 1, 1)
    assert a.p_best == 1.0


def test_borda_counts_places_and_not_distances() -> None:
    one = board("one", {"outlier": 1.0, "steady": 0.5, "last": 0.1})
    two = board("two", {"outlier": 0.49, "steady": 0.5, "last": 0.1})
    three = board("three", {"outlier": 0.49, "steady": 0.5, "last": 0.1})
    found = by_name(Comparison([one, two, three]).standings())
    assert found["outlier"].rank is not None
    assert found["steady"].borda_rank is not None
    assert found["outlier"].rank.rank == 1
    assert found["steady"].borda_rank.rank == 1
    assert found["steady"].borda.value == pytest.approx(5 / 6)
    assert found["outlier"].borda.value == pytest.approx(4 / 6)


def test_who_is_undefined_in_a_draw_meets_nobody_there() -> None:
    values: FloatArray = np.array([[0.9, np.nan], [0.5, 0.5], [0.5, 0.1]])
    points, met = borda_points(values)
    np.testing.assert_array_equal(points, [[2.0, np.nan], [0.5, 1.0], [0.5, 0.0]])
    np.testing.assert_array_equal(met, [2.0, 1.0])


# --- mistakes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"x": 1.0, "y": -0.5}, "y has -0.5"),
        ({"x": 1.0, "y": math.nan}, "y has nan"),
        ({"x": math.inf, "y": 1.0}, "x has inf"),
        ({"x": 0.0, "y": 0.0}, "at least one must be positive"),
        ({"x": 1.0}, "y"),
        ({"x": 1.0, "y": 1.0, "z": 1.0}, "z"),
    ],
)
def test_wrong_weights_are_refused(weights: dict[str, float], said: str) -> None:
    comparison = Comparison([board("x", {"a": 0.5}), board("y", {"a": 0.5})])
    with pytest.raises(ValueError, match=said):
        comparison.standings(weights)


def test_a_benchmark_comes_once_and_resamples_must_join() -> None:
    x = board("x", {"a": 0.5})
    with pytest.raises(ValueError, match="different benchmarks"):
        Comparison([x, x])
    with pytest.raises(ValueError, match="different benchmarks"):
        Comparison([])
    with pytest.raises(ValueError, match="same number of resamples"):
        Comparison([x, replace(x, benchmark="y", resamples=x.resamples[:, :9])])


def test_headlines_that_do_not_fit_are_refused() -> None:
    x = board("x", {"a": 0.5, "b": 0.4})
    with pytest.raises(ValueError, match="comes twice"):
        replace(x, metrics=("a", "a"))
    with pytest.raises(ValueError, match="shape"):
        replace(x, values=x.values[:1])
    with pytest.raises(ValueError, match="shape"):
        replace(x, resamples=x.resamples[:, :0])
    with pytest.raises(ValueError, match="infinite"):
        replace(x, values=np.array([0.5, np.inf]))


def test_an_index_does_not_depend_on_how_many_others_there_are() -> None:
    """A sum of weights that a product of matrices rounds another way for one row than for two."""
    weights = {"b0": 1.0, "b1": 1.0, "b2": 3.0, "b3": 1.0}
    for n in range(2, 9):
        values = {f"m{i}": 0.1 * i for i in range(n)}
        many = [board(name, values, noise=0.1) for name in weights]
        alone = [
            replace(b, metrics=b.metrics[:1], values=b.values[:1], resamples=b.resamples[:1])
            for b in many
        ]
        one, among = (by_name(Comparison(b).standings(weights))["m0"] for b in (alone, many))
        assert repr(one.index) == repr(among.index)
