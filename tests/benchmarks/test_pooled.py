"""Correlations over one pool of images: values, counts and reasons."""

from __future__ import annotations

import gc
import weakref
from functools import partial

import numpy as np
import pytest
from scipy import stats

from benchmarks.pooled import CORRELATIONS, ManyPools, PooledImages, missing_scores
from benchmarks.rows import Row
from benchmarks.statistics.resampling import ResamplingPlan

NAN = float("nan")
PLAN = ResamplingPlan(tuple("abcde"), seed=2, n_resamples=20)
CLUSTERS = np.repeat(np.arange(5), 4)
RNG = np.random.default_rng(3)
RATINGS = RNG.integers(3, 16, 20) / 3.0
SCORES = RATINGS + RNG.normal(size=20)
SCIPY = {"srcc": stats.spearmanr, "krcc": stats.kendalltau, "pearson": stats.pearsonr}


def pool(scores: object = SCORES, ratings: object = RATINGS) -> PooledImages:
    return PooledImages.of(
        np.asarray(scores, np.float64), np.asarray(ratings, np.float64), CLUSTERS, PLAN
    )


@pytest.mark.parametrize("measure", list(CORRELATIONS))
def test_the_value_is_scipys_and_resamples_repeat_drawn_clusters(measure: str) -> None:
    found = pool().correlation(measure)
    assert found.value == pytest.approx(SCIPY[measure](SCORES, RATINGS)[0])
    assert (found.note, found.resamples is None) == ("", False)
    assert found.resamples is not None
    times = PLAN.counts[0, CLUSTERS].astype(int)
    expected = SCIPY[measure](np.repeat(SCORES, times), np.repeat(RATINGS, times))[0]
    assert found.resamples[0] == pytest.approx(expected)


def test_images_without_score_or_rating_are_left_out_and_missing_scores_counted() -> None:
    scores, ratings = SCORES.copy(), RATINGS.copy()
    scores[:5], ratings[4:8] = NAN, NAN
    found = pool(scores, ratings)
    row = found.counted(Row("b", "r", "m", "srcc", NAN))
    assert (row.n_items, row.n_clusters, row.n_missing) == (12, 3, 5)
    assert found.correlation("srcc").value == pytest.approx(
        stats.spearmanr(SCORES[8:], RATINGS[8:])[0]
    )
    assert found.correlation("plcc").note.endswith("images left out for want of a score: 5")


def test_only_members_belong_to_the_pool() -> None:
    members = CLUSTERS != 1
    scores = np.where(CLUSTERS == 1, NAN, SCORES)
    found = PooledImages.of(scores, RATINGS, CLUSTERS, PLAN, members)
    assert (found.scores.size, found.n_missing) == (16, 0)


@pytest.mark.parametrize("measure", [*CORRELATIONS, "plcc"])
@pytest.mark.parametrize(
    ("scores", "ratings", "reason"),
    [
        ([NAN] * 18 + [1.0, 2.0], RATINGS, "fewer than 3 images with a score"),
        ([NAN] * 20, RATINGS, "fewer than 3 images with a score"),
        ([0.5] * 20, RATINGS, "the metric gives every image the same score"),
        (SCORES, [3.0] * 20, "every image has the same rating"),
    ],
)
def test_what_is_undefined_says_why(
    measure: str, scores: object, ratings: object, reason: str
) -> None:
    found = pool(scores, ratings).correlation(measure)
    assert np.isnan(found.value)
    assert found.resamples is None
    assert found.note.split("; ")[0] == reason


def test_nothing_is_said_where_nothing_is_missing() -> None:
    assert missing_scores(0) == ""


def test_the_sample_is_the_whole_slice_with_its_gaps() -> None:
    scores, ratings = SCORES.copy(), RATINGS.copy()
    scores[:5], ratings[4:8] = NAN, NAN
    members = CLUSTERS != 3
    sample = PooledImages.of(scores, ratings, CLUSTERS, PLAN, members).sample()
    inside = members & ~np.isnan(ratings)
    np.testing.assert_array_equal(sample.scores, scores[inside])
    np.testing.assert_array_equal(sample.ratings, ratings[inside])
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
