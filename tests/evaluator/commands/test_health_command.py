"""`health` for scripts: its exit code, its figures, and no store made by asking."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.evaluator.commands.submitting import Run, sent


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_an_installation_that_is_well_exits_with_0(run: Run, tmp_path: Path) -> None:
    sent(run, tmp_path)
    told = run("health", "--json")
    assert (told.code, told.json["status"]) == (0, "ok")
    assert told.json["submissions"] == {"published": 1}
    words = run("health").out
    assert words.startswith("ok: store ")
    assert "1 published" in words


def test_a_disk_without_room_exits_with_3_and_says_what_to_do(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent(run, tmp_path)
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(1 << 40, 1 << 40, 1 << 20))
    told = run("health")
    assert told.code == 3
    assert "Make room" in told.out
    assert run("health", "--json").json["status"] == "down"


def test_what_is_only_degraded_exits_with_3_where_that_is_asked_for(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "w.csv").write_text("pair_id,m\na,1\nb,2\nc,3\n")
    words = ("submit", tmp_path / "w.csv", "--kind", "scores", "--benchmark", "toy", "--no-wait")
    assert run(*words).code == 0
    told = run("health", "--json")
    assert (told.code, told.json["status"]) == (0, "degraded")
    assert told.json["problems"][0]["code"] == "no_worker"
    assert run("health", "--strict").code == 3


def test_a_name_under_which_there_is_no_store_makes_none(run: Run, tmp_path: Path) -> None:
    told = run("health", "--store", tmp_path / "elsewhere")
    assert told.code == 3
    assert "no_store" in told.err
    assert not (tmp_path / "elsewhere").exists()
