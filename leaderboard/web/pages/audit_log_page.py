"""Page of the audit log: whether its chain holds, and its lines by page."""

from __future__ import annotations

import gradio as gr

from leaderboard.accounts import is_key
from leaderboard.ledger.audit_log import BAN, BEGAN, JUDGES, POLICY, UNBAN, Line
from leaderboard.rendering import render
from leaderboard.states import LEGEND, State
from leaderboard.views.audit_log import ChronicleReader, LedgerQuery, page_of
from leaderboard.web.page import Context, Page
from leaderboard.web.widgets import html, on_load

WHOLE = "./v1/ledger.jsonl"
"""Byte for byte as it is kept, so that anyone can verify the chain."""
MOST_PROBLEMS = 20
ACTIONS = ("", *map(str, State), BAN, UNBAN, POLICY, JUDGES, BEGAN)


def audit_log(reader: ChronicleReader, query: LedgerQuery) -> str:
    """The lines that are asked for, as HTML."""
    known = reader.read()

    def of_subject(line: Line) -> str:
        return LedgerQuery(subject=line.subject).to_link()

    def of_account(line: Line) -> str:
        return LedgerQuery(account=line.by).to_link()

    return render(
        "pages/audit_log.html",
        known=known,
        found=page_of(known.lines, query),
        query=query,
        actions=ACTIONS,
        legend={str(state): meaning for state, meaning in LEGEND.items()},
        is_key=is_key,
        ban=BAN,
        whole=WHOLE,
        most=MOST_PROBLEMS,
        of_subject=of_subject,
        of_account=of_account,
    )


def _build(context: Context) -> None:
    reader = ChronicleReader(context.store.public, context.clock)
    shown = html()

    def open_page(request: gr.Request) -> str:
        return audit_log(reader, LedgerQuery.from_params(request.query_params))

    on_load(open_page, shown)


PAGE = Page("Audit log", "ledger", 35, _build)
