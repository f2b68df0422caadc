"""How metrics stand over all benchmarks: who leads each board, and one matrix of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean
from typing import NamedTuple

from benchmarks.schema import MeasureInfo
from leaderboard.cells import Cell
from leaderboard.pages.board_table import is_trained_on, metric_name
from leaderboard.pages.marks import axis_for, rank_text, whisker
from leaderboard.pages.markup import (
    MISSING,
    ago,
    badge,
    count,
    interval,
    number,
    submitted,
    text,
)
from leaderboard.pages.measures import info, nearest
from leaderboard.pages.reading import BoardIndex, View
from leaderboard.records import Kind
from leaderboard.snapshot import Entry

MOST_ROWS = 200


class Identity(NamedTuple):
    """What makes entries of several submissions one metric in the matrix.

    A scores file is for one benchmark, so one metric comes in as many submissions; nobody else's
    submission of the same name is mixed with it.
    """

    submitter: str
    metric: str
    version: str
    kind: Kind


@dataclass(frozen=True)
class Standing:
    """One metric over all boards.

    Attributes:
        entry: the latest of its entries.
        cells: benchmark to its headline cell; boards without it are absent.
        relative: mean of (rank - 1/2) / metrics over its boards, 0 (best) to 1 (worst); None
            where it has no rank.
    """

    entry: Entry
    cells: Mapping[str, Cell]
    relative: float | None


def headline_cells(board: BoardIndex) -> tuple[Cell, ...]:
    """The ranking a board is known by: its headline over all skills, or the nearest to it."""
    available = board.selectors(None)
    if not available:
        return ()
    return board.cells(nearest(board.card.headline, available, board.card), None)


def standings(view: View) -> list[Standing]:
    """Every published metric: those on the same boards together, best mean place first.

    Metrics of different boards were never compared, so the order tells nothing between such
    groups. Metrics without any rank come last.
    """
    cells: dict[Identity, dict[str, Cell]] = {}
    latest: dict[Identity, Entry] = {}
    places: dict[Identity, dict[str, float]] = {}
    for entry in view.entries.values():
        who = _identity(entry)
        if who not in latest or latest[who].published_at < entry.published_at:
            latest[who] = entry
    for name, board in view.boards.items():
        ranking = headline_cells(board)
        ranked = sum(cell.rank is not None for cell in ranking)
        # Older entries first, so that the latest of one metric stays.
        for cell in sorted(ranking, key=lambda c: view.entries[c.entry_id].published_at):
            who = _identity(view.entries[cell.entry_id])
            cells.setdefault(who, {})[name] = cell
            if cell.rank is not None:
                places.setdefault(who, {})[name] = (cell.rank - 0.5) / ranked
    found = [
        Standing(entry, cells.get(who, {}), fmean(places[who].values()) if who in places else None)
        for who, entry in latest.items()
    ]
    return sorted(found, key=lambda row: _order(row, tuple(view.boards)))


def leader_cards(view: View) -> str:
    """One card per benchmark with results: who leads it, by how much; then those without."""
    cards = "".join(_card(b, view.entries) for b in view.boards.values() if not b.empty)
    waiting = ", ".join(
        f'<a href="{_address(name)}">{text(b.card.title)}</a>'
        for name, b in view.boards.items()
        if b.empty
    )
    rest = f'<p class="as-legend">No metric published yet on {waiting}.</p>' if waiting else ""
    return f'<div class="as-cards">{cards}</div>{rest}'


def matrix(view: View) -> str:
    """Metrics by benchmarks, a rank range in each cell."""
    rows = standings(view)
    boards = {name: board for name, board in view.boards.items() if not board.empty}
    if not rows or not boards:
        return '<div class="as-empty"><p>No metric has been published yet.</p></div>'
    heads = "".join(
        f'<th scope="col"><a href="{_address(name)}">{text(board.card.title)}</a></th>'
        for name, board in boards.items()
    )
    totals = {name: len(headline_cells(board)) for name, board in boards.items()}
    body = "".join(_matrix_row(row, totals) for row in rows[:MOST_ROWS])
    cut = f" The first {MOST_ROWS} of {len(rows):,} metrics." if len(rows) > MOST_ROWS else ""
    return (
        '<div class="as-scroll" tabindex="0" role="region" aria-label="Metrics by benchmarks">'
        '<table class="as-table as-matrix"><caption class="as-sr">Rank ranges of every metric on '
        "every benchmark</caption>"
        f'<thead><tr><th scope="col" class="as-c-metric">Metric</th>{heads}'
        f'<th scope="col">Coverage</th></tr></thead><tbody>{body}</tbody></table></div>'
        '<p class="as-legend">Large: the rank range on the headline measure. Small: its value. '
        f"–: not ranked there (on hover: why). {MISSING}: not run there. Metrics on the same boards "
        "stand together, the best mean place first; metrics on different boards were never "
        f"compared.{cut}</p>"
    )


def publications(view: View, now: datetime, most: int = 8) -> str:
    """What changed lately: the newest publications, one line per submission."""
    by_submission: dict[str, list[Entry]] = {}
    for entry in view.entries.values():
        by_submission.setdefault(entry.submission_id, []).append(entry)
    boards = _boards_of(view)
    newest = sorted(by_submission.values(), key=lambda own: own[0].published_at, reverse=True)
    lines = []
    for own in newest[:most]:
        first = own[0]
        more = f" and {count(len(own) - 1, 'more metric')}" if len(own) > 1 else ""
        titles = [view.boards[b].card.title for b in boards.get(first.submission_id, ())]
        lines.append(
            f"<li><span>{metric_name(first)}{more}</span>"
            f'<span class="as-muted">{text(", ".join(titles)) or "no board"}</span>'
            f'<span class="as-muted">by {submitted(first.submitter, limit=40)}, '
            f"{ago(first.published_at, now)}</span></li>"
        )
    return f'<ul class="as-feed">{"".join(lines)}</ul>' if lines else ""


def _boards_of(view: View) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, board in view.boards.items():
        on_it = {view.entries[cell.entry_id].submission_id for cell in headline_cells(board)}
        for submission_id in on_it:
            found.setdefault(submission_id, []).append(name)
    return found


def _identity(entry: Entry) -> Identity:
    return Identity(entry.submitter, entry.metric, entry.version, entry.kind)


def _order(row: Standing, boards: Sequence[str]) -> tuple[bool, tuple[bool, ...], float, str]:
    return (
        row.relative is None,
        tuple(name not in row.cells for name in boards),
        row.relative or 0.0,
        row.entry.metric.casefold(),
    )


def _address(benchmark: str) -> str:
    return f"./boards?benchmark={text(benchmark)}"


def _card(board: BoardIndex, entries: Mapping[str, Entry]) -> str:
    card = board.card
    simulated = badge("simulated ratings", "warn") if card.simulated else ""
    head = f'<header><h3><a href="{_address(card.name)}">{text(card.title)}</a></h3>{simulated}</header>'
    cells = headline_cells(board)
    if not cells or cells[0].value is None:
        body = '<p class="as-muted">No metric has a value here.</p>'
        return f'<article class="as-card as-quiet">{head}{body}</article>'
    return f'<article class="as-card">{head}{_leader(cells, entries, board)}</article>'


def _leader(cells: Sequence[Cell], entries: Mapping[str, Entry], board: BoardIndex) -> str:
    best = cells[0]
    measure = info(board.card, best.measure)
    if best.rank is None:
        return (
            f'<p class="as-leader">{count(len(cells), "metric")}</p>'
            '<p class="as-muted">Too few items to order them.</p>'
        )
    tied = sum(cell.rank_low == 1 for cell in cells) - 1
    standing = f"rank {rank_text(best)} of {count(len(cells), 'metric')}"
    if tied > 0:
        standing += f"; {count(tied, 'other')} may be first as well"
    doubt = badge("not told apart from chance", "warn") if _at_chance(best, measure) else ""
    if is_trained_on(entries[best.entry_id], board.card):
        doubt += badge("trained on this benchmark", "warn")
    return (
        f'<p class="as-leader">{metric_name(entries[best.entry_id])}</p>'
        f'<p class="as-figure"><b>{number(best.value)}</b> '
        f'<span class="as-ci">{interval(best.ci_low, best.ci_high)}</span> '
        f'<span class="as-muted">{text(measure.title)}</span></p>'
        f"{whisker(best, axis_for(cells, measure.chance))}"
        f'<p class="as-muted">{standing}</p>{doubt}'
    )


def _at_chance(cell: Cell, measure: MeasureInfo) -> bool:
    """Whether the interval reaches the level of a metric that guesses, or lies below it."""
    if measure.chance is None or cell.ci_low is None or cell.ci_high is None:
        return False
    if measure.higher_is_better:
        return cell.ci_low <= measure.chance
    return cell.ci_high >= measure.chance


def _matrix_row(row: Standing, totals: Mapping[str, int]) -> str:
    cells = "".join(_matrix_cell(row.cells.get(name), total) for name, total in totals.items())
    mark = badge("scores only", "plain", "Scores as submitted, not re-run")
    origin = f" {mark}" if row.entry.kind is Kind.SCORES else ""
    return (
        f'<tr><th scope="row" class="as-c-metric">{metric_name(row.entry)}{origin}</th>{cells}'
        f'<td class="as-muted">{len(row.cells)} of {count(len(totals), "board")}</td></tr>'
    )


def _matrix_cell(cell: Cell | None, total: int) -> str:
    if cell is None:
        return f'<td class="as-blank">{MISSING}<span class="as-sr"> not run</span></td>'
    hover = f"{number(cell.value)} {interval(cell.ci_low, cell.ci_high)}".strip()
    if cell.rank is None:
        why = cell.note or cell.why_unranked
        shown = "undefined" if cell.value is None else number(cell.value)
        return (
            f'<td title="{text(f"{hover}; {why}")}"><span class="as-range as-none">–</span>'
            f"<small>{shown}</small></td>"
        )
    best = " as-best" if cell.rank_low == 1 else ""
    return (
        f'<td class="as-place{best}" title="{text(f"{hover}, rank {cell.rank} of {total}")}">'
        f'<span class="as-range">{rank_text(cell)}</span><small>{number(cell.value)}</small></td>'
    )
