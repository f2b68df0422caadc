"""Cases of TIFA160: a prompt with its five images and their mean ratings."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from benchmarks.cases import image_cases, of_five
from benchmarks.tifa160.load import GOLDS, Tifa160Answers


def cases(answers: Tifa160Answers, texts: Mapping[str, str]) -> pd.DataFrame:
    """The images of each prompt by the gold of the headline; the skill is the prompt's source."""
    images, sources = answers.images, answers.prompts.set_index("prompt_id")["source"]
    expected = images[GOLDS[0]].to_numpy(np.float64)
    return image_cases(
        images["pair_id"].tolist(),
        images["prompt_id"].tolist(),
        expected,
        of_five(expected),
        texts=texts,
        skills={str(prompt): [source] for prompt, source in sources.items()},
    )
