"""What the measures of the structure test mean."""

from __future__ import annotations

from benchmarks.schema import MeasureInfo

_SOURCE = "EvalMuse-40K, section 9.3, Tables 8 and 9"

MEASURES: dict[str, MeasureInfo] = {
    "accuracy": MeasureInfo(
        title="Accuracy",
        meaning="Mean of two shares: images with the problem that get a yes, and images without "
        "it that get a no, where P(Yes) above the threshold is a yes. The threshold is searched "
        "on these data (and again in each resample). The paper prints it by category; over all "
        "categories it is the same mean of the two shares that its search looks at.",
        low=0.0,
        high=1.0,
        chance=0.5,
        source=_SOURCE,
    ),
    "recall": MeasureInfo(
        title="Recall",
        meaning="Share of annotated problems, one question each, that get a yes at the threshold "
        "of the accuracy test. A metric that always says yes has 1.",
        low=0.0,
        high=1.0,
        source=_SOURCE,
    ),
    "f1": MeasureInfo(
        title="F1",
        meaning="Harmonic mean of the two shares behind the accuracy, over all categories: what "
        "the search for the threshold maximises.",
        low=0.0,
        high=1.0,
        source=_SOURCE,
    ),
    "threshold": MeasureInfo(
        in_steps=True,
        title="Threshold",
        meaning="P(Yes) above which an answer is taken as yes: the value in 0, 0.01, ..., 1 of "
        "highest F1 over all category questions, the smallest of several.",
        low=0.0,
        high=1.0,
        source=f"{_SOURCE}; that the smallest of several is taken is ours",
    ),
    "auc": MeasureInfo(
        title="AUC",
        meaning="How often an image with the problem gets a higher P(Yes) than one without it "
        "(half for a tie), over all pairs of them. Needs no threshold.",
        low=0.0,
        high=1.0,
        chance=0.5,
        source="a summary of ours",
    ),
}
FACETS: dict[str, str] = {}
