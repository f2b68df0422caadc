"""All submissions and what happens to them, kept up to date."""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import quote

import gradio as gr

from leaderboard.pages.outage import or_as_before
from leaderboard.pages.page import Context, Page
from leaderboard.pages.queue.live_view import Moment, happening
from leaderboard.pages.queue.old_results import old_results_list
from leaderboard.pages.queue.table import queue_table, workers_line
from leaderboard.pages.queue.turns import turns_of
from leaderboard.pages.shown.history import history
from leaderboard.pages.shown.markup import notice, page, section, submitted
from leaderboard.pages.shown.states_shown import legend
from leaderboard.pages.shown.version_links import version_links
from leaderboard.pages.shown.widgets import QUIET, html, on_load

REFRESH_S = 2.0


def queue(context: Context, chosen: str) -> str:
    """Workers, all submissions and the states.

    Args:
        context: where submissions and pulses are read.
        chosen: id of a submission to be marked; empty for none.
    """
    now = context.clock()
    pulses = context.live.pulses()
    titles = {name: card.title for name, card in context.cards.items()}
    table = queue_table(
        context.reader.statuses(), pulses, titles, now,
        chosen=chosen, isolation=context.reader.isolation(), turns=turns_of(context, pulses),
    )  # fmt: skip
    return page(
        [
            section("Workers", workers_line(pulses, now)),
            section("Submissions", table),
            section("What the states mean", legend()),
        ]
    )


def one_submission(context: Context, chosen: str) -> str:
    """The history of a submission, if one is chosen."""
    return page([section("History", _history(context, chosen))]) if chosen else ""


def now_of(context: Context, chosen: str) -> str:
    """What happens to the chosen submission right now, as far as everybody may know."""
    status = next(
        (s for s in context.reader.statuses() if s.submission.submission_id == chosen), None
    )
    if status is None or not status.unfinished:
        return ""
    pulses = context.live.pulses()
    moment = Moment(pulses, context.clock(), turns_of(context, pulses).get(chosen))
    return page([happening(status, context.reader.events(chosen), moment)])


def _history(context: Context, chosen: str) -> str:
    back = '<p><a href="./queue">Close the history</a>'
    ledger = f' · <a href="./ledger?subject={quote(chosen)}">In the ledger</a></p>'
    statuses = context.reader.statuses()
    for status in statuses:
        if status.submission.submission_id == chosen:
            events, runs = context.reader.events(chosen), context.reader.runs(chosen)
            versions = version_links(status, statuses) + old_results_list(context, chosen)
            return history(status, events, runs, versions) + back + ledger
    return notice(f"There is no submission {submitted(chosen)} here.", "warn") + f"{back}</p>"


def _build(context: Context) -> None:
    chosen = gr.State("")
    html(page(["<h1>Queue</h1>"]))
    parts = (now_of, one_submission, queue)
    shown = [html() for _ in parts]
    digests = [gr.State("") for _ in parts]

    def open_page(request: gr.Request) -> tuple[str, ...]:
        wanted = str(request.query_params.get("submission", ""))
        contents = [part(context, wanted) for part in parts]
        return (wanted, *contents, *map(_digest, contents))

    def refresh(wanted: str, *before: str) -> tuple[Any, ...]:
        contents = [part(context, wanted) for part in parts]
        after = [_digest(content) for content in contents]
        # An unchanged part is left as it is, so that a selection in it survives.
        changed = [
            gr.skip() if old == new else content
            for content, old, new in zip(contents, before, after, strict=True)
        ]
        return (*changed, *after)

    on_load(open_page, [chosen, *shown, *digests])
    changing = [*shown, *digests]
    gr.Timer(REFRESH_S).tick(
        or_as_before(refresh, len(changing)), [chosen, *digests], changing, **QUIET
    )


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


PAGE = Page("Queue", "queue", 30, _build)
