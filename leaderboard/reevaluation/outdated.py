"""Submissions with results of an older edition than their benchmarks', and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.schema import Card
from leaderboard.records import Kind, Status
from leaderboard.reevaluation.editions import Edition, scores_stand
from leaderboard.reevaluation.history import History, latest
from leaderboard.states import State

NEW_REVISION = "new_revision"
NEW_SCORER = "new_scorer"
NEW_PROTOCOL = "new_protocol"
OTHER_REVISION = "other_revision"
"""Code of a scores file that no new result can be made of."""

EditionOf = Callable[[Status, str], Edition | None]
"""What the latest result of a submission on a benchmark was made with; None: there is none."""


class Act(StrEnum):
    """What is done with a submission that has outdated results."""

    RERUN = "rerun"
    """It is scored again: by its code, or for a scores file by reading it again."""
    REJUDGE = "rejudge"
    """Its measures are computed again from the scores that are kept; no code is run."""
    TELL = "tell"
    """Its author is told to send other scores; nothing else can be done."""


@dataclass(frozen=True)
class Change:
    """One benchmark whose result is outdated.

    Attributes:
        benchmark: which.
        before: what the result was made with; None where there is none.
        after: what the benchmark has now.
        scores_stand: whether the scores behind the result answer its questions still.
    """

    benchmark: str
    before: Edition | None
    after: Edition
    scores_stand: bool = False

    @property
    def code(self) -> str:
        """What changed, in one word."""
        if self.before is None or self.before.revision != self.after.revision:
            return NEW_REVISION
        if self.before.contract not in (None, self.after.contract):
            return NEW_SCORER
        return NEW_PROTOCOL

    @property
    def words(self) -> str:
        """As people are told."""
        if self.before is None:
            return f"{self.benchmark} has no result yet"
        if self.before.words == self.after.words:
            return f"{self.benchmark} is at {self.after.words}"
        return f"{self.benchmark} is now at {self.after.words} (was {self.before.words})"


@dataclass(frozen=True)
class Outdated:
    """One submission with outdated results.

    Attributes:
        status: of the submission, with its whole record.
        changes: the benchmarks concerned, in the submission's order.
        act: what is to be done.
    """

    status: Status
    changes: tuple[Change, ...]
    act: Act

    @property
    def submission_id(self) -> str:
        """Of the submission."""
        return self.status.submission.submission_id

    @property
    def code(self) -> str:
        """What changed; where several things did, what weighs most."""
        if self.act is Act.TELL:
            return OTHER_REVISION
        codes = {change.code for change in self.changes}
        return next(c for c in (NEW_REVISION, NEW_SCORER, NEW_PROTOCOL) if c in codes)

    @property
    def words(self) -> str:
        """Why it is run again, or what stays as it is."""
        what = "; ".join(change.words for change in self.changes)
        if self.act is Act.TELL:
            return f"{what}. These scores are for the earlier one and stay with it."
        if self.act is Act.REJUDGE:
            return f"{what}. Measures are computed again from the scores that are kept."
        return f"{what}. It is run again there; its other results stay."

    @property
    def hint(self) -> str:
        """What its author can do."""
        if self.act is not Act.TELL:
            return ""
        sent = "; ".join(
            f"python -m evaluator submit SCORES_FILE --benchmark {change.benchmark}"
            for change in self.changes
        )
        return f"Score the pairs of the new revision and send them: {sent}"


def outdated(
    status: Status, cards: Mapping[str, Card], edition_of: EditionOf, history: History
) -> Outdated | None:
    """What is outdated of a submission, and what to do about it; None where nothing is.

    Args:
        status: of the submission, with its whole record.
        cards: the benchmarks known here, of this moment's editions.
        edition_of: of its results.
        history: of editions; what failed since an edition came is not tried again by itself.
    """
    if not _finished_with_results(status):
        return None
    changes = tuple(_changes(status, cards, edition_of))
    if status.state is State.FAILED:
        changes = tuple(c for c in changes if not _tried(status, c, history))
    if not changes:
        return None
    found = Outdated(status, changes, _act(status, changes))
    said = found.act is Act.TELL and (
        status.state is State.FAILED or (status.code, status.reason) == (found.code, found.words)
    )
    return None if said else found


def forced(status: Status, cards: Mapping[str, Card], edition_of: EditionOf) -> Outdated | None:
    """A submission whose scorer has changed outside of it; None where it cannot be run again."""
    if not _finished_with_results(status) or status.submission.kind is not Kind.METRIC:
        return None
    known = [name for name in status.submission.benchmarks if name in cards]
    changes = tuple(_change(status, cards[name], edition_of) for name in known)
    return Outdated(status, changes, Act.RERUN) if changes else None


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


def _act(status: Status, changes: tuple[Change, ...]) -> Act:
    stand = all(change.scores_stand for change in changes)
    if status.submission.kind is Kind.SCORES:
        missing = all(change.before is None for change in changes)
        return Act.RERUN if stand or missing else Act.TELL
    # A failed submission goes the whole way again: what failed may have been its judging.
    return Act.REJUDGE if stand and status.state is not State.FAILED else Act.RERUN
