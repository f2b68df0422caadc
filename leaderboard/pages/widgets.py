"""Gradio components as every page uses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr

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


def html_on_load(build: Callable[[], str], **options: Any) -> gr.HTML:
    """HTML that is made anew whenever somebody opens the page."""
    shown = html(**options)
    on_load(build, shown)
    return shown


def on_load(build: Callable[..., Any], outputs: Any) -> None:
    """Run whenever somebody opens the page that is being built."""
    gr.context.Context.root_block.load(build, outputs=outputs, **QUIET)


def run_on_load(script: str) -> None:
    """Run a JavaScript function whenever somebody opens the page that is being built."""
    gr.context.Context.root_block.load(None, js=script, api_visibility="private")
