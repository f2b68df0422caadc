"""How people rate models on the prompts of GenAI-Bench and TIFA160, and which differences count.

Figures of the specification of the protocols, 7.1 and 7.4: recomputed with scipy from the
released ratings.
"""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.arrays import FloatArray
from benchmarks.genai_bench.answers import GenAiAnswers
from benchmarks.genai_bench.benchmark import CARD_1600, GenAiBench
from benchmarks.prompt_sets.reference import ReferenceTable, references_of
from benchmarks.statistics.ordering import relation
from benchmarks.statistics.paired import dominance, paired_t, wilcoxon
from benchmarks.tifa160.load import HUMAN

pytestmark = pytest.mark.paper

GENAI = ("SDXL_2_1", "SDXL_Turbo", "SDXL_Base", "DeepFloyd_I_XL_v1", "Midjourney_6", "DALLE_3")
MEANS: dict[str | None, tuple[float, ...]] = {
    None: (3.0227, 3.1981, 3.2602, 3.3588, 3.6383, 3.8196),
    "basic": (3.20, 3.50, 3.60, 3.63, 3.97, 4.29),
    "advanced": (2.87, 2.95, 2.98, 3.13, 3.36, 3.43),
    "negation": (2.91, 2.92, 2.90, 2.92, 3.00, 2.98),
}
TIFA_MODELS = (
    "mini_dalle",
    "vq_diffusion",
    "stable_diffusion_v1_1",
    "stable_diffusion_v1_5",
    "stable_diffusion_v2_1",
)
V1_1, V1_5, V2_1 = TIFA_MODELS[2:]
LESS_THAN = {
    "human_avg": {
        ("mini_dalle", V1_5),
        ("mini_dalle", V2_1),
        ("vq_diffusion", V1_5),
        ("vq_diffusion", V2_1),
        (V1_1, V1_5),
        (V1_1, V2_1),
    },
    "tifa_mplug-large": {("vq_diffusion", V2_1), (V1_1, V2_1), (V1_5, V2_1)},
    "clipscore_vitb32": {
        ("mini_dalle", V2_1),
        ("vq_diffusion", V2_1),
        (V1_1, V2_1),
        (V1_5, V2_1),
    },
}


@pytest.fixture(scope="module")
def genai(assay_data: Path) -> GenAiAnswers:
    return GenAiBench(CARD_1600).answers(assay_data)


@pytest.fixture(scope="module")
def tifa(assay_data: Path) -> pd.DataFrame:
    """Released ratings and metrics, one row per image, with its model."""
    released = json.loads((assay_data / HUMAN).read_text(encoding="utf-8"))
    rows = [
        {"model": key.removeprefix(f"{entry['text_id']}_"), **entry}
        for key, entry in released.items()
    ]
    return pd.DataFrame(rows)


def of_genai(assay_data: Path) -> ReferenceTable:
    [table] = references_of("genai_prompts", assay_data)
    return table


@pytest.mark.parametrize("skill", MEANS)
def test_mean_ratings_of_genai_bench_are_reference_rows(
    skill: str | None, assay_data: Path
) -> None:
    found = {row.model: row for row in of_genai(assay_data).rows if row.skill == skill}
    expected = dict(zip(GENAI, MEANS[skill], strict=True))
    digits = 4 if skill is None else 2
    for model, mean in expected.items():
        # DeepFloyd's overall mean, 3.35875, lies between two figures of four digits.
        assert found[model].value == pytest.approx(mean, abs=0.51 * 10.0**-digits)
    assert found["DALLE_3"].metric == "human"
    if skill is None:
        assert [found[model].rank for model in GENAI] == [6, 5, 4, 3, 2, 1]


def test_the_rows_cover_every_tag_and_say_that_they_are_recomputed(assay_data: Path) -> None:
    table = of_genai(assay_data)
    assert table.recomputed
    assert table.source == "GenAI-Bench, released ratings"
    assert {row.skill for row in table.rows} == {None, *CARD_1600.skills}
    assert len(table.rows) == 6 * 13


