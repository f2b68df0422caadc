"""The resamples and contributions behind published values, read for what is being looked at.

They are too large for the snapshot (a thousand numbers for each value), and needed only where
something is ranked anew: inside a filter, over several skills, or metric against metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray
from benchmarks.parquet import parquet_file
from benchmarks.schema import Card
from leaderboard.store.interface import NotFoundError, Repository, Store

RESAMPLES = "resamples"
CONTRIBUTIONS = "influence"
_AT_A_TIME = 8  # Runs read together: where the store is far away, a file is mostly waiting
_FEW_RUNS = 4  # So few are read one after the other
_Columns = dict[int, NDArray[np.floating]]


class Value(Protocol):
    """One published value: whose, and which of the rows of its run."""

    @property
    def entry_id(self) -> str:
        """`<submission_id>/<metric>`."""

    @property
    def row(self) -> int:
        """Position among the rows of its run."""


@dataclass(frozen=True)
class Draws:
    """What stands behind some values, in their order."""

    # shape (n, B), joint resamples; NaN rows for values without an interval
    resamples: NDArray[np.floating]
    # shape (n, G), see `statistics.influence`; NaN rows where there are none, such as for
    # results that were published before there were any
    contributions: FloatArray

    def of(self, places: Sequence[int] | NDArray[np.intp]) -> Draws:
        """Those of some of the values."""
        return Draws(self.resamples[places], self.contributions[places])

    @property
    def nbytes(self) -> int:
        """What they take in memory."""
        return self.resamples.nbytes + self.contributions.nbytes


def draws_files(
    stem: str, resamples: NDArray[np.floating], contributions: FloatArray
) -> dict[str, bytes]:
    """The files of one run: a column per row, its resamples or contributions below each other."""
    return {
        f"{stem}.{RESAMPLES}.parquet": _parquet(resamples.astype(np.float32)),
        f"{stem}.{CONTRIBUTIONS}.parquet": _parquet(contributions),
    }


class RowDraws(NamedTuple):
    """What stands behind one value."""

    resamples: NDArray[np.float32] | None  # shape (B,); None where there are none
    contributions: FloatArray | None  # shape (G,); None likewise

    @property
    def nbytes(self) -> int:
        """What they take in memory."""
        return sum(one.nbytes for one in self if one is not None)


def read_draws(store: Store, card: Card, values: Sequence[Value]) -> Draws:
    """The draws of values on one benchmark, each run's files read once."""
    return stacked_draws(read_rows(store, card, values))


def stacked_draws(rows: Sequence[RowDraws]) -> Draws:
    """The draws of several values in one piece; see `stacked`."""
    return Draws(
        resamples=stacked([row.resamples for row in rows]).astype(np.float32),
        contributions=stacked([row.contributions for row in rows]),
    )


def read_rows(store: Store, card: Card, values: Sequence[Value]) -> list[RowDraws]:
    """The draws of each value, each run's files read once and several at a time."""
    # A thousand resamples with a public seed are a thousand equations for the values of the
    # clusters, so they are as private as the answers.
    repository = store.public if card.answers_public else store.private
    wanted: dict[str, list[int]] = {}
    for value in values:
        wanted.setdefault(value.entry_id.rpartition("/")[0], []).append(value.row)

    def of_run(run: str) -> tuple[_Columns, _Columns]:
        stem = f"results/{run}/{card.name}"
        resamples = _columns(repository, f"{stem}.{RESAMPLES}", wanted[run])
        return resamples, _columns(repository, f"{stem}.{CONTRIBUTIONS}", wanted[run])

    if len(wanted) < _FEW_RUNS:
        found = {run: of_run(run) for run in wanted}
    else:
        with ThreadPoolExecutor(_AT_A_TIME, thread_name_prefix="draws") as readers:
            found = dict(zip(wanted, readers.map(of_run, wanted), strict=True))
    return [_row(*found[value.entry_id.rpartition("/")[0]], value.row) for value in values]


def _row(resamples: _Columns, contributions: _Columns, row: int) -> RowDraws:
    drawn, shares = resamples.get(row), contributions.get(row)
    # Resamples are published in single precision, so nothing is lost.
    return RowDraws(
        None if drawn is None else drawn.astype(np.float32),
        None if shares is None else shares.astype(np.float64),
    )


def _columns(repository: Repository, stem: str, rows: Sequence[int]) -> _Columns:
    try:
        content = repository.read(f"{stem}.parquet")
    except NotFoundError:
        return {}
    file = parquet_file(content)
    known = set(file.schema.names)
    names = [str(row) for row in dict.fromkeys(rows) if str(row) in known]
    table = file.read(columns=names, use_threads=False)
    # Copied, or each would hold on to the whole content of its file.
    return {int(name): np.array(table[name].to_numpy()) for name in names}


def stacked(found: Sequence[NDArray[np.floating] | None]) -> FloatArray:
    """One row per value, NaN where it has none.

    Draws of another length than most were made with another plan, so they are NaN too.

    Args:
        found: each value's own draws, shape (B,), or None.
    """
    lengths = [len(column) for column in found if column is not None]
    length = max(set(lengths), key=lengths.count) if lengths else 0
    rows = np.full((len(found), length), np.nan)
    for place, column in enumerate(found):
        if column is not None and len(column) == length:
            rows[place] = column
    return rows


def _parquet(rows: NDArray[np.floating]) -> bytes:
    frame = pd.DataFrame(rows.T, columns=[str(i) for i in range(len(rows))])
    buffer = BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()
