"""Two boards of one benchmark, read from the store and compared: for the command and the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.errors import SubmitterError
from benchmarks.schema import Card, Selector
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.snapshot import Board, read_snapshot
from leaderboard.records import Status
from leaderboard.reevaluation.earlier_boards import EarlierBoard, earlier_tags, read_board
from leaderboard.reevaluation.editions import Edition
from leaderboard.reevaluation.moved import Movement, Ranking, movement
from leaderboard.store.interface import Repository, Store


@dataclass(frozen=True)
class Compared:
    """What moved, and between which boards.

    Attributes:
        card: the benchmark as it is now.
        earlier: the board before.
        later: the board after.
        movement: between the two.
    """

    card: Card
    earlier: EarlierBoard
    later: EarlierBoard
    movement: Movement

    @property
    def words(self) -> str:
        """What happened, in sentences."""
        told = self.movement.words(self.earlier.tag, self.later.tag)
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
    """Read two boards of a benchmark and compare them.

    Args:
        store: where they are.
        card: the benchmark.
        since: tag of the earlier one; empty: the latest that is kept.
        until: tag of the later one; empty: the current one.
        measure: to compare by; empty: the headline, or the nearest to it that both have.
        skill: of one skill; None: of all.

    Raises:
        SubmitterError: `no_earlier_board`, `unknown_edition`, `unknown_measure`.
    """
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
