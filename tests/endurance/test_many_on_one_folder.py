"""Eight processes and two hundred submissions on one folder: nothing is claimed or asked twice."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from leaderboard.store.folder import folder_store
from tests.endurance.crew import Crew, Launcher, wait_until_beaten
from tests.endurance.ladder import CallLog
from tests.endurance.verdict import (
    all_finished,
    attempts,
    check_asked,
    check_nothing_left,
    check_published,
    undisturbed,
)
from tests.endurance.worker_process import Given
from tests.evaluator.worker.stock import stock

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

WORKERS = 8
SUBMISSIONS = 200
ACCOUNTS = [f"hub:u{n % 7}" for n in range(SUBMISSIONS)]
LIKE_ALONE = 3
"""So many are compared with a run of nobody else, byte for byte; all are checked otherwise."""


def test_eight_processes_publish_two_hundred_submissions_once(
    launcher: Launcher, place: Path
) -> None:
    (place / "plain").mkdir()
    alone = undisturbed(place / "plain", ACCOUNTS[:LIKE_ALONE])
    given = Given(
        "w", 0, str(place), str(place / "store"), str(place / "scratch"), delay_s=0.0, jobs=8
    )
    store = folder_store(place / "store")
    crew = Crew(launcher, given)
    members = [crew.start(line) for line in range(WORKERS)]
    wait_until_beaten(store, members)
    ids = stock(store, ACCOUNTS)
    begun = time.monotonic()
    while not all_finished(store, ids):
        assert time.monotonic() - begun < 280, members[0].said()
        time.sleep(0.3)
    took = time.monotonic() - begun
    for member in members:
        member.end()
    check_published(store, ids, alone)
    assert attempts(store, ids) == {1: SUBMISSIONS}
    calls = CallLog(place / "calls")
    assert check_asked(calls, deaths=0) == 0
    check_nothing_left(store, place / "store", given)
    busy = {one.worker for one in calls.read()}
    print(f"\n{SUBMISSIONS} submissions, {len(busy)} workers, {took:.0f} s")
    assert len(busy) == WORKERS
