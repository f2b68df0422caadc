"""JSON that a plain reader would change, drop or fail on; lines of TOML keys; texts as they are compared."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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


def folded(text: str) -> str:
    """What texts share that differ in capitals, spacing or Unicode form (NFKC) only."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


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
        times = Counter(name for name, _ in pairs)
        twice = next(name for name, n in times.items() if n > 1)
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


Key = tuple[str, ...]


def syntax_fault(error: ValueError | RecursionError) -> str:
    """A parser's message; Python's own on its limits depend on the caller or name its settings."""
    if isinstance(error, RecursionError):
        return "brackets are nested too deep"
    return "a number has too many digits" if "set_int_max_str_digits" in str(error) else str(error)


_PART = r"""(?:[A-Za-z0-9_-]+|"(?:\\.|[^"\\])*"|'[^']*')"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_TABLE = re.compile(rf"\s*\[\[?\s*({_DOTTED})\s*\]")
_VALUE = re.compile(rf"\s*({_DOTTED})\s*=")
_TOKEN = re.compile(r"""\"""|\'\'\'|"(?:\\.|[^"\\])*"|'[^']*'|\#.*|[\[\]{}]""")
_ENDS = {'"""': re.compile(r'(?:\\.|[^\\])*?"""'), "'''": re.compile(r".*?'''")}


def key_lines(text: str) -> Mapping[Key, int]:
    """Every key and table of a TOML file to its line, from 1.

    Keys inside an inline table are not told apart from the table. What stands in `[[list]]` is found
    twice: as `list` (the first that has it), and as `list`, `0`, ... (its own).
    """
    found: dict[Key, int] = {}
    tables: dict[Key, int] = {}
    table: Key = ()
    inside, depth = "", 0
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        at = 0
        if not inside and not depth:
            if header := _TABLE.match(line):
                table = _key(header[1])
                if line.lstrip().startswith("[["):
                    tables[table] = tables.get(table, -1) + 1
                _note(found, tables, table, number)
                continue
            if value := _VALUE.match(line):
                _note(found, tables, (*table, *_key(value[1])), number)
                at = value.end()
        inside, depth = _after(line, at, inside, depth)
    return found


def _note(found: dict[Key, int], tables: Mapping[Key, int], key: Key, number: int) -> None:
    found.setdefault(key, number)
    numbered: list[str] = []
    for end, part in enumerate(key, start=1):
        numbered.append(part)
        if key[:end] in tables:
            numbered.append(str(tables[key[:end]]))
    found.setdefault(tuple(numbered), number)


def line_of(lines: Mapping[Key, int], place: Sequence[str | int]) -> int | None:
    """The line of a value, or of the nearest key around it."""
    for names in (tuple(map(str, place)), tuple(part for part in place if isinstance(part, str))):
        for end in range(len(names), 0, -1):
            if (line := lines.get(names[:end])) is not None:
                return line
    return None


def _after(line: str, at: int, inside: str, depth: int) -> tuple[str, int]:
    """In which long text, and in how many brackets, the next line begins."""
    while True:
        if inside:
            end = _ENDS[inside].match(line, at)
            if end is None:
                return inside, depth
            at, inside = end.end(), ""
        token = _TOKEN.search(line, at)
        if token is None:
            return "", depth
        at = token.end()
        if token[0] in _ENDS:
            inside = token[0]
        elif token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth = max(0, depth - 1)


def _key(text: str) -> Key:
    return tuple(_parts(text))


def _parts(text: str) -> Iterator[str]:
    for match in re.finditer(_PART, text):
        part = match[0]
        if part.startswith("'"):
            yield part[1:-1]
        elif part.startswith('"'):
            try:
                yield str(json.loads(part))
            except ValueError:  # An escape that only TOML knows.
                yield part[1:-1]
        else:
            yield part
