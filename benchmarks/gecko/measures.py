"""What each measure of Gecko means, and the names of its annotation templates."""

from __future__ import annotations

from benchmarks.schema import MeasureInfo

MEASURES: dict[str, MeasureInfo] = {
    "srcc": MeasureInfo(
        title="Spearman ρ",
        meaning="Rank correlation between the metric and the human score of one annotation "
        "template over the images of one model, averaged over the models. The summary without a "
        "template is the mean of the three templates that rate single images.",
        low=-1.0,
        high=1.0,
        chance=0.0,
        source="Gecko, point-wise evaluation; appendix F.1 of the later version",
    ),
    "pearson": MeasureInfo(
        title="Pearson r",
        meaning="Linear correlation between the metric and the human score of one annotation "
        "template over the images of one model, averaged over the models.",
        low=-1.0,
        high=1.0,
        chance=0.0,
        source="Gecko, point-wise evaluation; appendix F.1 of the later version",
    ),
    "pairwise_accuracy": MeasureInfo(
        title="Pairwise accuracy",
        meaning="Share of side-by-side comparisons of two models on one prompt in which the "
        "metric strictly prefers the image that most raters prefer. A tie or a missing score is "
        "wrong; comparisons on which the raters are unsure or tied are left out.",
        low=0.0,
        high=1.0,
        chance=0.5,
        source="Gecko, pair-wise evaluation",
    ),
    "model_pairs_right": MeasureInfo(
        in_steps=True,
        title="Model pairs right",
        meaning="Number of pairs of models that the metric relates as people do: better, worse, or "
        "no significant difference (Wilcoxon's signed ranks over the prompts, p < 0.001). The "
        "people's relation is the one that more than half of the templates find; without one it "
        "is no difference. Variant paper asks the three absolute templates, paper_v2 the "
        "side-by-side comparisons as well, direction_only compares means without a test. Every "
        "resample repeats the tests of metric and people, with the normal approximation.",
        low=0.0,
        source="Gecko, model ordering; later version, Figures 13 and 28",
    ),
    "word_accuracy": MeasureInfo(
        title="Word accuracy",
        meaning="Share of words that the metric labels as all raters do (grounded in the image or "
        "not), over words on which the raters agree and the metric gives a label. Scores from "
        "0.5 up are the label grounded; that cutoff is ours.",
        low=0.0,
        high=1.0,
        source="Gecko, Table 18",
    ),
    "error_consistency": MeasureInfo(
        title="Error consistency κ",
        meaning="Agreement of the metric's word labels with those of the raters beyond chance "
        "(Cohen's kappa), over the words of word accuracy.",
        high=1.0,
        chance=0.0,
        source="Gecko, Table 18",
    ),
}

FACETS: dict[str, str] = {
    "WL": "Word level",
    "Likert": "Likert",
    "DSGH": "DSG answered by people",
    "SxS": "Side by side",
}
