"""Rows computed again: as pages show it, of what is more than a table, and on private answers."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks.rows import Measured
from benchmarks.schema import Benchmark, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.records import Status
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import transact
from leaderboard.views.metric import commands_for
from tests.evaluator.commands.submitting import SCORES, Run, id_of, sent
from tests.kit.toy import PAIRS, Toy

MAGIC = b"RAISED"


@dataclass(frozen=True)
class Raised(ScoreTable):
    """Scores with something beside them that no table has."""

    by: float = 0.0


class WithFormat(Toy):
    """Takes files of a format of its own, of which the measure needs more than the scores.

    Its answers are private, so that only its rows are published.
    """

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
        found = super().measure(replace(scores, overall=scores.overall + by), answers, plan)
        rows = tuple(replace(row, benchmark="formatted") for row in found.rows)
        return replace(found, rows=rows)


@pytest.mark.parametrize(
    ("content", "values"),
    [(MAGIC + b"10", [12.0]), (SCORES.encode(), [2.0, 4.5])],
    ids=["format", "table"],
)
@pytest.mark.parametrize("private", [(), ("--private",)])
def test_rows_on_private_answers_and_of_more_than_a_table_come_out_again(
    run: Run,
    registry: dict[str, Benchmark],
    tmp_path: Path,
    *,
    content: bytes,
    values: list[float],
    private: tuple[str, ...],
) -> None:
    registry["formatted"] = WithFormat()
    path = tmp_path / "s.csv"
    path.write_bytes(content)
    kind = ("--kind", "scores", "--benchmark", "formatted", "--name", "m", "--json")
    told = run("report", id_of(run("submit", path, *kind, *private).json), "--recompute", "--json")
    assert told.code == 0, told.out
    (again,) = told.json["recomputed"]
    assert again["same"] and again["rows"] == len(values)
    assert [row["value"] for row in told.json["results"][0]["rows"]] == values


def test_a_row_that_does_not_follow_from_its_scores_is_told(run: Run, tmp_path: Path) -> None:
    own_id = id_of(sent(run, tmp_path))
    public = folder_store(tmp_path / "store").public
    path = f"results/{own_id}/toy.json"
    result = json.loads(public.read(path))
    result["rows"][0]["value"] += 0.001
    transact(public, lambda: {path: json.dumps(result).encode()}, "tampered")
    told = run("report", own_id, "--recompute")
    assert told.code == 3 and "1 of 2 rows" in told.out and "value 2.001 is 2.0" in told.out


def test_the_commands_on_the_page_of_a_metric_compute_its_rows_again(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def words(command: str) -> list[str]:
        start, module, name, *rest = shlex.split(command)
        assert (start, module, name) == ("python", "-m", "evaluator")
        return rest

    def values(rows: Any) -> dict[Any, float]:
        return {(row["metric"], row["measure"], row["skill"]): row["value"] for row in rows}

    status = Status.model_validate(sent(run, tmp_path, "--lower-is-better", "n"))
    store = folder_store(tmp_path / "store")
    snapshot = read_snapshot(store.public)
    assert snapshot is not None
    entry = snapshot.entries[f"{status.submission.submission_id}/m"]
    shown = commands_for(entry, Toy.card, status)
    told = run(*words(shown.from_store), "--json")
    assert told.code == 0 and told.json["recomputed"][0]["same"]
    (tmp_path / Path(shown.scores).name).write_bytes(store.public.read(shown.scores))
    monkeypatch.chdir(tmp_path)
    again = run(*words(shown.from_file), "--json")
    assert again.code == 0, again.err
    assert values(again.json) == values(told.json["results"][0]["rows"])
    closed = Toy.card.model_copy(update={"answers_public": False})
    assert commands_for(entry, closed, status).from_file == "", "there is no file to name"
