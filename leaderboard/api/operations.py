"""Operation of the API: one value from which a route is served, documented and tested."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from starlette.datastructures import QueryParams

from leaderboard.api.problems import bad_query
from leaderboard.api.source import Source
from leaderboard.tables import Table

LONGEST_QUERY = 8192
"""Characters; a page with all the columns it can have stays below."""
MOST_PER_PAGE = 1000
_MOST_PAGE = 10**6


class Format(StrEnum):
    """In which an answer comes."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


@dataclass(frozen=True)
class Parameter:
    """Something a query may say.

    Attributes:
        name: in the query.
        meaning: what it chooses.
        example: a value of it.
        options: all values it may have; empty where it has no such list.
    """

    name: str
    meaning: str
    example: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """A request whose parameters are all known.

    Attributes:
        path: what the address says.
        params: what the query says, the format excepted.
    """

    path: Mapping[str, str]
    params: QueryParams

    def page(self, standard: int) -> tuple[int, int]:
        """Number of a page, from 1, and its size.

        Raises:
            RefusedError: `bad_query`.
        """
        number = self._number("page", 1, _MOST_PAGE)
        return number, self._number("per_page", standard, MOST_PER_PAGE)

    def _number(self, name: str, standard: int, most: int) -> int:
        given = self.params.get(name, "")
        if not given:
            return standard
        if not (given.isascii() and given.isdecimal() and len(given) < 9):
            raise bad_query(f"“{name}” is no number.", f"Give a number from 1 to {most}.")
        if not 1 <= int(given) <= most:
            raise bad_query(f"“{name}” is {int(given)}.", f"Give a number from 1 to {most}.")
        return int(given)


@dataclass(frozen=True)
class Operation:
    """A route that answers a table.

    Attributes:
        path: below `/v1`, with its parts in braces.
        name: stable, for clients that are made from the document.
        summary: what it answers, in a sentence.
        answer: makes it.
        parameters: what its query may say, the format excepted.
        places: what the parts of its path are.
        of_snapshot: whether the snapshot alone decides the answer, so that it can be kept.
    """

    path: str
    name: str
    summary: str
    answer: Callable[[Source, Asked], Table]
    parameters: tuple[Parameter, ...] = ()
    places: tuple[Parameter, ...] = ()
    of_snapshot: bool = True


FORMAT = Parameter("format", "In which the table comes.", "csv", tuple(Format))
RATINGS = Parameter(
    "ratings",
    "`simulated`: the boards of simulated ratings, which stand apart.",
    "",
    ("simulated",),
)
PAGING = (
    Parameter("page", "From 1.", "1"),
    Parameter("per_page", f"Rows of a page, at most {MOST_PER_PAGE}.", "50"),
)
