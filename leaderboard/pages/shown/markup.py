"""Small pieces of HTML, and the one way by which anything submitted enters a page.

Names, descriptions, reasons, logs and file names come from strangers. `text` makes them harmless:
it drops control and direction characters and escapes the rest.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from leaderboard.text import clean, duration

Tone = Literal["plain", "good", "warn", "bad", "info"]


def text(value: object, *, limit: int | None = None, lines: bool = False) -> str:
    """The text, safe inside an element or a quoted attribute.

    Braces are escaped as well, so that no template engine finds its own marks in it.
    """
    cleaned = clean(value, lines=lines)
    if limit is not None and len(cleaned) > limit:
        cleaned = f"{cleaned[: limit - 1].rstrip()}…"
    return html.escape(cleaned, quote=True).replace("{", "&#123;").replace("}", "&#125;")


def submitted(value: object, *, limit: int = 80) -> str:
    """A submitted name on its own, whose direction of writing cannot disturb its neighbours."""
    return f"<bdi>{text(value, limit=limit)}</bdi>"


def badge(label: str, tone: Tone = "plain", title: str = "") -> str:
    """A short remark beside a name; label and title are escaped here."""
    hint = f' title="{text(title)}"' if title else ""
    return f'<span class="as-badge as-{tone}"{hint}>{text(label)}</span>'


def notice(body: str, tone: Tone = "info", *, role: str = "note") -> str:
    """A framed message; the body is HTML already."""
    return f'<div class="as-notice as-{tone}" role="{role}">{body}</div>'


def section(title: str, body: str, *, aside: str = "", ident: str = "") -> str:
    """A titled part of a page; title is escaped here, body and aside are HTML already."""
    name = f' id="{text(ident)}"' if ident else ""
    side = f'<div class="as-aside">{aside}</div>' if aside else ""
    return (
        f'<section class="as-section"{name}><div class="as-head"><h2>{text(title)}</h2>{side}</div>'
        f"{body}</section>"
    )


def scroll_box(label: str) -> str:
    """The opening tag of a box that scrolls by itself, also by keyboard, where a table is too wide.

    Args:
        label: what is in it, for people who hear the page.
    """
    return f'<div class="as-scroll" tabindex="0" role="region" aria-label="{text(label)}">'


def page(parts: Iterable[str]) -> str:
    """The parts of a page in the frame that the style sheet expects."""
    return f'<div class="as-page">{"".join(parts)}</div>'


def paragraphs(value: str) -> str:
    """Plain text with blank lines as paragraphs."""
    blocks = (block.strip() for block in clean(value, lines=True).split("\n\n"))
    return "".join(f"<p>{text(block)}</p>" for block in blocks if block)


def link(address: str, label: str) -> str:
    """An outside link, if the address is one; otherwise the label alone."""
    if not clean(address).startswith(("https://", "http://")):
        return text(label)
    return f'<a href="{text(address)}" rel="noopener nofollow" target="_blank">{text(label)}</a>'


def ago(at: datetime, now: datetime) -> str:
    """A moment as a `time` element: how long ago, and the full date on hover."""
    seconds = (now - at).total_seconds()
    # No seconds: a page that refreshes itself would change all the time.
    shown = "less than a minute ago" if seconds < 60 else f"{duration(seconds)} ago"
    if seconds > 30 * 86_400:
        shown = f"{at:%Y-%m-%d}"
    return f'<time datetime="{at.isoformat()}" title="{at:%Y-%m-%d %H:%M} UTC">{shown}</time>'
