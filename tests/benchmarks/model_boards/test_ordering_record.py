"""Relations of models by people and by metrics: released data and made-up ones.

Figures of the released data were recomputed with scipy: TIFA160 from the authors' file of ratings
and scores, GenAI-Bench from its ratings.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.genai_bench.protocol import CARD_1600, GenAiBench
from benchmarks.model_boards.estimates import ordering_record
from benchmarks.model_boards.rated_models import RatedModels, rated_models
from benchmarks.tifa160.load import HUMAN
from benchmarks.tifa160.protocol import Tifa160


def tifa160(assay_data: Path) -> RatedModels:
    found = rated_models(Tifa160().answers(assay_data))
    assert found is not None
    return found


def released_scores(assay_data: Path, metric: str) -> dict[str, float]:
    items = json.loads((assay_data / HUMAN).read_bytes())
    return {pair: float(item[metric]) for pair, item in items.items()}


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
    rated = tifa160(assay_data)
    scores = rated.arranged(released_scores(assay_data, metric))
    record = ordering_record(rated.people, scores, rated.models)
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
