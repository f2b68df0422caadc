"""Queues what new editions concern: one commit for each batch of submissions.

Each commit says in the chronicle what changed from what to what, and then moves the submissions.
Whether a submission still needs it is checked against the state the commit is based on, so that two
workers starting at once, or one that is killed in the middle, queue nothing twice.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from benchmarks.schema import Card
from leaderboard.governance.accounts import ASSAY
from leaderboard.ledger.batch import Batch
from leaderboard.ledger.chronicle_writing import Deed
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.results import read_result
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.records import Event, Status
from leaderboard.reevaluation.earlier_boards import archived_board
from leaderboard.reevaluation.editions import Edition
from leaderboard.reevaluation.history import (
    ANNOUNCED,
    Announced,
    History,
    history_file,
    is_past,
    latest,
    looked_file,
    read_history,
    read_looked,
)
from leaderboard.reevaluation.outdated import NEW_SCORER, Act, Outdated, forced, outdated
from leaderboard.states import TO_JUDGE, State
from leaderboard.store.interface import Store, transact

BATCH = 100
"""Submissions in one commit; each has its own file of events."""
_MARK_AFTER = 50
"""So many unchanged submissions are looked at again before the mark is worth a commit."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Wanted:
    """What is to be evaluated again.

    Attributes:
        benchmark: only what is outdated on this one; empty: on all.
        scorer: all public submissions of code of this name, outdated or not; empty: what is outdated.
        by: who asks; a worker asks as Assay itself.
        reason: further words for everybody; may be empty.
    """

    benchmark: str = ""
    scorer: str = ""
    by: str = ASSAY.key
    reason: str = ""

    @property
    def by_itself(self) -> bool:
        """Whether nobody asked for it."""
        return self == Wanted()


@dataclass(frozen=True)
class Reevaluation:
    """What is, or would be, evaluated again.

    Attributes:
        found: every submission concerned.
        passed_over: in sentences: benchmarks whose edition here is older than the store's, and
            private submissions that were asked for by name.
        looked_at: how many submissions had their results read.
    """

    found: tuple[Outdated, ...] = ()
    passed_over: tuple[str, ...] = ()
    looked_at: int = field(default=0, compare=False)


def plan(store: Store, cards: Mapping[str, Card], wanted: Wanted | None = None) -> Reevaluation:
    """Find what is to be evaluated again; writes nothing.

    Args:
        store: where the submissions are.
        cards: the benchmarks known here.
        wanted: what is asked for; None: all that is outdated and was not looked at before.
    """
    wanted = wanted or Wanted()
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
    store: Store, cards: Mapping[str, Card], wanted: Wanted | None = None, *, batch: int = BATCH
) -> Reevaluation:
    """Queue what is to be evaluated again; see `plan`.

    Raises:
        TransientError: the store cannot be written now; what was queued stays so.
    """
    wanted = wanted or Wanted()
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
    wanted: Wanted
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


def event_of(found: Outdated, wanted: Wanted, now: datetime) -> Event:
    """What happens to a submission with outdated results."""
    told = f"{found.words} {wanted.reason}".strip()
    if found.act is Act.TELL:
        return Event(
            at=now,
            state=found.status.state,
            by=wanted.by,
            code=found.code,
            reason=found.words,
            hint=found.hint,
        )
    rejudged = found.act is Act.REJUDGE
    return Event(
        at=now,
        state=State.SCORED if rejudged else State.QUEUED,
        by=wanted.by,
        code=TO_JUDGE if rejudged else NEW_SCORER if wanted.scorer else found.code,
        reason=told,
        benchmarks=tuple(change.benchmark for change in found.changes),
    )


def _announcements(
    found: Iterable[Outdated], history: History, wanted: Wanted, now: datetime
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
                reason=f"{change.words}. {wanted.reason}".strip(),
            )
    return list(new.values())


def _deed(one: Announced) -> Deed:
    return Deed(one.at, one.by, ANNOUNCED, one.benchmark, one.record, one.reason)


def _scorer_deed(found: Sequence[Outdated], wanted: Wanted, now: datetime) -> Deed:
    names = ", ".join(one.submission_id for one in found)
    said = f"The scorer {wanted.scorer} has changed: {names}. {wanted.reason}".strip()
    return Deed(now, wanted.by, NEW_SCORER, wanted.scorer[:80], said.encode(), said)


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
                f"{name} is at {edition.words} here, and this store has gone on to "
                f"{last.edition.words}: nothing is evaluated again for it. Update this "
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
