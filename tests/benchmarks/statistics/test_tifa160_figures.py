"""Our statistics on the public TIFA160 file give the published figures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.statistics import correlation, logistic, raters

pytestmark = pytest.mark.paper

CORRELATIONS = {
    "meteor": (0.3397, 0.3723, 0.2741),
    "bleu": (0.1833, 0.2590, 0.1879),
    "rouge": (0.3289, 0.3360, 0.2449),
    "spice": (0.3281, 0.3073, 0.2318),
    "clipscore_vitb32": (0.3318, 0.3198, 0.2314),
    "tifa_vilt": (0.4932, 0.5000, 0.3824),
    "tifa_git-large": (0.5445, 0.5451, 0.4255),
    "tifa_ofa-large": (0.4961, 0.4866, 0.3725),
    "tifa_blip2-flant5xl": (0.5590, 0.5581, 0.4360),
    "tifa_mplug-large": (0.5967, 0.5922, 0.4717),
}
PLCC = {
    "clipscore_vitb32": 0.3502,
    "spice": 0.3294,
    "tifa_blip2-flant5xl": 0.5612,
    "tifa_mplug-large": 0.5984,
}


@pytest.fixture(scope="module")
def items(assay_data: Path) -> list[dict[str, float]]:
    file = assay_data / "tifa160" / "human_annotations_with_scores.json"
    found = list(json.loads(file.read_text(encoding="utf-8")).values())
    assert len(found) == 800
    return found


def column(items: list[dict[str, float]], name: str) -> np.ndarray:
    return np.array([item[name] for item in items], np.float64)


@pytest.mark.parametrize("metric", list(CORRELATIONS))
def test_pearson_spearman_and_tau_b(items: list[dict[str, float]], metric: str) -> None:
    x, y = column(items, metric), column(items, "human_avg")
    found = (correlation.pearson(x, y), correlation.spearman(x, y), correlation.kendall(x, y))
    assert tuple(round(value, 4) for value in found) == CORRELATIONS[metric]


def test_the_authors_own_digits(items: list[dict[str, float]]) -> None:
    y = column(items, "human_avg")
    for metric, r, tau in (
        ("clipscore_vitb32", 0.3318181645, 0.2314458979),
        ("tifa_mplug-large", 0.5967201060, 0.4717164649),
    ):
        x = column(items, metric)
        assert correlation.pearson(x, y) == pytest.approx(r, abs=1e-9)
        assert correlation.kendall(x, y) == pytest.approx(tau, abs=1e-9)


@pytest.mark.parametrize("metric", list(PLCC))
def test_plcc_after_the_logistic_fit(items: list[dict[str, float]], metric: str) -> None:
    found = logistic.plcc(column(items, metric), column(items, "human_avg"))
    assert found.value == pytest.approx(PLCC[metric], abs=2e-3)
    assert found.note == ""


@pytest.mark.parametrize(
    ("level", "expected"), [("nominal", 0.3750), ("ordinal", 0.7186), ("interval", 0.6795)]
)
def test_krippendorff_alpha_of_the_ratings(
    items: list[dict[str, float]], level: raters.Level, expected: float
) -> None:
    ratings = [item["human_scores"] for item in items]
    assert raters.krippendorff_alpha(ratings, level) == pytest.approx(expected, abs=5e-5)
