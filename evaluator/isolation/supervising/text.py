"""Making text that came out of a box safe to store, print and show."""

from __future__ import annotations

import re
import unicodedata

_TERMINAL_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|.)")
"""One that sets a title and never ends takes its own line with it, and no more."""
_KEPT_CONTROLS = {"\n", "\t"}


def plain_text(data: bytes) -> str:
    """Readable text without terminal sequences, control, bidirectional or invisible characters."""
    text = data.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    text = _TERMINAL_SEQUENCE.sub("", text)
    return "".join(c for c in text if c in _KEPT_CONTROLS or _is_visible(c))


def one_line(data: bytes) -> str:
    """The same on a single line."""
    return " ".join(plain_text(data).split())


def _is_visible(character: str) -> bool:
    return unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
