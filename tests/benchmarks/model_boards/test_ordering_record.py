"""Relations of models by people and by metrics: released data and made-up ones.

Figures of the released data were recomputed with scipy: TIFA160 from the authors' file of ratings
and scores, GenAI-Bench from its ratings.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.evalmuse.answers import EvalMuseAnswers
from benchmarks.genai_bench.benchmark import CARD_1600, GenAiBench
from benchmarks.model_boards.ordering_record import ordering_record
from benchmarks.model_boards.rated_models import RatedModels, rated_models, readers
from benchmarks.schema import Answers
from benchmarks.tifa160.benchmark import Tifa160
from benchmarks.tifa160.load import HUMAN


def tifa160(assay_data: Path) -> RatedModels:
    found = rated_models(Tifa160().answers(assay_data))
    assert found is not None
    return found


def released_scores(assay_data: Path, metric: str) -> dict[str, float]:
    items = json.loads((assay_data / HUMAN).read_bytes())
    return {pair: float(item[metric]) for pair, item in items.items()}


def relations(assay_data: Path, metric: str) -> tuple[int, set[tuple[str, str]]]:
    """Pairs right, and those the metric orders, the worse model first."""
    rated = tifa160(assay_data)
    scores = rated.arranged(released_scores(assay_data, metric))
    record = ordering_record(rated.people, scores, rated.models)
    assert len(record.pairs) == 10 and record.reversed == 0
    ordered = {
        (p.first, p.second) if p.metric == -1 else (p.second, p.first)
        for p in record.pairs
        if p.metric
    }
    return record.right, ordered


@pytest.mark.paper
def test_tifa_mplug_relates_five_of_ten_pairs_of_models_as_people_do(assay_data: Path) -> None:
    right, ordered = relations(assay_data, "tifa_mplug-large")
    assert right == 5
    assert {worse for worse, _ in ordered} == {"vq_diffusion", "stable_diffusion_v1_1", "stable_diffusion_v1_5"}  # fmt: skip
    assert {better for _, better in ordered} == {"stable_diffusion_v2_1"}


@pytest.mark.paper
def test_clipscore_relates_six_of_ten_pairs_of_models_as_people_do(assay_data: Path) -> None:
    right, ordered = relations(assay_data, "clipscore_vitb32")
    assert right == 6
    assert len(ordered) == 4 and {better for _, better in ordered} == {"stable_diffusion_v2_1"}


@pytest.mark.paper
def test_people_tell_the_models_of_genai_bench_apart(assay_data: Path) -> None:
    rated = rated_models(GenAiBench(CARD_1600).answers(assay_data))
    assert rated is not None and rated.people.shape == (1600, 6)
    record = ordering_record(rated.people, rated.people, rated.models)
    found = {frozenset((p.first, p.second)): p.people for p in record.pairs}
    assert len(found) == 15 and record.right == 15
    assert found[frozenset(("SDXL_Turbo", "SDXL_Base"))] == 0  # p = 1.648e-3
    assert found[frozenset(("SDXL_Base", "DeepFloyd_I_XL_v1"))] != 0  # p = 8.712e-4
    assert found[frozenset(("Midjourney_6", "DALLE_3"))] != 0  # p = 6.364e-13
    level = ordering_record(rated.people, rated.people, rated.models, level=0.05)
    told = {frozenset((p.first, p.second)): p.people for p in level.pairs}
    assert told[frozenset(("SDXL_Turbo", "SDXL_Base"))] != 0
    means = dict(zip(rated.models, rated.people.mean(axis=0), strict=True))
    assert means["DALLE_3"] == pytest.approx(3.8196, abs=5e-5)
    assert means["SDXL_2_1"] == pytest.approx(3.0227, abs=5e-5)


def test_a_metric_equal_to_the_ratings_is_always_right() -> None:
    people = np.random.default_rng(1).uniform(1, 5, (40, 4)) + np.arange(4)
    record = ordering_record(people, people, "abcd")
    assert record.right == len(record.pairs) == 6 and record.reversed == 0


def test_a_metric_turned_round_reverses_what_people_order() -> None:
    people = np.random.default_rng(1).uniform(1, 5, (40, 3)) + 4 * np.arange(3)
    record = ordering_record(people, -people, "abc")
    assert (record.right, record.reversed) == (0, 3)


def test_pairs_that_nobody_rated_do_not_count_and_those_without_scores_are_wrong() -> None:
    people = np.random.default_rng(1).uniform(1, 5, (40, 3))
    people[:, 2] = np.nan
    scores = np.full((40, 3), np.nan)
    record = ordering_record(people, scores, "abc")
    assert len(record.pairs) == 1 and record.right == 0
    assert (record.pairs[0].metric, record.pairs[0].n_prompts) == (None, 0)


def test_ratings_and_scores_of_other_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="models"):
        ordering_record(np.zeros((3, 2)), np.zeros((3, 3)), "ab")


def test_images_of_evalmuse_belong_to_the_model_of_their_folder() -> None:
    paths = ["SDXL-Turbo/1.png", "SDXL-Turbo/2.png", "Dreamina_v2.0Pro/3.png", "loose.png"]
    images = pd.DataFrame(
        {
            "pair_id": paths, "prompt_id": ["p", "p", "p", "p"], "prompt": "x", "split": "real",
            "label": [1.0, 2.0, 5.0, 3.0],
        }
    )  # fmt: skip
    found = rated_models(EvalMuseAnswers(tuple(paths), ("p",), images, pd.DataFrame()))
    assert found is not None
    assert found.models == ("SDXL-Turbo", "Dreamina_v2.0Pro")
    assert found.people.tolist() == [[1.5, 5.0]]
    assert found.arranged({"SDXL-Turbo/2.png": 4.0})[0, 0] == 4.0


def test_other_answers_rate_no_models() -> None:
    assert rated_models(Answers((), ())) is None
    assert {"genai_1600", "genai_527", "tifa160", "evalmuse"} <= set(readers())
