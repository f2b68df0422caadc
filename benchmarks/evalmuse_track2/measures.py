"""What the measures of EvalMuse-Structure mean."""

from __future__ import annotations

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
    "f1": MeasureInfo(
        title="F1",
        meaning="Harmonic mean of the precision and recall of distorted regions, pooled over all "
        "images. 0 where no region is predicted.",
        low=0.0,
        high=1.0,
        source=_SOURCE,
    ),
    "precision": MeasureInfo(
        title="Precision",
        meaning="Share of predicted regions (larger than 0.0006 of the image) that hit a labelled "
        "region: the overlap of the two is above 0.1 of their union.",
        low=0.0,
        high=1.0,
        source=_SOURCE,
    ),
    "recall": MeasureInfo(
        title="Recall",
        meaning="Share of labelled regions (larger than 150 square pixels) hit by a predicted "
        "region.",
        low=0.0,
        high=1.0,
        source=_SOURCE,
    ),
    "giou": MeasureInfo(
        title="GIoU",
        meaning="Mean over the images of the intersection over union of all distorted pixels, "
        "with 0.0001 added to both; an image without distortion, predicted as such, counts 1.",
        low=0.0,
        high=1.0,
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
    "srcc": MeasureInfo(
        title="SRCC",
        meaning="Spearman rank correlation between the metric and the mean opinion score.",
        low=-1.0,
        high=1.0,
        chance=0.0,
        source=_SOURCE,
    ),
    "pearson": MeasureInfo(
        title="Pearson r",
        meaning="Plain Pearson correlation between the metric and the mean opinion score.",
        low=-1.0,
        high=1.0,
        chance=0.0,
        source="beside PLCC, which fits a curve first",
    ),
}
FACETS: dict[str, str] = {}
