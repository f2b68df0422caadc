"""The last lines of every page: how recent it is, and where the same data are for programs."""

from __future__ import annotations

from datetime import datetime

from leaderboard.pages.shown.markup import ago, text

API = "./v1/"
"""Where the interface for programs describes itself."""


def footer(as_of: datetime | None, now: datetime, still: str = "") -> str:
    """When the store last confirmed what is shown, and links.

    Args:
        as_of: None: it never was read.
        now: the current time.
        still: address of the boards as one static page; empty where it is not served.
    """
    copy = (
        f' <a href="{text(still)}" title="One page without scripts, to keep for when this service '
        'is away">Static copy</a>'
        if still
        else ""
    )
    said = f"As of {as_of:%Y-%m-%d %H:%M} UTC ({ago(as_of, now)})." if as_of else "Not read yet."
    return (
        f'<div class="as-foot" role="contentinfo"><span>{said}</span><span>'
        f'<a href="{API}">Data for programs</a> <a href="./about">How it is measured</a> '
        f'<a href="./errata">Errata</a>{copy}</span></div>'
    )
