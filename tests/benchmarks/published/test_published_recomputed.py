"""Printed tables whose data are public: what is computed here rounds to what was printed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.published import PublishedCell, published
from benchmarks.scores import read_scores
from benchmarks.statistics import correlation
from benchmarks.ts2.protocol import Ts2

pytestmark = [pytest.mark.paper, pytest.mark.slow]


def test_ts2_table_2(assay_data: Path) -> None:
    """Saxon et al. 2024, Table 2, from the released scores: all 144 cells to eight digits."""
    answers = Ts2().answers(assay_data)
    scores = read_scores(assay_data / "ts2" / "scores.csv", Ts2(), answers)
    rows = Ts2().evaluate(scores, answers, 10).rows
    for cell in published("ts2"):
        [row] = [
            row
            for row in rows
            if row.metric == cell.metric
            and cell.matches(row.measure, row.split, row.skill, row.variant, row.facet)
        ]
        assert row.value == pytest.approx(cell.value, rel=0, abs=1e-8), cell


def test_tifa160_correlations(assay_data: Path) -> None:
    """Hu et al. 2023, TIFA160: every cell but rouge's, which was rounded twice (see errata)."""
    file = assay_data / "tifa160" / "human_annotations_with_scores.json"
    items = list(json.loads(file.read_text(encoding="utf-8")).values())
    gold = np.array([item["human_avg"] for item in items], np.float64)

    def agrees(cell: PublishedCell) -> bool:
        scores = np.array([item[cell.metric] for item in items], np.float64)
        compute = {"pearson": correlation.pearson, "krcc": correlation.kendall}[cell.measure]
        return cell.agrees_with(compute(scores, gold))

    cells = [cell for cell in published("tifa160") if cell.paper == "tifa"]
    assert len(cells) == 20
    assert [(c.metric, c.measure) for c in cells if not agrees(c)] == [("rouge", "krcc")]
