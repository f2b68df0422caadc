"""View of the methods: what every figure means, from the benchmarks' own cards."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from benchmarks.schema import Card
from benchmarks.statistics.sign_flips import ALL_DRAWS, ENUMERATED, FIRST_DRAWS
from leaderboard.pages.shown.states_shown import legend
from leaderboard.ranking.rank_ranges import MAX_MISSING, MIN_CLUSTERS
from leaderboard.text import MISSING
from leaderboard.web.components import Tag
from leaderboard.web.rendering import render


def methods_view(cards: Iterable[Card]) -> str:
    """The page.

    Args:
        cards: of the benchmarks, in the order of display.
    """
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
        headline=Tag("headline", "info"),
        states=Markup(legend()),  # noqa: S704
    )
