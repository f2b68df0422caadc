"""Jinja2 environment of all HTML, and the escaping of what strangers wrote.

Names, descriptions, reasons, logs and file names come from untrusted users. Every value that a
template prints is cleaned of control and direction characters and escaped, braces included, unless
it is markup that this environment made itself.
"""

from __future__ import annotations

import html
import re
from datetime import datetime
from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from leaderboard import text

_ROOMS = ("leaderboard.web", "leaderboard.publication")  # Packages that have templates
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]"
)
_ESCAPED = re.compile(r"""[&<>"'{}]""")


def render(template: str, **values: object) -> str:
    """Render a template to HTML."""
    return environment().get_template(template).render(**values)


@cache
def environment() -> Environment:
    """The one environment, with the filters of figures and names."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(room, "templates") for room in _ROOMS]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printed,
        auto_reload=False,
    )
    made.filters |= {
        "ago": _ago,
        "count": text.count,
        "duration": text.duration,
        "e": _escaped,
        "escape": _escaped,
        "integer": "{:,}".format,
        "interval": text.interval,
        "limited": _limited,
        "lines": _lines,
        "number": text.number,
        "paragraphs": paragraphs,
        "percent": percent,
        "ranks": text.ranks,
        "rate": text.rate,
        "usd": text.usd,
        "submitted": _submitted,
    }
    return made


def paragraphs(value: str) -> list[str]:
    """The paragraphs of a plain text, which blank lines divide."""
    blocks = (block.strip() for block in text.clean(value, lines=True).split("\n\n"))
    return [block for block in blocks if block]


def percent(share: float | None, digits: int = 0) -> str:
    """A share as per cent, without a space and with a true minus; a dash where there is none."""
    if share is None:
        return text.MISSING
    return f"{text.number(100 * share, digits)}%"


def _printed(value: object) -> Markup:
    if value is None:
        raise TypeError("A template prints None.")
    if isinstance(value, Markup):
        # Markup that strings were joined to holds them escaped, but not cleaned.
        if "{" not in value and "}" not in value and not _UNSEEN.search(value):
            return value
        return Markup(_without_braces(_UNSEEN.sub("", value)))  # noqa: S704
    return _escaped(value)


def _without_braces(content: str) -> str:
    return content.replace("{", "&#123;").replace("}", "&#125;")


def escaped(value: object, *, limit: int | None = None, lines: bool = False) -> Markup:
    """A text, safe inside an element or a quoted attribute.

    Control and direction characters are dropped. Braces are escaped as well, so that no template
    engine finds its own marks in it.
    """
    cleaned = text.clean(value, lines=lines)
    if limit is not None and len(cleaned) > limit:
        cleaned = f"{cleaned[: limit - 1].rstrip()}…"
    if _ESCAPED.search(cleaned):
        cleaned = _without_braces(html.escape(cleaned, quote=True))
    return Markup(cleaned)  # noqa: S704


def _escaped(value: object) -> Markup:
    return value if isinstance(value, Markup) else escaped(value)


def _limited(value: object, limit: int) -> Markup:
    return escaped(value, limit=limit)


def _lines(value: object) -> Markup:
    return escaped(value, lines=True)


def _submitted(value: object, limit: int = 80) -> Markup:
    """A submitted name, whose direction of writing cannot disturb its neighbours."""
    return Markup("<bdi>{}</bdi>").format(escaped(value, limit=limit))


def _ago(at: datetime, now: datetime) -> Markup:
    """How long ago a moment was, and its full date on hover; no seconds, which always change."""
    seconds = (now - at).total_seconds()
    shown = "less than a minute ago" if seconds < 60 else f"{text.duration(seconds)} ago"
    if seconds > 30 * 86_400:
        shown = f"{at:%Y-%m-%d}"
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        at.isoformat(), f"{at:%Y-%m-%d %H:%M}", shown
    )
