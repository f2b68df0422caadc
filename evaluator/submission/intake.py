"""Keeps a submission that was checked, in one commit, unless what is in the store forbids it.

The store is asked twice: before anything is kept, so that a refusal leaves no trace, and inside
the commit, so that two requests at once get no more than one after the other would.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from benchmarks.errors import SubmitterError, TransientError
from benchmarks.parsing import folded
from benchmarks.scores import RESERVED_NAMES
from evaluator.isolation.session import plain_text
from leaderboard.accounts import ASSAY, Account
from leaderboard.governance.quota import QuotaUse, quota_use
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.policy import Policy, read_bans, read_policy, rejection
from leaderboard.ledger.private_records import BANNED, PRIVATE_ID
from leaderboard.records import Event, Kind, Status, Submission
from leaderboard.states import State
from leaderboard.store.interface import Repository, Store
from leaderboard.submission_service import UNNAMED, SubmissionReceipt

MAX_SUBMITTER = 80
MAX_DESCRIPTION = 4000
OWN_NAME = "Assay"
"""Signs what is part of Assay itself; nobody else may."""
SPECIAL_SUFFIXES = frozenset({".npz"})
"""Formats some benchmarks take beside tables, e.g. scores with masks."""

_SUBMITTER = re.compile(r"[\w .@'+-]{1,80}")
_VERSION = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._+-]{0,31})?")


def owner_of(submission: Submission) -> str:
    """Key of the account that owns a submission; empty where it is older than accounts."""
    if submission.account:
        return submission.account
    return ASSAY.key if submission.submitter == OWN_NAME else ""


def checked_signature(signature: str, account: Account, shown: Iterable[Submission]) -> str:
    """How a submission is signed on the boards: as its sender wishes, but as nobody else."""
    if account.key == ASSAY.key:
        return OWN_NAME
    name = " ".join(signature.split()) or account.name
    if not _SUBMITTER.fullmatch(name):
        raise SubmitterError(
            "bad_submitter",
            "The submitter's name is too long or holds odd characters.",
            f"Use letters, digits, spaces and . _ @ ' + - (at most {MAX_SUBMITTER}).",
        )
    if folded(name) == folded(OWN_NAME):
        raise SubmitterError(
            "reserved_submitter",
            f"The submitter's name {name!r} stands for what is part of {OWN_NAME} itself.",
            "Sign with your own name or your team's.",
        )
    _check_not_anothers(name, account, tuple(shown))
    return name


def _check_not_anothers(name: str, account: Account, shown: tuple[Submission, ...]) -> None:
    own = {folded(s.submitter) for s in shown if s.account == account.key}
    if folded(name) in {folded(account.name), *own}:
        return
    for other in shown:
        # Older than accounts: nobody can say whose signature that is.
        if other.account in ("", account.key):
            continue
        if folded(name) in (folded(other.submitter), folded(other.account.partition(":")[2])):
            raise SubmitterError(
                "signature_taken",
                f"The submitter's name {name!r} is that of another account.",
                f"Sign with {account.name!r} or with a name of your own.",
            )


def checked_version(version: str) -> str:
    """The version of a scores file; it may be empty."""
    found = version.strip()
    if not _VERSION.fullmatch(found):
        raise SubmitterError(
            "bad_version",
            "The version is too long or holds odd characters.",
            "Use letters, digits and . _ + - (at most 32), for example 1.2.",
        )
    return found


def checked_description(description: str) -> str:
    """A text for the boards, without characters that cannot be seen."""
    try:
        data = description.encode()
    except UnicodeEncodeError as error:
        raise SubmitterError(
            "bad_description",
            f"The description holds half a character at position {error.start + 1}.",
            "Type that character again.",
        ) from error
    found = plain_text(data)
    if len(found) > MAX_DESCRIPTION:
        raise SubmitterError(
            "bad_description",
            f"The description has {len(found):,} characters.",
            f"Use at most {MAX_DESCRIPTION:,}.",
        )
    return found


def kept_suffix(path: Path, content: bytes) -> str:
    """What kind of file is kept; a stranger's own ending is used only where it is a known one."""
    if content[:4] == b"PAR1":
        return ".parquet"
    given = path.suffix.lower()
    return given if given in SPECIAL_SUFFIXES else ".csv"


def name_from(stem: str) -> str:
    """A name made from a file's, which nobody chose with our rules in mind."""
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", stem).strip("-._+")[:64]
    return "scores" if not name or name in RESERVED_NAMES else name


