"""What the EvalMuse measures mean, for column headers and the about page."""

from __future__ import annotations

from benchmarks.schema import MeasureInfo

MEASURES: dict[str, MeasureInfo] = {
    "srcc": MeasureInfo(
        title="SRCC",
        meaning="Spearman rank correlation between the metric and the mean human rating over all "
        "images. For a skill (a summary of ours): over the images whose prompt has an element of "
        "that skill.",
        low=-1.0,
        high=1.0,
        chance=0.0,
        source="EvalMuse-40K, overall alignment evaluation",
    ),
    "krcc": MeasureInfo(
        title="KRCC",
        meaning="Kendall's tau-b between the metric and the mean human rating over all images.",
        low=-1.0,
        high=1.0,
        chance=0.0,
        source="EvalMuse-40K, overall alignment evaluation",
    ),
    "plcc": MeasureInfo(
        title="PLCC",
        meaning="Pearson correlation between the mean human rating and the metric after a "
        "four-parameter logistic is fitted from scores to ratings. The curve may fall, so a "
        "metric that runs backwards also gets a positive value. Variant ntire_code fits from "
        "ratings to scores, as the released NTIRE 2025 script does by exchanging its arguments; "
        "variant ntire_page fits from scores to ratings, starting at b4 = 0.5. The interval takes "
        "the best curve of a fixed grid in each resample instead of a new fit.",
        low=-1.0,
        high=1.0,
        source="EvalMuse-40K, overall alignment evaluation; curve of the VQEG convention",
    ),
    "rmse": MeasureInfo(
        title="RMSE",
        meaning="Root of the mean squared difference, in points of the rating from 1 to 5, "
        "between the mean human rating and the logistic curve that is fitted for PLCC. A constant "
        "guess of the mean rating reaches the standard deviation of the ratings. The interval "
        "takes the best curve of a fixed grid in each resample.",
        low=0.0,
        higher_is_better=False,
        source="EvalMuse-40K, overall alignment evaluation",
    ),
    "pearson": MeasureInfo(
        title="Pearson r",
        meaning="Plain Pearson correlation between the metric and the mean human rating.",
        low=-1.0,
        high=1.0,
        chance=0.0,
        source="beside PLCC, which fits a curve first",
    ),
    "element_accuracy": MeasureInfo(
        title="Element accuracy",
        meaning="Share of (image, element) pairs for which the element score, cut at a "
        "threshold, says the same as at least half of the annotators. Variant paper takes the "
        "threshold that is best over all elements (steps of 0.01, chosen on these data and anew "
        "in each resample); held_out chooses it for each fifth of the prompts on the other four "
        "fifths, so that no element is judged by a threshold it helped to choose; ntire takes "
        "0.5. A missing element score predicts absence.",
        low=0.0,
        high=1.0,
        source="EvalMuse-40K, fine-grained evaluation, Table 6; NTIRE 2025 track 1",
    ),
    "ntire_track1": MeasureInfo(
        title="NTIRE track 1",
        meaning="The final score of track 1 of the NTIRE 2025 challenge: a quarter SRCC, a quarter "
        "PLCC and half the element accuracy at threshold 0.5. Variant code takes the PLCC of the "
        "released script (ntire_code), variant paper that of the paper.",
        low=-0.5,
        high=1.0,
        source="NTIRE 2025 challenge on text-to-image quality assessment, track 1",
    ),
}

FACETS: dict[str, str] = {}
