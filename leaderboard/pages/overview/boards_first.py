"""The boards with the most metrics on the first page, each as its ranking in tiers."""

from __future__ import annotations

from dataclasses import replace

from leaderboard.pages.shown.markup import section, text
from leaderboard.publication.measure_names import info, title
from leaderboard.publication.reader import BoardIndex, View, headline_cells
from leaderboard.ranking.tiers import kept_in_tiers
from leaderboard.text import count
from leaderboard.views.addresses import board_address
from leaderboard.views.benchmark_board import stored_basis
from leaderboard.views.boards import Column, Layout, columns_of, key_of, values_of
from leaderboard.web.board_legend import legend
from leaderboard.web.board_table import board_table
from leaderboard.web.rendering import render

MOST_BOARDS = 3
MOST_ROWS = 20


def boards_first(view: View) -> tuple[str, ...]:
    """The benchmarks that are shown whole: those with the most metrics that are ranked.

    Args:
        view: boards that may be compared; see `View.group`.
    """
    sizes = {
        name: sum(cell.rank is not None for cell in headline_cells(board))
        for name, board in view.boards.items()
    }
    able = (name for name, n in sizes.items() if n > 1)
    # Of equal size, the one with more clusters: its order is the better founded.
    return tuple(
        sorted(able, key=lambda name: (-sizes[name], -_clusters(view, name)))[:MOST_BOARDS]
    )


def board_section(view: View, name: str) -> str:
    """One ranking: the headline in tiers, beside it the same measure on other splits or golds."""
    board = view.boards[name]
    card, cells = board.card, kept_in_tiers(headline_cells(board))
    layout = Layout(
        columns=tuple(values_of(board, column, view.entries) for column in _beside(board))
    )
    measure = info(card, cells[0].measure)
    table = render(
        "metrics/board_first.html",
        table=board_table(cells[:MOST_ROWS], view.entries, card, measure,
                          f"{card.title}: {measure.title}", layout=layout),
        legend=legend(cells, card, stored_basis(cells, view.entries, card)),
    )  # fmt: skip
    left = len(cells) - MOST_ROWS
    more = f" The first {MOST_ROWS} of {len(cells):,}." if left > 0 else ""
    link = f'<a href="{text(board_address(name))}">Whole board</a>'
    lead = f'<p class="as-lead">{text(card.summary)}{more}</p>'
    shown = title(card, cells[0].selector, board.every_selector())
    aside = f"<span>{count(len(cells), 'metric')} · {text(shown)}</span>{link}"
    return section(card.title, lead + table, aside=aside)


def _clusters(view: View, name: str) -> int:
    return max(cell.n_clusters for cell in headline_cells(view.boards[name]))


def _beside(board: BoardIndex) -> tuple[Column, ...]:
    """The headline's measure and variant on every other split and facet, named by these alone."""
    headline = board.card.headline
    same = tuple(
        one
        for one in board.selectors(None)
        if (one.measure, one.variant) == (headline.measure, headline.variant)
    )
    name = info(board.card, headline.measure).title
    keys = {key_of(one, None): one for one in same if one != headline}
    return tuple(
        replace(one, title=title(board.card, keys[one.key], same).removeprefix(name).strip(" ·"))
        for one in columns_of(board, keys)
    )
