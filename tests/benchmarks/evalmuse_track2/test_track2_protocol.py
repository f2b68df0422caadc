"""The measures of track 2 on masks drawn by hand, and against slow definitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import cv2
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage, stats

from benchmarks.evalmuse_track2.load import (
    FROM_BOXES,
    SIZE,
    BoolArray,
    MaskedScores,
    Track2Answers,
    pack,
    resized,
    unpack,
)
from benchmarks.evalmuse_track2.protocol import (
    HIT_IOU,
    MEASURES,
    MIN_LABELLED_AREA,
    MIN_PREDICTED_AREA,
    Agreement,
    EvalMuseTrack2,
    Region,
    agreement,
    final_score,
    iou,
    region_rates,
    regions,
    whole_iou,
)
from benchmarks.rows import Row
from benchmarks.schema import ScoreTable
from tests.kit.checks import check_pools

BLANK = np.zeros((SIZE, SIZE), bool)


def block(top: int, left: int, height: int, width: int) -> BoolArray:
    mask = BLANK.copy()
    mask[top : top + height, left : left + width] = True
    return mask


# Regions and their hits.


def test_the_area_of_a_region_is_that_of_the_polygon_through_its_border_pixels() -> None:
    """A block of h x w pixels has (h - 1)(w - 1): 81 for 10 x 10."""
    assert not regions(block(30, 40, 10, 10), 81.0)
    (found,) = regions(block(30, 40, 10, 10), 80.9)
    assert (found.left, found.top, found.n_pixels) == (40, 30, 100)
    edge = block(0, 0, SIZE, SIZE)
    assert [r.n_pixels for r in regions(edge, (SIZE - 1.0) ** 2 - 1)] == [SIZE * SIZE]


@pytest.mark.parametrize(
    ("height", "width", "predicted", "labelled"),
    # Areas 157, 158, 156, 169, 150 and 151, of which a prediction needs more than 157.29.
    [(2, 158, 0, 1), (3, 80, 1, 1), (13, 14, 0, 1), (14, 14, 1, 1), (11, 16, 0, 0), (2, 152, 0, 1)],
)
def test_small_regions_are_left_out(height: int, width: int, predicted: int, labelled: int) -> None:
    assert pytest.approx(157.2864) == MIN_PREDICTED_AREA
    mask = block(9, 9, height, width)
    assert agreement(mask, BLANK).counts == (predicted, 0, 0, 0)
    assert agreement(BLANK, mask).counts == (0, 0, labelled, 0)


@pytest.mark.parametrize(
    ("width", "shared", "hit"),  # 140 / 1460 = 0.0959, 160 / 1440 = 0.1111, 200 / 2000 = 0.1
    [(40, 7, 0), (40, 8, 1), (55, 10, 0)],
)
def test_regions_hit_above_a_tenth_of_their_union(width: int, shared: int, hit: int) -> None:
    predicted, labelled = block(0, 0, 20, width), block(0, width - shared, 20, width)
    assert agreement(predicted, labelled).counts == (1, hit, 1, hit)
    (a,), (b,) = regions(predicted, 0.0), regions(labelled, 0.0)
    assert iou(a, b) == shared / (2 * width - shared)


def test_a_region_may_hit_several() -> None:
    two, bridge = block(100, 100, 40, 40) | block(100, 160, 40, 40), block(100, 100, 40, 100)
    assert agreement(two, bridge).counts == (2, 2, 1, 1)
    assert agreement(bridge, two | block(300, 300, 20, 20)).counts == (1, 1, 3, 2)


def test_holes_are_filled_and_what_lies_inside_them_is_no_region_of_its_own() -> None:
    ring = block(50, 50, 100, 100) & ~block(60, 60, 80, 80)
    (found,) = regions(ring | block(90, 90, 20, 20), 0.0)
    assert found.n_pixels == 100 * 100
    # The hole is filled for hits, but not for the overlap of whole masks.
    inside = block(70, 70, 60, 60)
    assert agreement(ring, inside).predicted_hit == 1
    assert whole_iou(ring, inside) == pytest.approx(1e-4 / (3600 + 3600 + 1e-4))


def test_two_empty_masks_agree_and_one_empty_mask_does_not() -> None:
    assert agreement(BLANK, BLANK).counts == (0, 0, 0, 0)
    assert whole_iou(BLANK, BLANK) == 1.0
    assert whole_iou(BLANK, block(0, 0, 100, 100)) == pytest.approx(1e-8)
    assert whole_iou(block(0, 0, 9, 9), block(0, 0, 9, 9)) == 1.0


def blobs(seed: int, density: float) -> BoolArray:
    """Smooth random shapes, some of which touch corner to corner, nest or have holes."""
    rng = np.random.default_rng(seed)
    noise = ndimage.gaussian_filter(rng.normal(size=(SIZE, SIZE)), 8.0)
    return np.asarray(noise > np.quantile(noise, 1.0 - density))


def canvas(region: Region) -> BoolArray:
    whole = BLANK.copy()
    height, width = region.filled.shape
    whole[region.top : region.top + height, region.left : region.left + width] = region.filled
    return whole


def shoelace(points: NDArray[np.int32]) -> float:
    x, y = points[:, 0, 0].astype(float), points[:, 0, 1].astype(float)
    return abs(float(x @ np.roll(y, 1) - y @ np.roll(x, 1))) / 2.0


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), density=st.floats(0.02, 0.6))
def test_regions_are_filled_components_and_areas_follow_the_shoelace_formula(
    seed: int, density: float
) -> None:
    mask = blobs(seed, density)
    solid = np.asarray(ndimage.binary_fill_holes(mask))
    labels, n = ndimage.label(solid, structure=np.ones((3, 3)))
    every = regions(mask, -1.0)
    assert len(every) == n
    drawn = np.zeros((SIZE, SIZE), int)
    for region in every:
        whole = canvas(region)
        assert region.n_pixels == whole.sum()
        assert len(np.unique(labels[whole])) == 1
        drawn += whole
    assert np.array_equal(drawn, solid.astype(int))
    # The border pixels, followed one by one, give the polygon.
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    areas = [shoelace(np.asarray(c, np.int32)) for c in contours]
    for bound in (0.0, MIN_LABELLED_AREA, MIN_PREDICTED_AREA, 1000.0):
        assert len(regions(mask, bound)) == sum(area > bound for area in areas)


def two_passes(predicted: BoolArray, labelled: BoolArray) -> tuple[int, int, int, int]:
    """The script's own order of work on whole canvases."""
    found = [canvas(r) for r in regions(predicted, MIN_PREDICTED_AREA)]
    wanted = [canvas(r) for r in regions(labelled, MIN_LABELLED_AREA)]
    hit_labels: set[int] = set()
    hits = 0
    for a in found:
        for j, b in enumerate(wanted):
            if (a & b).sum() / (a | b).sum() > HIT_IOU:
                hits += 1
                hit_labels.add(j)
                break
    for j, b in enumerate(wanted):
        if j not in hit_labels and any((a & b).sum() / (a | b).sum() > HIT_IOU for a in found):
            hit_labels.add(j)
    return len(found), hits, len(wanted), len(hit_labels)


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_hits_are_those_of_two_passes_over_whole_canvases(seed: int) -> None:
    predicted, labelled = blobs(seed, 0.15), blobs(seed, 0.1) | blobs(seed + 1, 0.05)
    assert agreement(predicted, labelled).counts == two_passes(predicted, labelled)


