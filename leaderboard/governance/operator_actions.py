"""Actions of authors and operators on submissions, accounts and the policy.

Each act is one atomic public commit, with the snapshot in it where boards change and a line in the
chronicle. Who may do what, and when, is checked against the state the commit is based on.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from benchmarks.errors import SubmitterError
from benchmarks.schema import Card
from leaderboard.accounts import ASSAY, Account, is_key
from leaderboard.governance.rights import Action, Role, require, require_operator, roles
from leaderboard.ledger.audit_log import BAN, JUDGES, POLICY, UNBAN, LogDraft
from leaderboard.ledger.cleanup import tidy
from leaderboard.ledger.judge_pins import ANY, OVERALL, PATH, Pin, Pins, read_pins
from leaderboard.ledger.ledger import Batch, Ledger, nothing_further
from leaderboard.ledger.policy import (
    MOST_ALLOWED,
    POLICY_PATH,
    Ban,
    Policy,
    bans_file,
    read_bans,
    rejection,
)
from leaderboard.ledger.private_records import submission_file
from leaderboard.ledger.versions import Further, restoring, superseding
from leaderboard.publication.publisher import Publisher
from leaderboard.publication.results import AT, Published, held_results, read_results, with_draws
from leaderboard.records import Event, RunResult, Status, Submission
from leaderboard.states import CLEARED, WAITING, State
from leaderboard.store.interface import Changes, Store, transact
from leaderboard.store.pending_changes import PendingChanges

MOST_CHARS = 500
AT_ONCE = 100
"""Submissions in one commit; each has its own file of events."""


def checked_reason(reason: str, *, otherwise: str = "") -> str:
    """A reason in one line, without characters that steer a terminal or the order of letters."""
    text = " ".join("".join(map(_plain, reason)).split()) or otherwise
    if not text:
        raise SubmitterError(
            "reason_missing", "No reason is given.", "Say why in a sentence; everyone can read it."
        )
    if len(text) > MOST_CHARS:
        raise SubmitterError(
            "reason_too_long",
            f"The reason has {len(text)} characters.",
            f"Say it in at most {MOST_CHARS}.",
        )
    return text


def _plain(character: str) -> str:
    if character in "\t\r\n" or unicodedata.category(character) in ("Zl", "Zp"):
        return " "
    return "" if unicodedata.category(character).startswith("C") else character


class OperatorActions:
    """Everything that is done by somebody's decision."""

    def __init__(
        self,
        store: Store,  # where submissions are
        cards: Mapping[str, Card],  # the benchmarks that have boards
        clock: Callable[[], datetime],  # the current time, with a time zone
    ) -> None:
        self._store = store
        self._cards = dict(cards)
        self._clock = clock
        self._ledger = Ledger(store)
        self._publisher = Publisher(store, cards)

    # With submissions. All raise SubmitterError: `unknown_submission`, and those of
    # `rights.require`; all return the status with its whole record.

    def withdraw(self, submission_id: str, by: Account, reason: str = "") -> Status:
        """Take a submission back for good; older versions it stood for come back."""
        own = Role.OWNER in roles(self._ledger.whole_status(submission_id), by)
        who = "its author" if own else "an operator"
        text = checked_reason(reason, otherwise=f"Withdrawn by {who}.")
        return self._take_off(submission_id, Action.WITHDRAW, State.WITHDRAWN, by, text)

    def hide(self, submission_id: str, by: Account, reason: str) -> Status:
        """Take a submission off the boards, with a reason that is shown."""
        text = checked_reason(reason)
        return self._take_off(submission_id, Action.HIDE, State.HIDDEN, by, text)

    def show(self, submission_id: str, by: Account, reason: str = "") -> Status:
        """Undo `hide`: a submission is published or held again, as it was before.

        If a newer version has taken its place meanwhile, it is superseded at once.
        """
        text = checked_reason(reason, otherwise="Shown again by an operator.")

        def event(status: Status, now: datetime) -> Event:
            state = State.HELD if status.submission.private else State.PUBLISHED
            return Event(at=now, state=state, by=by.key, reason=text)

        return self._move(submission_id, Action.SHOW, by, event, further=superseding)

    def rerun(self, submission_id: str, by: Account, reason: str) -> Status:
        """Have a submission scored again; until then its results stay where they are."""
        text = checked_reason(reason)

        def event(_: Status, now: datetime) -> Event:
            return Event(at=now, state=State.QUEUED, by=by.key, reason=text)

        return self._move(submission_id, Action.RERUN, by, event)

    def clear(self, submission_id: str, by: Account, reason: str) -> Status:
        """Clear a published submission of the suspicion of a lookup, so that it may rank."""
        require_operator(by, "clear a submission")
        text = checked_reason(reason)

        def batch() -> Batch:
            now, status = self._clock(), self._ledger.whole_status(submission_id)
            results = read_results(self._store, status.submission)
            suspected = any(report.suspected for one in results for report in one.reports)
            if status.state is not State.PUBLISHED or status.cleared or not suspected:
                raise SubmitterError(
                    "nothing_to_clear",
                    f"{submission_id} is {status.state}, and no lookup is suspected of it now.",
                    "`python -m evaluator status` lists what is published, its page what is suspected.",
                )
            before = self._ledger.statuses()
            event = Event(at=now, state=State.PUBLISHED, by=by.key, code=CLEARED, reason=text)

            def files(after: Sequence[Status]) -> Changes:
                return self._boards(before, after, now, Publication())

            return Batch(events={submission_id: [event]}, files=files)

        self._ledger.write(batch, f"clear {submission_id}")
        return self._ledger.whole_status(submission_id)

    def failed_by_us(self) -> tuple[Status, ...]:
        """Submissions that failed, but not by their author's fault; oldest first."""
        return self._ledger.whole_statuses(_failed_by_us)

    def rerun_failed_by_us(self, by: Account, reason: str) -> tuple[Status, ...]:
        """Have all of them scored again, as `rerun` has one; none twice."""
        require_operator(by, "rerun submissions")
        text = checked_reason(reason)
        found = [status.submission.submission_id for status in self.failed_by_us()]
        queued: dict[str, Status] = {}
        for start in range(0, len(found), AT_ONCE):

            def batch(some: Sequence[str] = found[start : start + AT_ONCE]) -> Batch:
                event = Event(at=self._clock(), state=State.QUEUED, by=by.key, reason=text)
                left = [name for name in some if _failed_by_us(self._ledger.status(name))]
                return Batch(events={name: [event] for name in left})

            queued |= self._ledger.write(batch, "rerun what failed by the platform's fault")
        return tuple(map(self._ledger.whole_status, queued))

    def publish(self, submission_id: str, by: Account) -> Status:
        """Put the held results of a private submission on the boards, under its whole record."""

        def event(_: Status, now: datetime) -> Event:
            return Event(at=now, state=State.PUBLISHED, by=by.key)

        def new(status: Status) -> Publication:
            return publication(self._store, status.submission, self._cards)

        return self._move(submission_id, Action.PUBLISH, by, event, further=superseding, new=new)

    def _take_off(
        self, submission_id: str, action: Action, state: State, by: Account, reason: str
    ) -> Status:
        def event(_: Status, now: datetime) -> Event:
            return Event(at=now, state=state, by=by.key, reason=reason)

        return self._move(submission_id, action, by, event, further=restoring)

    def _move(
        self,
        submission_id: str,
        action: Action,
        by: Account,
        event: Callable[[Status, datetime], Event],
        *,
        further: Callable[[str, datetime, str], Further] = lambda *_: nothing_further,
        new: Callable[[Status], Publication] = lambda _: Publication(),
    ) -> Status:
        """One act on one submission, allowed and computed anew after each lost race."""

        def batch() -> Batch:
            now = self._clock()
            status = self._ledger.whole_status(submission_id)
            require(action, status, by)
            published = new(status)
            before = self._ledger.statuses()

            def files(after: Sequence[Status]) -> Changes:
                return {**published.files, **self._boards(before, after, now, published)}

            return Batch(
                events={submission_id: [event(status, now)]},
                records=published.records,
                further=further(submission_id, now, by.key),
                files=files,
            )

        tidy(self._store, submission_id)  # What a crash within an earlier act may have left.
        self._ledger.write(batch, f"{action} {submission_id}")
        tidy(self._store, submission_id)
        return self._ledger.whole_status(submission_id)

    def _boards(
        self, before: Sequence[Status], after: Sequence[Status], now: datetime, new: Publication
    ) -> Changes:
        """The snapshot, if what is on the boards changes."""
        if _on_boards(before) == _on_boards(after):
            return {}
        return self._publisher.snapshot_files(now, after, new.runs)

    # With accounts and the policy. All raise SubmitterError: `not_signed_in`, `not_operator`,
    # and those of `checked_reason`.

    def ban(self, account_key: str, by: Account, reason: str) -> Ban:
        """Bar an account from submitting. What it has waiting is rejected with the reason.

        What is being worked on or published stays; it can be withdrawn or hidden. What waits
        privately fails when its turn comes: moved with the ban, it would show whose it is.
        """
        require_operator(by, "ban an account")
        _check_bannable(account_key, by)
        text = checked_reason(reason)
        ban = Ban(account=account_key, reason=text, by=by.key, at=self._clock())

        def batch() -> Batch:
            bans = read_bans(self._store.public)
            if account_key in bans:
                raise SubmitterError(
                    "already_banned",
                    f"{account_key} is banned already: {bans[account_key].reason}",
                )
            file = bans_file({**bans, account_key: ban})
            deed = _deed(BAN, account_key, ban)
            return Batch(events=self._rejected(ban), files=lambda _: file, deeds=[deed])

        self._ledger.write(batch, f"ban {account_key}")
        return ban

    def unban(self, account_key: str, by: Account, reason: str) -> None:
        """Let an account submit again, what was rejected by the ban included."""
        require_operator(by, "lift a ban")
        text = checked_reason(reason)
        lifted = Ban(account=account_key, reason=text, by=by.key, at=self._clock())

        def batch() -> Batch:
            bans = read_bans(self._store.public)
            if bans.pop(account_key, None) is None:
                raise SubmitterError("not_banned", f"{account_key[:120]!r} is not banned.")
            file = bans_file(bans)
            return Batch(files=lambda _: file, deeds=[_deed(UNBAN, account_key, lifted)])

        self._ledger.write(batch, f"unban {account_key}")

    def set_policy(self, policy: Policy, by: Account, reason: str) -> Policy:
        """Change what accounts are allowed."""
        require_operator(by, "change the policy")
        text = checked_reason(reason)
        if policy.largest > MOST_ALLOWED:
            raise SubmitterError(
                "bad_policy",
                f"A quota is larger than {MOST_ALLOWED:,}.",
                "Set a smaller one.",
            )
        content = policy.model_dump_json(indent=1).encode()
        deed = LogDraft(self._clock(), by.key, POLICY, "policy", content, text)
        batch = Batch(files=lambda _: {POLICY_PATH: content}, deeds=[deed])
        self._ledger.write(lambda: batch, "policy")
        return policy

    def _rejected(self, ban: Ban) -> dict[str, list[Event]]:
        """What a ban does to public submissions that wait and were never scored.

        Of a private one a worker lets go when its turn comes (`Claims.check_not_banned`).
        """
        return {
            status.submission.submission_id: [rejection(ban)]
            for status in self._ledger.statuses_with_records()
            if status.submission.account == ban.account
            and not status.submission.private
            and status.state in WAITING
            and status.scored_at is None
        }


