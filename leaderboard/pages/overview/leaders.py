"""Leader of each board, its margin, and whether it is significant."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from leaderboard.pages.shown.flags import flag_badges
from leaderboard.pages.shown.marks import axis_for, rank_text, whisker
from leaderboard.pages.shown.markup import badge, text
from leaderboard.pages.shown.metric_names import metric_name
from leaderboard.pages.shown.signatures import signed_by
from leaderboard.publication.flags import flags_of, is_trained_on
from leaderboard.publication.measure_names import info
from leaderboard.publication.reader import BoardIndex, View, headline_cells
from leaderboard.publication.recommending import leading_cells, nobody_leads
from leaderboard.publication.snapshot import Entry
from leaderboard.ranking.cells import Cell, too_few
from leaderboard.text import count, interval, number


def leader_cards(view: View, but: Collection[str] = ()) -> str:
    """One card per benchmark with results: who leads it, by how much; then those without.

    Args:
        view: what is published.
        but: benchmarks that are shown elsewhere.
    """
    cards = "".join(
        _card(board, view.entries)
        for name, board in view.boards.items()
        if not board.empty and name not in but
    )
    waiting = ", ".join(
        f'<a href="{board_address(name)}">{text(b.card.title)}</a>'
        for name, b in view.boards.items()
        if b.empty
    )
    rest = (
        f'<p class="as-legend">No metric published yet on {waiting}. Each board says what is needed '
        "to fill it, and shows what papers print.</p>"
        if waiting
        else ""
    )
    return f'<div class="as-cards">{cards}</div>{rest}' if cards else rest


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
    measure = info(board.card, cells[0].measure)
    leading = leading_cells(board.card, cells, entries)
    if not leading:
        return (
            f'<p class="as-leader">{count(len(cells), "metric")}</p>'
            f'<p class="as-muted">{_why_nobody(cells, board)}</p>'
        )
    best = leading[0]
    tied = sum(cell.rank_low == 1 for cell in cells if cell is not best)
    ranked = sum(cell.rank is not None for cell in cells)
    standing = f"rank {rank_text(best)} of {count(ranked, 'metric')}"
    if tied > 0:
        standing += f"; {count(tied, 'other')} may be first as well"
    doubt = ""
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
        f'<p class="as-muted">{standing}</p>{tier_badge([best, *(cell for cell in cells if cell is not best)])}{doubt}'
    )


def _why_nobody(cells: Sequence[Cell], board: BoardIndex) -> str:
    few = too_few(cells, board.card.cluster)
    if few:
        return text(f"{few[0].upper()}{few[1:]}.")
    return nobody_leads(board.card, cells) or "No metric has a rank."


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