@pytest.mark.parametrize(("dtype", "side"), [("u1", 128), ("?", 128), ("i8", 128), ("f4", 130)])
def test_a_small_mask_of_whole_numbers_keeps_its_size_and_one_of_decimals_grows(
    dtype: str, side: int
) -> None:
    small = np.zeros((256, 256), dtype)
    small[64:128, 64:128] = 1
    assert resized(small).sum() == side**2


def test_a_mask_of_the_right_size_is_cut_above_0_and_kept_as_bits() -> None:
    mask = np.full((SIZE, SIZE), -1.0)
    mask[0, 0], mask[0, 1] = 1e-9, 0.0
    assert resized(mask).sum() == resized(mask.astype(">f4")).sum() == 1
    noise = np.random.default_rng(1).random((SIZE, SIZE)) > 0.5
    assert len(pack(noise)) == SIZE * SIZE // 8
    assert np.array_equal(unpack(pack(noise)), noise)


# Rows of the protocol.

N = 40
IMAGES = tuple(f"{n:05d}" for n in range(N))
LABELS = np.random.default_rng(5).uniform(1, 5, N)
EMPTY = pack(BLANK)


def label_mask(n: int) -> BoolArray:
    """0, 1 or 2 regions."""
    mask = BLANK
    for k in range(n % 3):
        mask = mask | block(50, 40 + 200 * k, 60, 60)
    return mask