@dataclass(frozen=True)
class Identity:
    """Tells a submission from all others."""

    kind: Kind  # of submission
    name: str  # of the metric, of the scores file, or of the model
    version: str  # as its author counts
    account: str  # key of the account that sends it
    content_sha256: str  # of its content
    # of a scores file, or the prompt set of a model's images; empty for a module, which is one
    # thing on all benchmarks
    benchmark: str = ""
    # of a scoring module: its entries on the boards
    metrics: tuple[str, ...] = ()

    @property
    def submission_id(self) -> str:
        """An id people can read, which the same submission has again; tells its name and content.

        Assay's own modules are known by their content alone, as before there were accounts.
        """
        words = (self.kind, self.name, self.version, self.account, self.content_sha256)
        own = self.account == ASSAY.key
        found = self.content_sha256 if own else digest(*(word.encode() for word in words))
        slug = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")[:40] or "metric"
        made = f"{slug}-{found[:10]}"
        # Ids of this form are given to private submissions, at random.
        return f"metric-{made}" if PRIVATE_ID.fullmatch(made) else made

    def among(self, statuses: Iterable[Status]) -> Status | None:
        """The submission with this identity; None where there is none yet."""
        return next((s for s in statuses if self._is(s.submission)), None)

    def of_this_version(self, statuses: Iterable[Status]) -> tuple[Status, ...]:
        """Submissions that would read the same on a board, though their content is another."""
        return tuple(
            status
            for status in statuses
            if _names(status.submission) == (self.kind, self.name, self.version, self.account)
            and status.submission.content_sha256 != self.content_sha256
            and (not self.benchmark or self.benchmark in status.submission.benchmarks)
        )

    def _is(self, other: Submission) -> bool:
        if other.submission_id == self.submission_id:
            # Ids are short enough that somebody could make theirs that of another's.
            older = self.account == ASSAY.key and not other.account
            return other.account == self.account or older
        names = (self.kind, self.name, self.version, self.account)
        return _names(other) == names and other.content_sha256 == self.content_sha256


def digest(*parts: bytes) -> str:
    """Hash over parts of which none but the last holds a zero byte."""
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _names(submission: Submission) -> tuple[Kind, str, str, str]:
    return submission.kind, submission.name, submission.version, submission.account


_CALLED = {
    Kind.METRIC: "scoring modules",
    Kind.SCORES: "scores files",
    Kind.GENERATIONS: "submissions of generations",
}


def check_not_banned(public: Repository, account: Account) -> None:
    """Whether an account may submit at all."""
    ban = None if account.key == ASSAY.key else read_bans(public).get(account.key)
    if ban is not None:
        raise SubmitterError(
            "banned",
            f"The account {account.name} may not submit here: {ban.reason}",
            "Ask the operator of this installation.",
        )


@dataclass(frozen=True)
class RemainingQuota:
    """What one account may still submit."""

    standing: QuotaUse  # what it has used, as it is shown to it
    period_days: int  # in which charges count

    def check(self) -> None:
        """Whether one more may come."""
        standing = self.standing
        called = _CALLED[standing.kind]
        if 0 in (standing.scored_most, standing.unfinished_most):
            raise SubmitterError(
                "quota_exceeded", f"This installation takes no {called} now.", "Ask its operator."
            )
        if standing.unfinished >= standing.unfinished_most:
            raise SubmitterError(
                "quota_exceeded",
                f"{standing.unfinished} of your {called} wait or run already, and "
                f"{standing.unfinished_most} may at the same time.",
                "Wait until one has ended, or withdraw one.",
            )
        if not standing.left:
            promised = standing.promised
            waiting = f", and {promised} more wait or run" if promised else ""
            raise SubmitterError(
                "quota_exceeded",
                f"{standing.scored} of your {called} were scored within {self.period_days} days"
                f"{waiting}; {standing.scored_most} may be.",
                self._when(),
            )

    def _when(self) -> str:
        moment = self.standing.next_free
        if moment is None:
            return "Wait until one has ended without a result, or withdraw one."
        return f"The next is free at {moment:%Y-%m-%d %H:%M} UTC."


def allowed(
    account_key: str, kind: Kind, statuses: Sequence[Status], policy: Policy, now: datetime
) -> RemainingQuota | None:
    """What an account may still submit of one kind; None where nothing limits it."""
    if account_key == ASSAY.key:
        return None
    found = quota_use(account_key, statuses, policy, now)
    standing = next((line for line in found if line.kind is kind), None)
    if standing is None:
        return None
    return RemainingQuota(standing, policy.period_days)


def check_allowance(
    public: Repository, account: Account, kind: Kind, statuses: Sequence[Status], now: datetime
) -> None:
    """Whether an account may have one more submission of a kind."""
    found = allowed(account.key, kind, statuses, read_policy(public), now)
    if found is not None:
        found.check()


