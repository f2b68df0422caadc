"""Values that no card may hold, wherever they stand: a card is read from strangers.

Everything else that a card says is checked by its schema, and used as data: a path is looked up among
declared files, a regular expression is run by RE2, a template fills in text.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

Place = tuple[str | int, ...]
"""Keys and positions that lead to a value."""
FILL_IN = "FILL IN"
"""What a proposed card holds where nothing could be guessed."""
_DEEPEST = 12
_LONGEST = 20_000
"""Characters of a text."""
_LARGEST = 1 << 53
"""Whole numbers beyond are no longer exact as a float."""
_LINE_BREAKS = frozenset("\n\t")


def plain_path(path: str) -> str:
    """A relative path that stays below its folder.

    Raises:
        ValueError: it does not.
    """
    parts = PurePosixPath(path)
    if not path or "\\" in path or "\0" in path or parts.is_absolute() or ".." in parts.parts:
        raise ValueError(f"{path!r} is no path below the folder of data")
    return path


def odd_values(given: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Places of a card with what is wrong there: control characters, sizes, numbers, blanks to fill."""
    left: list[tuple[Place, Any]] = [((), given)]
    while left:
        place, value = left.pop()
        if len(place) > _DEEPEST:
            yield place[:2], f"is nested more than {_DEEPEST} deep"
        elif isinstance(value, dict):
            for key in filter(_is_odd, value):
                yield place, f"the key {key[:40]!a} holds control characters"
            left += [((*place, key), inner) for key, inner in reversed(value.items())]
        elif isinstance(value, list):
            left += [((*place, at), value[at]) for at in reversed(range(len(value)))]
        elif message := _fault(value):
            yield place, message


def _fault(value: Any) -> str:
    """What is wrong with a value; empty where nothing is."""
    if isinstance(value, str):
        if len(value) > _LONGEST:
            return f"has {len(value):,} characters; a text has at most {_LONGEST:,}"
        if _is_odd(value):
            return f"{value[:40]!a} holds control characters"
        return "is to be filled in" if value == FILL_IN else ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} is no finite number"
    return f"a number beyond {_LARGEST:,}" if abs(value) > _LARGEST else ""


def _is_odd(text: str) -> bool:
    """Whether a text could write over what stands around it, on a terminal or a page."""
    return not text.isprintable() and any(
        unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Co") and sign not in _LINE_BREAKS
        for sign in text
        if sign not in "\u200c\u200d\ufe0f"  # Join letters and signs of many scripts.
    )
