"""Page of methods: what every figure means, from the cards of the benchmarks."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.schema import Card
from benchmarks.statistics.sign_flips import ALL_DRAWS, ENUMERATED, FIRST_DRAWS
from leaderboard.ranking.rank_ranges import MAX_MISSING, MIN_CLUSTERS
from leaderboard.rendering import render
from leaderboard.states import LEGEND
from leaderboard.text import MISSING
from leaderboard.web.components import Tag
from leaderboard.web.page import Context, Page
from leaderboard.web.widgets import html


def methods_view(cards: Iterable[Card]) -> str:
    """The page."""
    return render(
        "pages/methods.html",
        cards=tuple(cards),
        enumerated=ENUMERATED,
        first_draws=FIRST_DRAWS,
        all_draws=ALL_DRAWS,
        min_clusters=MIN_CLUSTERS,
        max_missing=MAX_MISSING,
        missing=MISSING,
        simulated=Tag("simulated ratings", "sim"),
        states=[(str(state), meaning) for state, meaning in LEGEND.items()],
    )


def _build(context: Context) -> None:
    html(methods_view(context.cards.values()))


PAGE = Page("Methods", "about", 40, _build)
