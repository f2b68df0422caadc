"""Behaviour of the pages during an outage of the store: they stay, and they say so."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any

import gradio as gr

from benchmarks.errors import TransientError
from leaderboard.publication.reader import Reader
from leaderboard.rendering import render

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
