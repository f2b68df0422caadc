"""Published values for a measure, beside the ranking and never in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from benchmarks.errata import errata
from benchmarks.published import PublishedCell, papers, published
from benchmarks.published.cells import printed_digits
from benchmarks.schema import Card, Selector
from leaderboard.pages.boards.table import direction
from leaderboard.pages.shown.downloads import download_links
from leaderboard.pages.shown.markup import link, section, text
from leaderboard.publication.measure_names import info, skill_title, title, token
from leaderboard.text import MISSING, count, number
from leaderboard.views.addresses import address
from leaderboard.views.printed import all_printed, printed_of

MOST_DIGITS = 4
"""Digits of a figure in a table of many; on hover it stands as printed."""
_LEAD = (
    "Figures as the papers print them. They were not computed here and take part in no ranking; "
    'the data behind them may differ from this board\'s. <a href="./errata">Errata</a>'
)


def as_published(card: Card, selector: Selector, skill: str | None) -> str:
    """The printed figures of one ranking as a section; empty where nothing was printed.

    Args:
        card: the benchmark.
        selector: the measure that is shown.
        skill: the skill that is shown; None means all.
    """
    cells = printed_of(card, selector, skill)
    if not cells:
        return ""
    measure = info(card, selector.measure)
    sources = _numbered(cells)
    rows = "".join(_row(cell, sources[cell.paper]) for cell in cells)
    head = (
        f'<th scope="col">{text(measure.title)} {direction(measure)}</th>'
        '<th scope="col">As printed</th><th scope="col">Source</th>'
    )
    asked = {"measure": token(selector), "skill": skill or ""}
    return _section(_table(f"{measure.title} as published", head, rows), sources, card, asked)


def everything_published(card: Card) -> str:
    """All printed figures of metrics: one table a measure, then by skill, then what is left.

    Empty where nothing was printed.
    """
    every = [cell for cell in published(card.name) if cell.model is None]
    if not every:
        return ""
    overall = all_printed(card)
    by_skill = [cell for cell in every if cell.skill is not None and cell.measure in card.measures]
    selectors = tuple(dict.fromkeys(map(_selector, overall)))
    tables = "".join(
        f"<h3>{text(info(card, measure).title)} {direction(info(card, measure))}</h3>"
        + _pivot(card, [s for s in selectors if s.measure == measure], overall)
        for measure in card.measures
        if any(s.measure == measure for s in selectors)
    )
    sources = _numbered(every)
    tables += "".join(
        f"<h3>{text(title(card, one, tuple(map(_selector, by_skill))))} by skill "
        f"{direction(info(card, one.measure))}</h3>{_skill_pivot(card, one, by_skill)}"
        for one in dict.fromkeys(map(_selector, by_skill))
    )
    left = [cell for cell in every if cell.measure not in card.measures]
    return _section(tables + _left(card, left, sources), sources, card)


def _skill_pivot(card: Card, selector: Selector, cells: Sequence[PublishedCell]) -> str:
    """Metrics down, skills across, for one measure."""
    of: dict[tuple[str, str], list[PublishedCell]] = {}
    for cell in cells:
        if _selector(cell) == selector and cell.skill is not None:
            of.setdefault((cell.metric, cell.skill), []).append(cell)
    skills = tuple(dict.fromkeys(skill for _, skill in of))
    head = "".join(f'<th scope="col">{text(skill_title(card, skill))}</th>' for skill in skills)
    rows = "".join(
        f'<tr><th scope="row" class="as-c-metric">{text(metric)}</th>'
        + "".join(_figure(of.get((metric, skill), [])) for skill in skills)
        + "</tr>"
        for metric in dict.fromkeys(metric for metric, _ in of)
    )
    return _table("Figures by skill as published", head, rows)


def _left(card: Card, cells: Sequence[PublishedCell], sources: Mapping[str, int]) -> str:
    """Printed figures of what no measure of the board computes, a line each."""
    rows = "".join(
        f'<tr><th scope="row" class="as-c-metric">{text(cell.metric)}</th>'
        f'<td data-label="Figure">{text(_in_words(card, cell))}</td>'
        f'<td data-label="As printed">{text(_printed(cell))}</td>'
        f'<td data-label="Source" class="as-muted">{text(cell.table)} [{sources[cell.paper]}]</td></tr>'
        for cell in cells
    )
    heads = ("Figure", "As printed", "Source")
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    return (
        f"<h3>Other figures</h3>{_table('Other figures as published', head, rows)}" if rows else ""
    )


def _in_words(card: Card, cell: PublishedCell) -> str:
    split = card.splits.get(cell.split or "", cell.split or "")
    facet = card.facets.get(cell.facet or "", cell.facet or "")
    skill = skill_title(card, cell.skill) if cell.skill else ""
    return ", ".join(filter(None, (cell.measure, split, facet, skill))).replace("_", " ")


def _pivot(card: Card, selectors: Sequence[Selector], cells: Sequence[PublishedCell]) -> str:
    """Metrics down, the slices of one measure across."""
    of: dict[tuple[str, Selector], list[PublishedCell]] = {}
    for cell in cells:
        of.setdefault((cell.metric, _selector(cell)), []).append(cell)
    name = info(card, selectors[0].measure).title
    head = "".join(
        f'<th scope="col">{text(title(card, selector, selectors).removeprefix(name).strip(" ·") or name)}</th>'
        for selector in selectors
    )
    metrics = dict.fromkeys(metric for metric, selector in of if selector in selectors)
    rows = "".join(
        f'<tr><th scope="row" class="as-c-metric">{text(metric)}</th>'
        + "".join(_figure(of.get((metric, selector), [])) for selector in selectors)
        + "</tr>"
        for metric in metrics
    )
    return _table(f"{name} as published", head, rows)


def _figure(cells: Sequence[PublishedCell]) -> str:
    """The figure with the most digits; on hover whatever was printed of it, and where."""
    if not cells:
        return f"<td>{MISSING}</td>"
    finest = max(cells, key=_digits)
    printed = (f"{_printed(c)} in {papers()[c.paper].name}, {c.table}" for c in cells)
    return (
        f'<td title="{text("printed " + "; ".join(printed))}">'
        f"{number(finest.value, min(_digits(finest), MOST_DIGITS))}</td>"
    )


def _digits(cell: PublishedCell) -> int:
    return printed_digits(cell.printed) + (2 if cell.in_percent else 0)


def _row(cell: PublishedCell, source: int) -> str:
    return (
        f'<tr><th scope="row" class="as-c-metric">{text(cell.metric)}</th>'
        f'<td data-label="Value"><b>{number(cell.value)}</b></td>'
        f'<td data-label="As printed">{text(_printed(cell))}</td>'
        f'<td data-label="Source" class="as-muted">{text(cell.table)} [{source}]</td></tr>'
    )


def _printed(cell: PublishedCell) -> str:
    return f"{cell.printed} %" if cell.in_percent else cell.printed


def _selector(cell: PublishedCell) -> Selector:
    return Selector(measure=cell.measure, split=cell.split, variant=cell.variant, facet=cell.facet)


def _numbered(cells: Iterable[PublishedCell]) -> dict[str, int]:
    """Number of each paper in the list of sources."""
    return {key: place for place, key in enumerate(dict.fromkeys(c.paper for c in cells), 1)}


def _table(caption: str, head: str, rows: str) -> str:
    return (
        '<div class="as-scroll"><table class="as-table as-printed">'
        f'<caption class="as-sr">{text(caption)}</caption>'
        f'<thead><tr><th scope="col" class="as-c-metric">Metric</th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _section(
    body: str, sources: Mapping[str, int], card: Card, asked: Mapping[str, str] | None = None
) -> str:
    lines = []
    for key, place in sources.items():
        paper = papers()[key]
        note = f" {text(paper.note)}" if paper.note else ""
        wrong = sum(one.paper == key for one in errata())
        known = (
            f' <a href="./errata#{text(key)}">{count(wrong, "erratum", "errata")}</a>.'
            if wrong
            else ""
        )
        lines.append(f"[{place}] {link(paper.url, paper.citation)}.{note}{known}")
    listed = f'<p class="as-legend">{"<br>".join(lines)}</p>'
    lead = f'<p class="as-lead">{_LEAD}</p>'
    data = download_links(address(f"v1/boards/{card.name}/published", **(asked or {})),
                          "figures as published")  # fmt: skip
    return section("As published", f"{lead}{body}{listed}", aside=data, ident="as-published")
