"""Agreement between raters: alpha, error consistency, one rater against the others."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from benchmarks.arrays import FloatArray
from benchmarks.statistics.correlation import spearman
from benchmarks.statistics.raters import (
    Level,
    error_consistency,
    krippendorff_alpha,
    one_against_the_others,
    resampled_alpha,
    resampled_error_consistency,
)

NAN = float("nan")


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
        ([[1, 1], [2, 2], [1, 2]], "nominal", 0.4444),
        ([[1, 1], [2, 2], [1, 2], [5, NAN]], "nominal", 0.4444),  # one rating does not count
        ([[1, 1], [2, 2]], "ordinal", 1.0),
        ([[3, 3], [3, 3]], "nominal", NAN),
        ([[1, NAN], [2, NAN]], "nominal", NAN),
    ],
)
def test_alpha_of_small_examples(ratings: object, level: Level, expected: float) -> None:
    found = krippendorff_alpha(np.array(ratings), level)
    assert found == pytest.approx(expected, abs=5e-5, nan_ok=True)


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


@pytest.mark.parametrize(
    ("function", "arguments", "reason"),
    [
        (krippendorff_alpha, ([1, 2, 3], "nominal"), "units, raters"),
        (error_consistency, ([1], [1, 0]), "one length"),
        (resampled_alpha, ([1.0], "nominal", np.ones((1, 1))), "units, raters"),
        (resampled_error_consistency, ([1], [1, 0], np.ones((1, 2))), "one length"),
        (resampled_error_consistency, ([1, 0], [1, 0], np.ones((1, 1))), "every cluster"),
        (resampled_error_consistency, ([1, 0], [1, 0], np.ones((1, 2)), [0]), "do not fit"),
        (one_against_the_others, (np.ones((4, 1)), spearman), "2 or more"),
        (one_against_the_others, (np.ones(4), spearman), "2 or more"),
    ],
)
def test_misfits_are_refused(
    function: Callable[..., object], arguments: tuple[object, ...], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        function(*arguments)


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
        distance(a, b) / (len(unit) - 1) for unit in units for a, b in permutations(unit, 2)
    )
    expected = sum(distance(a, b) for a, b in permutations(everything, 2))
    if expected == 0:
        return NAN
    return 1 - observed * (len(everything) - 1) / expected


@given(
    st.lists(
        st.lists(st.sampled_from([1.0, 2.0, 3.0, 5.0, NAN]), min_size=4, max_size=4), max_size=8
    ),
    st.sampled_from(["nominal", "ordinal", "interval"]),
)
def test_alpha_is_its_definition(ratings: list[list[float]], level: Level) -> None:
    found = krippendorff_alpha(np.array(ratings).reshape(len(ratings), 4), level)
    assert found == pytest.approx(slow_alpha(ratings, level), abs=1e-9, nan_ok=True)


UNITS = st.lists(
    st.tuples(
        st.lists(st.sampled_from([1.0, 2.0, 2.5, 4.0, NAN]), min_size=3, max_size=3),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=10,
)
TIMES = st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=4)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_alpha_of_a_resample_is_that_of_the_repeated_units(level: Level) -> None:
    @settings(deadline=None)
    @given(UNITS, TIMES)
    def holds(units: list[tuple[list[float], int]], times: list[list[int]]) -> None:
        ratings = np.array([unit for unit, _ in units])
        clusters = np.array([cluster for _, cluster in units])
        found = resampled_alpha(ratings, level, times, clusters)
        repeated = [np.repeat(ratings, np.array(row)[clusters], axis=0) for row in times]
        expected = [krippendorff_alpha(table, level) for table in repeated]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)

    holds()


def test_blocks_and_missing_clusters_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    ratings = rng.integers(1, 6, (30, 3)).astype(float)
    counts = rng.multinomial(30, np.full(30, 1 / 30), size=6)
    whole = resampled_alpha(ratings, "ordinal", counts)
    monkeypatch.setattr("benchmarks.statistics.raters._CACHED_CELLS", 1)
    np.testing.assert_allclose(resampled_alpha(ratings, "ordinal", counts), whole)
    once = resampled_alpha(ratings, "interval", np.ones((1, 30)))
    assert once[0] == pytest.approx(krippendorff_alpha(ratings, "interval"))
    assert np.isnan(resampled_alpha(np.zeros((2, 1)), "nominal", np.ones((1, 2)))).all()


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 3)), min_size=1, max_size=12),
    TIMES,
)
def test_error_consistency_of_a_resample_is_that_of_the_repeated_items(
    items: list[tuple[bool, bool, int]], times: list[list[int]]
) -> None:
    metric, human, clusters = (np.array(column) for column in zip(*items, strict=True))
    found = resampled_error_consistency(np.column_stack([metric, ~metric]), human, times, clusters)
    for row, (value, inverted) in zip(times, found, strict=True):
        drawn = np.repeat(np.arange(human.size), np.array(row)[clusters])
        for labels, got in ((metric, value), (~metric, inverted)):
            expected = error_consistency(labels[drawn], human[drawn])
            assert got == pytest.approx(expected, abs=1e-12, nan_ok=True)


TABLE = np.array([[1.0, 2.0, 3.0], [2.0, 2.0, 5.0], [4.0, np.nan, 1.0], [5.0, 4.0, 4.0]])


def test_each_column_meets_the_mean_of_the_others_where_both_exist() -> None:
    found = one_against_the_others(TABLE, spearman)
    assert found[0] == pytest.approx(spearmanr([1, 2, 4, 5], [2.5, 3.5, 1.0, 4.0])[0])
    assert found[1] == pytest.approx(spearmanr([2, 2, 4], [2.0, 3.5, 4.5])[0])
    assert found[2] == pytest.approx(spearmanr([3, 5, 1, 4], [1.5, 2.0, 4.0, 4.5])[0])
    lonely = np.vstack([TABLE, [3.0, np.nan, np.nan], [np.nan, np.nan, np.nan]])
    np.testing.assert_array_equal(one_against_the_others(lonely, spearman), found)


@given(st.integers(2, 5), st.integers(0, 99))
def test_the_measure_sees_scores_first_and_finite_labels_second(raters: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = np.where(rng.random((12, raters)) < 0.2, np.nan, rng.integers(1, 6, (12, raters)))
    seen: list[tuple[FloatArray, FloatArray]] = []

    def keep(scores: FloatArray, labels: FloatArray) -> float:
        seen.append((scores, labels))
        return float(len(seen))

    assert one_against_the_others(table, keep).tolist() == [*map(float, range(1, raters + 1))]
    for column, (scores, labels) in enumerate(seen):
        assert scores.shape == labels.shape
        assert np.isfinite(scores).all()
        assert np.isfinite(labels).all()
        assert set(scores) <= set(table[:, column])


LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")


def alphas(ratings: np.ndarray) -> tuple[float, ...]:
    return tuple(round(krippendorff_alpha(ratings, level), 4) for level in LEVELS)


def filled(units: list[list[float]]) -> np.ndarray:
    width = max(map(len, units))
    return np.array([[*unit, *[np.nan] * (width - len(unit))] for unit in units])


@pytest.mark.paper
def test_dsg_likert_ratings_of_tifa160(assay_data: Path) -> None:
    units: dict[tuple[str, str], list[float]] = defaultdict(list)
    place = assay_data / "dsg_tifa160" / "tifa160-likert-anns.csv"
    with place.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            units[row["t2i_model"], row["item_id"]].append(float(row["answer"]))
    assert len(units) == 800
    assert alphas(filled(list(units.values()))) == (0.3969, 0.6854, 0.6844)


def genai(assay_data: Path, size: str) -> np.ndarray:
    place = assay_data / "genai_bench" / f"genai{size}_genai_image.json"
    items = json.loads(place.read_text(encoding="utf-8")).values()
    return np.array([unit for item in items for unit in item["models"].values()], float)


@pytest.mark.paper
@pytest.mark.parametrize(
    ("size", "expected"), [("527", (0.3537, 0.7145, 0.6220)), ("1600", (0.3648, 0.7147, 0.6776))]
)
def test_genai_bench_raw_ratings(assay_data: Path, size: str, expected: tuple[float, ...]) -> None:
    ratings = genai(assay_data, size)
    assert alphas(ratings) == expected
    if size == "1600":
        assert (ratings > 5).sum() == 2
        assert alphas(np.where(ratings > 5, np.nan, ratings)) == (0.3648, 0.7148, 0.7137)
