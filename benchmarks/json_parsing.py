"""JSON parsing that refuses what a plain reader would change, drop or fail on, and says where."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_LONGEST_NUMBER = 400
"""Characters; a longer number says nothing more, and Python refuses to read it."""
_WHOLE = range(-(1 << 63), 1 << 63)
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""An escape that may be half of a character; most are followed by the other half."""


@dataclass(frozen=True, slots=True)
class _Odd:
    """Stands for a number that is refused, until it is known where it stands."""

    text: str


def parse_json(content: bytes) -> Any:
    """The content of a JSON file in UTF-8."""
    odd: list[str] = []

    def number(text: str) -> Any:
        value = _number(text)
        if value is None:
            odd.append(text)
            return _Odd(text)
        return value

    try:
        found = json.loads(
            content.decode("utf-8-sig"),
            object_pairs_hook=_once_each,
            parse_constant=number,
            parse_float=number,
            parse_int=number,
        )
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if odd or _HALF.search(content):
        for fault in _faults(found):
            raise ValueError(fault)
    return found


def _number(text: str) -> float | int | None:
    """The number, or None where it is not finite or does not fit into 64 bits."""
    if len(text) > _LONGEST_NUMBER:
        return None
    try:
        whole = int(text)
    except ValueError:
        value = float(text)
        return value if math.isfinite(value) else None
    return whole if whole in _WHOLE else None


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {_short(twice)} stands twice in one object")
    return found


def _faults(top: Any) -> Iterator[str]:
    """Faults of texts and numbers, in the order of the file."""
    left: list[tuple[str, Any]] = [("", top)]
    while left:
        place, value = left.pop()
        if isinstance(value, _Odd):
            yield f"{value.text[:40]}{place} is no finite number of 64 bits"
        elif isinstance(value, str) and _is_broken(value):
            yield f"the text {_short(value)}{place} holds half of a character"
        elif isinstance(value, dict):
            for name in filter(_is_broken, value):
                yield f"the key {_short(name)}{place} holds half of a character"
            # The last one in is the first one out, so what stands first is put in last.
            left += [
                (f"{place or ' at'} {_short(name)}", inner)
                for name, inner in reversed(list(value.items()))
            ]
        elif isinstance(value, list):
            left += [
                (f"{place or ' at'} [{number}]", inner)
                for number, inner in reversed(list(enumerate(value)))
            ]


def _is_broken(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= sign <= "\udfff" for sign in text)


def _short(text: str) -> str:
    return ascii(text[:60])
