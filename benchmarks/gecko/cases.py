"""Cases of Gecko: a prompt with its images, ordered by the ratings of one annotation template.

A template asks in its own way, so only ratings of one are compared within a case. Of each prompt it
is the first of `PREFERRED` by which two of its images are rated: Likert rates the whole image,
DSG(H) and WL count what is right in it. Where there is none, images are ordered by how often they
win side by side.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from benchmarks.cases import image_cases
from benchmarks.gecko.load import GeckoAnswers, preferences, template_scores

PREFERRED: tuple[str, ...] = ("Likert", "DSGH", "WL")
_SIDE_BY_SIDE = "SxS"
_SAID: dict[str, Callable[[float], str]] = {
    "Likert": lambda score: f"{5 * score:.1f} of 5",
    "DSGH": lambda score: f"{score:.0%} of questions answered yes",
    "WL": lambda score: f"{score:.0%} of words aligned",
    _SIDE_BY_SIDE: lambda balance: f"side by side: {balance:+.0f}",
}


def cases(answers: GeckoAnswers) -> pd.DataFrame:
    """The images of each prompt with the ratings of its template."""
    expected = _expected(answers)
    prompts = answers.prompts.set_index("prompt_id")
    said = [
        _SAID[template](value) if np.isfinite(value) else "not rated"
        for template, value in zip(expected["template"], expected["value"], strict=True)
    ]
    return image_cases(
        answers.pairs["pair_id"].tolist(),
        answers.pairs["prompt_id"].tolist(),
        expected["value"].to_numpy(np.float64),
        said,
        texts=prompts["prompt"].to_dict(),
        skills={
            str(prompt): [skill, f"{skill}:{finer}"] if finer else [skill]
            for prompt, skill, finer in zip(
                prompts.index, prompts["skill"], prompts["sub_skill"], strict=True
            )
            if skill
        },
        splits=_splits(prompts),
    )


def _expected(answers: GeckoAnswers) -> pd.DataFrame:
    """Template and value of each image, in the order of the pairs; NaN where it has none."""
    item = ["prompt_id", "model"]
    order = pd.MultiIndex.from_frame(answers.pairs[item])
    scores = template_scores(answers.ratings)
    found = pd.DataFrame({"template": _SIDE_BY_SIDE, "value": np.nan}, index=order)
    prompts = order.get_level_values("prompt_id")
    undecided = np.ones(len(order), bool)
    for template in (*PREFERRED, _SIDE_BY_SIDE):
        if template == _SIDE_BY_SIDE:
            values = _balance(answers.ratings)
        else:
            values = scores[scores["template"] == template].set_index(item)["score"]
        given = values.reindex(order).to_numpy(np.float64)
        rated = pd.Series(np.isfinite(given)).groupby(np.asarray(prompts)).transform("sum")
        chosen = undecided & (rated >= 2).to_numpy()
        found.loc[chosen, "template"] = template
        found.loc[chosen, "value"] = given[chosen]
        undecided &= ~chosen
    return found


def _balance(ratings: pd.DataFrame) -> pd.Series:
    """Comparisons that an image wins, less those it loses, by majority vote."""
    votes = preferences(ratings)
    first = votes.rename(columns={"preference": "value"})[["prompt_id", "model", "value"]]
    second = pd.DataFrame(
        {
            "prompt_id": votes["prompt_id"],
            "model": votes["model_b"],
            "value": -votes["preference"],
        }
    )
    return pd.concat([first, second]).groupby(["prompt_id", "model"])["value"].sum()


def _splits(prompts: pd.DataFrame) -> dict[str, str]:
    """As in `parts.parts_of`: `s` or `r`, and the reliable parts of both; none without splits."""
    if "split" not in prompts:
        return {}
    return {
        str(prompt): f"{split};rel;{split}_rel" if reliable else str(split)
        for prompt, split, reliable in zip(
            prompts.index, prompts["split"], prompts["reliable"], strict=True
        )
    }
