"""The place where submissions are sent and followed: forms, own submissions, queue and quota."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from benchmarks.errors import AssayError
from benchmarks.schema import Card
from leaderboard.accounts import Account
from leaderboard.governance.quota import QuotaUse, quota_use
from leaderboard.governance.rights import Own, actions, roles
from leaderboard.ledger.policy import Ban, Policy
from leaderboard.publication.measure_names import info
from leaderboard.records import Kind, Status
from leaderboard.replay import without_renewals
from leaderboard.store.live.interface import Heartbeat, Live
from leaderboard.submission_service import ValidationReport
from leaderboard.text import count, duration
from leaderboard.views.changes import Boards, moved_address
from leaderboard.views.submissions import (
    Earlier,
    Moment,
    Queue,
    QueueEstimate,
    Row,
    SubmissionView,
    alive,
    measured_s,
    outlooks,
    queue_of,
    row_of,
    submission_view,
)

MOST_OWN = 12  # Rows of own submissions beside the forms; the one that is open is among them
MOST_BESIDE = 6  # Rows of each group of the queue beside the forms
_LONGEST_ID = 100


class Sources(Boards, Protocol):
    """Where submissions, boards and workers are read."""

    @property
    def live(self) -> Live: ...  # noqa: D102

    @property
    def clock(self) -> Callable[[], datetime]: ...  # noqa: D102

    @property
    def own(self) -> Callable[[Account], Own]: ...  # noqa: D102


@dataclass(frozen=True)
class SubmitQuery:
    """What the address asks for."""

    kind: Kind = Kind.METRIC  # the form that is open
    submission_id: str = ""  # the submission that is open; empty for none

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> SubmitQuery:
        """Read the query of a request; what makes no sense is left out."""
        kind = str(params.get("kind", ""))
        known = Kind(kind) if kind in set(Kind) else Kind.METRIC
        return cls(known, str(params.get("id", ""))[:_LONGEST_ID])


@dataclass(frozen=True)
class Place:
    """Everything beside the forms, for one visitor."""

    own: tuple[Row, ...]  # the visitor's submissions, newest first
    beyond: int  # how many of them are not listed
    queue: Queue  # everybody's
    chosen: SubmissionView | None  # the submission that is open; None where none is
    unknown: str  # the id that was asked for and is none; empty otherwise
    standings: tuple[QuotaUse, ...]  # what the account has used of its quota
    policy: Policy  # what accounts may have
    now: datetime  # the moment of display

    @property
    def busy(self) -> bool:
        """Whether any of it changes by itself."""
        open_ = self.chosen is not None and not self.chosen.final
        return open_ or self.queue.busy or any(row.status.unfinished for row in self.own)


@dataclass(frozen=True)
class BoardEntry:
    """A board that a submission would enter."""

    title: str
    measures: tuple[str, ...]
    scopes: tuple[str, ...]
    pairs: int | None


def place_of(
    sources: Sources,
    account: Account | None,
    submission_id: str = "",
    *,
    everybody: bool = False,
    most: int = MOST_BESIDE,
) -> Place:
    """Own submissions, the queue, the quota, and the submission that is open."""
    now, pulses = sources.clock(), sources.live.pulses()
    whole = sources.own(account).statuses() if account else ()
    mine = [s for s in whole if account and s.submission.account == account.key]
    every = whole if everybody and account and account.operator else sources.reader.statuses()
    words = everybody and account is not None and account.operator
    titles = {name: card.title for name, card in sources.cards.items()}
    turns = _outlooks(sources, pulses, whole)
    isolation = sources.reader.isolation()
    moment = Moment(pulses, now, titles, turns, isolation, words=words)
    chosen = _chosen(sources, account, submission_id, whole, moment) if submission_id else None
    newest = list(reversed(mine))
    policy = sources.reader.policy()
    return Place(
        own=tuple(row_of(status, moment) for status in newest[:MOST_OWN]),
        beyond=max(0, len(newest) - MOST_OWN),
        queue=queue_of(every, moment, most=most, commit_wait_min=sources.reader.commit_wait_min()),
        chosen=chosen,
        unknown="" if chosen or not submission_id else submission_id,
        standings=quota_use(account.key, mine, policy, now) if account else (),
        policy=policy,
        now=now,
    )


def ban_of(sources: Sources, account: Account | None) -> Ban | None:
    """Why an account may not submit; None where it may."""
    return sources.reader.bans().get(account.key) if account else None


def last_seen(pulses: Sequence[Heartbeat]) -> datetime | None:
    """When a worker was last heard of."""
    return max((pulse.at for pulse in pulses), default=None)


def boards_of(
    cards: Mapping[str, Card], titles: Mapping[str, str], found: ValidationReport
) -> tuple[BoardEntry, ...]:
    """The boards that a checked submission would enter."""
    pairs = found.plan.pairs if found.plan else {}
    entries = []
    for name in found.benchmarks:
        card = cards.get(name)
        if card is None:
            entries.append(BoardEntry(titles.get(name, name), (), (), pairs.get(name)))
            continue
        measures = tuple(info(card, measure).title for measure in card.measures)
        scopes = (*card.splits.values(), *card.skills.values())
        entries.append(BoardEntry(card.title, measures, scopes, pairs.get(name)))
    return tuple(entries)


def work_words(kind: Kind, found: ValidationReport) -> str:
    """What a worker does with a submission of a kind."""
    if kind is Kind.SCORES:
        return "Computes the measures from the file; no code is run."
    if kind is Kind.GENERATIONS:
        return (
            "Scores every image with the qualified metrics of the prompt set, then ranks the model."
        )
    boards = count(len(found.benchmarks), "benchmark")
    return (
        f"Runs the untrusted code isolated and without network on {boards}, checks that scores "
        "depend on the pair alone, then computes the measures."
    )


def wait_words(sources: Sources, kind: Kind) -> str:
    """How many are ahead in the queue, and what a run took so far; nothing is made up."""
    now, pulses = sources.clock(), sources.live.pulses()
    every = sources.reader.statuses()
    each_s = measured_s(sources.reader.view().entries.values())
    ahead = len(outlooks(every, pulses, now, each_s))
    parts = [f"{count(ahead, 'submission')} ahead"]
    living = [p for p in alive(pulses, now) if p.isolation_ok or kind is Kind.SCORES]
    if not living:
        parts.append("no worker that takes it is running")
    if kind is Kind.METRIC and each_s is not None:
        parts.append(f"scoring took {duration(each_s)} in the median of published metrics")
    return "; ".join(parts)


def _outlooks(
    sources: Sources, pulses: Sequence[Heartbeat], whole: Iterable[Status]
) -> dict[str, QueueEstimate]:
    """Of all that wait; in public, a private submission is nobody's."""
    known = {status.submission.submission_id: status for status in whole}
    every = [known.get(s.submission.submission_id, s) for s in sources.reader.statuses()]
    each_s = measured_s(sources.reader.view().entries.values())
    return outlooks(every, pulses, sources.clock(), each_s)


