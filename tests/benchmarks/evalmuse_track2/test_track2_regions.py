"""Regions and their hits, on masks drawn by hand and against slow definitions."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage

from benchmarks.evalmuse_track2.load import SIZE, BoolArray, resized
from benchmarks.evalmuse_track2.measures import (
    HIT_IOU,
    MIN_LABELLED_AREA,
    MIN_PREDICTED_AREA,
    Region,
    agreement,
    iou,
    regions,
    whole_iou,
)


def blank() -> BoolArray:
    return np.zeros((SIZE, SIZE), bool)


def block(top: int, left: int, height: int, width: int) -> BoolArray:
    mask = blank()
    mask[top : top + height, left : left + width] = True
    return mask


def blobs(seed: int, density: float) -> BoolArray:
    """Smooth random shapes, some of which touch corner to corner, nest or have holes."""
    rng = np.random.default_rng(seed)
    noise = ndimage.gaussian_filter(rng.normal(size=(SIZE, SIZE)), 8.0)
    return np.asarray(noise > np.quantile(noise, 1.0 - density))


def canvas(region: Region) -> BoolArray:
    whole = blank()
    height, width = region.filled.shape
    whole[region.top : region.top + height, region.left : region.left + width] = region.filled
    return whole


def test_the_area_of_a_region_is_that_of_the_polygon_through_its_border_pixels() -> None:
    """A block of h x w pixels has (h - 1)(w - 1): 81 for 10 x 10."""
    assert len(regions(block(30, 40, 10, 10), 80.9)) == 1
    assert not regions(block(30, 40, 10, 10), 81.0)
    (found,) = regions(block(30, 40, 10, 10), 0.0)
    assert (found.left, found.top, found.n_pixels) == (40, 30, 100)


@pytest.mark.parametrize(
    ("height", "width", "kept"),
    [(2, 158, False), (3, 80, True), (13, 14, False), (14, 14, True)],  # 157, 158, 156, 169
)
def test_a_predicted_region_needs_more_than_157_29(height: int, width: int, kept: bool) -> None:
    assert pytest.approx(157.2864) == MIN_PREDICTED_AREA
    assert agreement(block(9, 9, height, width), blank()).predicted == kept


@pytest.mark.parametrize(("height", "width", "kept"), [(11, 16, False), (2, 152, True)])
def test_a_labelled_region_needs_more_than_150(height: int, width: int, kept: bool) -> None:
    assert agreement(blank(), block(9, 9, height, width)).labelled == kept


@pytest.mark.parametrize(
    ("shared_columns", "hit"),
    [(7, False), (8, True)],  # 20 x 40 each: 140 / 1460 = 0.0959, 160 / 1440 = 0.1111
)
def test_regions_hit_above_a_tenth_of_their_union(shared_columns: int, hit: bool) -> None:
    found = agreement(block(0, 0, 20, 40), block(0, 40 - shared_columns, 20, 40))
    assert (found.predicted_hit, found.labelled_hit) == (hit, hit)


def test_exactly_a_tenth_is_no_hit() -> None:
    """20 x 55 each, 10 columns shared: 200 / 2000."""
    predicted, labelled = block(0, 0, 20, 55), block(0, 45, 20, 55)
    (a,), (b,) = regions(predicted, 0.0), regions(labelled, 0.0)
    assert iou(a, b) == 0.1
    assert agreement(predicted, labelled).predicted_hit == 0


def test_two_predictions_may_hit_one_label() -> None:
    predicted = block(100, 100, 40, 40) | block(100, 160, 40, 40)
    found = agreement(predicted, block(100, 100, 40, 100))
    assert found.counts == (2, 2, 1, 1)


def test_one_prediction_may_hit_two_labels_and_miss_a_third() -> None:
    labelled = block(100, 100, 40, 40) | block(100, 160, 40, 40) | block(300, 300, 20, 20)
    found = agreement(block(100, 100, 40, 100), labelled)
    assert found.counts == (1, 1, 3, 2)


def test_holes_are_filled_and_what_lies_inside_them_is_no_region_of_its_own() -> None:
    ring = block(50, 50, 100, 100) & ~block(60, 60, 80, 80)
    (found,) = regions(ring | block(90, 90, 20, 20), 0.0)
    assert found.n_pixels == 100 * 100
    # The hole is filled for hits, but not for the overlap of whole masks.
    inside = block(70, 70, 60, 60)
    assert agreement(ring, inside).predicted_hit == 1
    assert whole_iou(ring, inside) == pytest.approx(1e-4 / (3600 + 3600 + 1e-4))


def test_pixels_that_touch_at_a_corner_are_one_region() -> None:
    assert len(regions(block(10, 10, 20, 20) | block(30, 30, 20, 20), 0.0)) == 1
    assert len(regions(block(10, 10, 20, 20) | block(31, 31, 20, 20), 0.0)) == 2


def test_two_empty_masks_agree_and_one_empty_mask_does_not() -> None:
    assert agreement(blank(), blank()).counts == (0, 0, 0, 0)
    assert whole_iou(blank(), blank()) == 1.0
    assert whole_iou(blank(), block(0, 0, 100, 100)) == pytest.approx(1e-8)
    assert whole_iou(block(0, 0, 9, 9), block(0, 0, 9, 9)) == 1.0


def test_a_region_at_the_edge_of_the_image_is_whole() -> None:
    (found,) = regions(block(0, 0, SIZE, SIZE), 0.0)
    assert found.n_pixels == SIZE * SIZE
    assert len(regions(block(0, 0, SIZE, SIZE), (SIZE - 1.0) ** 2 - 1)) == 1


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


def test_a_small_mask_of_whole_numbers_keeps_its_size_and_one_of_decimals_grows() -> None:
    small = np.zeros((256, 256))
    small[64:128, 64:128] = 1
    assert resized(small.astype(np.uint8)).sum() == 128 * 128
    assert resized(small.astype(bool)).sum() == 128 * 128
    assert resized(small.astype(np.int64)).sum() == 128 * 128
    assert resized(small.astype(np.float32)).sum() == 130 * 130


def test_a_mask_of_the_right_size_is_cut_above_0() -> None:
    mask = np.full((SIZE, SIZE), -1.0)
    mask[0, 0], mask[0, 1] = 1e-9, 0.0
    assert resized(mask).sum() == 1
    assert resized(mask.astype(">f4")).sum() == 1
