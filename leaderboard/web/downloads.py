"""Links to the data behind what is on screen, in every format of the API."""

from __future__ import annotations

from dataclasses import dataclass

from leaderboard.web.components import Link

FORMATS = {"csv": "CSV", "parquet": "Parquet", "json": "JSON"}
"""Format of the API to its name, the most asked for first."""


@dataclass(frozen=True)
class Downloads:
    """Links to the data of a part of a page; `of` names it where a page has several."""

    of: str
    links: tuple[Link, ...]


def downloads(address: str, of: str = "") -> Downloads:
    """The data of a table in every format.

    Args:
        address: of the table in the API, with the query of what is on screen.
        of: names it.
    """
    links = (Link(name, data_address(address, key)) for key, name in FORMATS.items())
    return Downloads(of, tuple(links))


def data_address(address: str, format_: str) -> str:
    """The address of a table in a format.

    Args:
        address: as for `downloads`.
        format_: a key of `FORMATS`.
    """
    return f"{address}{'&' if '?' in address else '?'}format={format_}"
