"""The commands that the page of a metric shows compute its rows again."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from leaderboard.pages.metric.commands import commands_for
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.records import Status
from leaderboard.store.folder import folder_store
from tests.benchmarks.toy import Toy
from tests.evaluator.commands.submitting import Run, id_of, sent


def words(command: str) -> list[str]:
    start, module, name, *rest = shlex.split(command)
    assert (start, module, name) == ("python", "-m", "evaluator")
    return rest


def test_the_shown_commands_recompute_every_row(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluator.commands.meta.load_registry", lambda: {"toy": Toy()})
    status = Status.model_validate(sent(run, tmp_path, "--lower-is-better", "n"))
    store = folder_store(tmp_path / "store")
    snapshot = read_snapshot(store.public)
    assert snapshot is not None
    entry = snapshot.entries[f"{status.submission.submission_id}/m"]
    shown = commands_for(entry, Toy.card, status)

    told = run(*words(shown.from_store), "--json")
    assert told.code == 0
    assert told.json["recomputed"][0]["same"]
    published = told.json["results"][0]["rows"]

    file = tmp_path / Path(shown.scores).name
    file.write_bytes(store.public.read(shown.scores))
    monkeypatch.chdir(tmp_path)
    again = run(*words(shown.from_file), "--json")
    assert again.code == 0, again.err
    values = {(r["metric"], r["measure"], r["skill"]): r["value"] for r in json.loads(again.out)}
    assert values == {(r["metric"], r["measure"], r["skill"]): r["value"] for r in published}
    assert id_of(status.model_dump()) in shown.from_store


def test_private_answers_leave_no_file_to_name(run: Run, tmp_path: Path) -> None:
    status = Status.model_validate(sent(run, tmp_path))
    snapshot = read_snapshot(folder_store(tmp_path / "store").public)
    assert snapshot is not None
    entry = snapshot.entries[f"{status.submission.submission_id}/m"]
    closed = Toy.card.model_copy(update={"answers_public": False})
    assert commands_for(entry, closed, status).from_file == ""
