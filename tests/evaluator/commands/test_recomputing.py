"""Rows computed again, also where what was sent is more than a table or answers are private."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks.rows import Measured
from benchmarks.schema import Benchmark, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from tests.benchmarks.toy import PAIRS, Toy
from tests.evaluator.commands.submitting import SCORES, Run, id_of

MAGIC = b"RAISED"


@dataclass(frozen=True)
class Raised(ScoreTable):
    """Scores with something beside them that no table has."""

    by: float = 0.0


class WithFormat(Toy):
    """Takes files of a format of its own, of which the measure needs more than the scores."""

    card = Toy.card.model_copy(update={"name": "formatted", "answers_public": False})

    def parse_special(
        self, content: bytes, name: str, answers: Any, metric: str
    ) -> ScoreTable | None:
        if not content.startswith(MAGIC):
            return None
        index = pd.Index(PAIRS, name="pair_id")
        return Raised(pd.DataFrame({metric: [1.0, 2.0, 3.0]}, index=index), by=float(content[6:]))

    def measure(self, scores: ScoreTable, answers: Any, plan: ResamplingPlan) -> Measured:
        by = scores.by if isinstance(scores, Raised) else 0.0
        raised = replace(scores, overall=scores.overall + by)
        found = super().measure(raised, answers, plan)
        rows = tuple(replace(row, benchmark="formatted") for row in found.rows)
        return replace(found, rows=rows)


class Closed(Toy):
    """Its answers are private, so that only its rows are published."""

    card = Toy.card.model_copy(update={"name": "closed", "answers_public": False})


@pytest.fixture
def on(run: Run, monkeypatch: pytest.MonkeyPatch) -> Any:
    def given(*benchmarks: Benchmark) -> Run:
        registry = {benchmark.name: benchmark for benchmark in benchmarks}
        for module in ("submit", "report", "mine"):
            monkeypatch.setattr(f"evaluator.commands.{module}.load_registry", lambda: registry)
        return run

    return given


def again(run: Run, folder: Path, benchmark: str, content: bytes, *more: str) -> Any:
    path = folder / "s.csv"
    path.write_bytes(content)
    kind = ("--kind", "scores", "--benchmark", benchmark, "--name", "m", "--json")
    sent = run("submit", path, *kind, *more)
    assert sent.code == 0, sent.err
    told = run("report", id_of(sent.json), "--recompute", "--json")
    assert told.code == 0, told.out
    return told.json


@pytest.mark.parametrize("private", [(), ("--private",)])
def test_what_is_more_than_a_table_is_read_again_as_it_was_sent(
    on: Any, tmp_path: Path, private: tuple[str, ...]
) -> None:
    told = again(on(WithFormat()), tmp_path, "formatted", MAGIC + b"10", *private)
    assert told["results"][0]["rows"][0]["value"] == 12.0
    assert told["recomputed"][0]["same"]


def test_an_ordinary_file_for_such_a_benchmark_comes_out_again(on: Any, tmp_path: Path) -> None:
    told = again(on(WithFormat()), tmp_path, "formatted", SCORES.encode())
    assert told["recomputed"][0]["same"]


@pytest.mark.parametrize("private", [(), ("--private",)])
def test_rows_on_private_answers_come_out_again(
    on: Any, tmp_path: Path, private: tuple[str, ...]
) -> None:
    told = again(on(Closed()), tmp_path, "closed", SCORES.encode(), *private)
    assert told["recomputed"][0]["same"]
    assert told["recomputed"][0]["rows"] == 2
