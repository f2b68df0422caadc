"""Stores on the test Hub for workers whose hours pass quickly."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from leaderboard.store.grouping import Grouping
from leaderboard.store.hub.budget import CommitBudget
from leaderboard.store.hub.hub_store import JOBS_PER_COMMIT, HubParts
from leaderboard.store.interface import Store
from leaderboard.store.live.folder import FolderLive

NAME = "lab/assay"
_LONGEST_PAUSE_S = 0.5


def hub_store_of(
    name: str,
    folder: Path,
    *,
    live: Path,
    endpoint: str,
    token: str,
    commits_per_hour: int = 0,
    rate: float = 1.0,
    jobs: int = 0,
    fresh_for_s: float = 0.2,
) -> Store:
    """As `hub_store` opens it, but for the pace of its budget and its rests."""
    budget = _budget(commits_per_hour, rate) if commits_per_hour else None
    parts = HubParts(
        name,
        folder,
        endpoint=endpoint,
        token=token,
        fresh_for_s=fresh_for_s,
        budget=budget,
        sleep=_rest(rate),
        pauses=(0.02, 0.05, 0.1, 0.2),
    )
    return Store(
        public=Grouping(parts.public, budget, commits=2),
        private=Grouping(parts.private, budget),
        live=FolderLive(live),
        clock=parts.client.clock,
        jobs_per_commit=jobs or JOBS_PER_COMMIT,
        look_every_s=0.0,
        commits_left=budget.left if budget else None,
        look_anew=parts.forget_heads,
    )


def _rest(rate: float) -> Callable[[float], None]:
    """Rests that are shorter by as much as the hours are, and never long."""

    def rest(seconds: float) -> None:
        time.sleep(min(seconds / rate, _LONGEST_PAUSE_S))

    return rest


def _budget(per_hour: int, rate: float) -> CommitBudget:
    return CommitBudget(
        per_hour,
        max(1, per_hour // 5),
        clock=lambda: time.monotonic() * rate,
        sleep=lambda s: time.sleep(s / rate),
    )
