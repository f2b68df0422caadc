"""TS2 on the bundle of released results: the published figures, to the digits they have."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.released.bundle import FOLDER
from benchmarks.rows import Row
from benchmarks.schema import ScoreTable
from benchmarks.scores import read_scores
from benchmarks.ts2.load import Ts2Answers
from benchmarks.ts2.measures import KEYS
from benchmarks.ts2.protocol import Ts2, graph_values

pytestmark = pytest.mark.paper

# Column of the golden file: measure, variant, tolerance. Published figures have eight digits.
COLUMNS = {
    "rank_published": ("rank", "paper", 1e-7),
    "sep_published": ("sep", "paper", 1e-7),
    "delta_published": ("delta", "as_printed", 1e-7),
    "rank_paper": ("rank", "paper", 1e-9),
    "sep_paper": ("sep", "paper", 1e-9),
    "delta_table2": ("delta", "as_printed", 1e-9),
    "delta_paper": ("delta", "paper", 1e-9),
    "rank_equation": ("rank", "equation", 1e-9),
    "sep_equation": ("sep", "equation", 1e-9),
    "delta_equation": ("delta", "equation", 1e-9),
    "rank_equation_midrank": ("rank_midrank", "equation", 1e-9),
}
# Three graphs with one, three and one roots, clipscore: rank, sep, raw delta of `paper`, then of `equation`.
CLIPSCORE = {
    "0": (0.8848344629, 0.9506172840, 0.125, 0.8864900943, 0.9166666667, 0.125),
    "2": (0.8776258977, 1.0, 0.2095, 0.8108968229, 1.0, 0.205),
    "25": (0.9191662300, 0.9729729730, 0.1577635135, 0.8465595904, 0.9444444444, 0.1573055556),
}


@pytest.fixture(scope="module")
def answers() -> Ts2Answers:
    return Ts2().answers(None)


@pytest.fixture(scope="module")
def scores(answers: Ts2Answers) -> ScoreTable:
    return read_scores(FOLDER / "ts2" / "scores.parquet", Ts2(), answers)


@pytest.fixture(scope="module")
def rows(answers: Ts2Answers, scores: ScoreTable) -> dict[tuple, Row]:
    measured = Ts2().evaluate(scores, answers)
    return {(r.metric, r.split, r.measure, r.variant): r for r in measured.rows}


@pytest.fixture(scope="module")
def golden(assay_data: Path) -> pd.DataFrame:
    path = assay_data.parent / "specs" / "ts2_golden_all.csv"
    if not path.is_file():
        pytest.skip(f"no golden figures: {path} does not exist")
    return pd.read_csv(path)


@pytest.mark.parametrize("column", COLUMNS)
def test_every_figure_of_a_column_is_reproduced(
    column: str, rows: dict[tuple, Row], golden: pd.DataFrame
) -> None:
    measure, variant, tolerance = COLUMNS[column]
    assert len(golden) == 19 * 4
    found = {
        (metric, split): rows[metric, split, measure, variant].value
        for metric, split in zip(golden["metric"], golden["subset"], strict=True)
    }
    expected = dict(zip(found, golden[column], strict=True))
    assert found == pytest.approx(expected, rel=0, abs=tolerance)


@pytest.mark.parametrize("graph", CLIPSCORE)
def test_the_unit_cases_of_single_graphs_are_reproduced(
    graph: str, answers: Ts2Answers, scores: ScoreTable
) -> None:
    values = graph_values(ScoreTable(scores.overall[["clipscore"]]), answers)
    position = values.graphs.index(graph)
    found = [float(values.values[key][position, 0]) for key in KEYS[:6]]
    assert found == pytest.approx(CLIPSCORE[graph], rel=0, abs=1e-10)


def test_six_llmscore_cells_are_mended_and_left_out_of_sigma(
    answers: Ts2Answers, scores: ScoreTable
) -> None:
    assert {name: len(pairs) for name, pairs in scores.repaired.items()} == {"llmscore_over": 6}
    values = graph_values(scores, answers)
    column = values.metrics.index("llmscore_over")
    sigma = [float(values.sigma[variant][column]) for variant in ("paper", "equation")]
    assert sigma == pytest.approx([1.6578547542, 1.6568273513], rel=0, abs=1e-10)


def test_splits_have_as_many_graphs_as_the_paper_evaluates(rows: dict[tuple, Row]) -> None:
    sizes = [
        [rows["clipscore", split, "rank", v].n_clusters for v in ("paper", "equation")]
        for split in ("all", "synth", "nat", "real")
    ]
    assert sizes == [[164, 165], [111, 111], [25, 25], [28, 29]]


def test_the_blank_cells_of_graph_164_are_counted_where_that_graph_is(
    rows: dict[tuple, Row],
) -> None:
    assert rows["llava_tifa", "real", "rank", "equation"].n_missing == 1
    assert rows["llava_tifa", "real", "rank", "paper"].n_missing == 0
    assert rows["clipscore", "real", "rank", "equation"].n_missing == 0


def test_printed_deltas_stand_beside_corrected_ones_and_say_why(rows: dict[tuple, Row]) -> None:
    printed = rows["clipscore", "nat", "delta", "as_printed"]
    corrected = rows["clipscore", "nat", "delta", "paper"]
    assert printed.value - corrected.value == pytest.approx(0.486, abs=1e-3)
    assert "nothing about the subset" in printed.note
    assert math.isnan(printed.ci_low)
    assert corrected.note == ""
    assert corrected.ci_low < corrected.value < corrected.ci_high


def test_only_released_metrics_have_printed_deltas(answers: Ts2Answers, scores: ScoreTable) -> None:
    table = scores.overall[["clipscore", "llmscore_ec"]].rename(columns={"clipscore": "mine"})
    measured = Ts2().evaluate(ScoreTable(table, directions={"llmscore_ec": -1}), answers, 10)
    printed = [row for row in measured.rows if row.variant == "as_printed"]
    assert {row.metric for row in printed} == {"llmscore_ec"}
    # Its printed cells are those of the other LLMScore column, which this table lacks.
    assert all(math.isnan(row.value) and "llmscore_over" in row.note for row in printed)


def test_other_scores_have_no_printed_deltas_and_no_scores_undefined_rows(
    answers: Ts2Answers, scores: ScoreTable
) -> None:
    clipscore = scores.overall[["clipscore"]]
    other, nothing = (
        Ts2().evaluate(ScoreTable(table), answers, 10).rows
        for table in (clipscore**2, clipscore * math.nan)
    )
    assert not [row for row in other if row.variant == "as_printed"]
    assert all(math.isnan(row.value) and row.note for row in nothing)


def test_a_repeated_evaluation_gives_the_same_rows(
    answers: Ts2Answers, scores: ScoreTable, rows: dict[tuple, Row]
) -> None:
    again = Ts2().evaluate(scores, answers).rows
    assert list(again) == list(rows.values())
