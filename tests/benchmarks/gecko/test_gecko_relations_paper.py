"""Model relations against published tables and against real ratings.

Gecko, later version, Figures 13 and 28; and the rule itself on the public ratings of TIFA160.
"""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from benchmarks.gecko.model_order import model_pairs_right
from benchmarks.statistics.ordering import majority_relation, relation

pytestmark = pytest.mark.paper

SIGNS = {"<": -1, "=": 0, ">": 1}
PRINTED = {
    "Imagen-Muse": ("<<<<", "<", "<<<<<<"),
    "Imagen-SDXL": ("=<==", "=", "<<=<=<"),
    "Imagen-SD1.5": (">>>>", ">", ">>><>>"),
    "Muse-SDXL": (">=>>", ">", ">==<=="),
    "Muse-SD1.5": (">>>>", ">", ">>>>>>"),
    "SDXL-SD1.5": (">=>>", ">", ">>>>>>"),
}
"""Pair: WL, Likert, DSG(H), SxS on Gecko2K-rel; the printed truth; Gecko to VQAScore."""
METRICS = ("Gecko", "DSG", "TIFA", "CLIP", "VNLI", "VQAScore")


def signs(text: str) -> list[int]:
    return [SIGNS[sign] for sign in text]


def test_two_of_three_absolute_templates_give_the_printed_truth() -> None:
    for templates, truth, _ in PRINTED.values():
        assert majority_relation(signs(templates[:3])) == SIGNS[truth]
        assert majority_relation(signs(templates)) == SIGNS[truth]  # more than half of four


def test_model_pairs_right_of_the_six_metrics() -> None:
    truth = [SIGNS[truth] for _, truth, _ in PRINTED.values()]
    found = np.array([signs(of_metrics) for _, _, of_metrics in PRINTED.values()]).T
    right = {
        m: model_pairs_right(row.tolist(), truth) for m, row in zip(METRICS, found, strict=True)
    }
    assert right == {"Gecko": 5, "DSG": 4, "TIFA": 5, "CLIP": 3, "VNLI": 5, "VQAScore": 4}
    clip = found[METRICS.index("CLIP")]
    assert sum(one == -other != 0 for one, other in zip(clip, truth, strict=True)) == 2


MODELS = {
    "mini_dalle": "mini",
    "vq_diffusion": "vq",
    "stable_diffusion_v1_1": "v1_1",
    "stable_diffusion_v1_5": "v1_5",
    "stable_diffusion_v2_1": "v2_1",
}
HUMAN = {
    ("mini", "v1_5"), ("mini", "v2_1"), ("vq", "v1_5"), ("vq", "v2_1"), ("v1_1", "v1_5"),
    ("v1_1", "v2_1"),
}  # fmt: skip
"""TIFA160, specification of the protocols, 7.2: the first is significantly worse; all others `=`."""
MPLUG = {("vq", "v2_1"), ("v1_1", "v2_1"), ("v1_5", "v2_1")}
CLIP = {("mini", "v2_1"), ("vq", "v2_1"), ("v1_1", "v2_1"), ("v1_5", "v2_1")}


@pytest.fixture(scope="module")
def tifa(assay_data: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Column, model, prompt to value."""
    file = assay_data / "tifa160" / "human_annotations_with_scores.json"
    found: dict[str, dict[str, dict[str, float]]] = {}
    for key, item in json.loads(file.read_text(encoding="utf-8")).items():
        model = MODELS[key.removeprefix(f"{item['text_id']}_")]
        for column in ("human_avg", "tifa_mplug-large", "clipscore_vitb32"):
            found.setdefault(column, {}).setdefault(model, {})[item["text_id"]] = item[column]
    return found


def relations(columns: dict[str, dict[str, float]]) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for a, b in combinations(MODELS.values(), 2):
        prompts = sorted(columns[a])
        assert len(prompts) == 160
        found[a, b] = relation([columns[a][p] for p in prompts], [columns[b][p] for p in prompts])
    return found


@pytest.mark.parametrize(
    ("column", "worse", "right"),
    [("human_avg", HUMAN, 10), ("tifa_mplug-large", MPLUG, 5), ("clipscore_vitb32", CLIP, 6)],
)
def test_relations_on_tifa160(
    tifa: dict[str, dict[str, dict[str, float]]],
    column: str,
    worse: set[tuple[str, str]],
    right: int,
) -> None:
    found = relations(tifa[column])
    assert {pair for pair, sign in found.items() if sign < 0} == worse
    assert not any(sign > 0 for sign in found.values())
    truth = relations(tifa["human_avg"])
    assert model_pairs_right(list(found.values()), list(truth.values())) == right
