"""Ratings of several models on the same prompts, made up and released.

Figures of the released data were recomputed with scipy: TIFA160 from the authors' file of ratings
and scores, GenAI-Bench from its ratings.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.evalmuse.load import EvalMuseAnswers
from benchmarks.model_boards.estimates import ordering_record
from benchmarks.model_boards.rated_models import (
    COMPARED_BY,
    TITLES,
    RatedModels,
    rated_models,
    ratings_by_gold,
    readers,
)
from benchmarks.schema import Answers
from benchmarks.tifa160.load import HUMAN
from benchmarks.tifa160.protocol import Tifa160


def rated(pair_ids: list[str], labels: list[float], prompt: str = "") -> RatedModels | None:
    prompts = [prompt or one.rpartition("/")[2].partition(".")[0] for one in pair_ids]
    images = pd.DataFrame(
        {"pair_id": pair_ids, "prompt_id": prompts, "split": "real", "label": labels}
    )
    elements = pd.DataFrame({"pair_id": [], "element_id": [], "skill": [], "label": []})
    clusters = tuple(dict.fromkeys(prompts))
    return rated_models(EvalMuseAnswers(tuple(pair_ids), clusters, images, elements))


def test_ratings_are_laid_out_by_prompt_and_model_and_scores_likewise() -> None:
    found = rated(["A/1.png", "B/1.png", "A/2.png"], [3.0, 4.0, 5.0])
    assert found is not None
    assert (found.models, found.prompts) == (("A", "B"), ("1", "2"))
    np.testing.assert_array_equal(found.people, [[3.0, 4.0], [5.0, np.nan]])
    scores = found.arranged({"B/1.png": 0.25, "A/2.png": 0.5})
    np.testing.assert_array_equal(scores, [[np.nan, 0.25], [0.5, np.nan]])


def test_ratings_and_scores_of_several_images_of_a_model_are_averaged() -> None:
    paths = ["SDXL-Turbo/1.png", "SDXL-Turbo/2.png", "Dreamina_v2.0Pro/3.png", "loose.png"]
    found = rated(paths, [1.0, 2.0, 5.0, 3.0], prompt="p")
    assert found is not None
    assert found.models == ("SDXL-Turbo", "Dreamina_v2.0Pro")
    assert found.people.tolist() == [[1.5, 5.0]]
    assert found.arranged({"SDXL-Turbo/2.png": 4.0})[0, 0] == 4.0


def test_images_of_one_model_or_of_none_and_other_answers_compare_nothing() -> None:
    assert rated(["A/1.png", "A/2.png"], [3.0, 4.0]) is None
    assert rated(["1.png", "2.png"], [3.0, 4.0]) is None
    assert rated_models(Answers(("a",), ("a",))) is None


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
    for one in found.values():
        assert {skill: len(prompts) for skill, prompts in one.skills.items()} == {
            "coco": 84, "partiprompt": 51, "paintskill": 15, "drawbench": 10,
        }  # fmt: skip


def released(name: str, assay_data: Path) -> RatedModels:
    found = readers()[name](assay_data)
    assert found is not None
    return found


@pytest.mark.paper
@pytest.mark.parametrize("name", ["genai_1600", "genai_527", "tifa160"])
def test_every_model_of_these_releases_has_the_name_of_its_paper(
    name: str, assay_data: Path
) -> None:
    assert set(released(name, assay_data).models) <= set(TITLES)
    assert "evalmuse" in readers()


MINI, VQ = "mini_dalle", "vq_diffusion"
V1_1, V1_5, V2_1 = (f"stable_diffusion_{version}" for version in ("v1_1", "v1_5", "v2_1"))
WORSE = {
    "human_avg": {(MINI, V1_5), (MINI, V2_1), (VQ, V1_5), (VQ, V2_1), (V1_1, V1_5), (V1_1, V2_1)},
    "tifa_mplug-large": {(VQ, V2_1), (V1_1, V2_1), (V1_5, V2_1)},
    "clipscore_vitb32": {(MINI, V2_1), (VQ, V2_1), (V1_1, V2_1), (V1_5, V2_1)},
}
"""TIFA160, specification of the protocols, 7.2: the first is significantly worse; all others `=`."""


@pytest.mark.paper
@pytest.mark.parametrize(
    ("metric", "right"), [("human_avg", 10), ("tifa_mplug-large", 5), ("clipscore_vitb32", 6)]
)
def test_relations_of_models_on_tifa160(assay_data: Path, metric: str, right: int) -> None:
    models = released("tifa160", assay_data)
    items = json.loads((assay_data / HUMAN).read_bytes())
    scores = models.arranged({pair: float(item[metric]) for pair, item in items.items()})
    record = ordering_record(models.people, scores, models.models)
    assert (len(record.pairs), record.right, record.reversed) == (10, right, 0)
    for found, name in (("metric", metric), ("people", "human_avg")):
        ordered = {
            (p.first, p.second) if getattr(p, found) == -1 else (p.second, p.first)
            for p in record.pairs
            if getattr(p, found)
        }
        assert ordered == WORSE[name]


@pytest.mark.paper
def test_people_tell_the_models_of_genai_bench_apart(assay_data: Path) -> None:
    models = released("genai_1600", assay_data)
    assert models.people.shape == (1600, 6)

    def told(level: float, *pair: str) -> bool:
        record = ordering_record(models.people, models.people, models.models, level=level)
        assert len(record.pairs) == record.right == 15
        [people] = [p.people for p in record.pairs if {p.first, p.second} == set(pair)]
        return people != 0

    assert not told(0.001, "SDXL_Turbo", "SDXL_Base")  # p = 1.648e-3
    assert told(0.05, "SDXL_Turbo", "SDXL_Base")
    assert told(0.001, "SDXL_Base", "DeepFloyd_I_XL_v1")  # p = 8.712e-4
    assert told(0.001, "Midjourney_6", "DALLE_3")  # p = 6.364e-13
    means = dict(zip(models.models, models.people.mean(axis=0), strict=True))
    assert (means["DALLE_3"], means["SDXL_2_1"]) == pytest.approx((3.8196, 3.0227), abs=5e-5)