def predicted_mask(n: int) -> BoolArray:
    """Right for most images, a false region on every fourth."""
    mask = label_mask(n) if n % 5 else BLANK
    return mask | block(400, 400, 30, 30) if n % 4 == 0 else mask


@cache
def agreements() -> tuple[Agreement, ...]:
    """Of the predicted and the labelled mask of each image."""
    return tuple(agreement(predicted_mask(n), label_mask(n)) for n in range(N))


def packed(mask: Callable[[int], BoolArray]) -> dict[str, bytes]:
    return {image: pack(mask(n)) for n, image in enumerate(IMAGES)}


@cache
def answers() -> Track2Answers:
    return Track2Answers(IMAGES, IMAGES, pd.Series(LABELS, IMAGES), packed(label_mask))


@cache
def predicted() -> dict[str, bytes]:
    return packed(predicted_mask)


def table(values: object = None, masks: dict[str, bytes] | None = None) -> ScoreTable:
    """Scores with the predicted masks, or with others; with none where these are empty."""
    noise = np.random.default_rng(6).normal(size=N)
    scores = LABELS + noise if values is None else values
    overall = pd.DataFrame({"m": scores}, index=pd.Index(IMAGES, name="pair_id"), dtype=float)
    masks = predicted() if masks is None else masks
    return MaskedScores(overall, masks={"m": masks}) if masks else ScoreTable(overall)


def rows(scores: ScoreTable, labels: Track2Answers | None = None) -> dict[str, Row]:
    measured = EvalMuseTrack2().evaluate(scores, labels or answers(), 200)
    assert {row.variant for row in measured.rows} == {"code"}
    return {row.measure: row for row in measured.rows}


@pytest.fixture(scope="module")
def found() -> dict[str, Row]:
    return rows(table())


@pytest.mark.paper
def test_final_of_the_published_baseline_follows_from_its_parts() -> None:
    """EvalMuse-Structure repository, table of baseline results (NTIRE 2025, track 2)."""
    precision, recall, plcc, srcc = 0.5086, 0.6728, 0.6945, 0.6677
    assert round(2 * precision * recall / (precision + recall + 1e-10), 4) == 0.5793
    assert round(final_score(0.5793, plcc, srcc), 4) == 0.6098


def test_precision_counts_predicted_regions_and_recall_labelled_ones() -> None:
    """10 predicted of which 4 hit, 8 labelled of which 6 are hit; none predicted; none labelled."""
    rates = region_rates(np.array([[10, 4, 8, 6], [0, 0, 8, 0], [3, 0, 0, 0]], float))
    np.testing.assert_array_equal(rates["precision"], [0.4, np.nan, 0.0])
    np.testing.assert_array_equal(rates["recall"], [0.75, 0.0, np.nan])
    of_both = 2 * 0.4 * 0.75 / (1.15 + 1e-10)
    np.testing.assert_allclose(rates["f1"], [of_both, 0.0, np.nan], rtol=0, atol=1e-15)


def test_rates_are_ratios_of_sums_over_images_not_means_of_ratios(found: dict[str, Row]) -> None:
    predicted, predicted_hit, labelled, labelled_hit = np.sum([a.counts for a in agreements()], 0)
    p, r = predicted_hit / predicted, labelled_hit / labelled
    assert 0 < p < 1
    assert 0 < r < 1
    assert found["precision"].value == pytest.approx(p)
    assert found["recall"].value == pytest.approx(r)
    assert found["f1"].value == pytest.approx(2 * p * r / (p + r + 1e-10), abs=1e-15)
    assert (found["precision"].n_items, found["recall"].n_items) == (predicted, labelled)
    assert found["giou"].value == pytest.approx(np.mean([a.iou for a in agreements()]))
    assert found["giou"].n_items == found["f1"].n_clusters == N


