"""Removes results that are held for nobody any more: of published and of withdrawn submissions.

Acts do it after their public commit. What a crash in between leaves is read by nothing, and is
removed by the next act on the submission or by `tidy_all`.
"""

from __future__ import annotations

from benchmarks.errors import SubmitterError
from leaderboard.ledger.held import FOLDER, results_folder
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.redaction import PRIVATE_ID
from leaderboard.states import State
from leaderboard.store.interface import Changes, Store, transact


def tidy(store: Store, submission_id: str) -> None:
    """Remove a submission's held results if they are held for nobody any more."""
    if not PRIVATE_ID.fullmatch(submission_id):
        return

    def change() -> Changes:
        kept = _still_held(store, submission_id)
        return {} if kept else dict.fromkeys(store.private.list(results_folder(submission_id)))

    transact(store.private, change, f"tidy {submission_id}")


def tidy_all(store: Store) -> None:
    """The same for every submission of which anything is held."""
    for name in sorted({path.split("/")[1] for path in store.private.list(FOLDER)}):
        tidy(store, name)


def _still_held(store: Store, submission_id: str) -> bool:
    try:
        status = Ledger(store).status(submission_id)
    except SubmitterError:
        return True  # It may be about to be received.
    return status.submission.private and status.state is not State.WITHDRAWN
