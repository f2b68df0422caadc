"""Cases of the ranking set: the nine images that one model made of a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from benchmarks.genai_bench import cases as genai_bench
from benchmarks.genai_ranking.load import RankingAnswers


def cases(answers: RankingAnswers, texts: Mapping[Any, str]) -> pd.DataFrame:
    """The images of each prompt by each model, since a metric chooses among those of one.

    The splits are the models, as they are in the protocol.
    """
    found = genai_bench.cases(answers, texts)
    model = answers.images["model"].to_numpy(object)
    return found.assign(case_id=found["case_id"] + "/" + model, split=model)
