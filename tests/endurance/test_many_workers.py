"""Eight processes on one store: nothing is claimed or asked twice, nor more committed than allowed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.endurance.crew import Crew, Launcher, wait_until_beaten
from tests.endurance.ground import ground
from tests.endurance.verdict import Undisturbed, attempts, check_asked, check_published

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

WORKERS = 8
QUOTA = 128  # Commits of an hour that the Hub allows
RATE = 120.0  # So many seconds of the Hub pass in one


def test_eight_processes_publish_two_hundred_submissions_once(
    launcher: Launcher, place: Path, alone: Undisturbed
) -> None:
    with ground("folder", place, launcher, delay_s=0.0, jobs=8) as here:
        members = [here.crew.start(line) for line in range(WORKERS)]
        wait_until_beaten(here.store, members)
        here.stock([f"hub:u{n % 7}" for n in range(200)])
        took = here.wait(members, 280.0)
        for member in members:
            member.end()
        assert here.check(alone, tries={1: 200}) == 0
        print(f"\n200 submissions, {took:.0f} s")
        assert len({one.worker for one in here.calls.read()}) == WORKERS


def test_eight_processes_publish_a_spike_once_within_the_hubs_commits(
    launcher: Launcher, place: Path, how_long: float, alone: Undisturbed
) -> None:
    """Of 64 submissions; ASSAY_ENDURANCE=4 makes two hundred and fifty-six of them."""
    submissions = round(64 * min(how_long, 4.0))
    with ground("hub", place, launcher, jobs=8) as here:
        hub = here.hub
        assert hub is not None
        hub.clock.run(RATE)
        # A pulse every two seconds of this machine is none for minutes of the Hub.
        hasty = replace(
            here.given,
            commits_per_hour=(QUOTA - 8) // WORKERS,
            rate=RATE,
            silent_after_s=60.0 * RATE,
            delay_s=0.005,
        )
        crew = Crew(launcher, hasty)
        members = [crew.start(line) for line in range(WORKERS)]
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
        assert len({one.worker for one in here.calls.read()}) == WORKERS
        assert peak <= QUOTA
        assert sum(commits.values()) / submissions <= 1.5
