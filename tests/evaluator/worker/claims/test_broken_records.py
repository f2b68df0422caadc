"""One submission whose records cannot be read stops no other, and is named to operators."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.doctoring.queue import broken_record_rows
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Event
from leaderboard.states import State
from leaderboard.store.interface import Repository
from tests.evaluator.rig import Rig
from tests.evaluator.worker.breaking import published_once
from tests.evaluator.worker.stock import stock


def rewritten(repository: Repository, path: str, change: Callable[[bytes], bytes]) -> None:
    content = change(repository.read(path))
    repository.commit({path: content}, parent=repository.head(), message="broken")


def of_a_newer_version(content: bytes) -> bytes:
    first, *rest = content.splitlines(keepends=True)
    return json.dumps(json.loads(first) | {"schema_version": 2}).encode() + b"\n" + b"".join(rest)


def cut_off(content: bytes) -> bytes:
    return content[: len(content) // 2]


def no_text(_: bytes) -> bytes:
    return b"\xff\xfe\x00"


def ended_by_its_events(content: bytes) -> bytes:
    """As if the queue had been put back, and the events had not."""
    last = Event.model_validate_json(content.splitlines()[-1])
    over = last.model_copy(update={"state": State.WITHDRAWN})
    return content + over.model_dump_json().encode() + b"\n"


EVENTS = [of_a_newer_version, cut_off, no_text, ended_by_its_events]


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def check_passed_over(rig: Rig, broken: str, others: tuple[str, ...], log: str) -> None:
    assert all(published_once(rig.store, name) for name in others)
    assert Ledger(rig.store).status(broken).state is State.QUEUED
    assert log.count("Passed over") == 1, "it is logged once"
    (row,) = broken_record_rows(Ledger(rig.store))
    assert row.part == f"submission {broken}"
    assert row.broken
    assert row.advice


@pytest.mark.parametrize("change", EVENTS)
def test_events_that_cannot_be_read_stop_nobody_else(
    rig: Rig, change: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    broken, *others = stock(rig.store, ["hub:ada", "hub:bob", "hub:eve"])
    rewritten(rig.store.public, f"submissions/{broken}/events.jsonl", change)
    rig.worker().run_all()
    check_passed_over(rig, broken, tuple(others), caplog.text)


@pytest.mark.parametrize("change", [of_a_newer_version, cut_off, no_text])
def test_a_private_record_that_cannot_be_read_stops_nobody_else(
    rig: Rig, change: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    (broken,) = stock(rig.store, ["hub:ada"], private=True)
    others = stock(rig.store, ["hub:bob", "hub:eve"])
    rewritten(rig.store.private, f"held/{broken}/submission.json", change)
    rig.worker().run_all()
    check_passed_over(rig, broken, others, caplog.text)


def test_what_a_dead_worker_left_with_broken_events_stops_nobody_else(rig: Rig) -> None:
    """It would be given up, and cannot."""
    ids = stock(rig.store, ["hub:ada", "hub:bob"])
    for n in range(3):
        rig.worker(f"w{n}")._claims.more()
        rig.clock.move(hours=20)
    rewritten(rig.store.public, f"submissions/{ids[0]}/events.jsonl", cut_off)
    rig.worker("w9").run_all()
    assert published_once(rig.store, ids[1])


def test_what_is_mended_is_run(rig: Rig) -> None:
    (broken,) = stock(rig.store, ["hub:ada"])
    path = f"submissions/{broken}/events.jsonl"
    whole = rig.store.public.read(path)
    rewritten(rig.store.public, path, cut_off)
    worker = rig.worker()
    worker.run_all()
    rewritten(rig.store.public, path, lambda _: whole)
    worker.run_all()
    assert published_once(rig.store, broken)
    assert list(broken_record_rows(Ledger(rig.store))) == []
