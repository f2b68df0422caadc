"""The resamples and contributions behind published values, read for what is being looked at.

They are too large for the snapshot (a thousand numbers for each value), and needed only where
something is ranked anew: inside a filter, over several skills, or metric against metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray
from benchmarks.parquet import parquet_file
from benchmarks.schema import Card
from leaderboard.store.interface import NotFoundError, Repository, Store

RESAMPLES = "resamples"
CONTRIBUTIONS = "influence"


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
    """What stands behind some values, in their order.

    Attributes:
        resamples: shape (n, B), joint resamples; NaN rows for values without an interval.
        contributions: shape (n, G), see `statistics.influence`; NaN rows where there are none,
            such as for results that were published before there were any.
    """

    resamples: NDArray[np.floating]
    contributions: FloatArray

    def of(self, places: Sequence[int] | NDArray[np.intp]) -> Draws:
        """Those of some of the values."""
        return Draws(self.resamples[places], self.contributions[places])

    @property
    def nbytes(self) -> int:
        """What they take in memory."""
        return self.resamples.nbytes + self.contributions.nbytes


def draws_repository(store: Store, card: Card) -> Repository:
    """Where the draws of a benchmark are kept.

    A thousand resamples with a public seed are a thousand equations for the values of the
    clusters, so they are as private as the answers.
    """
    return store.public if card.answers_public else store.private


def draws_files(
    stem: str, resamples: NDArray[np.floating], contributions: FloatArray
) -> dict[str, bytes]:
    """The files of one run: a column per row, its resamples or contributions below each other."""
    return {
        f"{stem}.{RESAMPLES}.parquet": _parquet(resamples.astype(np.float32)),
        f"{stem}.{CONTRIBUTIONS}.parquet": _parquet(contributions),
    }


def read_draws(store: Store, card: Card, values: Sequence[Value]) -> Draws:
    """The draws of values on one benchmark, each run's files read once.

    Args:
        store: where they are.
        card: the benchmark.
        values: any cells of its board.
    """
    repository = draws_repository(store, card)
    wanted: dict[str, list[int]] = {}
    for value in values:
        wanted.setdefault(value.entry_id.rpartition("/")[0], []).append(value.row)
    found = {
        name: {
            submission: _columns(repository, f"results/{submission}/{card.name}.{name}", rows)
            for submission, rows in wanted.items()
        }
        for name in (RESAMPLES, CONTRIBUTIONS)
    }
    runs = [value.entry_id.rpartition("/")[0] for value in values]
    places = list(zip(runs, (value.row for value in values), strict=True))
    return Draws(
        # Published in single precision, so nothing is lost.
        resamples=stacked([found[RESAMPLES][run].get(row) for run, row in places]).astype(
            np.float32
        ),
        contributions=stacked([found[CONTRIBUTIONS][run].get(row) for run, row in places]),
    )


def _columns(
    repository: Repository, stem: str, rows: Sequence[int]
) -> dict[int, NDArray[np.floating]]:
    try:
        content = repository.read(f"{stem}.parquet")
    except NotFoundError:
        return {}
    file = parquet_file(content)
    known = set(file.schema_arrow.names)
    names = [str(row) for row in dict.fromkeys(rows) if str(row) in known]
    table = file.read(columns=names, use_threads=False)
    return {int(name): table[name].to_numpy() for name in names}


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