def _chosen(
    sources: Sources,
    account: Account | None,
    submission_id: str,
    whole: Sequence[Status],
    moment: Moment,
) -> SubmissionView | None:
    status = next((s for s in whole if s.submission.submission_id == submission_id), None)
    earlier = tuple(
        Earlier(
            tag,
            tuple(_earlier_board(sources, name, tag) for name in names),
            f"python -m evaluator report {submission_id} --revision {tag}",
        )
        for tag, names in sources.earlier.old_results(submission_id).items()
    )
    if account is None or status is None or not roles(status, account):
        every = sources.reader.statuses()
        status = next((s for s in every if s.submission.submission_id == submission_id), None)
        if status is None:
            return None
        return submission_view(
            status,
            without_renewals(sources.reader.events(submission_id)),
            replace(moment, words=False),
            runs=sources.reader.runs(submission_id),
            statuses=every,
            earlier=earlier,
        )
    own = sources.own(account)
    found = own.status(submission_id)
    return submission_view(
        found,
        without_renewals(own.events(submission_id)),
        replace(moment, words=True),
        runs=own.results(submission_id) if found.scored_at else (),
        statuses=[s for s in whole if s.submission.account == found.submission.account],
        earlier=earlier,
        mine=True,
        author=found.submission.account == account.key,
        log=_log(sources.live, submission_id) if found.unfinished else "",
        actions=actions(found, account),
    )


def _log(live: Live, submission_id: str) -> str | None:
    try:
        return live.log_end(submission_id)
    except (OSError, AssayError):
        return None


def _earlier_board(sources: Sources, name: str, tag: str) -> tuple[str, str]:
    card = sources.cards.get(name)
    if card is None or tag not in sources.earlier.tags(card):
        return name, ""
    return card.title, moved_address(name, tag)