def test_correlations_and_final_are_those_of_the_pooled_images(found: dict[str, Row]) -> None:
    x = table().overall["m"].to_numpy()
    assert found["srcc"].value == pytest.approx(stats.spearmanr(x, LABELS).statistic)
    assert found["pearson"].value == pytest.approx(stats.pearsonr(x, LABELS).statistic)
    assert found["plcc"].value >= found["pearson"].value - 1e-6
    final = 0.7 * found["f1"].value + 0.15 * (found["plcc"].value + found["srcc"].value)
    assert found["final"].value == pytest.approx(final)
    assert set(found) == set(MEASURES)
    for row in found.values():
        assert row.ci_low <= row.value <= row.ci_high
        assert row.note == ""
    check_pools(EvalMuseTrack2().evaluate(table(), answers(), 20))


def test_each_resample_is_the_measure_of_the_images_it_draws() -> None:
    benchmark, scores = EvalMuseTrack2(), table()
    plan = benchmark.plan(answers(), 8)
    measured = benchmark.measure(scores, answers(), plan)
    values = {row.measure: measured.resamples[k] for k, row in enumerate(measured.rows)}
    x = scores.overall["m"].to_numpy()
    for b in range(8):
        drawn = np.repeat(np.arange(N), plan.counts[b].astype(int))
        rates = region_rates(np.sum([agreements()[n].counts for n in drawn], axis=0))
        for name in ("f1", "precision", "recall"):
            assert values[name][b] == pytest.approx(float(rates[name]), rel=1e-6)
        giou = np.mean([agreements()[n].iou for n in drawn])
        assert values["giou"][b] == pytest.approx(giou, rel=1e-6)
        rho = stats.spearmanr(x[drawn], LABELS[drawn]).statistic
        assert values["srcc"][b] == pytest.approx(rho, rel=1e-5)
        final = final_score(values["f1"][b], values["plcc"][b], values["srcc"][b])
        assert values["final"][b] == pytest.approx(final, rel=1e-5)


def test_scores_without_masks_are_measured_by_correlation_only(found: dict[str, Row]) -> None:
    plain = rows(table(masks={}))
    for name in ("f1", "precision", "recall", "giou", "final"):
        assert math.isnan(plain[name].value)
        assert math.isnan(plain[name].ci_low)
        assert "no masks" in plain[name].note
    assert plain["srcc"].value == found["srcc"].value


def test_images_without_a_score_leave_the_correlations_and_are_counted(
    found: dict[str, Row],
) -> None:
    half = rows(table(np.where(np.arange(N) % 2, LABELS, np.nan)))
    srcc = half["srcc"]
    assert srcc.value == pytest.approx(1.0)
    assert (srcc.n_items, srcc.n_missing) == (N // 2, N // 2)
    assert "score: 20" in half["final"].note
    assert (half["f1"].value, half["f1"].n_missing) == (found["f1"].value, 0)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.ones(N), "same score"),
        (np.where(np.arange(N) < 2, 1.0, np.nan), "fewer than 3"),
        (np.full(N, np.nan), "fewer than 3"),
    ],
)
def test_scores_that_make_no_correlation_give_a_reason(values: object, reason: str) -> None:
    found = rows(table(values))
    for name in ("srcc", "plcc", "pearson", "final"):
        assert math.isnan(found[name].value)
        assert reason in found[name].note
    assert found["f1"].value > 0


def test_no_predicted_region_is_an_f1_of_0_and_no_labelled_one_is_no_f1() -> None:
    found = rows(table(masks=dict.fromkeys(IMAGES, EMPTY)))
    assert (found["f1"].value, found["recall"].value) == (0.0, 0.0)
    assert math.isnan(found["precision"].value)
    assert "predicted" in found["precision"].note
    assert found["final"].value < 0.3
    scores = pd.Series(LABELS, IMAGES)
    unlabelled = Track2Answers(IMAGES, IMAGES, scores, dict.fromkeys(IMAGES, EMPTY), FROM_BOXES)
    found = rows(table(), unlabelled)
    assert math.isnan(found["f1"].value)
    assert found["precision"].value == 0.0
    assert "labelled" in found["f1"].note.removesuffix(f"; {FROM_BOXES}")
    assert (found["giou"].note, found["srcc"].note) == (FROM_BOXES, "")
