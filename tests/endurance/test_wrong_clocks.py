"""Machines whose clocks are an hour off neither take what others hold nor lose what they hold."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from leaderboard.ledger.ledger import Ledger
from tests.endurance.crew import Launcher, Member, wait_until_beaten
from tests.endurance.ground import Ground, ground
from tests.endurance.verdict import (
    ACCOUNTS,
    Undisturbed,
    attempts,
    check_asked,
    check_published,
    told,
)

pytestmark = pytest.mark.slow

HOUR = 3600.0
WRONG = (0.0, HOUR, -HOUR)
SILENT_S = 6.0


def machines(here: Ground, **more: object) -> list[Member]:
    """One worker on each of three machines: no disk, no lock and no clock is common to them."""
    return [
        here.crew.start(
            wrong_s=wrong, scratch=str(here.place / f"disk{wrong:+.0f}"), delay_s=0.15, **more
        )
        for wrong in WRONG
    ]


@pytest.mark.parametrize("kind", ["folder", "hub"])
def test_no_live_lease_is_taken_by_or_from_a_clock_an_hour_off(
    launcher: Launcher, place: Path, alone: Undisturbed, kind: str
) -> None:
    with ground(kind, place, launcher, jobs=1) as here:
        members = machines(here)
        wait_until_beaten(here.store, members)
        here.stock(ACCOUNTS[:6])
        here.wait(members, 150.0)
        for member in members:
            member.end()
        check_published(here.store, here.ids, alone)
        assert attempts(here.store, here.ids) == {1: len(here.ids)}
        assert check_asked(here.calls, deaths=0) == 0
        assert len({one.worker for one in here.calls.read()}) == len(WRONG), "each of them worked"
        events = Ledger(here.store).events(here.ids[0])
        ages = [abs(here.store.clock() - event.at).total_seconds() for event in events]
        assert max(ages) < HOUR / 2, "every time is the medium's"


def test_workers_that_went_by_their_own_clocks_would_rob_one_another(
    launcher: Launcher, place: Path
) -> None:
    """So the test above can fail."""
    with ground("folder", place, launcher) as here:
        here.stock(ACCOUNTS[:6])
        members = machines(here, own_clock=True)
        until = time.monotonic() + 60.0
        while set(attempts(here.store, here.ids)) <= {0, 1}:
            assert time.monotonic() < until, "nobody was robbed"
            time.sleep(0.1)
        for member in members:
            member.kill()


@pytest.mark.parametrize("wrong_s", [HOUR, -HOUR])
def test_a_dead_workers_submission_is_taken_up_soon_by_a_clock_an_hour_off(
    launcher: Launcher, place: Path, alone: Undisturbed, wrong_s: float
) -> None:
    with ground("folder", place, launcher, silent_after_s=SILENT_S) as here:
        here.stock(ACCOUNTS[:1])
        first = here.crew.start(scratch=str(place / "first"), delay_s=0.3)
        while not here.calls.read():
            time.sleep(0.01)
        first.kill()
        killed = time.monotonic()
        second = here.crew.start(scratch=str(place / "second"), wrong_s=wrong_s)
        here.wait([second], 150.0)
        took = time.monotonic() - killed
        second.end()
        check_published(here.store, here.ids, alone)
        assert attempts(here.store, here.ids) == {2: 1}, told(
            Ledger(here.store).events(here.ids[0])
        )
        assert SILENT_S / 2 < took < 60.0
