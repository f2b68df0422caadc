"""A spike of submissions on a store of the Hub whose hours pass quickly, worked off by processes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.endurance.crew import Crew, Launcher, wait_until_beaten
from tests.endurance.hub_rig import opened
from tests.endurance.ladder import CallLog
from tests.endurance.verdict import (
    Undisturbed,
    all_finished,
    attempts,
    check_asked,
    check_published,
)
from tests.evaluator.worker.stock import stock
from tests.hub.server import running_hub

QUOTA = 128
"""Commits of an hour that the Hub allows."""
JOBS = 8


@dataclass(frozen=True)
class Came:
    """What came of a spike.

    Attributes:
        submissions: all of them were published once.
        workers: processes that asked for scores.
        commits: made, by repository; those that send the submissions count as well.
        peak: the most of them within an hour of the Hub's clock.
        refused: requests answered with 429.
        hours: of the Hub's clock that it took.
        seconds: of this machine's.
    """

    submissions: int
    workers: int
    commits: Mapping[str, int]
    peak: int
    refused: int
    hours: float
    seconds: float

    @property
    def for_each(self) -> float:
        """Commits for each submission."""
        return sum(self.commits.values()) / self.submissions

    def __str__(self) -> str:
        return (
            f"{self.submissions} submissions, {self.workers} workers: commits {self.commits}, "
            f"{self.for_each:.2f} for each; at most {self.peak} in an hour, "
            f"{self.refused} refused; {self.hours:.2f} hours of the Hub in {self.seconds:.0f} s"
        )


def spike(
    launcher: Launcher,
    place: Path,
    accounts: Sequence[str],
    alone: Undisturbed,
    *,
    workers: int = 8,
    rate: float = 120.0,
    within_s: float = 280.0,
) -> Came:
    """Send everything at once to workers that wait for it; see that all is published as it must be.

    Args:
        launcher: of the workers.
        place: folder of this run.
        accounts: one for each submission.
        alone: what some of them come to.
        workers: processes, each with its part of the budget.
        rate: so many seconds of the Hub pass in one.
        within_s: it must be over.
    """
    with running_hub() as hub:
        given, store = opened(hub, place, jobs=JOBS)
        hub.clock.run(rate)
        # A pulse every two seconds of this machine is none for minutes of the Hub.
        hasty = replace(
            given,
            commits_per_hour=(QUOTA - 8) // workers,
            rate=rate,
            silent_after_s=60.0 * rate,
            delay_s=0.005,
        )
        crew = Crew(launcher, hasty)
        members = [crew.start(line) for line in range(workers)]
        wait_until_beaten(store, members)
        hub.tally.reset()
        hub.commit_limit.quota = QUOTA
        ids = stock(store, accounts)
        begun, at = hub.clock.now(), time.monotonic()
        while not all_finished(store, ids):
            assert time.monotonic() - at < within_s, members[0].said()
            time.sleep(0.5)
        hours = (hub.clock.now() - begun).total_seconds() / 3600.0
        seconds = time.monotonic() - at
        for member in members:
            member.end()
        refused = sum(one.status == 429 for one in hub.served)
        commits = {name: hub.tally.commits(name) for name in hub.repositories}
        peak = hub.tally.peak_commits()
        hub.commit_limit.quota = None
        check_published(store, ids, alone)
        assert attempts(store, ids) == {1: len(ids)}
        calls = CallLog(place / "calls")
        assert check_asked(calls, deaths=0) == 0
        asked_by = {one.worker for one in calls.read()}
    return Came(len(ids), len(asked_by), commits, peak, refused, hours, seconds)
