"""Line numbers of the keys of a TOML file, for messages; values are not looked at.

It is asked about files that a TOML parser has read, and only numbers lines: where it is wrong, a
message names a neighbouring line and nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

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

    Keys inside an inline table are not told apart from the table.
    """
    found: dict[Key, int] = {}
    table: Key = ()
    inside, depth = "", 0
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        at = 0
        if not inside and not depth:
            if header := _TABLE.match(line):
                table = _key(header[1])
                found.setdefault(table, number)
                continue
            if value := _VALUE.match(line):
                found.setdefault((*table, *_key(value[1])), number)
                at = value.end()
        inside, depth = _after(line, at, inside, depth)
    return found


def line_of(lines: Mapping[Key, int], place: Sequence[str | int]) -> int | None:
    """The line of a value, or of the nearest key around it."""
    names = [part for part in place if isinstance(part, str)]
    for end in range(len(names), 0, -1):
        if (line := lines.get(tuple(names[:end]))) is not None:
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
