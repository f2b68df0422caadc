"""Everything that was done, for everyone to read and to verify."""

from __future__ import annotations

import gradio as gr

from leaderboard.pages.ledger.view import ledger_view
from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.widgets import html, on_load
from leaderboard.views.audit_log import ChronicleReader, LedgerQuery, page_of


def ledger(reader: ChronicleReader, query: LedgerQuery) -> str:
    """The page that is asked for."""
    known = reader.read()
    return ledger_view(page_of(known.lines, query), query, known)


def _build(context: Context) -> None:
    reader = ChronicleReader(context.store.public, context.clock)
    shown = html()

    def open_page(request: gr.Request) -> str:
        return ledger(reader, LedgerQuery.from_params(request.query_params))

    on_load(open_page, shown)


PAGE = Page("Audit log", "ledger", 35, _build)