def _failed_by_us(status: Status) -> bool:
    return status.state is State.FAILED and status.fault in ("platform", "world")


def _on_boards(statuses: Sequence[Status]) -> set[tuple[str, bool, str]]:
    return {
        (s.submission.submission_id, s.submission.private, s.cleared)
        for s in statuses
        if s.on_boards
    }


def _check_bannable(account_key: str, by: Account) -> None:
    if not is_key(account_key) or account_key in (by.key, ASSAY.key):
        raise SubmitterError(
            "bad_account",
            f"{account_key[:120]!r} is no account that {by.key} could ban.",
            "Give another's key as a submission shows it, for example hub:ada.",
        )


def _deed(action: str, account_key: str, ban: Ban) -> LogDraft:
    return LogDraft(ban.at, ban.by, action, account_key, ban.record, ban.reason)


@dataclass(frozen=True)
class Publication:
    """What a commit makes public."""

    # the whole record of what is published, by id
    records: Mapping[str, Submission] = field(default_factory=dict)
    # its results and its record, as public files
    files: Mapping[str, bytes] = field(default_factory=dict)
    runs: Sequence[Published] = ()  # its results, for the boards


def publication(store: Store, held: Submission, cards: Mapping[str, Card]) -> Publication:
    """Prepare the publication of a private submission.

    What must stay private of its results (where a benchmark's answers are) is copied to its place
    there first: the boards read it from the moment of the public commit. Without that commit
    nothing reads it.
    """
    record = held.model_copy(update={"private": False})
    public, private = held_results(store, held, cards)
    if private:
        message = f"draws of private answers of {held.submission_id}"
        transact(store.private, lambda: private, message)
    later = Store(PendingChanges(store.public, public), store.private, store.live)
    results = [
        RunResult.model_validate_json(content)
        for path, content in public.items()
        if path.endswith(".json") and f"/{AT}" not in path
    ]
    return Publication(
        records={held.submission_id: record},
        files={**public, **submission_file(record)},
        runs=[with_draws(later, record, result, cards) for result in results],
    )


