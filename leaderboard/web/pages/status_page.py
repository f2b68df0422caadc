"""Pages of the service: its status and its audit log."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import gradio as gr

from leaderboard.accounts import is_key
from leaderboard.ledger.audit_log import BAN, BEGAN, JUDGES, POLICY, UNBAN, Line
from leaderboard.rendering import render
from leaderboard.service.health import Health, Level
from leaderboard.service.polling import HealthWatch
from leaderboard.states import LEGEND, State
from leaderboard.views.audit_log import AuditLogReader, LedgerQuery, page_of
from leaderboard.web.page import Context, Page
from leaderboard.web.widgets import QUIET, html, html_on_load, on_load, or_as_before

REFRESH_S = 15.0
MOST_WORKERS = 50
_VERDICTS = {
    Level.OK: ("Everything works.", "good"),
    Level.DEGRADED: ("It works, but needs attention.", "warn"),
    Level.DOWN: ("It cannot work at the moment. What was submitted is kept.", "bad"),
}
_CAUSES = {
    "submitter": "in the submitter's code or files",
    "world": "by an outside failure",
    "platform": "on our side",
}
_GIB = 2**30


def status_view(health: Health) -> str:
    """The page, with the figures judged."""
    verdict, tone = _VERDICTS[health.status]
    newest = sorted(health.workers, key=lambda worker: (worker.heartbeat_age_s, worker.name))
    return render(
        "pages/status.html",
        health=health,
        verdict=verdict,
        tone=tone,
        causes=_CAUSES,
        workers=newest[:MOST_WORKERS],
        before=lambda seconds: health.at - timedelta(seconds=seconds),
        beyond=max(0, len(newest) - MOST_WORKERS),
        gib=_GIB,
    )


def _build_status(context: Context) -> None:
    watch = context.watch or HealthWatch(context.store, Path())

    def status_html() -> str:
        return status_view(watch.soon())

    view = html_on_load(status_html)
    gr.Timer(REFRESH_S).tick(or_as_before(status_html, 1), None, view, **QUIET)


STATUS = Page("Status", "status", 38, _build_status)


WHOLE = "./v1/ledger.jsonl"
"""Byte for byte as it is kept, so that anyone can verify the chain."""
MOST_PROBLEMS = 20
ACTIONS = ("", *map(str, State), BAN, UNBAN, POLICY, JUDGES, BEGAN)


def audit_log(reader: AuditLogReader, query: LedgerQuery) -> str:
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


def _build_audit_log(context: Context) -> None:
    shown = html()

    def open_page(request: gr.Request) -> str:
        return audit_log(context.audit_log, LedgerQuery.from_params(request.query_params))

    on_load(open_page, shown)


AUDIT_LOG = Page("Audit log", "ledger", 35, _build_audit_log)
