"""Reliable prompts, worked out from raw ratings (Gecko, section on reliable prompts)."""

from __future__ import annotations

import pandas as pd

from benchmarks.gecko.aggregate import ABSOLUTE_TEMPLATES, coded

SHARE_OF_MAXIMUM = 0.5


def disagreements(ratings: pd.DataFrame) -> pd.DataFrame:
    """How much raters disagree on each image in each absolute template.

    Likert: variance of the raters' scores. WL and DSG(H): mean over words or questions of the
    variance over raters. Unsure and invalid answers are left out; the variance is that of the
    population (divisor: number of raters), so a unit with one answer has none.

    Args:
        ratings: as `GeckoAnswers.ratings`.

    Returns:
        Columns `template`, `prompt_id`, `model`, `disagreement` (NaN where no unit has an
        answer), sorted by the first three.

    Raises:
        SubmitterError: `unknown_rating`.
    """
    item = ["template", "prompt_id", "model"]
    numbers = coded(ratings[ratings["template"].isin(ABSOLUTE_TEMPLATES)])
    by_unit = numbers.groupby([*item, "unit_index"], sort=True)["score"].var(ddof=0)
    by_item = by_unit.groupby(level=item, sort=True).mean()
    return by_item.rename("disagreement").reset_index()


def reliable_prompts(ratings: pd.DataFrame) -> frozenset[str]:
    """Prompts on which raters agree well enough, in every template and for every model.

    A prompt is kept where its disagreement lies below half the maximum over prompts, for all
    pairs of model and absolute template that rated it; where the maximum is 0 nobody disagrees
    and all are kept. An image without any answer in a template says nothing about disagreement.
    Then prompts go of which every Likert rating is Unsure.

    Args:
        ratings: as `GeckoAnswers.ratings`; SxS rows are ignored.

    Raises:
        SubmitterError: `unknown_rating`.
    """
    table = disagreements(ratings)
    largest = table.groupby(["template", "model"])["disagreement"].transform("max")
    below = (table["disagreement"] < SHARE_OF_MAXIMUM * largest) | (largest == 0)
    below |= table["disagreement"].isna()
    unreliable = set(table.loc[~below, "prompt_id"])
    likert = ratings[ratings["template"] == "Likert"]
    unsure = (likert["value"] == "unsure").groupby(likert["prompt_id"]).all()
    unreliable |= set(unsure.index[unsure.to_numpy(bool)])
    return frozenset(set(table["prompt_id"]) - unreliable)
