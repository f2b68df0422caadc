"""Krippendorff's alpha of real ratings (specification of the protocols, 7.2)."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from benchmarks.statistics.raters import Level, krippendorff_alpha

pytestmark = pytest.mark.paper

LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")


def alphas(ratings: np.ndarray) -> tuple[float, ...]:
    return tuple(round(krippendorff_alpha(ratings, level), 4) for level in LEVELS)


def filled(units: list[list[float]]) -> np.ndarray:
    width = max(map(len, units))
    return np.array([[*unit, *[np.nan] * (width - len(unit))] for unit in units])


def test_dsg_likert_ratings_of_tifa160(assay_data: Path) -> None:
    units: dict[tuple[str, str], list[float]] = defaultdict(list)
    place = assay_data / "dsg_tifa160" / "tifa160-likert-anns.csv"
    with place.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            units[row["t2i_model"], row["item_id"]].append(float(row["answer"]))
    assert len(units) == 800
    assert alphas(filled(list(units.values()))) == (0.3969, 0.6854, 0.6844)


def genai(assay_data: Path, size: str) -> np.ndarray:
    place = assay_data / "genai_bench" / f"genai{size}_genai_image.json"
    items = json.loads(place.read_text(encoding="utf-8")).values()
    return np.array([unit for item in items for unit in item["models"].values()], float)


@pytest.mark.parametrize(
    ("size", "expected"), [("527", (0.3537, 0.7145, 0.6220)), ("1600", (0.3648, 0.7147, 0.6776))]
)
def test_genai_bench_raw_ratings(assay_data: Path, size: str, expected: tuple[float, ...]) -> None:
    assert alphas(genai(assay_data, size)) == expected


def test_genai_bench_without_the_two_ratings_above_five(assay_data: Path) -> None:
    ratings = genai(assay_data, "1600")
    assert (ratings > 5).sum() == 2
    assert alphas(np.where(ratings > 5, np.nan, ratings)) == (0.3648, 0.7148, 0.7137)
