"""Footer of every page: how recent it is, how it is measured, and the same data for programs."""

from __future__ import annotations

from datetime import datetime

from leaderboard.web.rendering import render


def footer(as_of: datetime | None, now: datetime, still: str = "") -> str:
    """When the store last confirmed what is shown, and links.

    Args:
        as_of: None: it never was read.
        now: the current time.
        still: address of the boards as one static page; empty where it is not served.
    """
    return render("shell/footer.html", as_of=as_of, now=now, still=still)
