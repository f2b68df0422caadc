"""The first page: the index, who leads where, metrics over all boards, what changed lately."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import gradio as gr

from benchmarks.errors import TransientError
from leaderboard.ledger.chronicle import Line
from leaderboard.pages.outage import or_unread
from leaderboard.pages.overview.boards_first import board_section, boards_first
from leaderboard.pages.overview.index_first import index_first, waiting
from leaderboard.pages.overview.lately import lately
from leaderboard.pages.overview.models_led import NO_MODELS, ModelCards, model_cards
from leaderboard.pages.overview.people import people_section
from leaderboard.pages.overview.standings import leader_cards, matrix, standings
from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.markup import page, section
from leaderboard.pages.shown.widgets import QUIET, html
from leaderboard.pages.skills.view import skill_links
from leaderboard.publication.index import index_boards
from leaderboard.publication.reader import View
from leaderboard.views.audit_log import ChronicleReader
from leaderboard.views.changes import with_earlier

_OPENING = """
<header class="as-hero"><h1>Which text-to-image metrics can be trusted?</h1>
<p>Assay tests metrics that score how well an image follows its prompt, each against the same data
and protocols. A <b>rank range</b> such as 2–5 holds the places a metric takes in 95 % of the redrawn
data. Metrics of one <b>tier</b> do not differ significantly; its tests are stricter than the ranges, so
ranges within a tier need not overlap.</p></header>
"""
_TRY = (
    '<p class="as-lead">Pictures and ratings of these boards are <b>simulated</b>: they show what '
    "becomes of a submission, not how good a metric is, and are compared with nothing above. "
    "Start with <code>python -m evaluator init plain my-metric</code>, or with the "
    '<a href="./submit">form</a>. Over all of them: '
    '<a href="./index?ratings=simulated">index</a>, '
    '<a href="./skills?ratings=simulated">skills</a>.</p>'
)


def opening(view: View) -> str:
    """What the site is for, and the boards with the most metrics.

    Args:
        view: what is published.
    """
    shown = view.group()
    return page([_OPENING, *(board_section(shown, name) for name in boards_first(shown))])


def overview(
    view: View,
    now: datetime,
    lines: Sequence[Line] = (),
    earlier: Iterable[str] = (),
    *,
    models: ModelCards = NO_MODELS,
    people: str = "",
) -> str:
    """What stands below the index.

    Args:
        view: what is published.
        now: the current time.
        lines: of the ledger, oldest first.
        earlier: benchmarks of which earlier boards are kept.
        models: the cards of text-to-image models.
        people: the section on people's ratings of models; empty where there are none.
    """
    shown = view.group()
    aside = '<a href="./boards">All boards</a>'
    parts = [people, section("Other boards", leader_cards(shown, boards_first(shown)), aside=aside)]
    skills = skill_links(shown)
    if skills:
        parts.append(section("Which metric for…?", skills))
    if models.real:
        parts.append(_models(models.real))
    latest = lately(shown, lines, earlier, now)
    if latest:
        aside = '<a href="./ledger">Everything, in the ledger</a>'
        parts.append(section("What changed lately", latest, aside=aside))
    parts += _matrix(shown)
    return page([*parts, *_to_try(view, models)])


def _matrix(view: View) -> list[str]:
    """Every metric on every board; nothing where each is on one board, which is shown whole."""
    whole = set(boards_first(view))
    filled = {name for name, board in view.boards.items() if not board.empty}
    if filled and filled <= whole and all(len(row.cells) < 2 for row in standings(view)):
        return []
    return [section("All metrics, all boards", matrix(view))]


def _models(cards: str) -> str:
    aside = '<a href="./models">All models</a>'
    return section("Models, judged by the metrics that earned it", cards, aside=aside)


def _to_try(view: View, models: ModelCards) -> list[str]:
    """The simulated boards, apart from all others; nothing where they are all there is."""
    simulated = view.group(simulated=True)
    if not view.has_both:
        return [_models(models.simulated)] if models.simulated else []
    return [
        section("Try it yourself", _TRY + leader_cards(simulated) + models.simulated,
                ident="try-it-yourself")
    ]  # fmt: skip


def _kept(
    context: Context, chronicle: ChronicleReader, view: View
) -> tuple[Sequence[Line], Iterable[str]]:
    """What is read beside the snapshot; nothing during an outage, which the page's band tells."""
    try:
        return chronicle.read().lines, with_earlier(view, context.cards, context.earlier.tags)
    except TransientError:
        return (), ()


def _model_cards(context: Context, view: View) -> ModelCards:
    try:
        return model_cards(view, context.models)
    except TransientError:
        return NO_MODELS


def _build(context: Context) -> None:
    chronicle = ChronicleReader(context.store.public, context.clock)
    prepared = context.prepared
    top, index, below = html(), html(), html()

    def opened() -> tuple[str, str, str]:
        view = context.reader.view()
        indexed = any(board.weight for board in index_boards(view.group())[0].values())
        lines, earlier = _kept(context, chronicle, view)
        return (
            opening(view),
            waiting() if indexed else "",
            overview(
                view,
                context.clock(),
                lines,
                earlier,
                models=_model_cards(context, view),
                people=people_section(context.models),
            ),
        )

    def weighed() -> str:
        base = prepared.of(context.reader.view().group())
        return index_first(base)

    outputs = [top, index, below]
    load = gr.context.Context.root_block.load(or_unread(opened, outputs), outputs=outputs, **QUIET)
    # The resamples of all benchmarks take longer to read than the rest, which need not wait.
    load.then(or_unread(weighed, index), None, index, **QUIET)


PAGE = Page("Overview", "", 0, _build)
