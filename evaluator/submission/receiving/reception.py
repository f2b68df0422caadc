"""Keeps a submission that was checked, in one commit, unless what is in the store forbids it.

The store is asked twice: before anything is kept, so that a refusal leaves no trace, and inside
the commit, so that two requests at once get no more than one after the other would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from benchmarks.errors import SubmitterError
from evaluator.submission.receiving.allowance import check_allowance, check_not_banned
from evaluator.submission.receiving.identity import Identity
from leaderboard.accounts import ASSAY, Account
from leaderboard.desk import Accepted
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.private_records import BANNED
from leaderboard.records import Event, Kind, Status, Submission
from leaderboard.states import State
from leaderboard.store.interface import Store

_CAME_ALREADY = "duplicate_submission"
_GONE = frozenset({State.FAILED, State.REJECTED, State.WITHDRAWN})
"""States in which a version may be used again."""
_AGAIN = frozenset({State.FAILED, State.REJECTED})
_NOT_AGAIN = frozenset({State.WITHDRAWN, State.HIDDEN, State.REJECTED})
"""States in which the same content is not taken again."""


@dataclass(frozen=True)
class Reception:
    """One account before the store.

    Attributes:
        store: where submissions are kept.
        account: who submits.
        clock: the current time, with a time zone.
    """

    store: Store
    account: Account
    clock: Callable[[], datetime]

    @cached_property
    def _ledger(self) -> Ledger:
        return Ledger(self.store)

    def statuses(self) -> tuple[Status, ...]:
        """All submissions, private ones with their whole record but without their reasons."""
        return self._ledger.statuses_with_records()

    def visible(self) -> tuple[Submission, ...]:
        """What everyone can see, and whatever the account itself sent."""
        every = (status.submission for status in self.statuses())
        return tuple(s for s in every if not s.private or s.account == self.account.key)

    def check_not_banned(self) -> None:
        """Whether the account may submit at all.

        Raises:
            SubmitterError: `banned`.
        """
        check_not_banned(self.store.public, self.account)

    def known(self, identity: Identity, *, private: bool) -> Accepted | None:
        """What is to be said of a submission that is here already; None where it is new.

        One that failed is queued again, and so is one that a ban kept out which is lifted.

        Args:
            identity: of what is sent.
            private: how it is to be kept.

        Raises:
            SubmitterError: `seen_before` where it was withdrawn, hidden or rejected; `banned`,
                `quota_exceeded` or `version_taken` where it would have to be queued again.
        """
        before = identity.among(self.statuses())
        if before is None:
            return None
        if before.state in _NOT_AGAIN and not _of_a_ban(before):
            raise _seen_before(self._ledger.whole_status(before.submission.submission_id))
        notes: list[str] = []
        if private and not before.submission.private:
            notes.append("It is not private: everyone can see it.")
        if before.submission.private and not private:
            notes.append("It is private, and stays so until you publish it.")
        if before.state in _AGAIN:
            self._queue_again(before, identity)
            notes.append(f"It was {before.state}, and is queued again.")
        return self._accepted(before.submission, notes, recognised=True)

    def preview(self, identity: Identity) -> tuple[str, ...]:
        """What would be said of a submission if it came in now; nothing is kept or queued.

        Raises:
            SubmitterError: as `known` and `check`.
        """
        before = identity.among(self.statuses())
        if before is None:
            self.check(identity)
            return ()
        own = before.submission.submission_id
        if before.state in _NOT_AGAIN and not _of_a_ban(before):
            raise _seen_before(self._ledger.whole_status(own))
        if before.state in _AGAIN:
            self.check(identity)
            return (f"It is {own}, which was {before.state}; it would be queued again.",)
        return (f"You sent the same before: {own} is {before.state}. Nothing would be added.",)

    def check(self, identity: Identity) -> None:
        """Whether a submission may come in now, or again.

        Raises:
            SubmitterError: `banned`, `quota_exceeded`, `version_taken`.
        """
        self.check_not_banned()
        statuses = self.statuses()
        self._check_allowance(identity.kind, statuses)
        # Our own modules come again, changed, with every release.
        if self.account.key != ASSAY.key:
            _check_version_is_free(identity, statuses)

    def receive(
        self,
        identity: Identity,
        submission: Submission,
        upload: bytes | Path,
        notes: Sequence[str] = (),
        beside: Mapping[str, bytes] | None = None,
    ) -> Accepted:
        """Keep and queue a new submission.

        Args:
            identity: of it.
            submission: its record.
            upload: its content.
            notes: what its author should know; kept with it.
            beside: path to content of further files for the private repository.

        Raises:
            SubmitterError: as `check`; it is in no list then.
        """
        now = self.clock()
        events = [
            Event(at=now, state=State.RECEIVED, by=self.account.key),
            Event(at=now, state=State.QUEUED, by=self.account.key, reason=" ".join(notes)),
        ]

        def check() -> None:
            if identity.among(self.statuses()) is not None:
                raise SubmitterError(_CAME_ALREADY, "The same came in at this very moment.")
            self.check(identity)

        try:
            self._ledger.receive(submission, upload, events, check=check, beside=beside)
        except SubmitterError as error:
            if error.code != _CAME_ALREADY:
                raise
            known = self.known(identity, private=submission.private)
            if known is None:
                raise
            return known
        return self._accepted(submission, notes)

    def _queue_again(self, before: Status, identity: Identity) -> None:
        reason = "sent again after a failure"
        if before.state is State.REJECTED:
            reason = "sent again after a ban was lifted"
        event = Event(at=self.clock(), state=State.QUEUED, by=self.account.key, reason=reason)

        def still(status: Status) -> bool:
            self.check(identity)
            return status.state is before.state

        self._ledger.append(before.submission.submission_id, [event], still=still)

    def _check_allowance(self, kind: Kind, statuses: Sequence[Status]) -> None:
        check_allowance(self.store.public, self.account, kind, statuses, self.clock())

    def _accepted(
        self, submission: Submission, notes: Sequence[str], *, recognised: bool = False
    ) -> Accepted:
        status = self._ledger.whole_status(submission.submission_id)
        return Accepted(status, recognised, tuple(notes))


def _check_version_is_free(identity: Identity, statuses: Sequence[Status]) -> None:
    """Two entries that read the same could not be told apart on a board."""
    for status in identity.of_this_version(statuses):
        # After a rerun that failed, its earlier results are on the boards still.
        if status.state not in _GONE or status.on_boards:
            version = f" {identity.version}" if identity.version else ""
            raise SubmitterError(
                "version_taken",
                f"You have sent {identity.name}{version} before, with other content: "
                f"{status.submission.submission_id} is {status.state}.",
                "Give this one another version, or withdraw the earlier one.",
            )


def _of_a_ban(status: Status) -> bool:
    """Whether nothing is wrong with it but who sent it, at that time."""
    return status.state is State.REJECTED and status.code == BANNED


def _seen_before(status: Status) -> SubmitterError:
    return SubmitterError(
        "seen_before",
        f"The same content was submitted before and is {status.state}"
        f"{f': {status.reason}' if status.reason else '.'}",
        "Change it, for example its version, and send it again.",
    )
