"""Correlations over one pool of images: values, counts, reasons; and two metrics on one measure."""

from __future__ import annotations

import gc
import json
import math
import weakref
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import stats

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.comparison import LEVEL, Compared, corrected
from benchmarks.pooled import (
    CORRELATIONS,
    ManyPools,
    PooledImages,
    missing_scores,
    most_wrong,
)
from benchmarks.rows import Row
from benchmarks.statistics.multiplicity import benjamini_hochberg
from benchmarks.statistics.resampling import ResamplingPlan

NAN = float("nan")
PLAN = ResamplingPlan(tuple("abcde"), seed=2, n_resamples=20)
CLUSTERS = np.repeat(np.arange(5), 4)
RNG = np.random.default_rng(3)
RATINGS = RNG.integers(3, 16, 20) / 3.0
SCORES = RATINGS + RNG.normal(size=20)
GAPPED, UNRATED = SCORES.copy(), RATINGS.copy()
GAPPED[:5], UNRATED[4:8] = NAN, NAN
SCIPY = {"srcc": stats.spearmanr, "krcc": stats.kendalltau, "pearson": stats.pearsonr}


def pool(
    scores: object = SCORES, ratings: object = RATINGS, members: BoolArray | None = None
) -> PooledImages:
    x, y = (np.asarray(values, np.float64) for values in (scores, ratings))
    return PooledImages.of(x, y, CLUSTERS, PLAN, members)


@pytest.mark.parametrize("measure", list(CORRELATIONS))
def test_the_value_is_scipys_and_resamples_repeat_drawn_clusters(measure: str) -> None:
    found = pool().correlation(measure)
    assert found.value == pytest.approx(SCIPY[measure](SCORES, RATINGS)[0])
    assert found.note == "" and found.resamples is not None
    times = PLAN.counts[0, CLUSTERS].astype(int)
    expected = SCIPY[measure](np.repeat(SCORES, times), np.repeat(RATINGS, times))[0]
    assert found.resamples[0] == pytest.approx(expected)


def test_images_without_score_or_rating_are_left_out_and_missing_scores_counted() -> None:
    found = pool(GAPPED, UNRATED)
    row = found.counted(Row("b", "r", "m", "srcc", NAN))
    assert (row.n_items, row.n_clusters, row.n_missing) == (12, 3, 5)
    expected = stats.spearmanr(SCORES[8:], RATINGS[8:])[0]
    assert found.correlation("srcc").value == pytest.approx(expected)
    assert found.correlation("plcc").note.endswith(": 5") and missing_scores(0) == ""
    members = CLUSTERS != 1
    part = pool(np.where(members, SCORES, NAN), members=members)
    assert (part.scores.size, part.n_missing) == (16, 0)


@pytest.mark.parametrize("measure", [*CORRELATIONS, "plcc"])
@pytest.mark.parametrize(
    ("scores", "ratings", "reason"),
    [
        ([NAN] * 18 + [1.0, 2.0], RATINGS, "fewer than 3"), ([NAN] * 20, RATINGS, "fewer than 3"),
        ([0.5] * 20, RATINGS, "same score"), (SCORES, [3.0] * 20, "same rating"),
    ],
)  # fmt: skip
def test_the_undefined_says_why(measure: str, scores: object, ratings: object, reason: str) -> None:
    found = pool(scores, ratings).correlation(measure)
    assert np.isnan(found.value) and found.resamples is None
    assert reason in found.note.split("; ")[0]


def test_the_sample_is_the_whole_slice_with_its_gaps() -> None:
    members = CLUSTERS != 3
    sample = pool(GAPPED, UNRATED, members).sample()
    inside = members & ~np.isnan(UNRATED)
    np.testing.assert_array_equal(sample.scores, GAPPED[inside])
    np.testing.assert_array_equal(sample.ratings, UNRATED[inside])
    np.testing.assert_array_equal(sample.clusters, CLUSTERS[inside])


def test_what_makes_a_sample_holds_neither_copies_nor_resamples() -> None:
    table = np.column_stack([SCORES, SCORES[::-1]])
    members = CLUSTERS < 4
    many = ManyPools(table, RATINGS, CLUSTERS, PLAN)
    found = many.pool(1, members, PooledImages)
    found.correlation("srcc")
    all_pools, this_pool, sample = weakref.ref(many), weakref.ref(found), found.sample
    del many, found
    gc.collect()
    assert (all_pools(), this_pool()) == (None, None)
    assert isinstance(sample, partial)
    scores, *others = sample.args
    assert np.shares_memory(scores, table)
    assert all(a is b for a, b in zip(others, (RATINGS, CLUSTERS, members), strict=True))
    np.testing.assert_array_equal(sample().scores, SCORES[::-1][members])


# Missing scores
def lacking(scores: FloatArray, ratings: FloatArray, n: int, groups: IntArray) -> FloatArray:
    """Scores without the n whose rank among those of their group is furthest from their rating's."""
    off = np.zeros(scores.size)
    for group in np.unique(groups):
        own = groups == group
        off[own] = np.abs(stats.rankdata(scores[own]) - stats.rankdata(ratings[own]))
        off[own] /= own.sum()
    gaps = scores.copy()
    gaps[np.argsort(-off)[:n]] = NAN
    return gaps


