"""A measure beside those of a protocol, added to benchmarks by one module."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.errors import PlatformError
from benchmarks.further_measures import FurtherMeasure, load_further, with_further
from benchmarks.registry import load_registry
from benchmarks.rows import Measured, MeasuredBuilder, Row, concatenate
from benchmarks.schema import Benchmark, MeasureInfo, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan, resampled_mean
from tests.benchmarks.toy import PAIRS, Toy

INFO = MeasureInfo(title="Mean square", meaning="The mean square of the scores.")
SCORES = ScoreTable(pd.DataFrame({"m": [1.0, 2.0, 4.0]}, index=pd.Index(PAIRS, name="pair_id")))


def mean_square(
    scores: ScoreTable, answers: Any, plan: ResamplingPlan, benchmark: str, revision: str
) -> Measured:
    built = MeasuredBuilder(plan.n_resamples)
    for metric in scores.metrics:
        values = scores.oriented()[metric].to_numpy(np.float64) ** 2
        row = Row(benchmark, revision, metric, "mean_square", values.mean(), n_clusters=3)
        built.add(row, resampled_mean(values, plan.counts), PAIRS, values)
    return built.build()


SQUARE = FurtherMeasure("mean_square", INFO, ("toy",), mean_square)


def test_the_rows_of_a_further_measure_come_behind_those_of_the_protocol_with_intervals() -> None:
    plain = Toy()
    wider = with_further({"toy": plain}, [SQUARE])["toy"]
    found = wider.evaluate(SCORES, wider.answers(None))
    alone = plain.evaluate(SCORES, plain.answers(None))
    assert [row.measure for row in found.rows] == ["mean", "mean_square"]
    assert found.rows[0] == alone.rows[0]
    assert found.rows[1].value == 7.0
    assert found.rows[1].ci_low < 7.0 < found.rows[1].ci_high
    assert found.rows[1].plan == found.rows[0].plan
    assert found.contributions.shape == (2, 3)
    assert found.clusters["row"].tolist() == [0, 0, 0, 1, 1, 1]
    assert wider.card.measures["mean_square"] == INFO


def test_the_benchmark_itself_stays_as_it_was() -> None:
    plain = Toy()
    with_further({"toy": plain}, [SQUARE])
    assert plain.further == ()
    assert "mean_square" not in plain.card.measures


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (replace(SQUARE, benchmarks=("nothing",)), "'nothing'"),
        (replace(SQUARE, name="mean"), "toy has a measure 'mean' already"),
    ],
)
def test_a_measure_that_fits_no_benchmark_is_refused(wrong: FurtherMeasure, said: str) -> None:
    with pytest.raises(PlatformError, match=said):
        with_further({"toy": Toy()}, [wrong])


def test_every_module_of_the_folder_is_found_and_must_define_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "added_measures"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "square.py").write_text(
        "from tests.benchmarks.test_further_measures import SQUARE\nMEASURES = (SQUARE,)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    [found] = load_further("added_measures")
    assert found.name == "mean_square"
    (folder / "wrong.py").write_text("MEASURES = [1]\n")
    monkeypatch.delitem(sys.modules, "added_measures.square")
    with pytest.raises(PlatformError, match=r"added_measures\.wrong does not define MEASURES"):
        load_further("added_measures")


def test_without_such_modules_benchmarks_have_the_measures_of_their_protocols() -> None:
    every: dict[str, Benchmark] = dict(load_registry())
    assert with_further(every, []) == every
    assert load_further() == ()


def test_parts_are_joined_in_their_order_with_their_pools_and_members() -> None:
    plan = ResamplingPlan(PAIRS, 1, 5)
    first = Toy().measure(SCORES, None, plan)
    second = MeasuredBuilder(5)
    row = Row("toy", "1", "m", "x", 0.5)
    second.add(row, members=np.array([1]), pool=lambda: None)  # type: ignore[arg-type,return-value]
    both = concatenate((first, Measured((), np.empty((0, 5))), second.build()))
    assert [r.measure for r in both.rows] == ["mean", "x"]
    assert both.resamples.shape == (2, 5)
    assert both.members[0] is None
    assert both.members[1] is not None
    assert list(both.pools) == [1]
    assert concatenate((first,)) is first
