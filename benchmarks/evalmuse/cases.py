"""Cases of EvalMuse: a prompt with its images and their mean overall ratings."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.cases import image_cases, of_five
from benchmarks.evalmuse.load import UNREPORTED_SKILL, EvalMuseAnswers


def cases(answers: EvalMuseAnswers) -> pd.DataFrame:
    """The images of each prompt; its skills are those of the elements of any of them."""
    images = answers.images
    prompts = images.drop_duplicates("prompt_id").set_index("prompt_id")
    labels = images["label"].to_numpy(np.float64)
    return image_cases(
        images["pair_id"].tolist(),
        images["prompt_id"].tolist(),
        labels,
        of_five(labels),
        texts=prompts["prompt"].to_dict(),
        skills=_skills(answers),
        # The type of a text that is listed with both is real, as it is where prompts are drawn.
        splits=images.groupby("prompt_id")["split"].min().to_dict(),
    )


def _skills(answers: EvalMuseAnswers) -> dict[str, list[str]]:
    of_image = answers.images.set_index("pair_id")["prompt_id"]
    elements = answers.elements[answers.elements["skill"] != UNREPORTED_SKILL]
    named = pd.DataFrame(
        {
            "prompt": of_image.reindex(elements["pair_id"]).to_numpy(),
            "skill": elements["skill"].to_numpy(),
        }
    ).drop_duplicates()
    named = named.sort_values(["prompt", "skill"])
    found: dict[str, list[str]] = {}
    for prompt, skill in zip(named["prompt"], named["skill"], strict=True):
        found.setdefault(prompt, []).append(skill)
    return found
