"""Query of the item browser: to and from a link, resolved to what exists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args
from urllib.parse import urlencode

from benchmarks.schema import Card
from leaderboard.pages.items.cases import CaseSet
from leaderboard.pages.reading import BoardIndex, View
from leaderboard.pages.shown.markup import clean
from leaderboard.pages.shown.measures import in_order

Show = Literal["failures", "disagreements", "all"]
SHOWS: tuple[Show, ...] = get_args(Show)
PER_PAGE = 12
ALL_SPLITS = "all"
"""In a link from a board; it means the same as none."""
_LONGEST = 300
_LONGEST_NAMED = 60


@dataclass(frozen=True)
class ItemsQuery:
    """The state of the item browser. Everything is as asked for, and may not exist.

    Attributes:
        benchmark: registry name; empty means the first with results.
        skill: key of a skill; empty for all.
        split: key of a split; empty for all.
        a: entry id; empty means the one that ranks first.
        b: entry id to hold against it; empty for none.
        show: one of `SHOWS`; empty means failures.
        case: id of the one case that is looked at; empty for a list.
        page: of the list, from 1.
    """

    benchmark: str = ""
    skill: str = ""
    split: str = ""
    a: str = ""
    b: str = ""
    show: str = ""
    case: str = ""
    page: int = 1

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> ItemsQuery:
        """Read an address; unknown parameters are left alone."""
        names = ("benchmark", "skill", "split", "a", "b", "show", "case")
        given = {name: str(params.get(name, ""))[:_LONGEST] for name in names}
        page = str(params.get("page", "1"))
        usable = page.isascii() and page.isdecimal() and len(page) < 8
        return cls(**given, page=max(1, int(page)) if usable else 1)

    def to_link(self, **changes: str | int) -> str:
        """The address of this view, or of one that differs from it; not escaped for HTML yet."""
        after = replace(self, **changes)  # type: ignore[arg-type]
        given = {name: str(value) for name, value in vars(after).items() if value}
        if after.page == 1:
            del given["page"]
        return f"./items?{urlencode(given, safe='~:,/')}"


@dataclass(frozen=True)
class Choice:
    """What is shown: a query resolved against what exists.

    Attributes:
        card: the benchmark.
        query: the exact state, for links.
        entries: ids of all metrics on the board, best first.
        a: the metric that is looked at; empty where the board has none.
        b: the one it is held against; empty for none.
        show: which cases are listed.
        skills: the skills that cases have.
        splits: the splits that cases are in.
        remarks: what was asked for and could not be shown, in sentences.
    """

    card: Card
    query: ItemsQuery
    entries: tuple[str, ...]
    a: str
    b: str
    show: Show
    skills: tuple[str, ...]
    splits: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Entry ids of those that are looked at: one or two."""
        return tuple(entry for entry in (self.a, self.b) if entry)


def board_of(query: ItemsQuery, view: View) -> tuple[BoardIndex | None, str]:
    """The board that is asked for, or another and a remark; None where there is no benchmark."""
    boards = view.boards
    first = next((board for board in boards.values() if not board.empty), None)
    first = first or next(iter(boards.values()), None)
    if not query.benchmark or query.benchmark in boards:
        return boards.get(query.benchmark, first), ""
    return first, f"There is no benchmark “{_named(query.benchmark)}” here."


def resolve(
    query: ItemsQuery, board: BoardIndex, cases: CaseSet | None, remarks: Sequence[str] = ()
) -> Choice:
    """Find what a query asks for, saying so wherever something else is shown instead.

    Args:
        query: as asked for.
        board: of the benchmark that is shown.
        cases: of it; None where it has none.
        remarks: what was said before.
    """
    said, entries = list(remarks), entries_on(board)
    a = _entry(query.a, entries, said) or (entries[0] if entries else "")
    b = _entry(query.b, entries, said)
    if b and b == a:
        said.append("A metric is not held against itself; choose another as B.")
        b = ""
    skills = _skills(board.card, cases)
    splits = cases.every_split if cases else ()
    skill = _known(query.skill, skills, "skill", said)
    split = _known("" if query.split == ALL_SPLITS else query.split, splits, "split", said)
    case = _known(query.case, cases.comparisons.case_ids if cases else (), "case", said)
    show = _show(query.show, b, said)
    exact = ItemsQuery(board.card.name, skill, split, a, b, show, case, query.page)
    return Choice(board.card, exact, entries, a, b, show, skills, splits, tuple(said))


def entries_on(board: BoardIndex) -> tuple[str, ...]:
    """Entry ids of the metrics on a board, best first by what it is ordered by."""
    every = board.every_selector()
    if not every:
        return ()
    overall = in_order(board.card, board.selectors(None) or every)
    cells = board.cells(overall[0], None if board.selectors(None) else board.skills()[0])
    return tuple(dict.fromkeys(cell.entry_id for cell in cells))


def _skills(card: Card, cases: CaseSet | None) -> tuple[str, ...]:
    found = cases.every_skill if cases else ()
    listed = [skill for skill in card.skills if skill in found]
    return (*listed, *(skill for skill in found if skill not in card.skills))


def _show(asked: str, b: str, remarks: list[str]) -> Show:
    show = next((one for one in SHOWS if one == asked), None)
    if asked and show is None:
        remarks.append(f"There is nothing called “{_named(asked)}” to show.")
    if show == "disagreements" and not b:
        remarks.append("Disagreements need a second metric; choose one as B.")
        return "failures"
    return show or ("disagreements" if b else "failures")


def _entry(asked: str, entries: Sequence[str], remarks: list[str]) -> str:
    return _known(asked, entries, "metric", remarks)


def _known(asked: str, known: Sequence[str], what: str, remarks: list[str]) -> str:
    if not asked or asked in known:
        return asked
    remarks.append(f"There is no {what} “{_named(asked)}” on this benchmark.")
    return ""


def _named(asked: str) -> str:
    shown = clean(asked)
    return shown if len(shown) <= _LONGEST_NAMED else f"{shown[:_LONGEST_NAMED]}…"