def test_without_ratings_there_are_no_rows(tmp_path: Path) -> None:
    for name in ("genai_prompts", "tifa160_prompts"):
        assert references_of(name, None) == references_of(name, tmp_path) == ()


def by_prompt(genai: GenAiAnswers, model: str) -> FloatArray:
    of_model = (genai.images["model"] == model).to_numpy()
    return genai.labels[of_model]


@pytest.mark.parametrize(
    ("a", "b", "expected", "sign"),
    [
        ("SDXL_Turbo", "SDXL_Base", (-2.9473, 3.252e-3, 244045.5, 1.648e-3, 0.2963, 0.3588), 0),
        (
            "SDXL_Base",
            "DeepFloyd_I_XL_v1",
            (-3.7913, 1.554e-4, 302476.0, 8.712e-4, 0.3519, 0.3775),
            -1,
        ),
        ("Midjourney_6", "DALLE_3", (-6.5978, 5.659e-11, 243906.0, 6.364e-13, 0.2825, 0.4281), -1),
    ],
)
def test_neighbours_on_genai_bench_by_three_tests(
    genai: GenAiAnswers, a: str, b: str, expected: tuple[float, ...], *, sign: int
) -> None:
    x, y = by_prompt(genai, a), by_prompt(genai, b)
    t, w = paired_t(x, y), wilcoxon(x, y)
    assert round(t.statistic, 4) == expected[0]
    assert f"{t.p_value:.3e}" == f"{expected[1]:.3e}"
    assert w.statistic == expected[2]
    assert f"{w.p_value:.3e}" == f"{expected[3]:.3e}"
    assert dominance(x, y) == pytest.approx(expected[4:], abs=5.1e-5)
    assert t.significant(0.05)
    assert relation(x, y) == sign  # at p < 0.001


def test_mean_ratings_of_tifa160_are_reference_rows(assay_data: Path) -> None:
    [table] = references_of("tifa160_prompts", assay_data)
    found = {row.model: row for row in table.rows if row.facet == "human_avg"}
    assert [float(found[model].printed) for model in TIFA_MODELS] == [
        3.7969,
        3.6344,
        3.6938,
        4.0625,
        4.2625,
    ]
    assert [found[model].rank for model in TIFA_MODELS] == [3, 5, 4, 2, 1]
    assert len(table.rows) == 5 * 2


def relations(tifa: pd.DataFrame, column: str) -> dict[tuple[str, str], int]:
    values = tifa.pivot(index="text_id", columns="model", values=column).astype(np.float64)
    return {
        (a, b): relation(values[a].to_numpy(), values[b].to_numpy())
        for a, b in combinations(TIFA_MODELS, 2)
    }


@pytest.mark.parametrize("column", LESS_THAN)
def test_relations_of_models_on_tifa160_at_p_below_a_thousandth(
    tifa: pd.DataFrame, column: str
) -> None:
    found = relations(tifa, column)
    assert {pair for pair, sign in found.items() if sign < 0} == LESS_THAN[column]
    assert not any(sign > 0 for sign in found.values())


@pytest.mark.parametrize(("metric", "agreeing"), [("tifa_mplug-large", 5), ("clipscore_vitb32", 6)])
def test_metrics_find_so_many_of_the_ten_relations_of_people(
    tifa: pd.DataFrame, metric: str, agreeing: int
) -> None:
    people, found = relations(tifa, "human_avg"), relations(tifa, metric)
    assert len(people) == 10
    assert sum(found[pair] == people[pair] for pair in people) == agreeing


def test_the_two_best_models_of_tifa160_are_not_told_apart(tifa: pd.DataFrame) -> None:
    values = tifa.pivot(index="text_id", columns="model", values="human_avg").astype(np.float64)
    a, b = values[V1_5].to_numpy(), values[V2_1].to_numpy()
    t, w = paired_t(a, b), wilcoxon(a, b)
    assert (w.statistic, f"{w.p_value:.2e}") == (1432.5, "5.24e-03")
    assert (round(t.statistic, 4), f"{t.p_value:.2e}") == (-2.8578, "4.84e-03")
    assert dominance(a, b) == pytest.approx((0.2188, 0.3563), abs=5.1e-5)
    assert relation(a, b) == 0
