"""A store on the Hub, opened: three dataset repositories as the two of a store."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.settings.model import value_of
from leaderboard.cache import DiskCache
from leaderboard.store.grouping import Grouping
from leaderboard.store.hub.budget import CommitBudget
from leaderboard.store.hub.client import PAUSES_S, HubClient
from leaderboard.store.hub.faults import NoStoreError
from leaderboard.store.hub.layout import CONTENTS, HubName, Part
from leaderboard.store.hub.multi_repository import MultiRepository
from leaderboard.store.hub.repository import HubRepository
from leaderboard.store.interface import Store
from leaderboard.store.live.relay import is_relayed, live_of

JOBS_PER_COMMIT = 8
_DATASETS = "https://huggingface.co/datasets"
COMMITS = "commits.json"  # File in the folder of a store: the commits that this machine made
LOOK_EVERY_S = 5.0
"""A look is a request, and the Hub counts those of all workers of an account together."""


class HubParts:
    """The repositories of one store, one by one; nothing is asked before it is needed."""

    def __init__(
        self,
        name: str,  # `OWNER/NAME`
        folder: Path,  # of this machine, for what was read before
        *,
        endpoint: str | None = None,  # address of the Hub; None for that of the environment
        token: str | None = None,  # None for that of the environment or of a login
        fresh_for_s: float = 2.0,  # for so long a version is taken to be the one last seen
        budget: CommitBudget | None = None,  # of commits; None for no bound of ours
        sleep: Callable[[float], object] = time.sleep,
        pauses: Sequence[float] = PAUSES_S,  # seconds before each further try
        cache_bytes: int | None = None,
    ) -> None:
        self.name = HubName(name)
        self.client = HubClient(endpoint, token, budget=budget, sleep=sleep, pauses=pauses)
        most = round(value_of("hub_cache_gib", os.environ) * 2**30)
        cache = DiskCache(folder / CONTENTS, cache_bytes or most)

        def repository(name: str, check_open: Callable[[], object] = lambda: None) -> HubRepository:
            return HubRepository(
                self.client, name, cache, fresh_for_s=fresh_for_s, check_open=check_open
            )

        decisive = repository(self.name.of(Part.REQUESTS))
        results = repository(self.name.of(Part.RESULTS))
        old_scores = repository(self.name.old_scores)
        self.public = MultiRepository(decisive, results, old_scores, self.client.clock)
        self.private = repository(self.name.of(Part.SUBMISSIONS), self.public.check_migrated)
        """What was uploaded."""
        self.repositories = {
            Part.REQUESTS: decisive,
            Part.RESULTS: results,
            Part.SUBMISSIONS: self.private,
        }
        self.client.clock.asks(decisive.fresh_head)
        self._private_readable: bool | None = None

    def private_readable(self) -> bool:
        """Whether this token may read what was uploaded; asked once."""
        if self._private_readable is None:
            try:
                self.private.fresh_head()
                self._private_readable = True
            except NoStoreError:
                self._private_readable = False
        return self._private_readable

    def permanent_address(self, version: str) -> str:
        """Where the results of a version stay readable, until the history is squashed."""
        commit = self.public.version(version).pins.results
        return f"{_DATASETS}/{self.public.results.name}/tree/{commit}"

    def forget_heads(self) -> None:
        """Ask for every version when it is wanted next."""
        for repository in self.repositories.values():
            repository.forget_head()


def hub_store(
    name: str,
    folder: Path,
    *,
    endpoint: str | None = None,
    token: str | None = None,
    fresh_for_s: float = 2.0,
) -> Store:
    """The store `OWNER/NAME`; asks the Hub nothing before something is read or written."""
    ending = threading.Event()
    budget = CommitBudget.of(os.environ, ending.wait, folder / COMMITS)
    parts = HubParts(
        name,
        folder,
        endpoint=endpoint,
        token=token,
        fresh_for_s=fresh_for_s,
        budget=budget,
        sleep=ending.wait,
    )
    return Store(
        public=Grouping(parts.public, budget, commits=2),
        private=Grouping(parts.private, budget),
        live=live_of(folder, os.environ),
        heartbeats_shared=is_relayed(os.environ),
        clock=parts.client.clock,
        jobs_per_commit=JOBS_PER_COMMIT,
        look_every_s=LOOK_EVERY_S,
        commits_left=budget.left,
        next_commit_s=budget.delay,
        look_anew=parts.forget_heads,
        cache=folder,
        wait_no_more=ending.set,
        private_readable=parts.private_readable,
        permanent_address=parts.permanent_address,
    )
