"""View of an account's own submissions, private ones included; operators see all."""

from __future__ import annotations

from benchmarks.errors import SubmitterError, TransientError
from leaderboard.accounts import Account
from leaderboard.governance.rights import roles
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.results import read_results
from leaderboard.records import Event, RunResult, Status
from leaderboard.store.interface import Store


class Own:
    """The submissions an account may see whole.

    Args:
        store: where they are kept.
        account: who looks.
    """

    def __init__(self, store: Store, account: Account) -> None:
        self._store = store
        self._account = account
        self._ledger = Ledger(store)
        self._statuses: tuple[Status, ...] | None = None

    def statuses(self) -> tuple[Status, ...]:
        """All of them with their whole records, oldest first.

        While the store cannot be read, they are as they were read last.

        Raises:
            TransientError: the store cannot be read, and never was.
        """
        try:
            self._statuses = self._ledger.whole_statuses(
                lambda status: roles(status, self._account)
            )
        except TransientError:
            if self._statuses is None:
                raise
        return self._statuses

    def status(self, submission_id: str) -> Status:
        """One of them.

        Raises:
            SubmitterError: `not_yours`, with the same text whether it is another's or nobody's.
        """
        try:
            found = self._ledger.whole_status(submission_id)
        except SubmitterError as error:
            raise _not_yours() from error
        if not roles(found, self._account):
            raise _not_yours()
        return found

    def events(self, submission_id: str) -> tuple[Event, ...]:
        """What happened to one of them, with reasons and logs, oldest first.

        Raises:
            SubmitterError: `not_yours`, as for `status`.
        """
        self.status(submission_id)
        return self._ledger.whole_events(submission_id)

    def results(self, submission_id: str) -> tuple[RunResult, ...]:
        """Results of one of them, in the order of benchmarks; held ones included.

        Raises:
            SubmitterError: `not_yours`, as for `status`.
        """
        return read_results(self._store, self.status(submission_id).submission)


def _not_yours() -> SubmitterError:
    return SubmitterError(
        "not_yours",
        "You have no submission of that id here.",
        "List yours with: python -m evaluator status",
    )
