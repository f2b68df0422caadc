"""Machines whose clocks are an hour off neither take what others hold nor lose what they hold."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from leaderboard.ledger.ledger import Ledger
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import Store
from tests.endurance.crew import Crew, Launcher, Member, wait_until_beaten
from tests.endurance.hub_rig import opened
from tests.endurance.ladder import CallLog
from tests.endurance.verdict import (
    all_finished,
    attempts,
    check_asked,
    check_published,
    told,
    undisturbed,
)
from tests.endurance.worker_process import Given
from tests.evaluator.worker.stock import stock
from tests.hub.server import running_hub

pytestmark = pytest.mark.slow

HOUR = 3600.0
WRONG = (0.0, HOUR, -HOUR)
ACCOUNTS = [f"hub:u{n}" for n in range(6)]
SILENT_S = 6.0


@contextmanager
def store_in(kind: str, place: Path) -> Iterator[tuple[Given, Store]]:
    """A new store, and what its workers are to be."""
    if kind == "hub":
        with running_hub() as hub:
            yield opened(hub, place, jobs=1)
        return
    yield (
        Given("w", 0, str(place), str(place / "store"), str(place / "scratch")),
        folder_store(place / "store"),
    )


def machines(crew: Crew, place: Path, **more: object) -> list[Member]:
    """One worker on each of three machines: no disk, no lock and no clock is common to them."""
    return [
        crew.start(line, wrong_s=wrong, scratch=str(place / f"disk-{line}"), delay_s=0.15, **more)
        for line, wrong in enumerate(WRONG)
    ]


def wait_until_finished(store: Store, ids: tuple[str, ...], members: list[Member]) -> None:
    until = time.monotonic() + 150.0
    while not all_finished(store, ids):
        assert time.monotonic() < until, [member.said() for member in members]
        time.sleep(0.2)


@pytest.mark.parametrize("kind", ["folder", "hub"])
def test_no_live_lease_is_taken_by_or_from_a_clock_an_hour_off(
    launcher: Launcher, place: Path, kind: str
) -> None:
    (place / "plain").mkdir()
    wanted = undisturbed(place / "plain", ACCOUNTS)
    with store_in(kind, place) as (given, store):
        members = machines(Crew(launcher, given), place)
        wait_until_beaten(store, members)
        ids = stock(store, ACCOUNTS)
        wait_until_finished(store, ids, members)
        for member in members:
            member.end()
        check_published(store, ids, wanted)
        assert attempts(store, ids) == {1: len(ids)}
        calls = CallLog(place / "calls")
        assert check_asked(calls, deaths=0) == 0
        assert len({one.worker for one in calls.read()}) == len(WRONG), "each of them worked"
        ages = [abs(store.clock() - e.at).total_seconds() for e in Ledger(store).events(ids[0])]
        assert max(ages) < HOUR / 2, "every time is the medium's"


def test_workers_that_went_by_their_own_clocks_would_rob_one_another(
    launcher: Launcher, place: Path
) -> None:
    """So the test above can fail."""
    with store_in("folder", place) as (given, store):
        ids = stock(store, ACCOUNTS)
        crew = Crew(launcher, given)
        members = machines(crew, place, own_clock=True)
        until = time.monotonic() + 60.0
        while set(attempts(store, ids)) <= {0, 1}:
            assert time.monotonic() < until, "nobody was robbed"
            time.sleep(0.1)
        for member in members:
            member.kill(spare=False)


@pytest.mark.parametrize("wrong_s", [HOUR, -HOUR])
def test_a_dead_workers_submission_is_taken_up_soon_by_a_clock_an_hour_off(
    launcher: Launcher, place: Path, wrong_s: float
) -> None:
    (place / "plain").mkdir()
    wanted = undisturbed(place / "plain", ACCOUNTS[:1])
    with store_in("folder", place) as (given, store):
        ids = stock(store, ACCOUNTS[:1])
        crew = Crew(launcher, given)
        calls = CallLog(place / "calls")
        first = crew.start(scratch=str(place / "first"), delay_s=0.3, silent_after_s=SILENT_S)
        while not calls.read():
            time.sleep(0.01)
        first.kill()
        killed = time.monotonic()
        second = crew.start(
            1, scratch=str(place / "second"), wrong_s=wrong_s, silent_after_s=SILENT_S
        )
        wait_until_finished(store, ids, [second])
        took = time.monotonic() - killed
        second.end()
        check_published(store, ids, wanted)
        assert attempts(store, ids) == {2: 1}, told(Ledger(store).events(ids[0]))
        assert SILENT_S / 2 < took < 60.0
