"""From raw Gecko ratings to one score per image and template, and one preference per comparison.

Gecko, section on annotation templates: three raters per item; "unsure" answers are removed.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from benchmarks.errors import SubmitterError

ABSOLUTE_TEMPLATES: tuple[str, ...] = ("WL", "Likert", "DSGH")
"""Templates that rate one image; SxS compares two."""

Preference = Literal[1, 0, -1]

_NUMBERS: dict[str, dict[str, float]] = {
    "WL": {"aligned": 1.0, "not_aligned": 0.0, "unsure": np.nan},
    # Printed scores are multiples of 1/15 from 0.2 up: ratings over 5, not (r - 1) / 4.
    "Likert": {**{str(r): r / 5.0 for r in range(1, 6)}, "unsure": np.nan},
    # The paper does not say what "invalid" counts for; like "unsure" it is dropped.
    "DSGH": {"yes": 1.0, "no": 0.0, "invalid": np.nan, "unsure": np.nan},
}
VALUES: dict[str, tuple[str, ...]] = {
    **{template: tuple(numbers) for template, numbers in _NUMBERS.items()},
    "SxS": ("a", "b", "unsure"),
}
"""What a rater may answer in each template."""
SCORE_DIGITS = 12
"""Of a human score. Means of fifths and thirds that are equal differ in their last bits with the
order of the raters; rank correlations would take them for different."""
_VOTES: dict[str, int] = {"a": 1, "unsure": 0, "b": -1}


def template_scores(ratings: pd.DataFrame) -> pd.DataFrame:
    """Human score of each image in each absolute template.

    Each rater's words or questions are averaged first, then the raters; unsure and invalid
    answers are left out, and a rater with nothing else counts for nothing.

    Args:
        ratings: as `GeckoAnswers.ratings`; SxS rows are ignored.

    Returns:
        Columns `template`, `prompt_id`, `model`, `score` (0..1; Likert 0.2..1; NaN where every
        answer was unsure or invalid), sorted by the first three.

    Raises:
        SubmitterError: `unknown_rating`, naming template and value.
    """
    item = ["template", "prompt_id", "model"]
    numbers = coded(ratings[ratings["template"].isin(ABSOLUTE_TEMPLATES)])
    by_rater = numbers.groupby([*item, "rater_id"], sort=True)["score"].mean()
    means = by_rater.groupby(level=item, sort=True).mean()
    return means.round(SCORE_DIGITS).reset_index()


def coded(absolute: pd.DataFrame) -> pd.DataFrame:
    """Ratings of the absolute templates with a column `score`: 0..1, NaN for unsure and invalid.

    Raises:
        SubmitterError: `unknown_rating`, naming template and value.
    """
    scores = pd.Series(np.nan, absolute.index, np.float64)
    for template, rows in absolute.groupby("template", sort=True):
        numbers = _coded(rows, str(template), _NUMBERS[str(template)])
        scores[absolute["template"] == template] = numbers
    return absolute.assign(score=scores)


def preferences(ratings: pd.DataFrame) -> pd.DataFrame:
    """Majority vote of each side-by-side comparison.

    Args:
        ratings: as `GeckoAnswers.ratings`; only SxS rows are used. Raters may see two models in
            either order.

    Returns:
        Columns `prompt_id`, `model`, `model_b` (model < model_b) and `preference`: 1 where
        `model` has more than half of the votes, -1 where `model_b` has, 0 where raters are
        unsure or tied; sorted by the first three.

    Raises:
        SubmitterError: `unknown_rating`, naming template and value.
    """
    rows = ratings[ratings["template"] == "SxS"]
    votes = _coded(rows, "SxS", {value: float(vote) for value, vote in _VOTES.items()})
    swapped = (rows["model"] > rows["model_b"]).to_numpy()
    first = np.where(swapped, rows["model_b"], rows["model"])
    second = np.where(swapped, rows["model"], rows["model_b"])
    votes = np.where(swapped, -votes, votes)
    table = pd.DataFrame(
        {
            "prompt_id": rows["prompt_id"].to_numpy(),
            "model": first,
            "model_b": second,
            "for_a": votes == 1,
            "for_b": votes == -1,
            "unsure": votes == 0,
        }
    )
    counts = table.groupby(["prompt_id", "model", "model_b"], sort=True).sum().reset_index()
    preference = [
        majority(int(a), int(b), int(unsure))
        for a, b, unsure in zip(counts["for_a"], counts["for_b"], counts["unsure"], strict=True)
    ]
    found = counts[["prompt_id", "model", "model_b"]]
    return found.assign(preference=np.array(preference, np.intp))


def majority(for_a: int, for_b: int, unsure: int) -> Preference:
    """The vote of more than half of the raters: 1 for a, -1 for b; 0 where there is none."""
    votes = for_a + for_b + unsure
    if 2 * for_a > votes:
        return 1
    return -1 if 2 * for_b > votes else 0


def _coded(rows: pd.DataFrame, template: str, numbers: dict[str, float]) -> np.ndarray:
    values = rows["value"].astype(str)
    unknown = values[~values.isin(list(numbers))]
    if not unknown.empty:
        raise SubmitterError(
            "unknown_rating",
            f"{unknown.iloc[0]!r} is no value of the annotation template {template} "
            f"({len(unknown)} such ratings).",
            f"Use one of: {', '.join(numbers)}.",
        )
    return values.map(numbers).to_numpy(np.float64)
