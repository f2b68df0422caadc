"""Which answers hold ratings of several models on the same prompts, and how they are laid out."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.evalmuse.answers import EvalMuseAnswers
from benchmarks.model_boards.rated_models import rated_models
from benchmarks.schema import Answers


def answers(pair_ids: list[str], labels: list[float]) -> EvalMuseAnswers:
    prompts = [one.rpartition("/")[2].partition(".")[0] for one in pair_ids]
    images = pd.DataFrame(
        {"pair_id": pair_ids, "prompt_id": prompts, "split": "real", "label": labels}
    )
    elements = pd.DataFrame({"pair_id": [], "element_id": [], "skill": [], "label": []})
    return EvalMuseAnswers(tuple(pair_ids), tuple(dict.fromkeys(prompts)), images, elements)


def test_ratings_are_laid_out_by_prompt_and_model_and_scores_likewise() -> None:
    found = rated_models(answers(["A/1.png", "B/1.png", "A/2.png"], [3.0, 4.0, 5.0]))
    assert found is not None
    assert (found.models, found.prompts) == (("A", "B"), ("1", "2"))
    np.testing.assert_array_equal(found.people, [[3.0, 4.0], [5.0, np.nan]])
    np.testing.assert_array_equal(
        found.arranged({"B/1.png": 0.25, "A/2.png": 0.5}), [[np.nan, 0.25], [0.5, np.nan]]
    )


def test_images_of_one_model_compare_nothing() -> None:
    assert rated_models(answers(["A/1.png", "A/2.png"], [3.0, 4.0])) is None


def test_images_that_name_no_model_are_of_none() -> None:
    assert rated_models(answers(["1.png", "2.png"], [3.0, 4.0])) is None


def test_other_benchmarks_rate_no_models() -> None:
    assert rated_models(Answers(("a",), ("a",))) is None
