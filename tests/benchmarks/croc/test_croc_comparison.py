"""Kendall between metrics over the cells of CROC_hum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from benchmarks.croc.comparison import between_metrics, cell_accuracies
from benchmarks.croc.contrasts import DIRECTIONS
from benchmarks.croc.load import CATEGORIES
from benchmarks.rows import Row


def rows_of(metric: str, values: list[float]) -> list[Row]:
    cells = [(category, direction) for category in CATEGORIES for direction in DIRECTIONS]
    return [
        Row("b", "r", metric, "accuracy", value, skill=skill, facet=facet, variant="paper")
        for (skill, facet), value in zip(cells, values, strict=True)
    ]


def random_rows(n_metrics: int) -> tuple[list[Row], np.ndarray]:
    values = np.random.default_rng(1).integers(0, 9, (n_metrics, 32)) / 8.0
    return [r for m, row in enumerate(values) for r in rows_of(f"m{m}", row.tolist())], values


def test_it_equals_scipy_on_the_32_cells_with_labels_on_both_axes() -> None:
    rows, values = random_rows(3)
    matrix = between_metrics(rows)
    assert list(matrix.index) == list(matrix.columns) == ["m0", "m1", "m2"]
    for i in range(3):
        for j in range(3):
            expected = stats.kendalltau(values[i], values[j]).statistic
            assert matrix.loc[f"m{i}", f"m{j}"] == pytest.approx(expected)


def test_totals_and_other_measures_and_splits_are_passed_over() -> None:
    rows, _ = random_rows(2)
    others = [
        replace(rows[0], skill=None),
        replace(rows[0], measure="scaled_accuracy"),
        replace(rows[0], split="over_280"),
        replace(rows[0], facet="text"),
    ]
    assert cell_accuracies([*rows, *others]).equals(cell_accuracies(rows))
    assert len(cell_accuracies(rows)) == 32


def test_cells_that_one_metric_lacks_are_left_out_for_that_couple() -> None:
    rows, values = random_rows(2)
    rows[3] = replace(rows[3], value=float("nan"))
    kept = [k for k in range(32) if k != 3]
    expected = stats.kendalltau(values[0][kept], values[1][kept]).statistic
    assert between_metrics(rows).loc["m0", "m1"] == pytest.approx(expected)


def test_a_metric_that_is_the_same_everywhere_correlates_with_nothing() -> None:
    rows = [*rows_of("flat", [0.5] * 32), *random_rows(1)[0]]
    matrix = between_metrics(rows)
    assert np.isnan(matrix.loc["flat"]).all()
    assert matrix.loc["m0", "m0"] == pytest.approx(1.0)


def test_no_rows_make_an_empty_matrix() -> None:
    assert between_metrics([]).shape == (0, 0)


def test_rows_that_cannot_be_told_apart_are_an_error() -> None:
    rows, _ = random_rows(1)
    with pytest.raises(ValueError, match="two accuracies"):
        between_metrics([*rows, rows[0]])
    with pytest.raises(ValueError, match="several benchmarks"):
        between_metrics([*rows, replace(rows[0], benchmark="other")])