@pytest.mark.parametrize("levels", [[1, 2, 3, 4, 5], [0, 0, 0, 1], [0, 1, 1, 1], [1, 1, 1, 2, 3]])
@pytest.mark.parametrize("n_groups", [1, 4, 20])
def test_leaving_out_what_one_gets_most_wrong_does_not_pay(
    levels: list[int], n_groups: int
) -> None:
    """Neither over all images, nor within groups of unlike quality; whatever the ratings."""
    rng, n = np.random.default_rng(n_groups), 1000
    groups = np.arange(n) % n_groups
    ratings = rng.choice(levels, n) + (2.0 * groups if n_groups > 1 else 0.0)
    scores = ratings + rng.normal(0, 2, n)
    gaps = lacking(scores, ratings, 20, groups)
    filled = most_wrong(gaps, ratings, np.ones(n, bool), groups)
    assert np.isfinite(filled).all()

    def agreement(of: FloatArray) -> float:
        found = []
        for group in range(n_groups):
            own = (groups == group) & np.isfinite(of)
            found.append(stats.spearmanr(of[own], ratings[own])[0])
        return float(np.mean(found))

    assert agreement(filled) < agreement(scores) < agreement(gaps)


def test_what_counts_as_most_wrong_is_of_the_slice() -> None:
    rng = np.random.default_rng(0)
    ratings = rng.integers(1, 6, 500).astype(float)
    scores = ratings + rng.normal(0, 2, 500)
    clusters, members = np.arange(500), np.arange(500) < 400
    gaps = lacking(scores, ratings, 8, np.zeros(500, np.intp))
    gaps[400:] = NAN  # a fifth is missing, and of the slice one in fifty
    plan = ResamplingPlan(tuple(map(str, clusters)), 1, 20)
    found = PooledImages.of(gaps, ratings, clusters, plan, members)
    dropped = PooledImages.of(gaps, ratings, clusters, plan, members, filled=gaps)
    n = int(np.isnan(gaps[:400]).sum())
    assert 0 < n <= 8 and (found.n_missing, found.n_counted, dropped.n_counted) == (n, n, 0)
    row = Row("b", "r", "m", "srcc", NAN)
    assert {one.counted(row).n_items for one in (found, dropped)} == {400 - n}
    assert f"most wrong: {n}" in found.remark and f"want of a score: {n}" in dropped.remark
    assert found.value("srcc") < dropped.value("srcc")
    whole = PooledImages.of(gaps, ratings, clusters, plan)
    assert (whole.n_missing, whole.n_counted) == (n + 100, 0)
    many = ManyPools(np.column_stack([scores, gaps]), ratings, clusters, plan)
    np.testing.assert_allclose(
        many.pool(1, members, PooledImages).resamples("srcc"), found.resamples("srcc")
    )


def test_a_missing_score_is_most_wrong_up_to_one_in_fifty_and_left_out_beyond() -> None:
    ratings, inside = np.repeat([1.0, 2.0, 3.0, NAN], 25), np.ones(100, bool)
    scores = np.arange(100.0)
    scores[[3, 99]] = NAN  # the last one has no rating
    np.testing.assert_array_equal(most_wrong(scores, ratings, inside)[[3, 99]], [98.0, NAN])
    scores[[3, 60]] = 3.0, NAN
    assert most_wrong(scores, ratings, inside)[60] == 0.0
    scores[61] = NAN
    assert most_wrong(scores, ratings, inside) is scores
    alone = np.full(60, NAN)
    assert most_wrong(alone, np.ones(60), np.ones(60, bool)) is alone


# Two metrics on one measure
PLAIN = Compared(
    metric_a="a",
    metric_b="b",
    measure="srcc",
    variant=None,
    split="all",
    facet=None,
    skill=None,
    higher_is_better=True,
    value_a=0.5,
    value_b=0.4,
    difference=0.1,
    ci_low=0.02,
    ci_high=0.2,
)


def test_correction_is_over_all_rows_that_have_a_test() -> None:
    values = [0.01, NAN, 0.04, 0.02, 0.6]
    rows = tuple(replace(PLAIN, p_value=value) for value in values)
    joint = [0.03, 0.5, 0.09, 0.05, 1.0]
    for found, expected, method in (
        (corrected(rows), benjamini_hochberg(values).tolist(), "benjamini_hochberg"),
        (corrected(rows, joint), [0.03, NAN, 0.09, 0.05, 1.0], "joint"),
    ):
        assert [row.p_corrected for row in found] == pytest.approx(expected, nan_ok=True)
        assert {(row.n_tests, row.correction) for row in found} == {(4, method)}
    assert corrected(()) == ()


def test_the_corrected_p_value_decides_where_there_is_one() -> None:
    alone = replace(PLAIN, p_value=0.03)
    assert (alone.p_decisive, alone.told_apart) == (0.03, True)
    rest = (replace(PLAIN, p_value=value) for value in (0.5, 0.6))
    among = corrected((alone, *rest))[0]
    assert among.p_decisive == pytest.approx(0.09) and not among.told_apart
    assert not replace(alone, p_value=LEVEL).told_apart
    assert not PLAIN.told_apart  # without a test nothing is


def test_the_tally_is_there_where_units_were_counted_and_an_advantage_is_of_the_better() -> None:
    counted = replace(PLAIN, n_units=9, n_better_a=5, n_tied=3, n_better_b=1)
    assert counted.tally == (5, 3, 1) and PLAIN.tally is None
    for name in ("n_better_a", "n_tied", "n_better_b"):
        assert replace(counted, **{name: None}).tally is None  # type: ignore[arg-type]
    assert PLAIN.advantage == (0.1, 0.02, 0.2)
    assert replace(PLAIN, higher_is_better=False).advantage == (-0.1, -0.2, -0.02)


def test_what_is_written_is_json_without_numbers_that_json_does_not_know() -> None:
    record = replace(PLAIN, effect=math.inf, n_units=3).to_json()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert (record["p_value"], record["effect"], record["n_units"]) == (None, None, 3)
    assert record["difference"] == 0.1
