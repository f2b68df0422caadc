"""Page of the service's status, kept up to date."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from leaderboard.pages.outage import or_as_before
from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.widgets import QUIET, html_on_load
from leaderboard.pages.status.view import status_view
from leaderboard.service.looking import HealthWatch

REFRESH_S = 15.0


def _build(context: Context) -> None:
    watch = context.watch or HealthWatch(context.store, Path())

    def shown() -> str:
        return status_view(watch.soon())

    view = html_on_load(shown)
    gr.Timer(REFRESH_S).tick(or_as_before(shown, 1), None, view, **QUIET)


PAGE = Page("Status", "status", 38, _build)
"""The page."""
