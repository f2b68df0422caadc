"""Answers of a live view, kept for whoever opens the same address before the next commit."""

from __future__ import annotations

import sys
from collections.abc import Callable

from starlette.datastructures import QueryParams

from leaderboard.cache import MemoryCache
from leaderboard.publication.reader import Reader
from leaderboard.web.live import Shown

_LONGEST_QUERY = 500
_OF_ONE = 2000
"""Bytes that an answer takes beside its HTML, at most."""


class KeptAnswers:
    """What was answered last, as long as the store is as it was.

    It is for answers that follow from the store and the address alone. While the reader meets an
    outage nothing is kept, since an answer may then lack a part that could not be read.
    """

    def __init__(self, reader: Reader, most_bytes: int = 24 << 20) -> None:
        self._reader = reader
        self._kept: MemoryCache[Shown] = MemoryCache(_bytes_of, most_bytes)

    def of(self, params: QueryParams, make: Callable[[], Shown], *more: str) -> Shown:
        """The answer of an address."""
        head, query = self._reader.head(), str(params)
        if not head or self._reader.trouble or len(query) > _LONGEST_QUERY:
            return make()
        return self._kept.of((head, query, *more), make)


def _bytes_of(shown: Shown) -> int:
    return sys.getsizeof(shown.html) + _OF_ONE
