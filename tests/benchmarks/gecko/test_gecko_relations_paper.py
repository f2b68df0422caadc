"""Model relations of Gecko, later version, Figures 13 and 28."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.gecko.measures import model_pairs_right
from benchmarks.statistics.ordering import majority_relation

pytestmark = [pytest.mark.paper, pytest.mark.slow]

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
