"""Small pieces of HTML, and the one way by which anything submitted enters a page.

Names, descriptions, reasons, logs and file names come from strangers. `text` makes them harmless:
it drops control and direction characters and escapes the rest.
"""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Iterable
from datetime import datetime
from typing import Literal

MISSING = "—"
"""What stands where there is no value. Never a zero."""

Tone = Literal["plain", "good", "warn", "bad", "info"]

_INVISIBLE = frozenset("\u061c\u200b\u200e\u200f\u2028\u2029\u2060\ufeff")
_DIRECTION = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))
_DROPPED = _INVISIBLE | _DIRECTION
_DROPPED_CATEGORIES = frozenset({"Cc", "Cs", "Cn"})


def clean(value: object, *, lines: bool = False) -> str:
    """The text without characters that are unseen, reverse the reading order or move the cursor.

    Args:
        value: anything; its `str` is taken.
        lines: keep line breaks and tabs (for logs); otherwise they become spaces.
    """
    given = str(value)
    if given.isascii() and given.isprintable():
        return given
    kept: list[str] = []
    for char in given.replace("\r\n", "\n"):
        if char in "\n\t":
            kept.append(char if lines else " ")
        elif char not in _DROPPED and unicodedata.category(char) not in _DROPPED_CATEGORIES:
            kept.append(char)
    return "".join(kept)


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


def number(value: float | None, digits: int = 3) -> str:
    """A figure for people: fixed digits, a true minus sign, a dash where there is none."""
    if value is None or not math.isfinite(value):
        return MISSING
    size = abs(value)
    shown = (
        f"{value:.{digits}f}" if size < 100 else f"{value:.1f}" if size < 10_000 else f"{value:.3g}"
    )
    if float(shown) == 0.0:
        shown = shown.lstrip("-")
    return shown.replace("-", "−")


def rate(per_second: float) -> str:
    """A speed with no more digits than it deserves: `3.4`, `841`, `2,684`."""
    return f"{per_second:.1f}" if per_second < 100 else f"{per_second:,.0f}"


def interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """A 95 % interval in brackets; empty where there is none."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"[{number(low, digits)}, {number(high, digits)}]"


def count(quantity: int, one: str, many: str = "") -> str:
    """`1 metric`, `3 metrics`."""
    return f"{quantity:,} {one if quantity == 1 else many or one + 's'}"


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


def duration(seconds: float) -> str:
    """A length of time in the largest unit that says enough: `40 s`, `12 min`, `3 h 05 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes:02d} min"
    return count(hours // 24, "day")


def ago(at: datetime, now: datetime) -> str:
    """A moment as a `time` element: how long ago, and the full date on hover."""
    seconds = (now - at).total_seconds()
    # No seconds: a page that refreshes itself would change all the time.
    shown = "less than a minute ago" if seconds < 60 else f"{duration(seconds)} ago"
    if seconds > 30 * 86_400:
        shown = f"{at:%Y-%m-%d}"
    return f'<time datetime="{at.isoformat()}" title="{at:%Y-%m-%d %H:%M} UTC">{shown}</time>'
