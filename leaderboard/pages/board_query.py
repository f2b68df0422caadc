"""What of the boards is being looked at: from and to a link, and onto what exists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from benchmarks.errors import PlatformError
from benchmarks.schema import Selector
from leaderboard.pages.measures import in_order, nearest, skill_title, title, token
from leaderboard.pages.reading import BoardIndex


@dataclass(frozen=True)
class BoardQuery:
    """The state of the boards page. Everything is as asked for, and may not exist.

    Attributes:
        benchmark: registry name; empty means the first one with results.
        skill: skill key; empty means all skills.
        measure: `measures.token` of a selector, or the bare name of a measure; empty means the
            headline.
    """

    benchmark: str = ""
    skill: str = ""
    measure: str = ""

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> BoardQuery:
        """Read from the query parameters of a request; unknown parameters are left alone."""
        return cls(
            benchmark=params.get("benchmark", ""),
            skill=params.get("skill", ""),
            measure=params.get("measure", ""),
        )

    def to_query(self) -> str:
        """The query string of the link to this state, with its question mark."""
        given = {
            "benchmark": self.benchmark,
            "skill": self.skill,
            "measure": self.measure,
        }
        return "?" + urlencode({key: value for key, value in given.items() if value}, safe="~:")


@dataclass(frozen=True)
class Choice:
    """What is shown: a query resolved against what exists.

    Attributes:
        board: the board.
        skill: the skill; None means all.
        selector: the measure; None where the board is empty.
        options: the measures that exist for that skill, headline first.
        remarks: what was asked for and could not be shown, in sentences.
    """

    board: BoardIndex
    skill: str | None
    selector: Selector | None
    options: tuple[Selector, ...]
    remarks: tuple[str, ...] = ()

    @property
    def query(self) -> BoardQuery:
        """The exact state, for a link."""
        return BoardQuery(
            benchmark=self.board.card.name,
            skill=self.skill or "",
            measure=token(self.selector) if self.selector else "",
        )


def resolve(query: BoardQuery, boards: Mapping[str, BoardIndex]) -> Choice:
    """Find what a query asks for, saying so wherever something else must be shown instead.

    Raises:
        PlatformError: `no_benchmarks` where the installation has none.
    """
    if not boards:
        raise PlatformError("no_benchmarks", "This installation has no benchmarks.")
    remarks: list[str] = []
    first = next((n for n, b in boards.items() if not b.empty), next(iter(boards)))
    name = query.benchmark or first
    if name not in boards:
        remarks.append(f"There is no benchmark “{name}” here.")
        name = first
    board = boards[name]
    skill = query.skill or None
    if skill is not None and not board.selectors(skill):
        if not board.empty:
            remarks.append(f"No results by the skill “{skill}” on {board.card.title}.")
        skill = None
    skill = skill if board.selectors(skill) or not board.skills() else board.skills()[0]
    options = in_order(board.card, board.selectors(skill))
    if not options:
        return Choice(board, skill, None, (), tuple(remarks))
    selector, remark = _selector(query.measure, board, skill, options)
    return Choice(board, skill, selector, options, (*remarks, *remark))


def _selector(
    wanted: str, board: BoardIndex, skill: str | None, options: tuple[Selector, ...]
) -> tuple[Selector, tuple[str, ...]]:
    for option in options:
        if wanted in {"", token(option)}:
            return option, ()
    named = [option for option in options if option.measure == wanted]
    if named:
        return named[0], ()
    everywhere = board.every_selector()
    asked = next((s for s in everywhere if token(s) == wanted), None)
    if asked is None:
        return options[0], (f"There is no measure “{wanted}” on {board.card.title}.",)
    found = nearest(asked, options, board.card)
    remark = (
        f"“{title(board.card, asked, everywhere)}” is not reported for "
        f"{skill_title(board.card, skill)}; shown instead: “{title(board.card, found, everywhere)}”."
    )
    return found, (remark,)
