"""Gradio components as every page uses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr

from leaderboard.web.outage import or_unread

QUIET: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden", "queue": False}
"""Events that only show something: at once, without a spinner, and not in the API."""


def html(value: str = "", **options: Any) -> gr.HTML:
    """A piece of finished HTML, without Gradio's own styles and click handler."""
    classes = ["as-html", *options.pop("elem_classes", [])]
    return gr.HTML(value, apply_default_css=False, js_on_load=None, elem_classes=classes, **options)


def html_on_load(build: Callable[[], str], **options: Any) -> gr.HTML:
    """HTML that is made anew whenever somebody opens the page."""
    shown = html(**options)
    on_load(build, shown)
    return shown


def on_load(build: Callable[..., Any], outputs: Any) -> None:
    """Run whenever somebody opens the page that is being built."""
    gr.context.Context.root_block.load(or_unread(build, outputs), outputs=outputs, **QUIET)


def run_on_load(script: str) -> None:
    """Run a JavaScript function whenever somebody opens the page that is being built."""
    gr.context.Context.root_block.load(None, js=script, api_visibility="private")
