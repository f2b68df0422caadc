"""A made-up store in which a benchmark has a new revision, half re-evaluated.

Run it to look at the page: `python -m tests.leaderboard.pages.moved.moved_fixture [PORT]`.
"""

from __future__ import annotations

import sys
from datetime import timedelta

import numpy as np

from benchmarks.schema import Card
from leaderboard.ledger.ledger import Ledger
from leaderboard.pages.page import Context
from leaderboard.pages.reading import Reader
from leaderboard.publication.snapshot import PATH, Published, build_snapshot, snapshot_bytes
from leaderboard.ranking.draws import draws_files
from leaderboard.records import Event, Submission
from leaderboard.reevaluation.earlier_boards import board_path
from leaderboard.reevaluation.editions import Edition
from leaderboard.reevaluation.history import Announced, history_file
from leaderboard.reevaluation.outdated import NEW_REVISION, OTHER_REVISION
from leaderboard.states import State
from leaderboard.store.interface import Store
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.synthetic import (
    METRICS,
    NOW,
    StubDesk,
    cards,
    published,
    submission,
)

BEFORE = "2023-06-01"
DONE, CAME, LEFT, TOLD = 8, 11, 40, 9
"""How many are done; places of one that came, one that left, and one whose author is told."""
_ORDER = (2, 0, 1, 3, 6, 4, 5, 7, 9, 8, 10, 11)
"""Where each metric stood before."""


def earlier_card() -> Card:
    """The benchmark before."""
    return cards()["ratings"].model_copy(update={"revision": BEFORE})


def own(place: int) -> Submission:
    """One submission, on this benchmark alone."""
    name = METRICS[place] if place < len(METRICS) else "withdrawn-metric"
    return submission(place, name, ("ratings",))


def earlier_runs() -> list[Published]:
    """The runs of before."""
    rng = np.random.default_rng(5)
    runs = []
    for place in (*(p for p in range(len(METRICS)) if p != CAME), LEFT):
        run = published(own(place), "ratings", _ORDER[place] if place < CAME else 8, rng)
        result = run.result.model_copy(update={"revision": BEFORE})
        runs.append(Published(run.submission, result, run.draws))
    return runs


def runs_of_now(done: int = DONE) -> list[Published]:
    """The runs of the new revision so far, and one that was never on the earlier board."""
    rng = np.random.default_rng(12)
    return [published(own(place), "ratings", place, rng) for place in (*range(done), CAME)]


def fill_moved(store: Store, done: int = DONE) -> Store:
    """Publish both boards, and the queue of those that wait."""
    runs = runs_of_now(done)
    built = build_snapshot(runs, cards(), NOW)
    before = build_snapshot(earlier_runs(), {"ratings": earlier_card()}, NOW - timedelta(days=30))
    announced = Announced(
        benchmark="ratings",
        before=Edition.of_card(earlier_card()),
        edition=Edition.of_card(cards()["ratings"]),
        at=NOW,
        by="assay:assay",
        reason="ratings is now at revision 2024-12-01 (was revision 2023-06-01).",
    )
    files = {
        PATH: snapshot_bytes(built),
        board_path("ratings", BEFORE): snapshot_bytes(before),
        **history_file({}, [announced]),
    }
    for run in runs:
        assert run.draws is not None
        stem = f"results/{run.submission.submission_id}/ratings"
        files |= draws_files(stem, run.draws.resamples, run.draws.contributions)
    store.public.commit(files, parent=store.public.head(), message="publish")
    _queue(Ledger(store), done)
    return store


def _queue(ledger: Ledger, done: int) -> None:
    path = [State.RECEIVED, State.QUEUED, State.CLAIMED, State.SCORING, State.SCORED,
            State.JUDGING, State.PUBLISHED]  # fmt: skip
    for place in range(len(METRICS)):
        events = [_event(state) for state in path]
        if place == TOLD and done <= TOLD:
            events.append(_event(State.PUBLISHED, OTHER_REVISION, "These scores stay with it."))
        elif done <= place != CAME:
            events.append(_event(State.QUEUED, NEW_REVISION, "It is run again there."))
        ledger.receive(own(place), b"upload", events)


def _event(state: State, code: str = "", reason: str = "") -> Event:
    return Event(at=NOW, state=state, by="assay:assay", code=code, reason=reason)


def moved_site(done: int = DONE) -> Context:
    """The site without a server."""
    store = fill_moved(memory_store(), done)
    return Context(Reader(store, cards()), store.live, StubDesk(), cards(), lambda: NOW, store)


def main() -> None:
    """Serve the made-up store."""
    from leaderboard.pages.site import create_app, launch_options

    port = int(sys.argv[1]) if len(sys.argv) > 1 else 7871
    store = fill_moved(memory_store())
    app = create_app(store, StubDesk(store=store), cards(), clock=lambda: NOW)
    app.launch(server_name="127.0.0.1", server_port=port, **launch_options())


if __name__ == "__main__":
    main()
