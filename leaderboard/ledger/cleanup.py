"""Cleanup of the private repository: files that no submission refers to, and results held for nobody."""

from __future__ import annotations

from datetime import datetime, timedelta

from benchmarks.errors import SubmitterError
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.private_records import (
    FOLDER,
    HASHES,
    MARKS,
    PRIVATE_ID,
    SCORED,
    UPLOADS,
    marks_file,
    read_marks,
    results_folder,
    scored_folder,
)
from leaderboard.ledger.queue_file import has_queue
from leaderboard.records import Status
from leaderboard.states import State
from leaderboard.store.interface import Changes, Store, transact

GRACE = timedelta(days=1)  # Longer than any request takes


def sweep(store: Store, now: datetime) -> None:
    """Mark what no submission refers to, and remove what was marked long enough ago."""
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


def tidy(store: Store, submission_id: str) -> None:
    """Remove a submission's held results and handed over scores, if nobody needs them any more."""

    def change() -> Changes:
        status = _status(store, submission_id)
        if status is None:
            return {}  # It may be about to be received.
        paths: list[str] = []
        if PRIVATE_ID.fullmatch(submission_id) and not _still_held(status):
            paths += store.private.list(results_folder(submission_id))
        if not status.unfinished:
            paths += store.private.list(scored_folder(submission_id))
        return dict.fromkeys(paths)

    transact(store.private, change, f"tidy {submission_id}")


def tidy_all(store: Store) -> None:
    """The same for every submission of which anything is kept."""
    kept = (*store.private.list(FOLDER), *store.private.list(SCORED))
    for name in sorted({path.split("/")[1] for path in kept}):
        tidy(store, name)


def _status(store: Store, submission_id: str) -> Status | None:
    try:
        return Ledger(store).status(submission_id)
    except SubmitterError:
        return None


def _still_held(status: Status) -> bool:
    return status.submission.private and status.state is not State.WITHDRAWN
