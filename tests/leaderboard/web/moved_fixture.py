"""A made-up store in which a benchmark has a new revision, half re-evaluated."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np

from leaderboard.ledger.editions import (
    NEW_REVISION,
    OTHER_REVISION,
    Announced,
    Edition,
    history_file,
)
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.earlier_boards import board_path
from leaderboard.publication.publisher import build_snapshot
from leaderboard.publication.results import Published
from leaderboard.publication.snapshot import snapshot_bytes
from leaderboard.records import Submission
from leaderboard.states import State
from leaderboard.store.interface import Store
from leaderboard.web.page import Context
from tests.kit.boards import (
    METRICS,
    NOW,
    cards,
    event,
    keep,
    publish,
    published,
    site_of,
    submission,
    way_to,
)
from tests.kit.store import memory_store

BEFORE = "2023-06-01"
DONE, CAME, LEFT, TOLD = 8, 11, 40, 9
"""How many are done; places of one that came, one that left, and one whose author is told."""
_ORDER = (2, 0, 1, 3, 6, 4, 5, 7, 9, 8, 10, 11)
"""Where each metric stood before."""


def own(place: int) -> Submission:
    """One submission, on this benchmark alone."""
    name = METRICS[place] if place < len(METRICS) else "withdrawn-metric"
    return submission(place, name, ("ratings",))


def earlier_runs() -> list[Published]:
    rng = np.random.default_rng(5)
    runs = []
    for place in (*(p for p in range(len(METRICS)) if p != CAME), LEFT):
        run = published(own(place), "ratings", _ORDER[place] if place < CAME else 8, rng)
        result = run.result.model_copy(update={"revision": BEFORE})
        runs.append(Published(run.submission, result, run.draws))
    return runs


def fill_moved(store: Store, done: int = DONE) -> Store:
    """Publish both boards, one of them with so many runs, and the queue of those that wait."""
    rng = np.random.default_rng(12)
    # One of them was never on the earlier board.
    runs = [published(own(place), "ratings", place, rng) for place in (*range(done), CAME)]
    publish(store, runs, cards())
    now = cards()["ratings"]
    then = now.model_copy(update={"revision": BEFORE})
    before = build_snapshot(earlier_runs(), {"ratings": then}, NOW - timedelta(days=30))
    announced = Announced(
        benchmark="ratings", before=Edition.of_card(then), edition=Edition.of_card(now), at=NOW,
        by="assay:assay",
        reason=f"ratings is now at revision {now.revision} (was revision {BEFORE}).",
    )  # fmt: skip
    files = {board_path("ratings", BEFORE): snapshot_bytes(before), **history_file({}, [announced])}
    keep(store, files)
    for place in range(len(METRICS)):
        by: Any = {"at": NOW, "by": "assay:assay"}
        events = way_to(State.PUBLISHED, **by)
        if place == TOLD and done <= TOLD:
            events.append(event(State.PUBLISHED, code=OTHER_REVISION, reason="Stays.", **by))
        elif done <= place != CAME:
            events.append(event(State.QUEUED, code=NEW_REVISION, reason="It is run again.", **by))
        Ledger(store).receive(own(place), b"upload", events)
    return store


def moved_site(done: int = DONE) -> Context:
    """The site without a server."""
    return site_of(fill_moved(memory_store(), done))
