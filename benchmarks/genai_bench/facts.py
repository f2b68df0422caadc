"""What the ratings alone say: how good the six models are, and how far the raters agree."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from benchmarks.genai_bench.answers import GenAiAnswers
from benchmarks.statistics.one_rater import one_against_the_others
from benchmarks.statistics.paired import dominance, paired_t, wilcoxon
from benchmarks.statistics.pairwise import tie_calibrated
from benchmarks.statistics.raters import Level, krippendorff_alpha

LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")
ALL_PROMPTS, TAGGED_PROMPTS = "all prompts", "tagged prompts"


def facts(answers: GenAiAnswers) -> dict[str, pd.DataFrame]:
    """The tables below by title; see `Benchmark.facts`."""
    return {
        "Mean rating by tag and model": model_means(answers).T.rename_axis("tag").reset_index(),
        "Paired tests of two models on their mean ratings": model_tests(answers),
        "Krippendorff's alpha of the ratings": (
            rater_agreement(answers).rename_axis("ratings").reset_index()
        ),
        "One rating against the mean of the others": one_rater(answers),
    }


def model_means(answers: GenAiAnswers) -> pd.DataFrame:
    """Mean rating of each model: the benchmark's table of text-to-image models.

    The published column for all skills is over the union of the tags, `tagged prompts`; the 1,600
    set has prompts without a tag, so `all prompts` stands beside it.

    Returns:
        Index model, one column per tag, then `tagged prompts` and `all prompts`; 1..5 but for
        ratings outside the scale, which count as released.
    """
    means = _by_prompt(answers)
    tagged = frozenset().union(*answers.skills.values())
    members = {**answers.skills, TAGGED_PROMPTS: tagged, ALL_PROMPTS: frozenset(answers.clusters)}
    return pd.DataFrame(
        {name: means[means.index.isin(prompts)].mean() for name, prompts in members.items()}
    )


def model_tests(answers: GenAiAnswers) -> pd.DataFrame:
    """Paired tests of every two models on their mean ratings, prompt by prompt.

    Returns:
        Columns `a`, `b`, `t`, `t_p`, `w`, `w_p` (Wilcoxon), `a_wins`, `b_wins` (shares of
        prompts, ties count for neither).
    """
    means = _by_prompt(answers)
    rows = []
    for a, b in combinations(means.columns, 2):
        x, y = means[a].to_numpy(np.float64), means[b].to_numpy(np.float64)
        t, w = paired_t(x, y), wilcoxon(x, y)
        rows.append((a, b, t.statistic, t.p_value, w.statistic, w.p_value, *dominance(x, y)))
    names = ["a", "b", "t", "t_p", "w", "w_p", "a_wins", "b_wins"]
    return pd.DataFrame(rows, columns=names)


def rater_agreement(answers: GenAiAnswers) -> pd.DataFrame:
    """Krippendorff's alpha of the ratings.

    Returns:
        Index `raw` (as released) and `cleaned` (without ratings outside 1..5), columns `nominal`,
        `ordinal`, `interval`.
    """
    tables = {"raw": answers.ratings, "cleaned": answers.cleaned_ratings}
    return pd.DataFrame(
        {
            level: {name: krippendorff_alpha(table, level) for name, table in tables.items()}
            for level in LEVELS
        }
    )


def one_rater(answers: GenAiAnswers) -> pd.DataFrame:
    """Pairwise accuracy with tie calibration of each rating against the mean of the others.

    What one person reaches as a metric, over all images in one pool and with the ratings as
    released; a column of the release need not be one person.

    Returns:
        Columns `rating` (1, 2, ..., then `mean`, the ceiling of the card's scale) and
        `pairwise_accuracy` (0..1).
    """
    found = one_against_the_others(answers.ratings, lambda a, b: tie_calibrated(a, b).accuracy)
    names = [*map(str, range(1, found.size + 1)), "mean"]
    return pd.DataFrame({"rating": names, "pairwise_accuracy": [*found, found.mean()]})


def _by_prompt(answers: GenAiAnswers) -> pd.DataFrame:
    """Mean ratings, one row per prompt and one column per model, in the released order."""
    labelled = answers.images.assign(label=answers.labels)
    table = labelled.pivot_table(index="prompt_id", columns="model", values="label", sort=False)
    return table.loc[list(answers.clusters)]
