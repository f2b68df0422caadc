"""A new store in a folder or on a test Hub, workers on it, and what must be true in the end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.errors import TransientError
from evaluator.worker.tasks import MAX_LOST
from leaderboard.store.folder import folder_store
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.maintenance import create
from leaderboard.store.interface import Store
from tests.endurance.crew import Crew, Launcher, Member
from tests.endurance.ladder import CallLog
from tests.endurance.verdict import (
    Undisturbed,
    all_finished,
    attempts,
    check_asked,
    check_nothing_left,
    check_published,
)
from tests.endurance.worker_process import NAME, Given, hub_store_of
from tests.kit.hub.server import HubServer, running_hub
from tests.kit.worker import stock


@dataclass
class Ground:
    """One store and its workers."""

    place: Path  # folder of all of it
    given: Given  # what its workers are to be
    store: Store  # as this process has it
    crew: Crew  # the workers
    hub: HubServer | None = None  # where the store is; None: in a folder
    ids: list[str] = field(default_factory=list)  # of what was queued

    @property
    def calls(self) -> CallLog:
        """What scorers were asked."""
        return CallLog(self.place / "calls")

    def stock(self, accounts: Sequence[str]) -> None:
        """Queue one more submission of each."""
        self.ids += stock(self.store, accounts)

    def finished(self) -> bool:
        """Whether all is done; not, where the store cannot be asked."""
        with suppress(TransientError):
            return all_finished(self.store, self.ids)
        return False

    def wait(self, members: Sequence[Member], within_s: float = 200.0) -> float:
        """Wait until all is done; returns the seconds that it took."""
        begun = time.monotonic()
        while not self.finished():
            assert time.monotonic() - begun < within_s, members[0].said()
            time.sleep(0.3)
        return time.monotonic() - begun

    def check(
        self,
        alone: Undisturbed,
        *,
        tries: Mapping[int, int] | int = MAX_LOST,
        deaths: int = 0,
        disk_faults: int = 0,
    ) -> int:
        """Each submission was published once, nothing is left, and nothing was asked without need."""
        check_published(self.store, self.ids, alone)
        found = attempts(self.store, self.ids)
        assert max(found) <= tries if isinstance(tries, int) else found == tries
        root = Path(self.given.scratch if self.hub else self.given.store)
        check_nothing_left(self.store, root, self.given)
        return check_asked(self.calls, deaths, disk_faults)


@contextmanager
def ground(kind: str, place: Path, launcher: Launcher, **more: Any) -> Iterator[Ground]:
    """Make one, of kind `folder` or `hub`; `more` is about its workers."""
    place.mkdir(exist_ok=True)
    scratch = str(place / "scratch")
    if kind == "folder":
        given = Given("w", str(place), str(place / "store"), scratch, **more)
        yield Ground(place, given, folder_store(place / "store"), Crew(launcher, given))
        return
    with running_hub() as hub:
        access: dict[str, Any] = {"endpoint": hub.endpoint, "token": hub.token}
        list(create(HubParts(NAME, place / "made", **access)))
        more = {"jobs": 2, "steps": "requests", **access, **more}
        given = Given("w", str(place), NAME, scratch, **more)
        store = hub_store_of(NAME, place / "mine", live=place / "live", **access)
        yield Ground(place, given, store, Crew(launcher, given), hub)
