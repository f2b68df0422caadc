"""A view as a small picture: its title, what it says, and its first rows with their intervals."""

from __future__ import annotations

import io
import math
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeGuard

from PIL import Image, ImageDraw, ImageFont

from leaderboard.text import clean, interval, number
from leaderboard.web.heads.head import HEIGHT, SITE, WIDTH, Line, PageMetadata

_PAPER, _INK, _MUTED, _BLUE, _RULE = "#ffffff", "#1a2733", "#55646f", "#0f5fa8", "#c9d3da"
_LEFT, _RIGHT = 60, WIDTH - 60
_TITLE, _TEXT, _SMALL = 50, 30, 26
_TOP_OF_ROWS, _ROW = 260, 58
_NAME_WIDTH, _AXIS_LEFT, _AXIS_RIGHT = 420, 600, 860
_VALUE_AT = 890
_PLAIN = {"–": "-", "—": "-", "−": "-", "’": "'", "“": '"', "”": '"', "·": "-", "↑": "", "↓": ""}
_UNKNOWN = "?"
_MOST_LINES_OF_TEXT = 4
_LOWEST = HEIGHT - 60
"""Below it stands the note."""


def picture(head: PageMetadata) -> bytes:
    """The picture as PNG; equal heads make equal bytes."""
    image = Image.new("RGB", (WIDTH, HEIGHT), _PAPER)
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, WIDTH, 12), fill=_BLUE)
    draw.text((_LEFT, 40), SITE, font=_font(_SMALL), fill=_BLUE)
    under = _paragraph(draw, head.title, 80, _TITLE, _INK, most=2)
    if any(_drawn(line.value) for line in head.lines):
        _rows(draw, head, max(_TOP_OF_ROWS, under + 56))
    else:
        _paragraph(draw, head.description, under + 24, _TEXT, _MUTED, most=_MOST_LINES_OF_TEXT)
    foot = _cut(draw, drawable(head.note), _SMALL, _RIGHT - _LEFT)
    draw.text((_LEFT, HEIGHT - 28), foot, font=_font(_SMALL), fill=_MUTED, anchor="ls")
    kept = io.BytesIO()
    image.quantize(64).save(kept, "PNG", optimize=True)
    return kept.getvalue()


def drawable(value: str) -> str:
    """A text in the letters that the font has: others by their name or base, or a question mark."""
    return "".join(_letter(char) for char in clean(value))


def _letter(char: str) -> str:
    if char.isascii():
        return char
    if char in _PLAIN:
        return _PLAIN[char]
    if char == "…":
        return "..."
    named = unicodedata.name(char, "")
    if named.startswith("GREEK SMALL LETTER ") and named.count(" ") == 3:
        return named.rpartition(" ")[2].lower()
    base = unicodedata.normalize("NFKD", char)[:1]
    return base if base.isascii() else _UNKNOWN


@lru_cache(maxsize=8)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _paragraph(
    draw: ImageDraw.ImageDraw, value: str, top: int, size: int, colour: str, *, most: int
) -> int:
    """Write a text in lines; returns where the next thing may begin."""
    font, lines, line = _font(size), [], ""
    for word in drawable(value).split():
        tried = f"{line} {word}".strip()
        if line and draw.textlength(tried, font=font) > _RIGHT - _LEFT:
            lines.append(line)
            line = word
        else:
            line = tried
    lines.append(line)
    if len(lines) > most:
        lines = [*lines[: most - 1], f"{lines[most - 1]} ..."]
    for place, one in enumerate(lines):
        shown = _cut(draw, one, size, _RIGHT - _LEFT)
        draw.text((_LEFT, top + place * int(size * 1.3)), shown, font=font, fill=colour)
    return top + len(lines) * int(size * 1.3)


def _cut(draw: ImageDraw.ImageDraw, value: str, size: int, width: int) -> str:
    font, kept = _font(size), value
    if draw.textlength(kept, font=font) <= width:
        return kept
    while kept and draw.textlength(f"{kept}...", font=font) > width:
        kept = kept[:-1]
    return f"{kept.rstrip()}..."


def _rows(draw: ImageDraw.ImageDraw, head: PageMetadata, top: int) -> None:
    label = _cut(draw, drawable(head.axis), _SMALL, _RIGHT - _AXIS_LEFT)
    draw.text((_AXIS_LEFT, top - 12), label, font=_font(_SMALL), fill=_MUTED, anchor="ls")
    draw.line((_LEFT, top, _RIGHT, top), fill=_RULE, width=2)
    at = _axis(head.lines)
    for place, line in enumerate(head.lines):
        middle = top + _ROW // 2 + place * _ROW
        if middle + _ROW // 2 > _LOWEST:
            return
        _row(draw, line, middle)
        draw.line((_LEFT, middle + _ROW // 2, _RIGHT, middle + _ROW // 2), fill=_RULE, width=1)
        if head.axis and _drawn(line.value):
            _mark(draw, line, middle, at)


def _axis(lines: Sequence[Line]) -> Callable[[float], float]:
    ends = [end for line in lines for end in (line.value, line.low, line.high) if _drawn(end)]
    low, high = min(ends), max(ends)
    span = (high - low) or 1.0
    return lambda value: _AXIS_LEFT + (value - low) / span * (_AXIS_RIGHT - _AXIS_LEFT)


def _mark(draw: ImageDraw.ImageDraw, line: Line, middle: int, at: Callable[[float], float]) -> None:
    if _drawn(line.low) and _drawn(line.high):
        draw.line((at(line.low), middle, at(line.high), middle), fill=_BLUE, width=5)
    if _drawn(line.value):
        x = at(line.value)
        draw.ellipse((x - 9, middle - 9, x + 9, middle + 9), fill=_BLUE, outline=_PAPER, width=2)


def _drawn(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _row(draw: ImageDraw.ImageDraw, line: Line, middle: int) -> None:
    name, plain = _font(_TEXT), _font(_SMALL)
    draw.text((_LEFT, middle), drawable(line.ranks), font=plain, fill=_MUTED, anchor="lm")
    shown = _cut(draw, drawable(line.name), _TEXT, _NAME_WIDTH)
    draw.text((_LEFT + 100, middle), shown, font=name, fill=_INK, anchor="lm")
    said = drawable(f"{number(line.value)} {interval(line.low, line.high)}")
    draw.text((_VALUE_AT, middle), said, font=plain, fill=_INK, anchor="lm")
