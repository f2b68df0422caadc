"""Gradio components and events as every page uses them, also during an outage of the store."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any

import gradio as gr

from benchmarks.errors import TransientError
from leaderboard.publication.reader import Reader
from leaderboard.rendering import render

_SANS = ("-apple-system", "Segoe UI", "Roboto", "Helvetica Neue", "Arial", "sans-serif")
_MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "Liberation Mono", "monospace")


def theme() -> gr.themes.Base:
    """The theme to be given to `launch`; its colours are the tokens of the style sheet."""
    plain = {
        "background_fill_primary": "var(--as-panel)",
        "background_fill_secondary": "var(--as-sunk)",
        "block_background_fill": "transparent",
        "block_label_background_fill": "transparent",
        "block_label_text_color": "var(--as-muted)",
        "block_title_text_color": "var(--as-muted)",
        "block_info_text_color": "var(--as-muted)",
        "body_text_color": "var(--as-ink)",
        "body_text_color_subdued": "var(--as-muted)",
        "border_color_primary": "var(--as-line)",
        "border_color_accent": "var(--as-accent)",
        "button_primary_background_fill": "var(--as-fill)",
        "button_primary_background_fill_hover": "var(--as-fill-hover)",
        "button_primary_text_color": "var(--as-on-fill)",
        "color_accent_soft": "var(--as-accent-soft)",
        "input_background_fill": "var(--as-panel)",
        "input_border_color_focus": "var(--as-accent)",
        "input_placeholder_color": "var(--as-muted)",
        "link_text_color": "var(--as-accent)",
        "link_text_color_hover": "var(--as-accent)",
        "link_text_color_visited": "var(--as-accent)",
        "link_text_color_active": "var(--as-accent)",
        "slider_color": "var(--as-accent)",
    }
    # The first paint comes before the style sheet's tokens can be asked for.
    both = {"body_background_fill": "#f7f9fb", "body_background_fill_dark": "#0d1217"}
    return gr.themes.Base(
        primary_hue=gr.themes.colors.teal,
        neutral_hue=gr.themes.colors.slate,
        text_size=gr.themes.sizes.text_sm,
        radius_size=gr.themes.sizes.radius_sm,
        spacing_size=gr.themes.sizes.spacing_sm,
        font=[gr.themes.Font(name) for name in _SANS],
        font_mono=[gr.themes.Font(name) for name in _MONO],
    ).set(
        block_border_width="0px",
        **plain,
        **{f"{name}_dark": value for name, value in plain.items()},
        **both,
    )


LOOKED_AT_EVERY_S = 5.0


def band(reader: Reader, now: datetime) -> str:
    """Says that what is shown is old, and of when; nothing while the store answers."""
    try:
        reader.statuses()
    except TransientError as error:
        return _band("The store does not answer.", "Nothing could be read so far.", error.message)
    if not reader.trouble or reader.as_of is None:
        return ""
    at = reader.as_of
    when = f"{at:%H:%M} UTC" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M} UTC"
    return _band(
        f"The store does not answer since {when}; shown as of {when}.",
        "It may have changed since. Nothing can be submitted or changed until it answers again.",
        reader.trouble,
    )


def unread(error: TransientError) -> str:
    """In place of what could not be read."""
    return render("shell/unread.html", why=error.message)


def or_as_before(handler: Callable[..., Any], outputs: int) -> Callable[..., Any]:
    """A handler that renews what is shown, and leaves it while the store does not answer."""

    @wraps(handler)
    def renewed(*given: Any) -> Any:
        try:
            return handler(*given)
        except TransientError:
            kept = tuple(gr.skip() for _ in range(outputs))
            return kept if outputs != 1 else kept[0]

    return renewed


def or_unread(handler: Callable[..., Any], outputs: Any) -> Callable[..., Any]:
    """A handler that fills a page that is opened, and says so where there is nothing to show."""
    every = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    first = next((place for place, one in enumerate(every) if isinstance(one, gr.HTML)), None)

    @wraps(handler)
    def opened(*given: Any) -> Any:
        try:
            return handler(*given)
        except TransientError as error:
            shown = [unread(error) if place == first else gr.skip() for place in range(len(every))]
            return tuple(shown) if len(shown) != 1 else shown[0]

    return opened


def _band(head: str, body: str, why: str) -> str:
    return render("shell/outage.html", head=head, body=body, why=why)


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
