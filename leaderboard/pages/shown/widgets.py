"""Gradio components as every page uses them."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

import gradio as gr

from leaderboard.pages.outage import or_unread

QUIET: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden", "queue": False}
"""Events that only show something: at once, without a spinner, and not in the API."""

# The path is named, since the page's base address is the root of the site.
SHOW_LINK = "(query) => { history.replaceState(null, '', location.pathname + query); }"
"""Puts the query of a view into the address bar."""
COPY_LINK = """async (query) => {
  const address = window.location.origin + window.location.pathname + query;
  const button = document.querySelector('#as-copy');
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(address);
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = label; }, 1500);
  } catch {
    window.prompt('Link to this view', address);
  }
}"""
"""Copies the address of a view; the button is the one called `as-copy`."""


def html(value: str = "", **options: Any) -> gr.HTML:
    """A piece of finished HTML, without Gradio's own styles and click handler."""
    classes = ["as-html", *options.pop("elem_classes", [])]
    return gr.HTML(value, apply_default_css=False, js_on_load=None, elem_classes=classes, **options)


def folded(title: str) -> None:
    """A line that unfolds the rows of controls after it, those of the class `as-further`.

    It is there on narrow screens only; on wide ones these rows are always shown. It needs no
    script: the style sheet looks whether it is open.

    Args:
        title: what the rows hold.
    """
    html(
        f"<details><summary>{escape(title)}</summary></details>",
        elem_classes=["as-fold"],
    )


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
