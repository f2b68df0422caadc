"""Many processes on one store: nothing is claimed or asked twice, nor more committed than allowed.

ASSAY_ENDURANCE and a nightly run make up to four times as many submissions.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.endurance.crew import Crew, Launcher, wait_until_beaten
from tests.endurance.ground import ground
from tests.endurance.verdict import Undisturbed, attempts, check_asked, check_published

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ON_A_HUB = 4
QUOTA = 64  # Commits of an hour that the Hub allows
RATE = 120.0  # So many seconds of the Hub pass in one


def test_eight_processes_publish_each_submission_once(
    launcher: Launcher, place: Path, how_long: float, alone: Undisturbed
) -> None:
    submissions, workers = round(48 * min(how_long, 4.0)), 8
    with ground("folder", place, launcher, delay_s=0.0, jobs=8) as here:
        members = [here.crew.start() for _ in range(workers)]
        wait_until_beaten(here.store, members)
        here.stock([f"hub:u{n % 7}" for n in range(submissions)])
        took = here.wait(members, 280.0)
        for member in members:
            member.end()
        assert here.check(alone, tries={1: submissions}) == 0
        print(f"\n{submissions} submissions, {took:.0f} s")
        assert len({one.worker for one in here.calls.read()}) == workers


def test_processes_publish_a_spike_once_within_the_hubs_commits(
    launcher: Launcher, place: Path, how_long: float, alone: Undisturbed
) -> None:
    submissions = round(32 * min(how_long, 4.0))
    with ground("hub", place, launcher, jobs=8) as here:
        hub = here.hub
        assert hub is not None
        hub.clock.run(RATE)
        # A pulse every two seconds of this machine is none for minutes of the Hub.
        hasty = replace(
            here.given,
            commits_per_hour=(QUOTA - 8) // ON_A_HUB,
            rate=RATE,
            silent_after_s=60.0 * RATE,
            delay_s=0.005,
            fresh_for_s=0.5,
        )
        crew = Crew(launcher, hasty)
        members = [crew.start() for _ in range(ON_A_HUB)]
        wait_until_beaten(here.store, members)
        hub.tally.reset()
        hub.commit_limit.quota = QUOTA
        here.stock([f"hub:u{n % 7}" for n in range(submissions)])
        begun = hub.clock.now()
        took = here.wait(members, 280.0)
        hours = (hub.clock.now() - begun).total_seconds() / 3600.0
        for member in members:
            member.end()
        refused = sum(one.status == 429 for one in hub.served)
        commits = {name: hub.tally.commits(name) for name in hub.repositories}
        peak = hub.tally.peak_commits()
        hub.commit_limit.quota = None
        check_published(here.store, here.ids, alone)
        assert attempts(here.store, here.ids) == {1: submissions}
        assert check_asked(here.calls, deaths=0) == 0
        print(
            f"\n{submissions} submissions: commits {commits}; at most {peak} in an hour, "
            f"{refused} refused; {hours:.2f} hours of the Hub in {took:.0f} s"
        )
        assert len({one.worker for one in here.calls.read()}) == ON_A_HUB
        assert peak <= QUOTA
        # However slow the machine: a quick one gathers more in each.
        assert sum(commits.values()) / submissions <= 3.0
