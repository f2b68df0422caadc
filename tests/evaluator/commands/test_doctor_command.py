"""`doctor`: what is here, what is broken, and boards that do not follow from the events."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks.released import bundle
from benchmarks.released.bundle import read_manifest
from benchmarks.ts2.protocol import Ts2
from evaluator.isolation.backend import IsolationStatus, Probe
from leaderboard.publication.snapshot_file import PATH
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import transact
from tests.benchmarks.toy import Toy
from tests.evaluator.commands.submitting import Run, id_of, sent

NOTHING = IsolationStatus(
    None, (("bubblewrap", Probe(ok=False, reason="Not here.", remedy="Do.")),)
)


@pytest.fixture
def doctor(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.setattr("evaluator.commands.doctor.load_registry", lambda: {"toy": Toy()})
    monkeypatch.setattr("evaluator.commands.doctor.machine_isolation", lambda *_: NOTHING)
    monkeypatch.setenv("ASSAY_MODELS", str(tmp_path / "models"))
    return run


def states(rows: list[dict[str, Any]]) -> dict[str, str]:
    return {row["part"]: row["state"] for row in rows}


def test_all_parts_are_looked_at(doctor: Run, tmp_path: Path) -> None:
    sent(doctor, tmp_path)
    told = doctor("doctor", "--json")
    assert told.code == 0
    found = states(told.json)
    assert found["isolation of code"] == "Not here."
    assert found[f"store {tmp_path / 'store'}"] == "1 published"
    assert found["queue"] == "nobody waits, 0 in work"
    assert found["failures"] == "of 1 that ended within a day: none"
    assert "free" in found["disk of the store"]
    assert found["models"].startswith("0 kept")
    assert "benchmark toy" in found
    assert "benchmark toy" in doctor("doctor").out


def test_a_machine_without_a_store_is_looked_at_all_the_same(doctor: Run, tmp_path: Path) -> None:
    told = doctor("doctor", "--json")
    assert told.code == 0
    assert "There is no store" in states(told.json)[f"store {tmp_path / 'store'}"]
    assert not (tmp_path / "store").exists()


def test_boards_that_follow_from_the_events_are_told_to_be_right(
    doctor: Run, tmp_path: Path
) -> None:
    sent(doctor, tmp_path)
    told = doctor("doctor", "--rebuild", "--json")
    assert told.code == 0
    assert states(told.json)["queue and boards"] == "as events and results add up to"


def test_boards_that_do_not_follow_are_told_and_repaired(doctor: Run, tmp_path: Path) -> None:
    sent(doctor, tmp_path)
    public = folder_store(tmp_path / "store").public
    before = public.read(PATH)
    second = id_of(sent(doctor, tmp_path, text="pair_id,x\na,3\nb,2\nc,1\n", name="x"))
    transact(public, lambda: {PATH: before}, "an old snapshot comes back")

    told = doctor("doctor", "--rebuild", "--json")
    assert told.code == 3
    assert any(second in row["part"] for row in told.json)
    assert public.read(PATH) == before

    assert doctor("doctor", "--repair", "--json").code == 0
    assert doctor("doctor", "--rebuild").code == 0
    assert public.read(PATH) != before


def test_a_snapshot_that_cannot_be_read_is_broken_until_it_is_repaired(
    doctor: Run, tmp_path: Path
) -> None:
    sent(doctor, tmp_path)
    public = folder_store(tmp_path / "store").public
    transact(public, lambda: {PATH: b"no snapshot"}, "damaged")
    assert doctor("doctor").code == 3
    assert doctor("doctor", "--repair").code == 0
    assert doctor("doctor", "--rebuild").code == 0


def test_a_changed_table_of_released_results_is_broken_and_named(
    doctor: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    whole = states(doctor("doctor", "--json").json)
    assert whole["released results"].startswith(f"{len(read_manifest().files)} tables")
    shutil.copytree(bundle.FOLDER, tmp_path / "released")
    monkeypatch.setattr(bundle, "FOLDER", tmp_path / "released")
    monkeypatch.setattr("evaluator.commands.doctor.load_registry", lambda: {"ts2": Ts2()})
    (tmp_path / "released" / "ts2" / "structure.parquet").write_bytes(b"PAR1")
    (tmp_path / "released" / "ts2" / "scores.parquet").unlink()
    told = doctor("doctor", "--json")
    assert told.code == 3
    broken = [row["state"] for row in told.json if row["broken"]]
    assert [any(name in one for one in broken) for name in ("structure", "scores")] == [True, True]
    assert "structure.parquet has sha256" in states(told.json)["benchmark ts2"]
