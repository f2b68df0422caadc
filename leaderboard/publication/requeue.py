"""Requeue of submissions whose results are outdated."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from benchmarks.schema import Card
from leaderboard.accounts import ASSAY
from leaderboard.ledger.audit_log import LogDraft
from leaderboard.ledger.editions import (
    ANNOUNCED,
    NEW_PROTOCOL,
    NEW_REVISION,
    NEW_SCORER,
    OTHER_REVISION,
    Announced,
    Edition,
    History,
    history_file,
    is_past,
    latest,
    looked_file,
    read_history,
    read_looked,
    scores_stand,
)
from leaderboard.ledger.ledger import Batch, Ledger
from leaderboard.publication.earlier_boards import archived_board
from leaderboard.publication.results import read_result
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.records import Event, Kind, Status
from leaderboard.states import TO_JUDGE, State
from leaderboard.store.interface import Store, transact

EditionOf = Callable[[Status, str], Edition | None]
"""What the latest result of a submission on a benchmark was made with; None: there is none."""


class RequeueAction(StrEnum):
    """What is done with a submission that has outdated results."""

    RERUN = "rerun"
    """It is scored again: by its code, or for a scores file by reading it again."""
    REJUDGE = "rejudge"
    """Its measures are computed again from the scores that are kept; no code is run."""
    TELL = "tell"
    """Its author is told to send other scores; nothing else can be done."""


@dataclass(frozen=True)
class Change:
    """One benchmark whose result is outdated."""

    benchmark: str  # which
    before: Edition | None  # what the result was made with; None where there is none
    after: Edition  # what the benchmark has now
    scores_stand: bool = False  # whether the scores behind the result answer its questions still

    @property
    def code(self) -> str:
        """What changed, in one word."""
        if self.before is None or self.before.revision != self.after.revision:
            return NEW_REVISION
        if self.before.contract not in (None, self.after.contract):
            return NEW_SCORER
        return NEW_PROTOCOL

    @property
    def summary(self) -> str:
        """As people are told."""
        if self.before is None:
            return f"{self.benchmark} has no result yet"
        if self.before.label == self.after.label:
            return f"{self.benchmark} is at {self.after.label}"
        return f"{self.benchmark} is now at {self.after.label} (was {self.before.label})"


@dataclass(frozen=True)
class Outdated:
    """One submission with outdated results."""

    status: Status  # of the submission, with its whole record
    changes: tuple[Change, ...]  # the benchmarks concerned, in the submission's order
    act: RequeueAction  # what is to be done

    @property
    def submission_id(self) -> str:
        """Of the submission."""
        return self.status.submission.submission_id

    @property
    def code(self) -> str:
        """What changed; where several things did, what weighs most."""
        if self.act is RequeueAction.TELL:
            return OTHER_REVISION
        codes = {change.code for change in self.changes}
        return next(c for c in (NEW_REVISION, NEW_SCORER, NEW_PROTOCOL) if c in codes)

    @property
    def summary(self) -> str:
        """Why it is run again, or what stays as it is."""
        what = "; ".join(change.summary for change in self.changes)
        if self.act is RequeueAction.TELL:
            return f"{what}. These scores are for the earlier one and stay with it."
        if self.act is RequeueAction.REJUDGE:
            return f"{what}. Measures are computed again from the scores that are kept."
        return f"{what}. It is run again there; its other results stay."

    @property
    def hint(self) -> str:
        """What its author can do."""
        if self.act is not RequeueAction.TELL:
            return ""
        sent = "; ".join(
            f"python -m evaluator submit SCORES_FILE --benchmark {change.benchmark}"
            for change in self.changes
        )
        return f"Score the pairs of the new revision and send them: {sent}"


def outdated(
    status: Status, cards: Mapping[str, Card], edition_of: EditionOf, history: History
) -> Outdated | None:
    """What is outdated of a submission, and what to do about it; None where nothing is."""
    if not _finished_with_results(status):
        return None
    changes = tuple(_changes(status, cards, edition_of))
    if status.state is State.FAILED:
        changes = tuple(c for c in changes if not _tried(status, c, history))
    if not changes:
        return None
    found = Outdated(status, changes, _act(status, changes))
    said = found.act is RequeueAction.TELL and (
        status.state is State.FAILED or (status.code, status.reason) == (found.code, found.summary)
    )
    return None if said else found


def forced(status: Status, cards: Mapping[str, Card], edition_of: EditionOf) -> Outdated | None:
    """A submission whose scorer has changed outside of it; None where it cannot be run again."""
    if not _finished_with_results(status) or status.submission.kind is not Kind.METRIC:
        return None
    known = [name for name in status.submission.benchmarks if name in cards]
    changes = tuple(_change(status, cards[name], edition_of) for name in known)
    return Outdated(status, changes, RequeueAction.RERUN) if changes else None


def _finished_with_results(status: Status) -> bool:
    if status.state in (State.PUBLISHED, State.HELD):
        return True
    return status.state is State.FAILED and status.scored_at is not None


def _changes(status: Status, cards: Mapping[str, Card], edition_of: EditionOf) -> Iterable[Change]:
    for name in status.submission.benchmarks:
        card = cards.get(name)
        if card is None:
            continue
        change = _change(status, card, edition_of)
        if change.before is None or not change.before.fits(change.after):
            yield change


def _change(status: Status, card: Card, edition_of: EditionOf) -> Change:
    made, after = edition_of(status, card.name), Edition.of_card(card)
    return Change(card.name, made, after, made is not None and scores_stand(made, card))


def _tried(status: Status, change: Change, history: History) -> bool:
    """Whether it failed after this edition was announced, so that it was tried already."""
    announced = latest(history, change.benchmark)
    return (
        announced is not None and announced.edition == change.after and status.since >= announced.at
    )


def _act(status: Status, changes: tuple[Change, ...]) -> RequeueAction:
    stand = all(change.scores_stand for change in changes)
    if status.submission.kind is Kind.SCORES:
        missing = all(change.before is None for change in changes)
        return RequeueAction.RERUN if stand or missing else RequeueAction.TELL
    # A failed submission goes the whole way again: what failed may have been its judging.
    return (
        RequeueAction.REJUDGE if stand and status.state is not State.FAILED else RequeueAction.RERUN
    )


BATCH = 100  # Submissions in one commit; each has its own file of events
_MARK_AFTER = 50
"""So many unchanged submissions are looked at again before the mark is worth a commit."""
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RequeueRequest:
    """What is to be evaluated again."""

    benchmark: str = ""  # only what is outdated on this one; empty: on all
    # all public submissions of code of this name, outdated or not; empty: what is outdated
    scorer: str = ""
    by: str = ASSAY.key  # who asks; a worker asks as Assay itself
    reason: str = ""  # further words for everybody; may be empty

    @property
    def by_itself(self) -> bool:
        """Whether nobody asked for it."""
        return self == RequeueRequest()


@dataclass(frozen=True)
class Reevaluation:
    """What is, or would be, evaluated again."""

    found: tuple[Outdated, ...] = ()  # every submission concerned
    # in sentences: benchmarks whose edition here is older than the store's, and private submissions
    # that were asked for by name
    passed_over: tuple[str, ...] = ()
    looked_at: int = field(default=0, compare=False)  # how many submissions had their results read


def plan(
    store: Store, cards: Mapping[str, Card], wanted: RequeueRequest | None = None
) -> Reevaluation:
    """Find what is to be evaluated again; writes nothing."""
    wanted = wanted or RequeueRequest()
    history = read_history(store.public)
    known, passed_over = _not_past(cards, history)
    if wanted.benchmark:
        known = {name: card for name, card in known.items() if name == wanted.benchmark}
    editions = {name: Edition.of_card(card) for name, card in known.items()}
    looked = read_looked(store.public) if wanted.by_itself else None

    def worth_a_look(status: Status) -> bool:
        return looked is None or not looked.covers(status.since, editions)

    editions_of = _Editions(store)
    statuses = Ledger(store).whole_statuses(worth_a_look)
    found: Iterable[Outdated | None]
    if wanted.scorer:
        named = [s for s in statuses if s.submission.name == wanted.scorer]
        # The chronicle names the scorer: beside it, no private submission may be seen to move.
        passed_over += _private_ones(named)
        public = (status for status in named if not status.submission.private)
        found = (forced(status, known, editions_of) for status in public)
    else:
        found = (outdated(status, known, editions_of, history) for status in statuses)
    return Reevaluation(tuple(one for one in found if one), passed_over, len(statuses))


def requeue(
    store: Store,
    cards: Mapping[str, Card],
    wanted: RequeueRequest | None = None,
    *,
    batch: int = BATCH,
) -> Reevaluation:
    """Queue what is to be evaluated again; see `plan`."""
    wanted = wanted or RequeueRequest()
    started = store.clock()
    planned = plan(store, cards, wanted)
    for warning in planned.passed_over:
        log.warning("%s", warning)
    for start in range(0, len(planned.found), batch):
        _Requeuing(store, wanted, planned.found[start : start + batch]).write()
    if wanted.by_itself:
        _mark(store, cards, planned, started)
    return planned


@dataclass(frozen=True)
class _Requeuing:
    """One commit."""

    store: Store
    wanted: RequeueRequest
    found: Sequence[Outdated]

    def write(self) -> None:
        names = f"{len(self.found)} submissions"
        Ledger(self.store).write(self._batch, f"evaluate {names} again")

    def _batch(self) -> Batch:
        ledger, now = Ledger(self.store), self.store.clock()
        left = [one for one in self.found if _unmoved(ledger, one)]
        if not left:
            return Batch()
        history = read_history(self.store.public)
        new = [] if self.wanted.scorer else _announcements(left, history, self.wanted, now)
        deeds = [_deed(one) for one in new]
        if self.wanted.scorer:
            deeds.append(_scorer_deed(left, self.wanted, now))
        files = {**history_file(history, new), **self._boards(new)} if new else {}
        return Batch(
            events={one.submission_id: [event_of(one, self.wanted, now)] for one in left},
            files=lambda _: files,
            deeds=deeds,
        )

    def _boards(self, new: Sequence[Announced]) -> dict[str, bytes]:
        """The boards of the editions that are over, to be looked at from now on."""
        public, found = self.store.public, dict[str, bytes]()
        shown = read_snapshot(public)
        for one in new:
            if shown is not None and one.before is not None:
                found |= archived_board(public, shown, one.benchmark, one.before)
        return found


def event_of(found: Outdated, wanted: RequeueRequest, now: datetime) -> Event:
    """What happens to a submission with outdated results."""
    told = f"{found.summary} {wanted.reason}".strip()
    if found.act is RequeueAction.TELL:
        return Event(
            at=now,
            state=found.status.state,
            by=wanted.by,
            code=found.code,
            reason=found.summary,
            hint=found.hint,
        )
    rejudged = found.act is RequeueAction.REJUDGE
    return Event(
        at=now,
        state=State.SCORED if rejudged else State.QUEUED,
        by=wanted.by,
        code=TO_JUDGE if rejudged else NEW_SCORER if wanted.scorer else found.code,
        reason=told,
        benchmarks=tuple(change.benchmark for change in found.changes),
    )


def _announcements(
    found: Iterable[Outdated], history: History, wanted: RequeueRequest, now: datetime
) -> list[Announced]:
    """The editions these submissions are run again for and nobody has announced yet."""
    new: dict[str, Announced] = {}
    for one in found:
        for change in one.changes:
            before = latest(history, change.benchmark)
            said = before is not None and before.edition == change.after
            if said or change.before is None or change.benchmark in new:
                continue
            new[change.benchmark] = Announced(
                benchmark=change.benchmark,
                before=before.edition if before else change.before,
                edition=change.after,
                at=now,
                by=wanted.by,
                reason=f"{change.summary}. {wanted.reason}".strip(),
            )
    return list(new.values())


def _deed(one: Announced) -> LogDraft:
    return LogDraft(one.at, one.by, ANNOUNCED, one.benchmark, one.record, one.reason)


def _scorer_deed(found: Sequence[Outdated], wanted: RequeueRequest, now: datetime) -> LogDraft:
    names = ", ".join(one.submission_id for one in found)
    said = f"The scorer {wanted.scorer} has changed: {names}. {wanted.reason}".strip()
    return LogDraft(now, wanted.by, NEW_SCORER, wanted.scorer[:80], said.encode(), said)


def _unmoved(ledger: Ledger, found: Outdated) -> bool:
    """Whether nothing happened to a submission since its results were looked at."""
    now = ledger.status(found.submission_id)
    return (now.state, now.since) == (found.status.state, found.status.since)


def _not_past(
    cards: Mapping[str, Card], history: History
) -> tuple[dict[str, Card], tuple[str, ...]]:
    """The benchmarks that are not older here than in the store, and sentences about the others."""
    known: dict[str, Card] = {}
    past: list[str] = []
    for name, card in cards.items():
        edition, last = Edition.of_card(card), latest(history, name)
        if last is not None and is_past(history, name, edition):
            past.append(
                f"{name} is at {edition.label} here, and this store has gone on to "
                f"{last.edition.label}: nothing is evaluated again for it. Update this "
                "installation."
            )
        else:
            known[name] = card
    return known, tuple(past)


def _private_ones(named: Sequence[Status]) -> tuple[str, ...]:
    """A sentence about submissions whose name is not public; none where there are none."""
    held = ", ".join(s.submission.submission_id for s in named if s.submission.private)
    how = "private, so not run again by name. Have each of them run: python -m evaluator rerun"
    return (f"{held}: {how}",) if held else ()


class _Editions:
    """What results were made with: as the snapshot says, which is one file for all of them.

    A result is read where the snapshot has it not as it is now, as of what is held.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        shown = read_snapshot(store.public)
        self._origins = shown.origins if shown else {}

    def __call__(self, status: Status, benchmark: str) -> Edition | None:
        origin = self._origins.get(status.submission.submission_id)
        if origin is not None and origin.since == status.since:
            run = origin.runs.get(benchmark)
            return run.edition if run else None
        result = read_result(self._store, status.submission, benchmark)
        return Edition.of_result(result) if result else None


def _mark(
    store: Store, cards: Mapping[str, Card], planned: Reevaluation, started: datetime
) -> None:
    """Note what was looked at, where that saves more than the commit costs."""
    known, _ = _not_past(cards, read_history(store.public))
    editions = {name: Edition.of_card(card) for name, card in known.items()}
    looked = read_looked(store.public)
    tags = {name: edition.tag for name, edition in editions.items()}
    other = bool(planned.found) or (looked.editions != tags if looked else planned.looked_at > 0)
    if other or planned.looked_at > _MARK_AFTER:
        transact(
            store.public, lambda: looked_file(started, editions), "what was looked at for editions"
        )
