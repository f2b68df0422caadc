"""Layout of a ranking: further columns, pinned rows, sort order, and page.

None of it changes who is ranked or how: ranks, tiers and the search are always those of all rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote, quote_plus, unquote

MOST_PINS = 4
"""As many as the page that compares takes."""
MOST_COLUMNS = 60
_LONGEST = 20_000
"""Characters of a parameter that are looked at."""
_BETWEEN = ","
_SAFE = "~:@/ "
_DOWN = "-"
"""Before the key of a sorted column: the worst first."""


@dataclass(frozen=True)
class Arrangement:
    """A layout; without arguments it is the plain ranking.

    Attributes:
        columns: keys of further columns (see `columns.Column`), in order.
        pins: entry ids held on top.
        sort: key of a column, after `-` where the worst come first; empty means by rank.
        page: of the rows, from 1.
    """

    columns: tuple[str, ...] = ()
    pins: tuple[str, ...] = ()
    sort: str = ""
    page: int = 1

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> Arrangement:
        """Read from the query parameters of a request; nothing in them is trusted."""
        page = params.get("page", "")[:6]
        return cls(
            columns=_parted(params.get("columns", ""), MOST_COLUMNS),
            pins=_parted(params.get("pin", ""), MOST_PINS),
            sort=unquote(params.get("sort", "")[:_LONGEST]),
            page=max(1, int(page)) if page.isascii() and page.isdigit() else 1,
        )

    def to_params(self) -> dict[str, str]:
        """The query parameters that `from_params` reads this from; empty ones too."""
        return {
            "columns": _joined(self.columns),
            "pin": _joined(self.pins),
            "sort": quote(self.sort, safe=_SAFE),
            "page": str(self.page) if self.page > 1 else "",
        }

    @property
    def sorted_by(self) -> str:
        """Key of the column that rows are sorted by; empty: by rank."""
        return self.sort.removeprefix(_DOWN)

    @property
    def worst_first(self) -> bool:
        """Whether the sorting is turned round."""
        return self.sort.startswith(_DOWN)

    def known(self, columns: Collection[str], entries: Collection[str]) -> Arrangement:
        """The same without columns and entries that do not exist.

        Args:
            columns: keys that do.
            entries: ids of entries of the board.
        """
        return replace(
            self,
            columns=tuple(key for key in self.columns if key in columns),
            pins=tuple(entry for entry in self.pins if entry in entries),
            sort=self.sort if self.sorted_by in columns else "",
        )

    def pinned(self, entry_id: str) -> Arrangement:
        """With an entry pinned; the one that was pinned first gives way where there are enough."""
        if entry_id in self.pins:
            return self
        return replace(self, pins=(*self.pins, entry_id)[-MOST_PINS:])

    def unpinned(self, entry_id: str) -> Arrangement:
        """Without the pin of an entry."""
        return replace(self, pins=tuple(one for one in self.pins if one != entry_id))

    def sorting(self, key: str) -> Arrangement:
        """Sorted by a column, best first; turned round where it is so sorted already."""
        turned = self.sort == key and key
        return replace(self, sort=f"{_DOWN}{key}" if turned else key, page=1)


def pin_in_query(entry_id: str) -> str:
    """An entry id as it stands among the pins of a query string."""
    return quote_plus(quote(entry_id, safe=_SAFE), safe="~:,")


def _parted(given: str, most: int) -> tuple[str, ...]:
    parts = (unquote(part) for part in given[:_LONGEST].split(_BETWEEN))
    return tuple(dict.fromkeys(part for part in parts if part))[:most]


def _joined(keys: Iterable[str]) -> str:
    # A key may hold a comma itself.
    return _BETWEEN.join(quote(key, safe=_SAFE) for key in keys)
