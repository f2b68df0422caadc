"""Plain text of people and figures: cleaned, and without any markup."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata

MISSING = "—"  # What stands where there is no value. Never a zero.
_INVISIBLE = frozenset("\u061c\u200b\u200e\u200f\u2028\u2029\u2060\ufeff")
_DIRECTION = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))
_DROPPED = _INVISIBLE | _DIRECTION
_DROPPED_CATEGORIES = frozenset({"Cc", "Cs", "Cn"})
_RESERVED = re.compile(r"(data|con|prn|aux|nul|com[1-9]|lpt[1-9])(\..*)?", re.IGNORECASE)
_LONGEST_NAME = 80


def clean(value: object, *, lines: bool = False) -> str:
    """The text without characters that are unseen, reverse the reading order or move the cursor."""
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


def one_line(value: object, most: int) -> str:
    """The text as one clean line, with an ellipsis where it is longer than that."""
    shown = " ".join(clean(value).split())
    return shown if len(shown) <= most else f"{shown[: most - 1].rstrip()}…"


def portable_name(text: str) -> str:
    """A name that every file system takes, of at most 80 ASCII characters.

    Where more of the text is lost than its spaces, a hash of it at the end keeps two texts apart.
    """
    given = clean(text)
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", given).strip("-. ")
    if not plain or plain != given.replace(" ", "-") or len(plain) > _LONGEST_NAME:
        digest = hashlib.sha256(given.encode()).hexdigest()[:8]
        plain = f"{plain[: _LONGEST_NAME - 9].strip('-. ') or 'unnamed'}-{digest}"
    return f"{plain}_" if _RESERVED.fullmatch(plain) else plain


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


def signed(value: float, digits: int = 3) -> str:
    """A difference with its sign; none where it is zero."""
    shown = number(value, digits)
    return f"+{shown}" if value > 0 and shown != number(0.0, digits) else shown


def usd(value: float | None) -> str:
    """A price in USD: cents, and below one dollar two digits that count; a dash where there is none."""
    if value is None:
        return MISSING
    return f"{value:,.2f}" if value >= 1 else f"{value:.2g}"


def rate(per_second: float) -> str:
    """A speed with no more digits than it deserves: `3.4`, `841`, `2,684`."""
    return f"{per_second:.1f}" if per_second < 100 else f"{per_second:,.0f}"


def interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """A 95 % interval in brackets; empty where there is none."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"[{number(low, digits)}, {number(high, digits)}]"


def ranks(low: int | None, high: int | None) -> str:
    """A range of ranks: `1–3`, `4`, or a dash where there is none."""
    if low is None or high is None:
        return "–"
    return f"{low}" if low == high else f"{low}–{high}"


def count(quantity: int, one: str, many: str = "") -> str:
    """`1 metric`, `3 metrics`."""
    return f"{quantity:,} {one if quantity == 1 else many or one + 's'}"


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


def size_words(size: int) -> str:
    """A size of files in the largest unit that says enough: `512 B`, `3.4 kB`, `1.2 GB`."""
    if size < 1000:
        return f"{size} B"
    shown = float(size)
    for unit in ("kB", "MB", "GB"):
        shown /= 1000
        if shown < 999.5 or unit == "GB":
            break
    return f"{shown:.1f} {unit}" if shown < 99.5 else f"{shown:,.0f} {unit}"
