"""Measures of EvalMuse-Structure: distorted regions of masks, counted as by the organisers' script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.evalmuse_track2.load import SIZE, BoolArray
from benchmarks.schema import MeasureInfo

_SOURCE = "NTIRE 2025, text-to-image quality assessment, track 2: the organisers' script"

MEASURES: dict[str, MeasureInfo] = {
    "final": MeasureInfo(
        title="Final",
        meaning="0.7 times the F1 of distorted regions plus 0.3 times the mean of PLCC and SRCC. "
        "Its interval is missing where that of PLCC is.",
        high=1.0,
        source=_SOURCE,
    ),
    "f1": MeasureInfo.share(
        title="F1",
        meaning="Harmonic mean of the precision and recall of distorted regions, pooled over all "
        "images. 0 where no region is predicted.",
        source=_SOURCE,
    ),
    "precision": MeasureInfo.share(
        title="Precision",
        meaning="Share of predicted regions (larger than 0.0006 of the image) that hit a labelled "
        "region: the overlap of the two is above 0.1 of their union.",
        source=_SOURCE,
    ),
    "recall": MeasureInfo.share(
        title="Recall",
        meaning="Share of labelled regions (larger than 150 square pixels) hit by a predicted "
        "region.",
        source=_SOURCE,
    ),
    "giou": MeasureInfo.share(
        title="GIoU",
        meaning="Mean over the images of the intersection over union of all distorted pixels, "
        "with 0.0001 added to both; an image without distortion, predicted as such, counts 1.",
        source=f"{_SOURCE}; that the smoothing is added to both sides is our reading",
    ),
    "plcc": MeasureInfo(
        title="PLCC",
        meaning="Pearson correlation between the mean opinion score and the metric after a "
        "four-parameter logistic is fitted from scores to opinions. The interval takes the best "
        "curve of a fixed grid in each resample instead of a new fit.",
        low=-1.0,
        high=1.0,
        source=_SOURCE,
    ),
    "srcc": MeasureInfo.correlation(
        title="SRCC",
        meaning="Spearman rank correlation between the metric and the mean opinion score.",
        source=_SOURCE,
    ),
    "pearson": MeasureInfo.correlation(
        title="Pearson r",
        meaning="Plain Pearson correlation between the metric and the mean opinion score.",
        source="beside PLCC, which fits a curve first",
    ),
}


MIN_PREDICTED_AREA = 0.0006 * SIZE * SIZE
"""A predicted region is kept above this contour area (157.29 square pixels)."""
MIN_LABELLED_AREA = 150.0
"""A labelled region is kept above this contour area."""
HIT_IOU = 0.1
"""Two regions hit one another above this intersection over union."""
SMOOTHING = 1e-4
"""Added to both intersection and union of whole masks, so that two empty masks agree."""


@dataclass(frozen=True)
class Region:
    """A filled contour."""

    left: int  # first column of its box
    top: int  # first row of its box
    filled: BoolArray  # shape (height, width) of its box, True within the contour
    n_pixels: int  # number of pixels within the contour


@dataclass(frozen=True)
class Agreement:
    """Contribution of one image to the pooled measures."""

    predicted: int  # kept predicted regions
    predicted_hit: int  # those that hit a labelled region
    labelled: int  # kept labelled regions
    labelled_hit: int  # those hit by a predicted region
    iou: float  # smoothed intersection over union of the whole masks, small regions included

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """The four region counts, in the order of the attributes."""
        return self.predicted, self.predicted_hit, self.labelled, self.labelled_hit


def regions(mask: BoolArray, area_above: float) -> list[Region]:
    """Outer contours of a mask, shape (SIZE, SIZE), with more than `area_above` square pixels.

    OpenCV's definitions are part of the protocol: the area of a contour is that of the polygon
    through the centres of its border pixels (a block of 10 x 10 pixels has 81), and a filled
    contour includes its border and its holes.
    """
    import cv2  # noqa: PLC0415 - large, and needed only where masks are compared

    contours, _ = cv2.findContours(
        mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE
    )
    return [_region(c) for c in contours if cv2.contourArea(c) > area_above]


def agreement(predicted: BoolArray, labelled: BoolArray) -> Agreement:
    """Comparison of two masks of one image, shape (SIZE, SIZE) each.

    The script looks for a hit of each predicted region first, then of each labelled region that
    is still without one. A region may hit several, so both passes look for any partner above
    `HIT_IOU`.
    """
    found = regions(predicted, MIN_PREDICTED_AREA)
    wanted = regions(labelled, MIN_LABELLED_AREA)
    hits = np.array([[iou(a, b) > HIT_IOU for b in wanted] for a in found], bool)
    hits = hits.reshape(len(found), len(wanted))
    return Agreement(
        predicted=len(found),
        predicted_hit=int(hits.any(axis=1).sum()),
        labelled=len(wanted),
        labelled_hit=int(hits.any(axis=0).sum()),
        iou=whole_iou(predicted, labelled),
    )


def iou(a: Region, b: Region) -> float:
    """Intersection over union of two filled contours, in pixels."""
    left, right = max(a.left, b.left), min(_right(a), _right(b))
    top, bottom = max(a.top, b.top), min(_bottom(a), _bottom(b))
    if left >= right or top >= bottom:
        return 0.0
    shared = int((_cut(a, left, right, top, bottom) & _cut(b, left, right, top, bottom)).sum())
    return shared / (a.n_pixels + b.n_pixels - shared)


def whole_iou(predicted: BoolArray, labelled: BoolArray) -> float:
    """(intersection + 1e-4) / (union + 1e-4) of the distorted pixels; 1 where both are empty."""
    shared = np.count_nonzero(predicted & labelled)
    either = np.count_nonzero(predicted | labelled)
    return (shared + SMOOTHING) / (either + SMOOTHING)


def _region(contour: NDArray[Any]) -> Region:
    import cv2  # noqa: PLC0415 - see `regions`

    left, top, width, height = (int(n) for n in cv2.boundingRect(contour))
    canvas = np.zeros((height, width), np.uint8)
    cv2.drawContours(canvas, [contour], 0, (1,), cv2.FILLED, offset=(-left, -top))
    return Region(left, top, canvas.astype(bool), int(canvas.sum()))


def _right(region: Region) -> int:
    return region.left + int(region.filled.shape[1])


def _bottom(region: Region) -> int:
    return region.top + int(region.filled.shape[0])


def _cut(region: Region, left: int, right: int, top: int, bottom: int) -> BoolArray:
    rows = slice(top - region.top, bottom - region.top)
    return region.filled[rows, left - region.left : right - region.left]
