"""Removes what is kept privately for no submission: of requests that lost their race or crashed.

An upload is kept before the public commit that makes it count, so nothing tells a request that is
under way from one that never ended. Hence the first sweep marks what it finds, and a sweep that
finds it still a day later removes it. Whoever sends the same content meanwhile takes the mark off
(`leaderboard.ledger.held`).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from leaderboard.ledger.held import FOLDER, HASHES, MARKS, UPLOADS, marks_file, read_marks
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.queue_file import has_queue
from leaderboard.store.interface import Changes, Store, transact

GRACE = timedelta(days=1)
"""Longer than any request takes."""


def sweep(store: Store, now: datetime) -> None:
    """Mark what no submission refers to, and remove what was marked long enough ago.

    Args:
        store: where submissions are.
        now: the current time.
    """
    if not has_queue(store.public):
        return  # A public part that is empty, or another's, says nothing of what is needed.

    def change() -> Changes:
        marked = read_marks(store.private)
        found = {path: marked.get(path, now) for path in _unneeded(store)}
        old = {path for path, since in found.items() if since <= now - GRACE}
        left = {path: since for path, since in found.items() if path not in old}
        changes: dict[str, bytes | None] = dict.fromkeys(old)
        if left != marked:
            changes[MARKS] = marks_file(left)
        return changes

    transact(store.private, change, "what no submission needs")


def _unneeded(store: Store) -> tuple[str, ...]:
    submissions = [status.submission for status in Ledger(store).statuses_with_records()]
    archives = {submission.archive for submission in submissions}
    ids = {submission.submission_id for submission in submissions}
    uploads = (path for path in store.private.list(UPLOADS) if path not in archives)
    held = (path for path in store.private.list(FOLDER) if path.split("/")[1] not in ids)
    hashes = (
        path
        for path in store.private.list(HASHES)
        if path.removeprefix(HASHES).partition(".")[0] not in ids
    )
    return (*uploads, *held, *hashes)