_CAME_ALREADY = "duplicate_submission"
_GONE = frozenset({State.FAILED, State.REJECTED, State.WITHDRAWN})
"""States in which a version may be used again."""
_AGAIN = frozenset({State.FAILED, State.REJECTED})
_NOT_AGAIN = frozenset({State.WITHDRAWN, State.HIDDEN, State.REJECTED})
"""States in which the same content is not taken again."""


@dataclass(frozen=True)
class SubmissionIntake:
    """One account before the store."""

    store: Store  # where submissions are kept
    account: Account  # who submits
    clock: Callable[[], datetime]  # the current time, with a time zone
    by: str = ""  # key of who sends it in that account's name; empty: the account itself

    @cached_property
    def _ledger(self) -> Ledger:
        return Ledger(self.store)

    @property
    def _sender(self) -> str:
        return self.by or self.account.key

    def statuses(self) -> tuple[Status, ...]:
        """All submissions, private ones with their whole record but without their reasons."""
        return self._ledger.statuses_with_records()

    def visible(self) -> tuple[Submission, ...]:
        """What everyone can see, and whatever the account itself sent."""
        every = (status.submission for status in self.statuses())
        return tuple(s for s in every if not s.private or s.account == self.account.key)

    def check_not_banned(self) -> None:
        """Whether the account may submit at all."""
        check_not_banned(self.store.public, self.account)

    def known(self, identity: Identity, *, private: bool) -> SubmissionReceipt | None:
        """What is to be said of a submission that is here already; None where it is new.

        One that failed is queued again, and so is one that a ban kept out which is lifted.
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
        """What would be said of a submission if it came in now; nothing is kept or queued."""
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
        """Whether a submission may come in now, or again."""
        self.check_not_banned()
        statuses = self.statuses()
        self._check_allowance(identity.kind, statuses)
        _check_metrics_are_free(identity, statuses)
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
    ) -> SubmissionReceipt:
        """Keep and queue a new submission."""
        now = self.clock()
        events = [
            Event(at=now, state=State.RECEIVED, by=self._sender),
            Event(at=now, state=State.QUEUED, by=self._sender, reason=" ".join(notes)),
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
        self._check_not_banned_since(submission)
        return self._accepted(submission, notes)

    def _check_not_banned_since(self, submission: Submission) -> None:
        """A ban is another repository's, so that it may have come while this was received."""
        ban = read_bans(self.store.public).get(self.account.key)
        if ban is not None and not submission.private:

            def waits(status: Status) -> bool:
                return status.state is State.QUEUED

            with suppress(TransientError):  # A worker refuses it in its turn.
                self._ledger.append(submission.submission_id, [rejection(ban)], still=waits)
        self.check_not_banned()

    def _queue_again(self, before: Status, identity: Identity) -> None:
        reason = "sent again after a failure"
        if before.state is State.REJECTED:
            reason = "sent again after a ban was lifted"
        event = Event(at=self.clock(), state=State.QUEUED, by=self._sender, reason=reason)

        def is_as_before(status: Status) -> bool:
            self.check(identity)
            return status.state is before.state

        self._ledger.append(before.submission.submission_id, [event], still=is_as_before)

    def _check_allowance(self, kind: Kind, statuses: Sequence[Status]) -> None:
        check_allowance(self.store.public, self.account, kind, statuses, self.clock())

    def _accepted(
        self, submission: Submission, notes: Sequence[str], *, recognised: bool = False
    ) -> SubmissionReceipt:
        status = self._ledger.whole_status(submission.submission_id)
        return SubmissionReceipt(status, recognised, tuple(notes))


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


def _check_metrics_are_free(identity: Identity, statuses: Sequence[Status]) -> None:
    """An output of one module and another module could not be told apart on a board."""
    for status in statuses:
        other = status.submission
        if (
            (other.kind, other.account) != (identity.kind, identity.account)
            or other.name == identity.name
            or (status.state in _GONE and not status.on_boards)
        ):
            continue
        if taken := [name for name in identity.metrics if name in other.metrics]:
            raise SubmitterError(
                "metric_taken",
                f"You have a metric {', '.join(taken)} already: it is of {other.name}, "
                f"{other.submission_id}, which is {status.state}.",
                "Give the module or its output another name, or withdraw the earlier one.",
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


def same_content(
    kind: Kind, content_sha256: str, owner: str, statuses: Iterable[Status]
) -> tuple[str, ...]:
    """Ids of earlier submissions by others with the very same content."""
    if owner == ASSAY.key:
        return ()
    found = [
        status.submission
        for status in statuses
        if (status.submission.kind, status.submission.content_sha256) == (kind, content_sha256)
        and owner_of(status.submission) != owner
    ]
    public = tuple(s.submission_id for s in found if not s.private)
    return (*public, UNNAMED) if len(public) < len(found) else public
