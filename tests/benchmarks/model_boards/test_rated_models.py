"""Ratings of several models on the same prompts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.evalmuse.load import EvalMuseAnswers
from benchmarks.model_boards.rated_models import (
    COMPARED_BY,
    TITLES,
    rated_models,
    ratings_by_gold,
    readers,
)
from benchmarks.schema import Answers
from benchmarks.tifa160.protocol import Tifa160


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


@pytest.mark.parametrize("pairs", [["A/1.png", "A/2.png"], ["1.png", "2.png"]])
def test_images_of_one_model_or_of_none_compare_nothing(pairs: list[str]) -> None:
    assert rated_models(answers(pairs, [3.0, 4.0])) is None


def test_ratings_and_scores_of_several_images_of_a_model_are_averaged() -> None:
    paths = ["SDXL-Turbo/1.png", "SDXL-Turbo/2.png", "Dreamina_v2.0Pro/3.png", "loose.png"]
    several = answers(paths, [1.0, 2.0, 5.0, 3.0])
    found = rated_models(replace(several, images=several.images.assign(prompt_id="p")))
    assert found is not None
    assert found.models == ("SDXL-Turbo", "Dreamina_v2.0Pro")
    assert found.people.tolist() == [[1.5, 5.0]]
    assert found.arranged({"SDXL-Turbo/2.png": 4.0})[0, 0] == 4.0


def test_other_answers_rate_no_models() -> None:
    assert rated_models(Answers(("a",), ("a",))) is None
    assert {"genai_1600", "genai_527", "tifa160", "evalmuse"} <= set(readers())


@pytest.mark.paper
def test_tifa160_was_rated_twice_and_metrics_are_held_against_the_ratings_of_its_paper(
    assay_data: Path,
) -> None:
    answers = Tifa160().answers(assay_data)
    found = ratings_by_gold(answers)
    assert list(found) == ["dsg_likert", "human_avg"]
    held_against = rated_models(answers)
    assert held_against is not None
    np.testing.assert_array_equal(held_against.people, found[COMPARED_BY].people)
    for rated in found.values():
        assert {skill: len(prompts) for skill, prompts in rated.skills.items()} == {
            "coco": 84, "partiprompt": 51, "paintskill": 15, "drawbench": 10,
        }  # fmt: skip


@pytest.mark.paper
@pytest.mark.parametrize("name", ["genai_1600", "genai_527", "tifa160"])
def test_every_model_of_these_releases_has_the_name_of_its_paper(
    name: str, assay_data: Path
) -> None:
    found = readers()[name](assay_data)
    assert found is not None and set(found.models) <= set(TITLES)
