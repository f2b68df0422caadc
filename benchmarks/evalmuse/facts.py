"""What the human labels alone say: how far elements explain the overall rating, which skills fail."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.evalmuse.answers import EvalMuseAnswers
from benchmarks.evalmuse.element_keys import SKILLS
from benchmarks.statistics.correlation import spearman


def facts(answers: EvalMuseAnswers) -> dict[str, pd.DataFrame]:
    """Both figures below as tables by title; see `Benchmark.facts`."""
    return {
        "SRCC of the mean element label with the overall rating (Element-GT)": _table(
            human_ceiling(answers), "split", "srcc"
        ),
        "Mean element label by skill (Align-Score)": _table(
            align_scores(answers), "skill", "mean label"
        ),
    }


def human_ceiling(answers: EvalMuseAnswers) -> dict[str, float]:
    """SRCC between the mean element label of an image and its overall rating.

    The paper's row Element-GT: what a metric would reach that knows every element as people do
    and averages them.

    Returns:
        `all`, then each split, to a value in -1..1 over the images that have elements; NaN where
        one side is constant.
    """
    means = answers.elements.groupby("pair_id")["label"].mean()
    images = answers.images[answers.images["pair_id"].isin(means.index)]
    explained = means.loc[images["pair_id"]].to_numpy(np.float64)
    rated = images["label"].to_numpy(np.float64)
    splits = images["split"].to_numpy(object)
    found = {"all": spearman(explained, rated)}
    for split in sorted(set(splits) - {""}):
        members = splits == split
        found[str(split)] = spearman(explained[members], rated[members])
    return found


def align_scores(answers: EvalMuseAnswers) -> dict[str, float]:
    """Mean element label of each skill (the paper's row Align-Score), in the order of its table."""
    means: pd.Series = answers.elements.groupby("skill")["label"].mean()
    return {skill: float(means[skill]) for skill in SKILLS if skill in means.index}


def _table(found: dict[str, float], key: str, value: str) -> pd.DataFrame:
    return pd.DataFrame({key: list(found), value: list(found.values())})
