"""Who leads each board, by how much, and whether the data tell the leader from the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.schema import MeasureInfo
from leaderboard.pages.boards.table import is_trained_on
from leaderboard.pages.overview.over_boards import headline_cells
from leaderboard.pages.reading import BoardIndex, View
from leaderboard.pages.shown.flags import flag_badges, flags_of
from leaderboard.pages.shown.marks import axis_for, rank_text, whisker
from leaderboard.pages.shown.markup import badge, count, interval, number, text
from leaderboard.pages.shown.measures import info
from leaderboard.pages.shown.metric_names import metric_name
from leaderboard.pages.shown.signatures import signed_by
from leaderboard.publication.snapshot import Entry
from leaderboard.ranking.cells import Cell


def leader_cards(view: View) -> str:
    """One card per benchmark with results: who leads it, by how much; then those without."""
    cards = "".join(_card(b, view.entries) for b in view.boards.values() if not b.empty)
    waiting = ", ".join(
        f'<a href="{board_address(name)}">{text(b.card.title)}</a>'
        for name, b in view.boards.items()
        if b.empty
    )
    rest = f'<p class="as-legend">No metric published yet on {waiting}.</p>' if waiting else ""
    return f'<div class="as-cards">{cards}</div>{rest}'


def board_address(benchmark: str) -> str:
    """The address of a board."""
    return f"./boards?benchmark={text(benchmark)}"


def _card(board: BoardIndex, entries: Mapping[str, Entry]) -> str:
    card = board.card
    simulated = badge("simulated ratings", "warn") if card.simulated else ""
    head = f'<header><h3><a href="{board_address(card.name)}">{text(card.title)}</a></h3>{simulated}</header>'
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
    ranked = sum(cell.rank is not None for cell in cells)
    standing = f"rank {rank_text(best)} of {count(ranked, 'metric')}"
    if tied > 0:
        standing += f"; {count(tied, 'other')} may be first as well"
    doubt = badge("not told apart from chance", "warn") if _at_chance(best, measure) else ""
    if is_trained_on(entries[best.entry_id], board.card):
        doubt += badge("trained on this benchmark", "warn")
    doubt += flag_badges(flags_of([entries[best.entry_id]], {board.card.name}))
    return (
        f'<p class="as-leader">{metric_name(entries[best.entry_id])}'
        f"{signed_by(entries[best.entry_id])}</p>"
        f'<p class="as-figure"><b>{number(best.value)}</b> '
        f'<span class="as-ci">{interval(best.ci_low, best.ci_high)}</span> '
        f'<span class="as-muted">{text(measure.title)}</span></p>'
        f"{whisker(best, axis_for(cells, measure.chance))}"
        f'<p class="as-muted">{standing}</p>{tier_badge(cells)}{doubt}'
    )


def _at_chance(cell: Cell, measure: MeasureInfo) -> bool:
    """Whether the interval reaches the level of a metric that guesses, or lies below it."""
    if measure.chance is None or cell.ci_low is None or cell.ci_high is None:
        return False
    if measure.higher_is_better:
        return cell.ci_low <= measure.chance
    return cell.ci_high >= measure.chance


def tier_badge(cells: Sequence[Cell]) -> str:
    """Whether the first of a ranking is significantly ahead; empty where nothing was tested."""
    tested = [cell for cell in cells if cell.tier is not None]
    others = sum(cell.tier == 1 for cell in tested) - 1
    if len(tested) < 2 or cells[0].tier != 1:
        return ""
    tests = "Paired tests between all metrics, Holm’s correction, level 0.05."
    if others:
        said = f"tier 1 with {count(others, 'other')}"
        return badge(said, "plain", f"Not significantly ahead of the next metric. {tests}")
    return badge("tier 1 alone", "good", f"Significantly ahead of the next metric. {tests}")
