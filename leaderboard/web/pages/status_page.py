"""Page of the status of the service: a verdict, the problems with their remedies, and the figures."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import gradio as gr

from leaderboard.rendering import render
from leaderboard.service.health import Health, Level, Worker
from leaderboard.service.looking import HealthWatch
from leaderboard.web.components import Tag
from leaderboard.web.outage import or_as_before
from leaderboard.web.page import Context, Page
from leaderboard.web.widgets import QUIET, html_on_load

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
_SILENT = Tag("silent", "warn", "Other workers take over its submissions.")


@dataclass(frozen=True)
class WorkerLine:
    """A worker as a row. `silent` is set where it was not seen for too long."""

    name: str
    seen: datetime
    state: str
    isolated: bool
    rate: float | None
    silent: Tag | None


def status_view(health: Health) -> str:
    """The page."""
    verdict, tone = _VERDICTS[health.status]
    newest = sorted(health.workers, key=lambda worker: (worker.heartbeat_age_s, worker.name))
    return render(
        "pages/status.html",
        health=health,
        verdict=verdict,
        tone=tone,
        causes=_CAUSES,
        workers=[_line(worker, health.at) for worker in newest[:MOST_WORKERS]],
        beyond=max(0, len(newest) - MOST_WORKERS),
        gib=_GIB,
    )


def _line(worker: Worker, now: datetime) -> WorkerLine:
    return WorkerLine(
        name=worker.name,
        seen=now - timedelta(seconds=worker.heartbeat_age_s),
        state="working" if worker.working else "idle",
        isolated=worker.isolation_ok,
        rate=worker.rate_per_s if worker.alive and worker.working else None,
        silent=None if worker.alive else _SILENT,
    )


def _build(context: Context) -> None:
    watch = context.watch or HealthWatch(context.store, Path())

    def shown() -> str:
        return status_view(watch.soon())

    view = html_on_load(shown)
    gr.Timer(REFRESH_S).tick(or_as_before(shown, 1), None, view, **QUIET)


PAGE = Page("Status", "status", 38, _build)
"""The page."""
