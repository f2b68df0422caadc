"""Protocol of NTIRE 2025 track 2: distorted regions and a score of structural quality."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray
from benchmarks.evalmuse_track2.load import (
    BOXES,
    IMAGES,
    PROMPTS,
    SIZE,
    BoolArray,
    MaskedScores,
    PackedMask,
    Track2Answers,
    load_answers,
    load_questions,
    parse_masks,
    unpack,
)
from benchmarks.pooled import CORRELATIONS, Estimate, PooledImages
from benchmarks.rows import Measured, MeasuredBuilder, PooledSample, Row, notes
from benchmarks.schema import Benchmark, Card, MeasureInfo, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan, resampled_mean

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


F1_GUARD = 1e-10
F1_WEIGHT = 0.7
CORRELATION_WEIGHT = 0.3
NO_MASKS = "the scores file holds no masks"


@dataclass(frozen=True)
class _Regions:
    """Region counts (n, 4) in the order of `Agreement.counts`, and IoU (n,), by image."""

    counts: FloatArray
    iou: FloatArray


def final_score(f1: float, plcc: float, srcc: float) -> float:
    """0.7 F1 + 0.3 (PLCC + SRCC) / 2."""
    return F1_WEIGHT * f1 + CORRELATION_WEIGHT * (plcc + srcc) / 2.0


def region_rates(sums: FloatArray) -> dict[str, FloatArray]:
    """F1, precision and recall from pooled region counts.

    `sums` (..., 4): predicted, predicted and hit, labelled, labelled and hit.

    Returns shape (...,) each. Precision is NaN where nothing is predicted (F1 is then 0), recall
    and F1 are NaN where nothing is labelled.
    """
    predicted, predicted_hit, labelled, labelled_hit = np.moveaxis(np.asarray(sums, float), -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.where(predicted > 0, predicted_hit / predicted, np.nan)
        recall = np.where(labelled > 0, 1.0 - (labelled - labelled_hit) / labelled, np.nan)
    p = np.where(predicted > 0, precision, 0.0)
    f1 = 2.0 * p * recall / (p + recall + F1_GUARD)
    return {"f1": f1, "precision": precision, "recall": recall}


def _compare(masks: Mapping[str, PackedMask], answers: Track2Answers) -> _Regions:
    found = [agreement(unpack(masks[i]), unpack(answers.masks[i])) for i in answers.pair_ids]
    return _Regions(
        np.array([a.counts for a in found], np.float64), np.array([a.iou for a in found])
    )


def _rates(found: _Regions | None, counts: FloatArray) -> dict[str, Estimate]:
    if found is None:
        return {n: Estimate(note=NO_MASKS) for n in ("f1", "precision", "recall")}
    sums = found.counts.sum(axis=0)
    values, resampled = region_rates(sums), region_rates(counts @ found.counts)
    reasons = {"f1": "", "precision": "", "recall": ""}
    if sums[0] == 0:
        reasons |= {"f1": "no region is predicted", "precision": "no region is predicted"}
    if sums[2] == 0:
        reasons |= {"f1": "no region is labelled", "recall": "no region is labelled"}
    return {n: Estimate(float(values[n]), reasons[n], resampled[n]) for n in values}


def _n_items(name: str, found: _Regions | None, n_images: int) -> int:
    """Regions behind a rate; images where there are no masks."""
    if found is None:
        return n_images
    predicted, _, labelled, _ = (int(n) for n in found.counts.sum(axis=0))
    return {"precision": predicted, "recall": labelled}.get(name, predicted + labelled)


def _add_giou(
    builder: MeasuredBuilder,
    row: Row,
    found: _Regions | None,
    counts: FloatArray,
    answers: Track2Answers,
) -> None:
    row = replace(row, measure="giou", note=notes(answers.note, "" if found else NO_MASKS))
    if found is None:
        builder.add(row)
        return
    row = replace(row, value=float(found.iou.mean()))
    builder.add(row, resampled_mean(found.iou, counts), answers.pair_ids, found.iou)


def _final(f1: Estimate, plcc: Estimate, srcc: Estimate) -> Estimate:
    value = final_score(f1.value, plcc.value, srcc.value)
    note = notes(*dict.fromkeys((f1.note, plcc.note, srcc.note)))
    if f1.resamples is None or plcc.resamples is None or srcc.resamples is None:
        return Estimate(value, note)
    resamples: FloatArray = F1_WEIGHT * f1.resamples + CORRELATION_WEIGHT * 0.5 * (
        plcc.resamples + srcc.resamples
    )
    return Estimate(value, note, resamples)


def _add(
    builder: MeasuredBuilder,
    row: Row,
    estimate: Estimate,
    note: str = "",
    pool: Callable[[], PooledSample] | None = None,
) -> None:
    row = replace(row, value=estimate.value, note=notes(estimate.note, note))
    builder.add(row, None if math.isnan(estimate.value) else estimate.resamples, pool=pool)


CARD = Card.read(Path(__file__).parent / "card.toml", MEASURES)


class EvalMuseTrack2(Benchmark):
    """Benchmark of distorted regions and structural quality, labelled by people."""

    card = CARD
    asked_from = (IMAGES,)

    def answers(self, data: Path | None) -> Track2Answers:
        """The labels of the operator; see `load_answers`."""
        return load_answers(self.folder(data))

    def questions(self, data: Path | None) -> Questions:
        """The labelled images with their prompts; see `load_questions`."""
        return load_questions(self.folder(data), self.answers(data).pair_ids)

    def has_images(self, data: Path | None) -> bool:
        """Whether labels and prompts of the images are there too."""
        folder = self.folder(data)
        return (folder.has(PROMPTS) or folder.has(BOXES)) and self.has_answers(data)

    def measure(self, scores: ScoreTable, answers: Track2Answers, plan: ResamplingPlan) -> Measured:
        """All measures of every metric in the table, variant `code`.

        Rows: `final`, `f1`, `precision`, `recall`, `giou`, `plcc`, `srcc` and `pearson`. Those of
        regions are NaN where the table is no `MaskedScores` or has no masks of the metric.
        """
        builder = MeasuredBuilder(plan.n_resamples)
        overall = scores.oriented().loc[list(answers.pair_ids)]
        masks = scores.masks if isinstance(scores, MaskedScores) else {}
        ratings = answers.scores.loc[list(answers.pair_ids)].to_numpy(np.float64)
        images, counts = plan.positions(answers.pair_ids), plan.counts_of(answers.pair_ids)
        n = len(answers.pair_ids)
        for metric in scores.metrics:
            values = overall[metric].to_numpy(np.float64)
            row = Row(self.name, self.card.revision, metric, "", math.nan, variant="code")
            pool = PooledImages.of(values, ratings, images, plan)
            by_score = pool.counted(row)
            found = _compare(masks[metric], answers) if metric in masks else None
            rates = _rates(found, counts)
            agreed = {name: pool.correlation(name) for name in ("plcc", "srcc", "pearson")}
            final = _final(rates["f1"], agreed["plcc"], agreed["srcc"])
            _add(builder, replace(by_score, measure="final"), final, answers.note)
            for name, estimate in rates.items():
                of_regions = replace(
                    row, measure=name, n_clusters=n, n_items=_n_items(name, found, n)
                )
                _add(builder, of_regions, estimate, answers.note)
            _add_giou(builder, replace(row, n_items=n, n_clusters=n), found, counts, answers)
            for name, estimate in agreed.items():
                sample = pool.sample if name in CORRELATIONS else None
                _add(builder, replace(by_score, measure=name), estimate, pool=sample)
        return builder.build()

    def parse_special(
        self, content: bytes, name: str, answers: Any, metric: str
    ) -> MaskedScores | None:
        """Scores with masks (`.npz`); see `parse_masks`."""
        return parse_masks(content, name, answers.pair_ids, metric)


BENCHMARKS = (EvalMuseTrack2(),)
