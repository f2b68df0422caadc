"""The last lines of every page: how recent it is, and where the same data are for programs."""

from __future__ import annotations

from datetime import datetime

from leaderboard.pages.shown.markup import ago

API = "./v1/"
"""Where the interface for programs describes itself."""


def footer(as_of: datetime | None, now: datetime) -> str:
    """When the store last confirmed what is shown, and links.

    Args:
        as_of: None: it never was read.
        now: the current time.
    """
    said = f"As of {as_of:%Y-%m-%d %H:%M} UTC ({ago(as_of, now)})." if as_of else "Not read yet."
    return (
        f'<div class="as-foot" role="contentinfo"><span>{said}</span><span>'
        f'<a href="{API}">Data for programs</a> <a href="./about">How it is measured</a> '
        '<a href="./errata">Errata</a></span></div>'
    )
