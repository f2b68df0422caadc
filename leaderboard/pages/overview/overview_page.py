"""The first page: the index, who leads where, metrics over all boards, what changed lately."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import gradio as gr

from benchmarks.errors import TransientError
from leaderboard.ledger.chronicle import Line
from leaderboard.pages.ledger.reading import ChronicleReader
from leaderboard.pages.moved.query import with_earlier
from leaderboard.pages.outage import or_unread
from leaderboard.pages.overview.index_first import index_first, waiting
from leaderboard.pages.overview.lately import lately
from leaderboard.pages.overview.models_led import model_cards
from leaderboard.pages.overview.standings import leader_cards, matrix
from leaderboard.pages.page import Context, Page
from leaderboard.pages.reading import View
from leaderboard.pages.shown.markup import page, section
from leaderboard.pages.shown.widgets import QUIET, html
from leaderboard.pages.skills.view import skill_links

_OPENING = """
<header class="as-hero"><h1>Which text-to-image metrics can be trusted?</h1>
<p>Assay tests metrics that score how well an image follows its prompt, each against the same data
and protocols. A <b>rank range</b> such as 2–5 holds the places a metric takes in 95 % of the redrawn
data: where ranges overlap, the data do not tell the metrics apart; even where they do not, a tier
may hold several.</p></header>
"""


def opening(view: View) -> str:
    """What the site is for, and the way in by skill."""
    skills = skill_links(view)
    return page([_OPENING, section("Which metric for…?", skills) if skills else ""])


def overview(
    view: View,
    now: datetime,
    lines: Sequence[Line] = (),
    earlier: Iterable[str] = (),
    models: str = "",
) -> str:
    """What stands below the index.

    Args:
        view: what is published.
        now: the current time.
        lines: of the ledger, oldest first.
        earlier: benchmarks of which earlier boards are kept.
        models: the cards of text-to-image models; empty where there are none.
    """
    parts = [section("Leaders", leader_cards(view), aside='<a href="./boards">All boards</a>')]
    if models:
        aside = '<a href="./models">All models</a>'
        parts.append(section("Models, judged by the metrics that earned it", models, aside=aside))
    latest = lately(view, lines, earlier, now)
    if latest:
        aside = '<a href="./ledger">Everything, in the ledger</a>'
        parts.append(section("What changed lately", latest, aside=aside))
    return page([*parts, section("All metrics, all boards", matrix(view))])


def _kept(
    context: Context, chronicle: ChronicleReader, view: View
) -> tuple[Sequence[Line], Iterable[str]]:
    """What is read beside the snapshot; nothing during an outage, which the page's band tells."""
    try:
        return chronicle.read().lines, with_earlier(view, context.cards, context.earlier.tags)
    except TransientError:
        return (), ()


def _models(context: Context, view: View) -> str:
    try:
        return model_cards(view, context.models)
    except TransientError:
        return ""


def _build(context: Context) -> None:
    chronicle = ChronicleReader(context.store.public, context.clock)
    prepared = context.prepared
    top, index, below = html(), html(), html()

    def opened() -> tuple[str, str, str]:
        view = context.reader.view()
        indexed = any(board.card.headline_scale for board in view.boards.values())
        lines, earlier = _kept(context, chronicle, view)
        return (
            opening(view),
            waiting() if indexed and view.entries else "",
            overview(view, context.clock(), lines, earlier, _models(context, view)),
        )

    def weighed() -> str:
        base, _ = prepared.of(context.reader.view())
        return index_first(base)

    outputs = [top, index, below]
    load = gr.context.Context.root_block.load(or_unread(opened, outputs), outputs=outputs, **QUIET)
    # The resamples of all benchmarks take longer to read than the rest, which need not wait.
    load.then(or_unread(weighed, index), None, index, **QUIET)


PAGE = Page("Overview", "", 0, _build)
