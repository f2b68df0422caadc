"""A Hub that fails a fifth of all requests: nothing is lost, nothing done twice, nobody blamed."""

from __future__ import annotations

from pathlib import Path

import pytest

from leaderboard.ledger.ledger import Ledger
from tests.endurance.crew import Launcher
from tests.endurance.ground import ground
from tests.endurance.verdict import ACCOUNTS, Undisturbed
from tests.kit.hub.faults import Weather

pytestmark = pytest.mark.slow


def test_a_hub_that_fails_a_fifth_of_all_requests_loses_and_repeats_nothing(
    launcher: Launcher, place: Path, alone: Undisturbed
) -> None:
    """Half of what fails was carried out all the same."""
    with ground("hub", place, launcher, jobs=3) as here:
        here.stock(ACCOUNTS[:6])
        hub = here.hub
        assert hub is not None
        hub.tally.reset()
        weather = hub.faults.weather(Weather(0.2, seed=7))
        assert weather is not None
        members = [here.crew.start() for _ in range(3)]
        took = here.wait(members)
        asked, failed = hub.tally.requests(), weather.failed
        hub.faults.weather(None)
        for member in members:
            member.end()
        print(f"\n{failed} of {asked} requests failed, {took:.0f} s")
        assert failed > 0.1 * asked
        blamed = {e.fault for name in here.ids for e in Ledger(here.store).events(name)} - {""}
        assert not blamed
        assert here.check(alone, tries={1: len(here.ids)}) == 0
