"""Removes what is kept for nobody any more: held results, and scores that wait for no judge.

Results are held for nobody once they were published or withdrawn, scores once they were judged.
Acts do it after their public commit. What a crash in between leaves is read by nothing, and is
removed by the next act on the submission or by `tidy_all`.
"""

from __future__ import annotations

from benchmarks.errors import SubmitterError
from leaderboard.ledger.held import FOLDER, SCORED, results_folder, scored_folder
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.redaction import PRIVATE_ID
from leaderboard.records import Status
from leaderboard.states import State
from leaderboard.store.interface import Changes, Store, transact


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
