"""Inside the box: embeddings, as arrays of numpy, tensors of torch, or lists of lists.

Neither library is imported here: whoever returned one of its arrays has imported it.
Only the standard library: this file is also bound into the box.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from .frames import ErrorKind
from .reporting import ScorerFailure
from .returned import article

_STACKABLE = {"numpy", "torch"}
_FLOAT_BYTES = 32  # of a Python float in a list, its place in the list included


class VectorCache:
    """The vectors of the texts asked last, so that each is encoded once while there is room.

    Args:
        most_texts: texts that are kept.
        most_bytes: memory their vectors may take.
    """

    def __init__(self, most_texts: int = 100_000, most_bytes: int = 1 << 30) -> None:
        self._most_texts = most_texts
        self._most_bytes = most_bytes
        self._bytes = 0
        self._rows: OrderedDict[str, Any] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, text: str) -> Any:
        """The vector of a text, or None."""
        row = self._rows.get(text)
        if row is not None:
            self._rows.move_to_end(text)
        return row

    def put(self, text: str, row: Any) -> None:
        """Keep a vector; the ones not asked for longest go."""
        if text in self._rows:
            self._bytes -= _bytes_of(self._rows.pop(text))
        self._rows[text] = row
        self._bytes += _bytes_of(row)
        while self._rows and (len(self._rows) > self._most_texts or self._bytes > self._most_bytes):
            _, oldest = self._rows.popitem(last=False)
            self._bytes -= _bytes_of(oldest)


def checked(returned: Any, wanted: int, what: str, of: str, place: str) -> Any:
    """Embeddings as a method returned them, if there is one row per item.

    Args:
        returned: by the method.
        wanted: how many rows are due.
        what: name of the method.
        of: what each row is about: `images`, `texts`.
        place: of the method, in parentheses, or nothing.

    Raises:
        ScorerFailure: `WRONG_TYPE` or `WRONG_COUNT`.
    """
    due = f"one vector for each of {wanted} {of}, shape ({wanted}, d)"
    if _library(returned) in _STACKABLE and hasattr(returned, "shape"):
        shape = tuple(returned.shape)
        if len(shape) == 2 and shape[0] == wanted:
            return returned
        kind = ErrorKind.WRONG_COUNT if len(shape) == 2 else ErrorKind.WRONG_TYPE
        raise ScorerFailure(kind, f"{what} returned an array of shape {shape}, not {due}{place}")
    if isinstance(returned, (list, tuple)):
        if len(returned) == wanted:
            return returned
        raise ScorerFailure(
            ErrorKind.WRONG_COUNT, f"{what} returned {len(returned)} vectors, not {due}{place}"
        )
    raise ScorerFailure(
        ErrorKind.WRONG_TYPE, f"{what} returned {article(returned)}, not {due}{place}"
    )


def rows(vectors: Any, places: Sequence[int]) -> Any:
    """These rows, of the same kind."""
    if isinstance(vectors, (list, tuple)):
        return [vectors[place] for place in places]
    return vectors[list(places)]


def own_row(vectors: Any, place: int) -> Any:
    """One row that does not keep the others in memory."""
    row = vectors[place]
    for name in ("copy", "clone"):  # of numpy, and of torch
        if callable(getattr(row, name, None)):
            return getattr(row, name)()
    return row


def stacked(found: Sequence[Any]) -> Any:
    """Rows as one array of their own kind."""
    library = _library(found[0])
    return sys.modules[library].stack(list(found)) if library in _STACKABLE else list(found)


def width(row: Any) -> int:
    """Numbers in one vector."""
    return len(row) if hasattr(row, "__len__") else 0


def _library(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _bytes_of(row: Any) -> int:
    n_bytes = getattr(row, "nbytes", None)
    return n_bytes if isinstance(n_bytes, int) else _FLOAT_BYTES * width(row)
