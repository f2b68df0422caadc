"""Agreement of raters: alpha, error consistency, one against the others, Kendall's W."""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from benchmarks.arrays import FloatArray
from benchmarks.statistics.concordance import (
    DRAWN_ARRANGEMENTS,
    EXACT_ARRANGEMENTS,
    concordance,
    kendall_w,
    taus_between,
)
from benchmarks.statistics.correlation import spearman
from benchmarks.statistics.raters import (
    Level,
    error_consistency,
    krippendorff_alpha,
    one_against_the_others,
    resampled_alpha,
)

NAN = float("nan")
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")


# Krippendorff's alpha
@pytest.mark.parametrize(
    ("level", "expected"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_alpha_of_krippendorffs_textbook_example(level: Level, expected: float) -> None:
    """Four observers, twelve units (Krippendorff, Computing Krippendorff's alpha-reliability)."""
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
    assert krippendorff_alpha(np.array(observers).T, level) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize(
    ("ratings", "level", "expected"),
    [
        ([[1, 1], [2, 2], [1, 2]], "nominal", 0.4444), ([[1, 1], [2, 2]], "ordinal", 1.0),
        ([[1, 1], [2, 2], [1, 2], [5, NAN]], "nominal", 0.4444),  # one rating does not count
        ([[3, 3], [3, 3]], "nominal", NAN), ([[1, NAN], [2, NAN]], "nominal", NAN),
    ],
)  # fmt: skip
def test_alpha_of_small_examples(ratings: object, level: Level, expected: float) -> None:
    found = krippendorff_alpha(np.array(ratings), level)
    assert found == pytest.approx(expected, abs=5e-5, nan_ok=True)


def test_alpha_of_two_observers_of_binary_data() -> None:
    """Two observers, ten units (Krippendorff, Computing Krippendorff's alpha-reliability)."""
    meg, owen = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    table = np.array([meg, owen]).T
    assert krippendorff_alpha(table, "nominal") == pytest.approx(0.095, abs=5e-4)
    assert resampled_alpha(table, np.arange(10), np.ones((1, 10))) == pytest.approx(
        [0.095], abs=5e-4
    )


def test_alpha_in_each_resample_is_alpha_of_the_units_drawn() -> None:
    rng = np.random.default_rng(3)
    table = rng.integers(0, 3, (30, 4)).astype(float)
    table[rng.random((30, 4)) < 0.3] = NAN
    clusters = rng.integers(0, 8, 30)
    counts = np.vstack([np.ones(8), rng.multinomial(8, np.full(8, 1 / 8), 40), np.zeros(8)])
    found = resampled_alpha(table, clusters, counts)
    for row, drawn in zip(found, counts.astype(int), strict=True):
        units = np.repeat(np.arange(30), drawn[clusters])
        assert row == pytest.approx(krippendorff_alpha(table[units], "nominal"), nan_ok=True)
    assert math.isnan(found[-1]) and np.isfinite(found[:-1]).all()
    assert np.isnan(resampled_alpha(np.ones((2, 2)), [0, 0], [[1.0]])).all()


def slow_alpha(ratings: list[list[float]], level: Level) -> float:
    """The definition, pair of ratings by pair of ratings."""
    units = [[r for r in unit if not np.isnan(r)] for unit in ratings]
    units = [unit for unit in units if len(unit) >= 2]
    everything = [r for unit in units for r in unit]

    def distance(a: float, b: float) -> float:
        if level == "nominal":
            return float(a != b)
        if level == "interval":
            return (a - b) ** 2
        low, high = min(a, b), max(a, b)
        between = sum(low <= r <= high for r in everything)
        return (between - (everything.count(a) + everything.count(b)) / 2) ** 2 * (a != b)

    observed = sum(
        distance(a, b) / (len(unit) - 1)
        for unit in units
        for a, b in itertools.permutations(unit, 2)
    )
    expected = sum(distance(a, b) for a, b in itertools.permutations(everything, 2))
    if expected == 0:
        return NAN
    return 1 - observed * (len(everything) - 1) / expected


RATINGS = st.lists(st.sampled_from([1.0, 2.0, 2.5, 5.0, NAN]), min_size=3, max_size=3)


@pytest.mark.first_quick
@pytest.mark.parametrize("level", LEVELS)
def test_alpha_is_its_definition(level: Level) -> None:
    @settings(deadline=None)
    @given(st.lists(RATINGS, min_size=1, max_size=10))
    def holds(ratings: list[list[float]]) -> None:
        expected = slow_alpha(ratings, level)
        found = krippendorff_alpha(np.array(ratings), level)
        assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)

    holds()
    assert math.isnan(krippendorff_alpha(np.empty((0, 4)), level))


@pytest.mark.paper
def test_dsg_likert_ratings_of_tifa160(assay_data: Path) -> None:
    units: dict[tuple[str, str], list[float]] = defaultdict(list)
    place = assay_data / "dsg_tifa160" / "tifa160-likert-anns.csv"
    with place.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            units[row["t2i_model"], row["item_id"]].append(float(row["answer"]))
    ratings = np.array(list(itertools.zip_longest(*units.values(), fillvalue=NAN))).T
    assert len(ratings) == 800
    assert alphas(ratings) == (0.3969, 0.6854, 0.6844)


@pytest.mark.paper
@pytest.mark.parametrize(
    ("size", "off_the_scale", "expected"),
    [
        ("527", "kept", (0.3537, 0.7145, 0.6220)),
        ("1600", "kept", (0.3648, 0.7147, 0.6776)),
        ("1600", "dropped", (0.3648, 0.7148, 0.7137)),
    ],
)
def test_genai_bench_raw_ratings(
    assay_data: Path, size: str, off_the_scale: str, expected: tuple[float, ...]
) -> None:
    place = assay_data / "genai_bench" / f"genai{size}_genai_image.json"
    items = json.loads(place.read_text(encoding="utf-8")).values()
    ratings = np.array([unit for item in items for unit in item["models"].values()], float)
    if off_the_scale == "dropped":
        assert (ratings > 5).sum() == 2
        ratings[ratings > 5] = NAN
    assert alphas(ratings) == expected


def alphas(ratings: FloatArray) -> tuple[float, ...]:
    return tuple(round(krippendorff_alpha(ratings, level), 4) for level in LEVELS)


# Error consistency, and one rater against the others
@pytest.mark.parametrize(
    ("metric", "human", "expected"),
    [
        ([1, 1, 1, 1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1, 1, 0, 1, 0], 0.375),
        ([1, 1], [1, 1], NAN),
        ([], [], NAN),
    ],
)
def test_error_consistency_of_examples(
    metric: list[int], human: list[int], expected: float
) -> None:
    assert error_consistency(metric, human) == pytest.approx(expected, nan_ok=True)


def test_each_column_meets_the_mean_of_the_others_where_both_exist() -> None:
    table = np.array([[1.0, 2.0, 3.0], [2.0, 2.0, 5.0], [4.0, NAN, 1.0], [5.0, 4.0, 4.0]])
    found = one_against_the_others(table, spearman)
    assert found[0] == pytest.approx(stats.spearmanr([1, 2, 4, 5], [2.5, 3.5, 1.0, 4.0])[0])
    assert found[1] == pytest.approx(stats.spearmanr([2, 2, 4], [2.0, 3.5, 4.5])[0])
    assert found[2] == pytest.approx(stats.spearmanr([3, 5, 1, 4], [1.5, 2.0, 4.0, 4.5])[0])
    lonely = np.vstack([table, [3.0, NAN, NAN], [NAN, NAN, NAN]])
    np.testing.assert_array_equal(one_against_the_others(lonely, spearman), found)
    seen = [(scores.tolist(), labels.tolist()) for scores, labels in asked(table)]
    assert seen[1] == ([2.0, 2.0, 4.0], [2.0, 3.5, 4.5])  # scores first, labels second


def asked(table: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    seen: list[tuple[FloatArray, FloatArray]] = []

    def measure(scores: FloatArray, labels: FloatArray) -> float:
        seen.append((scores, labels))
        return 0.0

    one_against_the_others(table, measure)
    return seen


@pytest.mark.parametrize(
    ("function", "arguments", "reason"),
    [
        (krippendorff_alpha, ([1, 2, 3], "nominal"), "units, raters"),
        (resampled_alpha, ([[1, 2]], [0, 0], [[1.0]]), "cluster of each unit"),
        (error_consistency, ([1], [1, 0]), "length"),
        (one_against_the_others, (np.ones((4, 1)), spearman), "2 or more"),
        (one_against_the_others, (np.ones(4), spearman), "2 or more"),
        (concordance, (np.array([1.0, 2.0]),), "finite"),
        (concordance, (np.array([[1.0, NAN]]),), "finite"),
    ],
)
def test_misfits_are_refused(
    function: Callable[..., object], arguments: tuple[object, ...], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        function(*arguments)


# Kendall's W, its chi-square and its permutation test ------------------------------------------


def test_taus_between_rows_are_kendalls_on_the_items_that_both_have() -> None:
    rng = np.random.default_rng(5)
    values = rng.integers(0, 4, (3, 4, 9)).astype(float)
    values[rng.random(values.shape) < 0.15] = NAN
    values[2, 3] = 1.0
    found = taus_between(values)
    assert found.shape == (3, 4, 4)
    for b, i, j in itertools.product(range(3), range(4), range(4)):
        both = np.isfinite(values[b, [i, j]]).all(axis=0)
        tau = stats.kendalltau(values[b, i, both], values[b, j, both]).statistic
        assert found[b, i, j] == pytest.approx(tau, nan_ok=True)
    assert np.isnan(found[2, 3]).all()
    # Means of the same numbers in another order are no order.
    sums = np.array([[0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1], [0.1, 0.2]])
    assert sums[0, 0] != sums[0, 1]
    assert np.isnan(taus_between(sums)[0]).all()
    around_zero = np.array([[0.1 + 0.2 - 0.3, 0.0, 1.0], [0.0, 0.0, 2.0]])
    assert around_zero[0, 0] != 0.0
    assert taus_between(around_zero)[0, 1] == 1.0


TIED = arrays(
    np.float64,
    st.tuples(st.integers(3, 6), st.integers(3, 6)),
    elements=st.integers(0, 4).map(float),
)


def test_w_by_hand() -> None:
    """Rank sums 4, 8, 6, 12 of three judges: S = 35, W = 12 * 35 / (9 * 60).

    With ties, ranks 1 2.5 2.5 and 1 2 3: sums 2, 4.5, 5.5; S = 6.5; T = 6; W = 12 S / (96 - 12).
    """
    found = concordance([[1.0, 2.0, 3.0, 4.0], [2.0, 3.0, 1.0, 4.0], [1.0, 3.0, 2.0, 4.0]])
    assert (found.w, found.chi_square) == pytest.approx((12 * 35 / (9 * 60), 7.0), abs=1e-12)
    assert found.chi_square_p == pytest.approx(stats.chi2.sf(7.0, 3), abs=1e-15)
    assert kendall_w([[1.0, 2.0, 2.0], [1.0, 2.0, 3.0]]) == pytest.approx(12 * 6.5 / 84, abs=1e-15)
    agreed = concordance([[1.0, 2.0, 3.0, 4.0]] * 3)
    assert (agreed.w, agreed.exact) == (1.0, True)
    assert agreed.permutation_p == pytest.approx(1 / 576)


@given(TIED)
@settings(deadline=None, max_examples=40)
def test_w_is_friedmans_statistic_over_m_times_n_less_one(table: FloatArray) -> None:
    found = concordance(table)
    if math.isnan(found.w):
        assert all(np.ptp(row) == 0 for row in table)
        return
    m, n = table.shape
    friedman = stats.friedmanchisquare(*table.T)
    expected = (friedman.statistic / (m * (n - 1)), friedman.statistic, friedman.pvalue)
    values = (found.w, found.chi_square, found.chi_square_p)
    assert values == pytest.approx(expected, rel=1e-10, abs=1e-10)


@given(arrays(np.float64, (3, 3), elements=st.integers(0, 2).map(float)))
@settings(deadline=None, max_examples=30)
def test_the_exact_p_counts_all_arrangements_of_all_judges(table: FloatArray) -> None:
    found = concordance(table)
    if math.isnan(found.w):
        assert math.isnan(found.permutation_p)
        return
    each = (itertools.permutations(row) for row in table)
    w = kendall_w(np.array(list(itertools.product(*each))))
    assert found.exact
    assert found.permutation_p == pytest.approx((w >= found.w - 1e-12).mean(), abs=1e-15)


def test_drawn_arrangements_agree_with_counted_ones_and_repeat() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(3, 6)) + 0.7 * np.arange(6)
    drawn = concordance(table)
    assert not drawn.exact
    assert math.factorial(6) ** 2 > EXACT_ARRANGEMENTS
    assert drawn == concordance(table)
    ranks = stats.rankdata(table, axis=1) - 3.5
    orders = np.array(list(itertools.permutations(range(6))))
    two = (ranks[0] + ranks[1][orders])[:, None, :] + ranks[2][orders]
    exact = float(((two**2).sum(axis=2) >= (ranks.sum(axis=0) ** 2).sum()).mean())
    error = math.sqrt(exact * (1 - exact) / DRAWN_ARRANGEMENTS)
    assert drawn.permutation_p == pytest.approx(exact, abs=4 * error + 1e-4)


def test_clear_leaders_make_p_small_and_without_an_order_there_is_no_w() -> None:
    table = np.random.default_rng(1).normal(size=(5, 8))
    table[:, :2] += 10.0
    found = concordance(table)
    assert found.w < 1.0 and found.permutation_p < 0.05
    for shape in ((3, 4), (0, 4), (3, 1), (2, 0)):
        none = concordance(np.ones(shape))
        assert np.isnan([none.w, none.chi_square_p, none.permutation_p]).all()
