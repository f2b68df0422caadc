"""Query of the boards page: to and from a link, resolved to what exists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qs, urlencode

from benchmarks.errors import PlatformError
from benchmarks.schema import Card, Selector
from leaderboard.pages.boards.arrangement import Arrangement
from leaderboard.pages.boards.columns import every_key
from leaderboard.pages.boards.filters import Filters
from leaderboard.pages.reading import BoardIndex
from leaderboard.pages.shown.markup import clean
from leaderboard.pages.shown.measures import in_order, nearest, skill_title, title, token
from leaderboard.ranking.cells import Cell

BETWEEN_SKILLS = ","
"""Joins the skills of a link; a parameter `skill` may come several times as well."""
_MOST_NAMED = 3
_LONGEST_NAMED = 60


@dataclass(frozen=True)
class BoardQuery:
    """The state of the boards page. Everything is as asked for, and may not exist.

    Attributes:
        benchmark: registry name; empty means the first one with results.
        skill: skill keys joined by commas; empty means all skills.
        measure: `measures.token` of a selector, or the bare name of a measure; empty means the
            headline.
        filters: which entries are shown.
        arranged: further columns, pinned rows, sorting and page.
    """

    benchmark: str = ""
    skill: str = ""
    measure: str = ""
    filters: Filters = field(default_factory=Filters)
    arranged: Arrangement = field(default_factory=Arrangement)

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> BoardQuery:
        """Read from the query parameters of a request; unknown parameters are left alone."""
        several = getattr(params, "getlist", None)
        skills = several("skill") if several else [params.get("skill", "")]
        return cls(
            benchmark=params.get("benchmark", ""),
            skill=BETWEEN_SKILLS.join(skill for skill in skills if skill),
            measure=params.get("measure", ""),
            filters=Filters.from_params(params),
            arranged=Arrangement.from_params(params),
        )

    @classmethod
    def from_link(cls, query: str) -> BoardQuery:
        """The inverse of `to_query`."""
        return cls.from_params({k: v[-1] for k, v in parse_qs(query.removeprefix("?")).items()})

    def to_query(self) -> str:
        """The query string of the link to this state, with its question mark."""
        given = {
            "benchmark": self.benchmark,
            "skill": self.skill,
            "measure": self.measure,
            **self.filters.to_params(),
            **self.arranged.to_params(),
        }
        return "?" + urlencode({key: value for key, value in given.items() if value}, safe="~:,")


@dataclass(frozen=True)
class Choice:
    """What is shown: a query resolved against what exists.

    Attributes:
        board: the board.
        skills: the skills whose mean is shown; none means all skills together.
        selector: the measure; None where the board is empty.
        options: the measures that exist for all of those skills, headline first.
        filters: which entries are shown.
        remarks: what was asked for and could not be shown, in sentences.
        arranged: how rows and columns are laid out.
    """

    board: BoardIndex
    skills: tuple[str, ...]
    selector: Selector | None
    options: tuple[Selector, ...]
    filters: Filters = field(default_factory=Filters)
    remarks: tuple[str, ...] = ()
    arranged: Arrangement = field(default_factory=Arrangement)

    @property
    def skill(self) -> str | None:
        """The one skill that is shown; None for all and for the mean of several."""
        return self.skills[0] if len(self.skills) == 1 else None

    @property
    def query(self) -> BoardQuery:
        """The exact state, for a link."""
        return BoardQuery(
            benchmark=self.board.card.name,
            skill=BETWEEN_SKILLS.join(self.skills),
            measure=token(self.selector) if self.selector else "",
            filters=self.filters,
            arranged=self.arranged,
        )

    @property
    def title(self) -> str:
        """What the measure is shown of: one skill, all, or the mean of several."""
        return skills_title(self.board.card, self.skills)

    def slices(self) -> list[tuple[Cell, ...]]:
        """The cells of each skill that is shown."""
        if self.selector is None:
            return []
        return [self.board.cells(self.selector, skill) for skill in self.skills or (None,)]

    def entry_ids(self) -> tuple[str, ...]:
        """Whoever has a value in any of the slices, filtered or not."""
        return tuple(dict.fromkeys(cell.entry_id for of in self.slices() for cell in of))


def skills_title(card: Card, skills: tuple[str, ...]) -> str:
    """`All skills`, the skill, or `mean of Counting and Colour`; many are only counted."""
    names = [skill_title(card, skill) for skill in skills]
    if len(names) < 2:
        return names[0] if names else skill_title(card, None)
    if len(names) > 4:
        return f"mean of {len(names)} skills"
    return f"mean of {', '.join(names[:-1])} and {names[-1]}"


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
        remarks.append(f"There is no benchmark “{_named(name)}” here.")
        name = first
    board = boards[name]
    filters, about_filters = query.filters.known()
    skills, about_skills = _skills(query.skill, board)
    remarks += [*about_filters, *about_skills]
    options = in_order(board.card, _common(board, skills))
    if not options:
        return Choice(board, skills, None, (), filters, tuple(remarks))
    selector, remark = _selector(query.measure, board, skills, options)
    choice = Choice(board, skills, selector, options, filters, (*remarks, *remark))
    return _arranged(choice, query.arranged)


def _arranged(choice: Choice, asked: Arrangement) -> Choice:
    """With the columns and pins that exist; what is not there is said, but for rows gone since."""
    if asked == Arrangement():
        return choice
    board = choice.board
    found = asked.known(every_key(board), frozenset(choice.entry_ids()))
    remarks = choice.remarks
    if lost := [key for key in asked.columns if key not in found.columns]:
        named = ", ".join(f"“{_named(key)}”" for key in lost[:_MOST_NAMED])
        more = ", …" if len(lost) > _MOST_NAMED else ""
        remarks += (f"No column {named}{more} on {board.card.title}.",)
    if asked.sort and not found.sort:
        named = _named(asked.sorted_by)
        remarks += (f"No column “{named}” to sort by on {board.card.title}; sorted by rank.",)
    if lost_pins := len(asked.pins) - len(found.pins):
        gone = "A pinned metric is" if lost_pins == 1 else f"{lost_pins} pinned metrics are"
        remarks += (f"{gone} not on this board.",)
    return replace(choice, arranged=found, remarks=remarks)


def _skills(asked: str, board: BoardIndex) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The skills that exist among those asked for, and that share a measure."""
    known = board.skills()
    # A key that holds a comma itself is one skill, not several.
    parts = (asked,) if asked in known else dict.fromkeys(asked.split(BETWEEN_SKILLS))
    wanted = [part for part in parts if part]
    found = [part for part in wanted if part in known]
    remarks: list[str] = []
    unknown = [part for part in wanted if part not in known]
    if unknown and not board.empty:
        named = ", ".join(f"“{_named(part)}”" for part in unknown[:_MOST_NAMED])
        more = ", …" if len(unknown) > _MOST_NAMED else ""
        which = "skill" if len(unknown) == 1 else "skills"
        remarks.append(f"No results by the {which} {named}{more} on {board.card.title}.")
    if not found:
        all_skills = bool(board.selectors(None)) or not known
        return (() if all_skills else known[:1]), tuple(remarks)
    kept = found[:1]
    for skill in found[1:]:
        if _common(board, (*kept, skill)):
            kept.append(skill)
            continue
        remarks.append(
            f"{skill_title(board.card, skill)} shares no measure with "
            f"{skills_title(board.card, tuple(kept))} and is left out of the mean."
        )
    return tuple(kept), tuple(remarks)


def _common(board: BoardIndex, skills: tuple[str, ...]) -> tuple[Selector, ...]:
    """What is measured for each of the skills."""
    first, *others = skills or (None,)
    elsewhere = [frozenset(board.selectors(skill)) for skill in others]
    return tuple(s for s in board.selectors(first) if all(s in of for of in elsewhere))


def _selector(
    wanted: str, board: BoardIndex, skills: tuple[str, ...], options: tuple[Selector, ...]
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
        remark = f"There is no measure “{_named(wanted)}” on {board.card.title}."
        return options[0], (remark,)
    found = nearest(asked, options, board.card)
    remark = (
        f"“{title(board.card, asked, everywhere)}” is not reported for "
        f"{skills_title(board.card, skills)}; shown instead: "
        f"“{title(board.card, found, everywhere)}”."
    )
    return found, (remark,)


def _named(asked: str) -> str:
    """What a link asked for, no longer than needed to know it again."""
    shown = clean(asked)
    return shown if len(shown) <= _LONGEST_NAMED else f"{shown[:_LONGEST_NAMED]}…"
