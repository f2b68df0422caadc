"""Changes of a board between two revisions."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import scipy

from benchmarks.errors import SubmitterError
from benchmarks.schema import Card, Selector
from leaderboard.ledger.editions import Edition
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.earlier_boards import EarlierBoard, earlier_tags, read_board
from leaderboard.publication.entries import Entry
from leaderboard.publication.snapshot import Board, read_snapshot
from leaderboard.ranking.cells import Cell
from leaderboard.records import Status
from leaderboard.store.interface import Repository, Store


@dataclass(frozen=True)
class BoardPlace:
    """One metric on one of the boards."""

    value: float | None  # of the measure; None where it is undefined
    low: float | None  # lower end of its 95 % interval, or None
    high: float | None  # the upper end
    rank: int | None  # None where it has none
    rank_low: int | None  # best rank of its range
    rank_high: int | None  # worst rank of its range

    @classmethod
    def of(cls, cell: Cell) -> BoardPlace:
        """As a cell says."""
        return cls(cell.value, cell.ci_low, cell.ci_high, cell.rank, cell.rank_low, cell.rank_high)

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "value": self.value,
            "ci_low": self.low,
            "ci_high": self.high,
            "rank": self.rank,
            "rank_low": self.rank_low,
            "rank_high": self.rank_high,
        }


@dataclass(frozen=True)
class MetricChange:
    """One metric on both boards."""

    before: Entry  # its entry on the earlier board
    after: Entry  # its entry on the later one; another submission where a new version came
    then: BoardPlace  # where it stood
    now: BoardPlace  # where it stands
    higher_is_better: bool = True  # of the measure

    @property
    def difference(self) -> float | None:
        """The value now less the value then; None where either is undefined."""
        if self.then.value is None or self.now.value is None:
            return None
        return self.now.value - self.then.value

    @property
    def better(self) -> bool | None:
        """Whether the value rose in the sense of the measure; None where it is the same."""
        found = self.difference
        if not found:
            return None
        return (found > 0) is self.higher_is_better

    @property
    def intervals_overlap(self) -> bool | None:
        """Whether the two intervals have a value in common; None where one is missing."""
        return _overlap(self.then.low, self.then.high, self.now.low, self.now.high)

    @property
    def ranks_overlap(self) -> bool | None:
        """Whether the two rank ranges have a rank in common; None where one is missing."""
        return _overlap(
            self.then.rank_low, self.then.rank_high, self.now.rank_low, self.now.rank_high
        )

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "metric": self.after.metric,
            "version_before": self.before.version,
            "version_after": self.after.version,
            "entry_before": self.before.entry_id,
            "entry_after": self.after.entry_id,
            "before": self.then.to_json(),
            "after": self.now.to_json(),
            "difference": self.difference,
            "intervals_overlap": self.intervals_overlap,
            "rank_ranges_overlap": self.ranks_overlap,
        }


@dataclass(frozen=True)
class Movement:
    """Two boards of a benchmark against each other, by one measure."""

    selector: Selector  # the measure
    skill: str | None  # of one skill; None: of all
    moved: tuple[MetricChange, ...]  # metrics on both boards, in the order of the later one
    came: tuple[Entry, ...]  # entries on the later board alone, in its order
    # entries on the earlier board alone whose submissions still stand, in its order: they are not
    # evaluated again yet, or cannot be
    waiting: tuple[Entry, ...]
    left: tuple[Entry, ...]  # the others on the earlier board alone
    # tau-b between the values of the metrics on both; None below two, or where all values of a
    # board are equal
    kendall: float | None

    def summary(self, then: str, now: str) -> str:
        """What happened, in sentences."""
        both = len(self.moved)
        parts = [f"From {then} to {now}: {_metrics(both)} on both boards."]
        if both:
            apart = sum(one.ranks_overlap is False for one in self.moved)
            said = f"Of {_metrics(apart)}" if apart else "Of no metric"
            parts.append(f"{said} the rank ranges then and now have no rank in common.")
        if self.kendall is not None:
            parts.append(f"Kendall's \u03c4-b between the two orders is {self.kendall:.2f}.")
        if self.came or self.left:
            parts.append(f"{len(self.came)} came, {len(self.left)} left.")
        if self.waiting:
            is_one = len(self.waiting) == 1
            parts.append(f"{_metrics(len(self.waiting))} {'is' if is_one else 'are'} not here yet.")
        return " ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            **self.selector.model_dump(),
            "skill": self.skill,
            "kendall_tau_b": self.kendall,
            "moved": [one.to_json() for one in self.moved],
            "came": [entry.entry_id for entry in self.came],
            "waiting": [entry.entry_id for entry in self.waiting],
            "left": [entry.entry_id for entry in self.left],
        }


class Ranking(NamedTuple):
    """One slice of a board."""

    cells: Sequence[Cell]  # its cells, best first
    entries: Mapping[str, Entry]  # the metrics on the board, by entry id

    def pairs(self) -> list[tuple[Entry, Cell]]:
        """Every cell with its metric."""
        return [(self.entries[c.entry_id], c) for c in self.cells if c.entry_id in self.entries]


def movement(
    then: Ranking,
    now: Ranking,
    selector: Selector,
    skill: str | None = None,
    *,
    higher_is_better: bool = True,
    standing: Container[str] = (),
) -> Movement:
    """Compare the same slice of two boards of one benchmark.

    A metric is the same one on both where its submission is, or where one account's newer version
    of it has taken its place.
    """
    old, new = then.pairs(), now.pairs()
    pairs = _matched([entry for entry, _ in old], [entry for entry, _ in new])
    before = {entry.entry_id: (entry, BoardPlace.of(cell)) for entry, cell in old}
    moved: list[MetricChange] = []
    for entry, cell in new:
        if entry.entry_id in pairs:
            was, stood = before[pairs[entry.entry_id]]
            moved.append(MetricChange(was, entry, stood, BoardPlace.of(cell), higher_is_better))
    matched = set(pairs.values())
    alone = [entry for entry, _ in old if entry.entry_id not in matched]
    return Movement(
        selector,
        skill,
        tuple(moved),
        tuple(entry for entry, _ in new if entry.entry_id not in pairs),
        tuple(entry for entry in alone if entry.submission_id in standing),
        tuple(entry for entry in alone if entry.submission_id not in standing),
        _kendall(moved),
    )


def _matched(old: Sequence[Entry], new: Sequence[Entry]) -> dict[str, str]:
    """Entry id on the later board to that of the same metric on the earlier one."""
    before = {entry.entry_id for entry in old}
    found = {entry.entry_id: entry.entry_id for entry in new if entry.entry_id in before}
    left = [entry for entry in old if entry.entry_id not in found]
    for entry in new:
        own = [o for o in left if entry.entry_id not in found and _versions(o, entry)]
        if own:
            latest = max(own, key=lambda one: one.received_at)
            found[entry.entry_id] = latest.entry_id
            left.remove(latest)
    return found


def _versions(old: Entry, new: Entry) -> bool:
    """Whether two entries are versions of one metric."""
    return new.account != "" and (old.account, old.kind, old.metric) == (
        new.account,
        new.kind,
        new.metric,
    )


def _kendall(moved: Sequence[MetricChange]) -> float | None:
    both = [
        (one.then.value, one.now.value)
        for one in moved
        if one.then.value is not None and one.now.value is not None
    ]
    if len(both) < 2:
        return None
    found = scipy.stats.kendalltau([then for then, _ in both], [now for _, now in both])
    tau = float(found.statistic)
    return None if math.isnan(tau) else tau


def _overlap(
    low: float | None, high: float | None, other_low: float | None, other_high: float | None
) -> bool | None:
    if low is None or high is None or other_low is None or other_high is None:
        return None
    return low <= other_high and other_low <= high


def _metrics(number: int) -> str:
    return "1 metric" if number == 1 else f"{number} metrics"


@dataclass(frozen=True)
class Compared:
    """What moved, and between which boards."""

    card: Card  # the benchmark as it is now
    earlier: EarlierBoard  # the board before
    later: EarlierBoard  # the board after
    movement: Movement  # between the two

    @property
    def summary(self) -> str:
        """What happened, in sentences."""
        told = self.movement.summary(self.earlier.tag, self.later.tag)
        return f"{self.card.title}, {self.movement.selector.measure}. {told}"

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "benchmark": self.card.name,
            "from": self.earlier.tag,
            "to": self.later.tag,
            **self.movement.to_json(),
        }


def compared(
    store: Store,
    card: Card,
    *,
    since: str = "",
    until: str = "",
    measure: str = "",
    skill: str | None = None,
) -> Compared:
    """Read two boards of a benchmark and compare them."""
    public = store.public
    tags = earlier_tags(public, card.name, card)
    if not tags:
        raise SubmitterError(
            "no_earlier_board",
            f"No board of an earlier revision of {card.name} is kept.",
            "One is kept as soon as a new revision takes its place.",
        )
    current = current_board(public, card)
    earlier = _board(public, card, since or tags[0], tags, current)
    later = _board(public, card, until, tags, current) if until else current
    selector = _selector(card, earlier.board, later.board, measure, skill)
    found = movement(
        Ranking(earlier.board.slice(selector, skill), earlier.entries),
        Ranking(later.board.slice(selector, skill), later.entries),
        selector,
        skill,
        higher_is_better=card.higher_is_better(selector.measure),
        standing=standing(Ledger(store).statuses()),
    )
    return Compared(card, earlier, later, found)


def standing(statuses: Iterable[Status]) -> frozenset[str]:
    """Ids of the submissions that are on the boards."""
    return frozenset(s.submission.submission_id for s in statuses if s.on_boards)


def current_board(public: Repository, card: Card) -> EarlierBoard:
    """The board of a benchmark as it is now; one without metrics where none is published."""
    shown, edition = read_snapshot(public), Edition.of_card(card)
    board = shown.boards.get(card.name) if shown else None
    if shown is None or board is None or Edition.of_card(board.card) != edition:
        return EarlierBoard(edition.tag, Board(card, ()), {})
    return EarlierBoard(edition.tag, board, shown.entries)


def _board(
    public: Repository, card: Card, tag: str, tags: Sequence[str], current: EarlierBoard
) -> EarlierBoard:
    if tag == current.tag:
        return current
    found = read_board(public, card.name, tag) if tag in tags else None
    if found is None:
        raise SubmitterError(
            "unknown_edition",
            f"No board {tag[:80]!r} of {card.name} is kept.",
            f"Kept are: {', '.join(tags)}.",
        )
    return found


def _selector(
    card: Card, earlier: Board, later: Board, measure: str, skill: str | None
) -> Selector:
    then, now = _measured(earlier, skill), _measured(later, skill)
    options = tuple(dict.fromkeys((*(one for one in now if one in then), *now, *then)))
    if not measure and (card.headline in options or not options):
        return card.headline
    fitting = [one for one in options if not measure or one.measure == measure]
    if not fitting:
        known: Mapping[str, None] = dict.fromkeys(one.measure for one in options)
        raise SubmitterError(
            "unknown_measure",
            f"Neither board of {card.name} has the measure {measure[:80]!r}.",
            f"They have: {', '.join(known)}.",
        )
    return fitting[0]


def _measured(board: Board, skill: str | None) -> tuple[Selector, ...]:
    return tuple(
        Selector(measure=measure, variant=variant, split=split, facet=facet)
        for measure, variant, split, facet, of in board.keys
        if of == skill and measure is not None
    )
