"""Row of the report of `doctor`."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A part of an installation and how it is.

    Attributes:
        part: what was looked at; two blanks before what belongs to the line above.
        state: how it is.
        advice: what to do; empty where nothing has to be done.
        broken: whether it keeps the installation from working.
    """

    part: str
    state: str
    advice: str = ""
    broken: bool = False
