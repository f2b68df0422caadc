"""A process killed between any two of its requests leaves a whole store behind.

The requests are a sample; see `kill_points`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest

from leaderboard.ledger.audit_log import verify
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.queue_file import QUEUE
from leaderboard.publication.rebuilding import queue_differences
from leaderboard.states import State
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.maintenance import squash
from leaderboard.store.interface import Changes, Store
from tests.kit.hub.server import HubServer
from tests.kit.hub_store import parts_of, store_of
from tests.kit.store import contents, put
from tests.leaderboard.store.dying import DONE, KILLED, kill_points
from tests.leaderboard.store.dying_hub_writer import changes_of

pytestmark = pytest.mark.slow
Dies = Callable[[str, int], int]

_BEFORE_THE_PIN = -2
_FEWEST = 12
"""Requests of a joined commit at the least: otherwise the test would have killed nothing."""


def test_killed_at_any_request_of_a_commit_the_store_is_whole_and_goes_on(
    hub: HubServer, parts: HubParts, tmp_path: Path, dies: Dies
) -> None:
    first, second, third = (changes_of(n) for n in ("first", "second", "third"))
    put(parts.public, first)
    old = _files(first)
    half = 0
    # How many requests there are hangs on how slow they are; the pin is the second commit always.
    for last in chain([_BEFORE_THE_PIN], kill_points(1)):
        ended = dies("second", last)
        found = contents(parts_of(hub, tmp_path / f"reader-{last}").public)
        assert found in (old, _files(first, second)), f"half a commit after request {last}"
        half += found == old and _unpinned(hub, parts)
        if ended == DONE:
            assert found == _files(first, second)
            break
        assert ended == KILLED
        # The next one undoes what was left, and is whole itself; then all is as before.
        after = parts_of(hub, tmp_path / f"after-{last}").public
        put(after, third)
        fresh = contents(parts_of(hub, tmp_path / f"fresh-{last}").public)
        assert fresh == {**found, **_files(third)}
        assert not _unpinned(hub, parts)
        put(after, {**dict.fromkeys(fresh), **_files(first)})
    assert last > _FEWEST
    assert half > 0, "no kill ever left anything beyond a pin: nothing was undone"


def test_killed_at_any_request_of_a_squash_nothing_is_lost_and_it_can_be_finished(
    hub: HubServer, parts: HubParts, tmp_path: Path, dies: Dies
) -> None:
    for name in ("first", "second", "third"):
        put(parts.public, changes_of(name))
    old = contents(parts.public)
    for last in kill_points(2):
        ended = dies("squash", last)
        found = contents(parts_of(hub, tmp_path / f"reader-{last}").public)
        assert found == old, f"after request {last}"
        if ended == DONE:
            break
        assert ended == KILLED
    assert last > _FEWEST
    list(squash(parts, take_over=True))
    public = parts.public
    public.commit({"queue.json": b"goes on"}, parent=public.fresh_head(), message="m")
    assert contents(public) == {**old, "queue.json": b"goes on"}


def test_killed_at_any_request_a_submission_is_received_whole_or_not_and_its_claim_likewise(
    hub: HubServer, parts: HubParts, tmp_path: Path, dies: Dies
) -> None:
    """Received is what a reader finds in the queue, with its upload."""
    for last in kill_points(3):
        ended = dies(f"receive m{last}", last)
        store = _opened(hub, tmp_path / f"received-{last}")
        known = {s.submission.name: s.submission for s in Ledger(store).statuses()}
        if own := known.get(f"m{last}"):
            assert Ledger(store).upload(own).startswith(b"upload ")
        if ended == DONE:
            break
        assert ended == KILLED
    assert own is not None
    for last in kill_points(4):
        ended = dies(f"claim {own.submission_id}", last)
        store = _opened(hub, tmp_path / f"claimed-{last}")
        (status,) = [s for s in Ledger(store).statuses() if s.submission == own]
        assert known.keys() == {s.submission.name for s in Ledger(store).statuses()}
        assert (queue_differences(store), verify(store.public)) == ((), ())
        assert store.public.has(QUEUE) is (status.state is State.SCORING), "all of it, or nothing"
        if status.state is State.SCORING:
            break
        assert ended == KILLED
    assert last > 1


def _opened(hub: HubServer, folder: Path) -> Store:
    """A store as somebody finds it who has seen nothing of it."""
    return store_of(parts_of(hub, folder), jobs_per_commit=8)


def _files(*commits: Changes) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for path, content in (item for commit in commits for item in commit.items()):
        files.pop(path, None)
        if isinstance(content, bytes):
            files[path] = content
    return files


def _unpinned(hub: HubServer, parts: HubParts) -> bool:
    """Whether the branch of the results has other files than its pin."""
    pin = parts.public.version(parts.public.fresh_head()).pins.results
    repository = hub.repositories[parts.public.results.name]
    branch, pinned = (
        {p: f.oid for p, f in repository.files(sha).items() if not p.startswith(".commits")}
        for sha in (repository.branches["main"], pin)
    )
    return branch != pinned
