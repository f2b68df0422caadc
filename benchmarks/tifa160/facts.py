"""What the ratings of TIFA160 alone say: how good the five models are, how far raters agree."""

from __future__ import annotations

import pandas as pd

from benchmarks.statistics.correlation import kendall, pearson, spearman
from benchmarks.statistics.one_rater import one_against_the_others
from benchmarks.statistics.raters import Level, krippendorff_alpha
from benchmarks.tifa160.answers import GOLDS, Tifa160Answers

LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")


def facts(answers: Tifa160Answers) -> dict[str, pd.DataFrame]:
    """Tables by title; see `Benchmark.facts`."""
    return {
        "Mean rating by model": model_means(answers),
        "Krippendorff's alpha of the ratings": rater_agreement(answers),
        "Correlation between the two golds": gold_correlation(answers),
        "Spearman of one rating with the mean of the others": one_rater(answers),
    }


def model_means(answers: Tifa160Answers) -> pd.DataFrame:
    """Mean over the images of each model; columns `model` and one per gold (1..5)."""
    means = answers.images.groupby("model", sort=False)[list(GOLDS)].mean()
    return means.reset_index()


def rater_agreement(answers: Tifa160Answers) -> pd.DataFrame:
    """Columns `gold`, `nominal`, `ordinal`, `interval`; each at most 1."""
    return pd.DataFrame(
        [
            {"gold": gold, **{level: krippendorff_alpha(table, level) for level in LEVELS}}
            for gold, table in answers.ratings.items()
        ]
    )


def gold_correlation(answers: Tifa160Answers) -> pd.DataFrame:
    """Columns `pearson`, `spearman`, `kendall` (tau-b) over all images: what one gold makes of the other."""
    one, other = (answers.images[gold].to_numpy(float) for gold in GOLDS)
    return pd.DataFrame(
        {
            "pearson": [pearson(one, other)],
            "spearman": [spearman(one, other)],
            "kendall": [kendall(one, other)],
        }
    )


def one_rater(answers: Tifa160Answers) -> pd.DataFrame:
    """Spearman correlation of each rating of an image with the mean of its other ratings.

    What one person reaches as a metric, over all images in one pool.

    Returns:
        Columns `gold`, `rating` (1, 2, ..., then `mean`; for `dsg_likert` that is the ceiling of
        the card's scale) and `srcc` (-1..1).
    """
    rows = []
    for gold, table in answers.ratings.items():
        found = one_against_the_others(table, spearman)
        rows += [(gold, str(i), float(value)) for i, value in enumerate(found, start=1)]
        rows.append((gold, "mean", float(found.mean())))
    return pd.DataFrame(rows, columns=["gold", "rating", "srcc"])
