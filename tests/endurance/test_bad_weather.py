"""A Hub that fails a fifth of all requests: nothing is lost, nothing done twice, nobody blamed."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks.errors import TransientError
from leaderboard.ledger.ledger import Ledger
from tests.endurance.crew import Crew, Launcher
from tests.endurance.hub_rig import opened
from tests.endurance.ladder import CallLog
from tests.endurance.verdict import (
    all_finished,
    attempts,
    check_asked,
    check_nothing_left,
    check_published,
    undisturbed,
)
from tests.evaluator.worker.stock import stock
from tests.hub.faults import Weather
from tests.hub.server import running_hub

pytestmark = pytest.mark.slow

SHARE = 0.2
WORKERS = 3
ACCOUNTS = [f"hub:u{n}" for n in range(12)]
SEED = 7


def test_a_hub_that_fails_a_fifth_of_all_requests_loses_and_repeats_nothing(
    launcher: Launcher, place: Path
) -> None:
    """Half of what fails was carried out all the same."""
    (place / "plain").mkdir()
    wanted = undisturbed(place / "plain", ACCOUNTS)
    with running_hub() as hub:
        given, store = opened(hub, place, jobs=3)
        ids = stock(store, ACCOUNTS)
        hub.tally.reset()
        weather = hub.faults.weather(Weather(SHARE, seed=SEED))
        assert weather is not None
        crew = Crew(launcher, given)
        begun = time.monotonic()
        members = [crew.start(line) for line in range(WORKERS)]
        finished = False
        while not finished:
            assert time.monotonic() - begun < 200, members[0].said()
            time.sleep(0.3)
            with suppress(TransientError):
                finished = all_finished(store, ids)
        took, asked, failed = time.monotonic() - begun, hub.tally.requests(), weather.failed
        hub.faults.weather(None)
        for member in members:
            member.end()
        print(f"\n{failed} of {asked} requests failed, {took:.0f} s")
        assert failed > 0.1 * asked
        check_published(store, ids, wanted)
        assert attempts(store, ids) == {1: len(ids)}
        blamed = {e.fault for name in ids for e in Ledger(store).events(name)} - {""}
        assert not blamed
        assert check_asked(CallLog(place / "calls"), deaths=0) == 0
        check_nothing_left(store, place / "scratch", given)