def pin(store: Store, wanted: Pin, by: Account, known: Mapping[str, Card]) -> Pin:
    """Put a decision in force; an earlier one about the same is replaced."""
    require_operator(by, "decide who judges models")
    _check(wanted, known)
    reason = checked_reason(wanted.reason)
    made = wanted.model_copy(update={"reason": reason, "by": by.key, "at": store.clock()})
    _write(store, lambda pins: pins.with_pin(made), by, made, reason)
    return made


def unpin(store: Store, about: Pin, by: Account, reason: str) -> None:
    """Let the rule decide again."""
    require_operator(by, "decide who judges models")
    text = checked_reason(reason)

    def change(pins: Pins) -> Pins:
        if about.about not in {one.about for one in pins.pins}:
            raise SubmitterError(
                "not_pinned",
                f"Nothing is decided of {about.metric[:120]!r} on {about.prompt_set} ({about.skill}).",
                "`python -m evaluator judges SET` lists what is.",
            )
        return pins.without([about.about])

    _write(store, change, by, about, text)


def _check(wanted: Pin, known: Mapping[str, Card]) -> None:
    """Refuse a decision about what does not exist: it would never hold, and nobody would see why."""
    if wanted.prompt_set == ANY:
        skills = {skill for card in known.values() for skill in card.skills}
    elif wanted.prompt_set in known:
        skills = set(known[wanted.prompt_set].skills)
    else:
        raise SubmitterError(
            "unknown_prompt_set",
            f"There is no prompt set {wanted.prompt_set[:80]!r}.",
            f"Prompt sets: {', '.join(known)}; {ANY} means every one.",
        )
    if wanted.skill not in (ANY, OVERALL, *skills):
        raise SubmitterError(
            "unknown_skill",
            f"{wanted.prompt_set} has no skill {wanted.skill[:80]!r}.",
            f"Skills: {', '.join(sorted(skills))}; {OVERALL} is all prompts, {ANY} every one.",
        )


def _write(
    store: Store, change: Callable[[Pins], Pins], by: Account, about: Pin, reason: str
) -> None:
    def batch() -> Batch:
        content = change(read_pins(store.public)).model_dump_json(indent=1).encode()
        deed = LogDraft(store.clock(), by.key, JUDGES, about.metric, content, reason)
        return Batch(files=lambda _: {PATH: content}, deeds=[deed])

    Ledger(store).write(batch, f"judges {about.metric}"[:120])
