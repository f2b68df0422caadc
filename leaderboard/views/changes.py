"""Changes of a board between two revisions, chosen by a query."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from benchmarks.schema import Card, Selector
from leaderboard.ledger.editions import Edition
from leaderboard.publication.changes import Movement, Ranking, movement, standing
from leaderboard.publication.earlier_boards import EarlierBoards, Progress, progress, without
from leaderboard.publication.entries import Entry
from leaderboard.publication.measure_names import in_order, nearest, token
from leaderboard.publication.reader import BoardIndex, Reader, View
from leaderboard.states import State
from leaderboard.tables import Table, Type, Value, columns_of
from leaderboard.views.addresses import board_address, query_of, with_state
from leaderboard.views.boards import MEASURE, BoardQuery, benchmark_of
from leaderboard.views.parameters import parameter

CHANGES, EARLIER = "changes", "earlier"
VIEWS = (CHANGES, EARLIER)
"""Views of the tab of a benchmark that hold an earlier revision against another."""
Tags = Callable[[Card], tuple[str, ...]]


@dataclass(frozen=True)
class ChangesQuery:
    """Which revisions are compared. Everything is as asked for, and may not exist."""

    benchmark: str = parameter("Without: the first with an earlier board.", "demo_croc")
    since: str = parameter("Edition; without: the latest that is kept.", name="from")
    until: str = parameter("Edition; without: the one of now.", name="to")
    skill: str = parameter("Key of a skill. Without: all skills.")
    measure: str = parameter(MEASURE)

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> ChangesQuery:
        """Read from the query parameters of a request."""
        names = {"since": "from", "until": "to", "skill": "skill", "measure": "measure"}
        asked = {field: params.get(name, "") for field, name in names.items()}
        return cls(benchmark_of(params), **asked)

    def to_query(self) -> str:
        """The query string of the link to this state, with its question mark."""
        given = {"benchmark": self.benchmark, "from": self.since, "to": self.until,
                 "skill": self.skill, "measure": self.measure}  # fmt: skip
        return query_of(given, "~:,")


@dataclass(frozen=True)
class Side:
    """One of the two boards."""

    tag: str  # of its edition
    board: BoardIndex  # its values, by slice
    entries: Mapping[str, Entry]  # the metrics on it


@dataclass(frozen=True)
class Comparison:
    """What is compared."""

    query: ChangesQuery  # the exact state
    card: Card  # the benchmark as it is now
    tags: tuple[str, ...]  # the earlier boards there are, the latest first
    then: Side  # the earlier board
    now: Side  # the later one
    options: tuple[Selector, ...] = ()  # the measures that exist for the skill
    selector: Selector | None = None  # the one to compare by; None where neither board has any
    movement: Movement | None = None  # between the two; None likewise

    @property
    def skills(self) -> tuple[str, ...]:
        """The skills of either board."""
        return tuple(dict.fromkeys((*self.now.board.skills(), *self.then.board.skills())))


class Boards(Protocol):
    """Where the boards of now and the earlier ones are read; a `Context` is one."""

    @property
    def reader(self) -> Reader: ...  # noqa: D102
    @property
    def earlier(self) -> EarlierBoards: ...  # noqa: D102
    @property
    def cards(self) -> Mapping[str, Card]: ...  # noqa: D102


def with_earlier(view: View, cards: Mapping[str, Card], tags: Tags) -> list[str]:
    """The benchmarks of which an earlier board is kept."""
    return [name for name, card in cards.items() if name in view.boards and tags(card)]


def comparison(context: Boards, asked: ChangesQuery) -> Comparison | None:
    """What a query compares on this site; None where no earlier board of the benchmark is kept."""
    view, statuses, tags = context.reader.view(), context.reader.statuses(), context.earlier.tags
    names = with_earlier(view, context.cards, tags)
    if not names or (asked.benchmark and asked.benchmark not in names):
        return None
    card = context.cards[asked.benchmark or names[0]]
    # What an operator took away is shown nowhere; what was withdrawn did stand there.
    hidden = {s.submission.submission_id for s in statuses if s.state is State.HIDDEN}

    def side(tag: str) -> Side | None:
        found = context.earlier.board(card, tag)
        if found is None:
            return None
        shown = without(found, hidden)
        return Side(tag, BoardIndex(shown.board), shown.entries)

    known = tags(card)
    since = asked.since if asked.since in known else known[0]
    then, later = side(since), side(asked.until) if asked.until in known else None
    if then is None:
        return None
    now = later or Side(Edition.of_card(card).tag, view.boards[card.name], view.entries)
    query = replace(asked, benchmark=card.name, since=since, until=asked.until if later else "")
    return _by_measure(Comparison(query, card, known, then, now), standing(statuses))


def _by_measure(found: Comparison, standing: Container[str]) -> Comparison:
    card, then, now, asked = found.card, found.then, found.now, found.query
    skill = asked.skill if asked.skill in found.skills else None
    either = (*now.board.selectors(skill), *then.board.selectors(skill))
    options = in_order(card, tuple(dict.fromkeys(either)))
    if not options:
        return found
    named = next((one for one in options if token(one) == asked.measure), None)
    selector = named or nearest(card.headline, options, card)
    moved = movement(
        Ranking(then.board.cells(selector, skill), then.entries),
        Ranking(now.board.cells(selector, skill), now.entries),
        selector,
        skill,
        higher_is_better=card.higher_is_better(selector.measure),
        standing=standing,
    )
    exact = replace(asked, skill=skill or "", measure=token(selector))
    return replace(found, query=exact, options=options, selector=selector, movement=moved)


def changes_address(query: ChangesQuery, view: str = CHANGES) -> str:
    """The address of a state of the changes of a benchmark, or of its earlier board."""
    return with_state(
        board_address(query.benchmark, skill=query.skill, measure=query.measure),
        **{"view": view, "from": query.since, "to": query.until},
    )


def moved_address(benchmark: str, since: str = "") -> str:
    """The address of the changes of a benchmark since an edition."""
    return changes_address(ChangesQuery(benchmark, since))


def moved_data(query: ChangesQuery) -> str:
    """The address of the data of what moved."""
    return f"./v1/moved{query.to_query()}"


def board_of_query(query: ChangesQuery) -> str:
    """The address of the board of now, by the same measure."""
    return BoardQuery(query.benchmark, query.skill, query.measure).to_link()


def progress_of(context: Boards, benchmark: str, tag: str) -> Progress | None:
    """How much of an earlier board stands on the board of now; None where none is kept."""
    board = context.earlier.board(context.cards[benchmark], tag)
    if board is None:
        return None
    view = context.reader.view()
    index = view.boards[benchmark]
    current = {
        cell.entry_id for selector in index.selectors(None) for cell in index.cells(selector, None)
    }
    return progress(board, current, context.reader.statuses())


_SIDES = ("value", "ci_low", "ci_high", "rank", "rank_low", "rank_high")
_MOVED = (
    "metric", "from", "to", *(f"{name}_then" for name in _SIDES),
    *(f"{name}_now" for name in _SIDES), "difference", "rank_ranges_overlap", "entry_then",
    "entry_now",
)  # fmt: skip
_TYPES = {
    Type.NUMBER: " ".join(f"{n}_{side}" for n in _SIDES[:3] for side in ("then", "now"))
    + " difference",
    Type.COUNT: " ".join(f"{n}_{side}" for n in _SIDES[3:] for side in ("then", "now")),
    Type.FLAG: "rank_ranges_overlap",
}
_MEANINGS = {"difference": "Value now less value then; no test, since data or protocol differ."}


def moved_table(found: Comparison, about: Mapping[str, Any] | None = None) -> Table:
    """What is on screen, one row for each metric of both boards."""
    rows: list[dict[str, Value]] = []
    for row in found.movement.moved if found.movement else ():
        then, now = row.then.to_json(), row.now.to_json()
        rows.append(
            {
                "metric": row.after.metric, "from": found.then.tag, "to": found.now.tag,
                **{f"{name}_then": then[name] for name in _SIDES},
                **{f"{name}_now": now[name] for name in _SIDES},
                "difference": row.difference, "rank_ranges_overlap": row.ranks_overlap,
                "entry_then": row.before.entry_id, "entry_now": row.after.entry_id,
            }
        )  # fmt: skip
    return Table(
        f"{found.card.name}-moved", columns_of(_MOVED, _TYPES, _MEANINGS), rows, about or {}
    )
