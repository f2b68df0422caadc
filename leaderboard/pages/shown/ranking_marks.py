"""Marks of rankings as HTML, for the pages that are not built from templates yet."""

from __future__ import annotations

import html

from benchmarks.schema import Card, MeasureInfo
from leaderboard.pages.shown.flags import flag_badges, origin_badge
from leaderboard.pages.shown.markup import badge
from leaderboard.publication.flags import flags_of, is_trained_on
from leaderboard.publication.snapshot import Entry
from leaderboard.ranking.cells import Cell
from leaderboard.text import count
from leaderboard.web import benchmark_below, board_table

SIMULATED = (
    "<b>Ratings on this board are simulated.</b> They do not come from people; the board shows "
    "how a protocol works, not how good a metric is."
)


def direction(info: MeasureInfo) -> str:
    """An arrow that says which way is better."""
    word, arrow = ("higher", "↑") if info.higher_is_better else ("lower", "↓")
    return (
        f'<span class="as-arrow" title="{word} is better" role="img" '
        f'aria-label="{word} is better">{arrow}</span>'
    )


def percent(share: float) -> str:
    """A share in whole percent."""
    return html.escape(board_table.percent(share))


def p_text(p: float) -> str:
    """A p-value for a narrow cell."""
    return html.escape(benchmark_below.p_text(p))


def badges(entry: Entry, cell: Cell, card: Card) -> str:
    """What a reader must know before relying on a value."""
    found: list[str] = []
    if origin := origin_badge(entry):
        found.append(origin)
    else:
        layers = entry.isolation.get(card.name, ())
        if any(layer.startswith(board_table.BUNDLED) for layer in layers):
            found.append(badge("not isolated: bundled code", "plain", "; ".join(layers)))
        elif not layers:
            found.append(badge("not isolated", "warn"))
    if is_trained_on(entry, card):
        found.append(
            badge(
                "trained on this benchmark", "warn", "Its author says so, of all or a part of it."
            )
        )
    if cell.n_missing:
        found.append(
            badge(
                f"{cell.n_missing:,} missing",
                "warn",
                f"{count(cell.n_missing, 'pair')} of this slice got no score.",
            )
        )
    return "".join((*found, flag_badges(flags_of([entry], {card.name}))))
