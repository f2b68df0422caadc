"""Markdown as GitHub reads it: tables and headings, with what is data kept from being markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\`*_\[\]<>|])")
_CODE = re.compile(r"(`[^`]+`)")


def text(said: str) -> str:
    """Words of the code as they are, in one line: nothing in them is markup but `code`."""
    parts = _CODE.split(" ".join(said.split()))
    return "".join(
        code(part[1:-1]) if at % 2 else _SPECIAL.sub(r"\\\1", part) for at, part in enumerate(parts)
    )


def code(said: str) -> str:
    """A name as code, in a table too."""
    return f"`{said.replace('|', chr(92) + '|')}`" if said else ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def page(title: str, *parts: str) -> str:
    """A document: who made it, then its parts with an empty line between them."""
    made = "<!-- Written by `make docs` from the code: change that, not this. -->"
    return "\n\n".join([made, f"# {title}", *(part.rstrip("\n") for part in parts)]) + "\n"
