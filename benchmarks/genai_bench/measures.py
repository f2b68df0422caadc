"""What the GenAI-Bench measures mean, for the header of their columns and the about page."""

from __future__ import annotations

from benchmarks.schema import MeasureInfo

AGREEMENT_MEASURES: dict[str, MeasureInfo] = {
    "pairwise_accuracy": MeasureInfo(
        title="Pairwise accuracy",
        meaning="Share of all pairs of images (of whatever prompts) that the metric and the mean "
        "rating order alike, or that both call tied. The metric calls a pair tied where its scores "
        "differ by at most a threshold. Variant paper takes the threshold of highest accuracy on "
        "these very images (tie calibration), variant no_calibration takes 0, and variant "
        "ignore_tie leaves out pairs that people rate alike. The interval of variant paper keeps "
        "the threshold found on all images instead of calibrating every resample anew.",
        low=0.0,
        high=1.0,
        source="Deutsch et al. 2023 (tie calibration); VQAScore and GenAI-Bench, no grouping",
    ),
    "krcc": MeasureInfo(
        title="Kendall τ-b",
        meaning="Kendall's tau-b between the metric and the mean rating over all images.",
        low=-1.0,
        high=1.0,
        chance=0.0,
        source="VQAScore and GenAI-Bench, no grouping",
    ),
    "pearson": MeasureInfo(
        title="Pearson r",
        meaning="Plain Pearson correlation between the metric and the mean rating over all images. "
        "The papers print it times 100.",
        low=-1.0,
        high=1.0,
        chance=0.0,
        source="VQAScore and GenAI-Bench, no grouping",
    ),
    "srcc": MeasureInfo(
        title="Spearman ρ",
        meaning="Spearman rank correlation between the metric and the mean rating over all images.",
        low=-1.0,
        high=1.0,
        chance=0.0,
        source="as EvalMuse-40K, Table 2, reports it for GenAI-Bench",
    ),
}
"""Agreement of scores with mean ratings, all images in one pool."""

MEASURES = AGREEMENT_MEASURES
FACETS: dict[str, str] = {}
