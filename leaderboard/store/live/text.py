"""Output of untrusted code, as text that can be shown: no cursor moves, nothing unseen."""

from __future__ import annotations

import re
import unicodedata

SAID_BYTES = 64 << 10
"""Of a running log, its end is kept."""

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # colours and cursor moves
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # titles, links
    r"|\x1b[ -/]*[0-~]?"  # the rest, character sets among it
)
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"})


def end_of(content: bytes, most: int) -> bytes:
    """The end of a log, from the start of a line on; of one line too long for it, its end."""
    if len(content) <= most:
        return content
    cut = content[-most:]
    if content[-most - 1 : -most] == b"\n":
        return cut
    _, broken, lines = cut.partition(b"\n")
    return lines if broken and lines else cut


def readable(content: bytes) -> str:
    """A log as plain text.

    Escape sequences go as wholes, and a line that was written over shows what was written last,
    as on a terminal; then every character is dropped that is unseen or turns the reading order.
    """
    text = end_of(content, SAID_BYTES).decode("utf-8", errors="replace").replace("\r\n", "\n")
    return "\n".join(_line(line) for line in _ESCAPES.sub("", text).split("\n"))


def readable_text(text: str) -> str:
    """As `readable`, of what is text already."""
    return readable(text.encode("utf-8", errors="replace"))


def last_line(text: str, most: int = 200) -> str:
    """The last line that says anything, cut to a length."""
    lines = (line.strip() for line in reversed(text.split("\n")))
    return next((line for line in lines if line), "")[:most]


def new_lines(before: str, now: str) -> tuple[str, str]:
    """What came to a log since it was last read, in whole lines.

    The log keeps its end only, so its start may have gone meanwhile.

    Args:
        before: its whole lines as read before.
        now: as read now.

    Returns:
        The whole lines that are new, and all whole lines of now, for the next time.
    """
    whole = now[: now.rfind("\n") + 1]
    if whole.startswith(before):
        return whole[len(before) :], whole
    first = whole[: whole.find("\n") + 1]
    start = before.find(first) if first else -1
    while start >= 0:
        if whole.startswith(before[start:]):
            return whole[len(before) - start :], whole
        start = before.find(first, start + 1)
    return whole, whole


def _line(line: str) -> str:
    shown = line.rstrip("\r").rpartition("\r")[2]
    if shown.isascii() and shown.isprintable():
        return shown
    return "".join(c for c in shown if c == "\t" or unicodedata.category(c) not in _UNSEEN)
