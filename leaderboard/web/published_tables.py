"""Figures as published, beside a ranking and never in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.errata import errata
from benchmarks.published import PublishedCell, papers, printed_digits, published
from benchmarks.schema import Card, Selector
from leaderboard.publication.measure_names import info, skill_title, title, token
from leaderboard.text import clean, number
from leaderboard.views.addresses import address
from leaderboard.views.benchmark_board import all_printed, printed_of
from leaderboard.web.board_table import direction

MOST_DIGITS = 4
"""Digits of a figure in a table of many; on hover it stands as printed."""


@dataclass(frozen=True)
class Figure:
    """A figure of a paper, or what it is."""

    text: str  # as it stands in the table
    hint: str = ""  # on hover: as printed, and where
    right: bool = True  # whether it is a figure


@dataclass(frozen=True)
class FigureTable:
    """A table of printed figures, a metric in each row."""

    heading: str  # above it; empty for none
    caption: str  # what it holds
    heads: tuple[str, ...]  # of its columns but the first
    rows: tuple[tuple[str, tuple[Figure, ...]], ...]  # name of the metric and its figures


@dataclass(frozen=True)
class Source:
    """A paper whose figures stand in the tables."""

    number: int  # in the list of sources
    key: str  # of the paper
    url: str  # of the paper; empty where it has none that may be followed
    citation: str  # of the paper
    note: str  # about it
    errata: int  # how many are known in it


@dataclass(frozen=True)
class PublishedFigures:
    """Printed figures with their sources and the address of their data."""

    tables: tuple[FigureTable, ...]
    sources: tuple[Source, ...]
    data: str


def as_published(card: Card, selector: Selector, skill: str | None) -> PublishedFigures | None:
    """The printed figures of one ranking; None where nothing was printed."""
    cells = printed_of(card, selector, skill)
    if not cells:
        return None
    measure, sources = info(card, selector.measure), _numbered(cells)
    heads = (f"{measure.title} ({direction(measure.higher_is_better)} is better)", "As printed",
             "Source")  # fmt: skip
    rows = tuple(
        (cell.metric, (Figure(number(cell.value)), Figure(_printed(cell)), _source(cell, sources)))
        for cell in cells
    )
    table = FigureTable("", f"{measure.title} as published", heads, rows)
    return _published((table,), sources, card, measure=token(selector), skill=skill or "")


def everything_published(card: Card) -> PublishedFigures | None:
    """All printed figures of metrics: one table a measure, then by skill, then what is left.

    None where nothing was printed.
    """
    every = [cell for cell in published(card.name) if cell.model is None]
    if not every:
        return None
    overall = all_printed(card)
    by_skill = [cell for cell in every if cell.skill is not None and cell.measure in card.measures]
    selectors = tuple(dict.fromkeys(map(_selector, overall)))
    tables = [
        _pivot(card, [s for s in selectors if s.measure == measure], overall)
        for measure in card.measures
        if any(s.measure == measure for s in selectors)
    ]
    among = tuple(dict.fromkeys(map(_selector, by_skill)))
    tables += [_skill_pivot(card, one, by_skill, among) for one in among]
    sources = _numbered(every)
    left = [cell for cell in every if cell.measure not in card.measures]
    if left:
        tables.append(_left(card, left, sources))
    return _published(tuple(tables), sources, card)


def _published(
    tables: tuple[FigureTable, ...], sources: Mapping[str, int], card: Card, **state: str
) -> PublishedFigures:
    found = []
    for key, place in sources.items():
        paper = papers()[key]
        outside = clean(paper.url).startswith(("https://", "http://"))
        known = sum(one.paper == key for one in errata())
        found.append(
            Source(
                place, key, paper.url if outside else "", paper.citation, paper.note or "", known
            )
        )
    data = address(f"v1/boards/{card.name}/published", **state)
    return PublishedFigures(tables, tuple(found), data)


def _pivot(
    card: Card, selectors: Sequence[Selector], cells: Sequence[PublishedCell]
) -> FigureTable:  # fmt: skip
    """Metrics down, the slices of one measure across."""
    of: dict[tuple[str, Selector], list[PublishedCell]] = {}
    for cell in cells:
        of.setdefault((cell.metric, _selector(cell)), []).append(cell)
    measure = info(card, selectors[0].measure)
    heads = tuple(
        title(card, one, selectors).removeprefix(measure.title).strip(" ·") or measure.title
        for one in selectors
    )
    metrics = dict.fromkeys(metric for metric, selector in of if selector in selectors)
    rows = tuple(
        (metric, tuple(_figure(of.get((metric, one), [])) for one in selectors))
        for metric in metrics
    )
    heading = f"{measure.title} ({direction(measure.higher_is_better)} is better)"
    return FigureTable(heading, f"{measure.title} as published", heads, rows)


def _skill_pivot(
    card: Card, selector: Selector, cells: Sequence[PublishedCell], among: Sequence[Selector]
) -> FigureTable:
    """Metrics down, skills across, for one measure."""
    of: dict[tuple[str, str], list[PublishedCell]] = {}
    for cell in cells:
        if _selector(cell) == selector and cell.skill is not None:
            of.setdefault((cell.metric, cell.skill), []).append(cell)
    skills = tuple(dict.fromkeys(skill for _, skill in of))
    rows = tuple(
        (metric, tuple(_figure(of.get((metric, skill), [])) for skill in skills))
        for metric in dict.fromkeys(metric for metric, _ in of)
    )
    name = title(card, selector, among)
    higher = direction(info(card, selector.measure).higher_is_better)
    heads = tuple(skill_title(card, skill) for skill in skills)
    return FigureTable(f"{name} by skill ({higher} is better)", f"{name} by skill as published",
                       heads, rows)  # fmt: skip


def _left(card: Card, cells: Sequence[PublishedCell], sources: Mapping[str, int]) -> FigureTable:
    """Printed figures of what no measure of the board computes, a line each."""
    rows = tuple(
        (cell.metric, (Figure(_in_words(card, cell), right=False), Figure(_printed(cell)),
                       _source(cell, sources)))
        for cell in cells
    )  # fmt: skip
    heads = ("Figure", "As printed", "Source")
    return FigureTable("Other figures", "Other figures as published", heads, rows)


def _in_words(card: Card, cell: PublishedCell) -> str:
    split = card.splits.get(cell.split or "", cell.split or "")
    facet = card.facets.get(cell.facet or "", cell.facet or "")
    skill = skill_title(card, cell.skill) if cell.skill else ""
    return ", ".join(filter(None, (cell.measure, split, facet, skill))).replace("_", " ")


def _figure(cells: Sequence[PublishedCell]) -> Figure:
    """The figure with the most digits; on hover whatever was printed of it, and where."""
    if not cells:
        return Figure("–")
    finest = max(cells, key=_digits)
    printed = (f"{_printed(c)} in {papers()[c.paper].name}, {c.table}" for c in cells)
    return Figure(
        number(finest.value, min(_digits(finest), MOST_DIGITS)), f"printed {'; '.join(printed)}"
    )


def _digits(cell: PublishedCell) -> int:
    return printed_digits(cell.printed) + (2 if cell.in_percent else 0)


def _printed(cell: PublishedCell) -> str:
    return f"{cell.printed}%" if cell.in_percent else cell.printed


def _source(cell: PublishedCell, sources: Mapping[str, int]) -> Figure:
    return Figure(f"{cell.table} [{sources[cell.paper]}]", right=False)


def _selector(cell: PublishedCell) -> Selector:
    return Selector(measure=cell.measure, split=cell.split, variant=cell.variant, facet=cell.facet)


def _numbered(cells: Iterable[PublishedCell]) -> dict[str, int]:
    """Number of each paper in the list of sources."""
    return {key: place for place, key in enumerate(dict.fromkeys(c.paper for c in cells), 1)}
