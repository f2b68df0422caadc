"""Query of the comparison page: two metrics and a measure, to and from a link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, urlencode

from leaderboard.pages.boards.arrangement import Arrangement
from leaderboard.pages.boards.filters import Filters
from leaderboard.pages.boards.query import BoardQuery, Choice, resolve
from leaderboard.pages.reading import View
from leaderboard.pages.shown.markup import clean

_FURTHER = ("c", "d")
_LONGEST_NAMED = 60


@dataclass(frozen=True)
class CompareQuery:
    """The state of the page. Everything is as asked for, and may not exist.

    Attributes:
        board: benchmark, skill and measure.
        a: entry id of the one metric; empty means the best that is not the other.
        b: entry id of the other.
        further: entry ids of a third and a fourth; none unless they are asked for.
    """

    board: BoardQuery
    a: str = ""
    b: str = ""
    further: tuple[str, ...] = ()

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> CompareQuery:
        """Read from the query parameters of a request; unknown parameters are left alone."""
        asked = BoardQuery.from_params(params)
        board = BoardQuery(benchmark=asked.benchmark, skill=asked.skill, measure=asked.measure)
        further = tuple(params[name] for name in _FURTHER if params.get(name))
        return cls(board, params.get("a", ""), params.get("b", ""), further)

    @classmethod
    def from_link(cls, query: str) -> CompareQuery:
        """The inverse of `to_query`."""
        return cls.from_params({k: v[-1] for k, v in parse_qs(query.removeprefix("?")).items()})

    def to_query(self) -> str:
        """The query string of the link to this state, with its question mark."""
        given = {
            "benchmark": self.board.benchmark,
            "a": self.a,
            "b": self.b,
            **dict(zip(_FURTHER, self.further, strict=False)),
            "measure": self.board.measure,
            "skill": self.board.skill,
        }
        return "?" + urlencode({key: value for key, value in given.items() if value}, safe="~:,")


@dataclass(frozen=True)
class Opponents:
    """Two metrics on one board, and perhaps a third and a fourth.

    Attributes:
        choice: board, skill and measure.
        a: entry id of the one; None where there is none to show.
        b: of the other.
        options: entry ids that can be chosen, best first: those with all of the skills shown.
        remarks: what was asked for and could not be shown, in sentences.
        further: entry ids of the third and the fourth, where they are there and no others again.
    """

    choice: Choice
    a: str | None
    b: str | None
    options: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    further: tuple[str, ...] = ()

    @property
    def chosen(self) -> tuple[str, ...]:
        """All that are there, each once, in their order."""
        named = (self.a, self.b, *self.further)
        return tuple(dict.fromkeys(entry for entry in named if entry))

    @property
    def query(self) -> CompareQuery:
        """The exact state, for a link."""
        board = replace(self.choice.query, filters=Filters(), arranged=Arrangement())
        return CompareQuery(board, self.a or "", self.b or "", self.further)


def opponents(query: CompareQuery, view: View) -> Opponents:
    """Find what a query asks for, saying so wherever it is not there.

    Raises:
        PlatformError: `no_benchmarks` where the installation has none.
    """
    choice = resolve(query.board, view.boards)
    whose = [{cell.entry_id for cell in of} for of in choice.slices()]
    options = tuple(entry for entry in choice.entry_ids() if all(entry in of for of in whose))
    remarks = list(choice.remarks)
    found: list[str | None] = []
    for asked in (query.a, query.b):
        if not asked or asked in options:
            found.append(asked or None)
            continue
        remarks.append(_absent(asked, choice, view))
        found.append(None)
    a, b = found
    if not query.a:
        a = next((one for one in options if one != query.b), None)
    if not query.b:
        b = next((one for one in options if one != a), None)
    further = []
    for asked in dict.fromkeys(query.further):
        if asked in {a, b}:
            continue
        if asked in options:
            further.append(asked)
        else:
            remarks.append(_absent(asked, choice, view))
    return Opponents(choice, a, b, options, tuple(remarks), tuple(further))


def _absent(asked: str, choice: Choice, view: View) -> str:
    entry = view.entries.get(asked)
    shown = clean(entry.metric if entry else asked)
    named = shown if len(shown) <= _LONGEST_NAMED else f"{shown[:_LONGEST_NAMED]}…"
    if entry is None:
        return f"There is no metric with the id “{named}” here."
    title = choice.board.card.title
    return f"“{named}” has no result by this measure on {title} ({choice.title})."
