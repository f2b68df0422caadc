"""Printed beside correct: where published figures do not follow from their own data."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.errata import Erratum, ErratumCell, errata
from benchmarks.errata.entries import KINDS
from benchmarks.published import papers
from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.markup import Tone, badge, link, page, scroll_box, section, text
from leaderboard.pages.shown.widgets import html, run_on_load
from leaderboard.text import MISSING, count

_LEAD = (
    "Where a printed figure does not follow from the data its authors released, where a paper "
    "contradicts itself, or where paper and code differ, it is listed here. Entries with a command "
    "can be recomputed by anyone; the others say what is known."
)
_SHOWN_AT_ONCE = 6
_HEADS: dict[str, tuple[str, str]] = {
    "recomputed": ("Printed", "Correct"),
    "inconsistent": ("Printed", "Correct"),
    "code": ("One side", "The other"),
}
"""Heads of the two columns; where paper and code differ, neither need be wrong."""

_GO_TO_PLACE = """() => {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (place) { place.querySelectorAll('details').forEach(d => d.open = true); place.scrollIntoView(); }
}"""


def errata_view(entries: Iterable[Erratum]) -> str:
    """The HTML of the page: one section per paper, one article per erratum."""
    by_paper: dict[str, list[Erratum]] = {}
    for entry in entries:
        by_paper.setdefault(entry.paper, []).append(entry)
    contents = " · ".join(
        f'<a href="./errata#{text(key)}">{text(papers()[key].name)} ({len(found)})</a>'
        for key, found in by_paper.items()
    )
    parts = [f"<h1>Errata</h1><p class='as-intro'>{_LEAD}</p><p class='as-intro'>{contents}</p>"]
    parts += [_paper(key, found) for key, found in by_paper.items()]
    return page(parts)


def _paper(key: str, entries: list[Erratum]) -> str:
    paper = papers()[key]
    body = f'<p class="as-muted">{link(paper.url, paper.citation)}</p>'
    body += "".join(_erratum(entry) for entry in entries)
    return section(paper.name, body, aside=count(len(entries), "entry", "entries"), ident=key)


def _erratum(entry: Erratum) -> str:
    tone: Tone = "warn" if entry.kind == "recomputed" else "plain"
    command = (
        f"<p>Recompute: <code>{text(entry.command)}</code></p>"
        if entry.command
        else '<p class="as-muted">Not recomputed here.</p>'
    )
    return (
        f'<article class="as-erratum" id="{text(entry.id)}"><h3>{text(entry.title)}</h3>'
        f"<p>{badge(entry.where)} {badge(KINDS[entry.kind], tone)}</p>"
        f"<p>{text(entry.why)}</p>{_cells(entry)}{command}</article>"
    )


def _cells(entry: Erratum) -> str:
    """Few cells stand open; of many the first are shown and the rest unfold."""
    heads = _HEADS[entry.kind]
    table = _table(entry.cells[:_SHOWN_AT_ONCE], heads)
    rest = entry.cells[_SHOWN_AT_ONCE:]
    if not rest:
        return table
    return f"{table}<details><summary>{len(rest)} more</summary>{_table(rest, heads)}</details>"


def _table(cells: Iterable[ErratumCell], heads: tuple[str, str]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{text(cell.label)}</th><td>{text(cell.printed)}</td>'
        f"<td><b>{text(cell.correct) or MISSING}</b></td></tr>"
        for cell in cells
    )
    return (
        f'{scroll_box("Printed and corrected figures")}<table class="as-table as-printed"><thead><tr>'
        '<th scope="col" class="as-c-metric">What</th>'
        f'<th scope="col">{heads[0]}</th><th scope="col">{heads[1]}</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _build(context: Context) -> None:
    del context
    html(errata_view(errata()))
    run_on_load(_GO_TO_PLACE)


PAGE = Page("Errata", "errata", 50, _build, in_navigation=False)
