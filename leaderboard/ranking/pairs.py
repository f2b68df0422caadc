"""The tests between each two entries of a board, kept so that a new entry costs its own alone.

A pair's test depends on the two results and the seed of the board. Three hundred entries are
forty-five thousand pairs: minutes to test, and one file to read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.parquet import parquet_table
from benchmarks.statistics.sign_flips import FlipTests, flip_tests, pair_tests
from leaderboard.store.interface import NotFoundError, Repository

SCHEMA = pa.schema(
    [
        pa.field("benchmark", pa.string(), nullable=False),
        pa.field("revision", pa.string(), nullable=False),
        pa.field("entry_a", pa.string(), nullable=False),
        pa.field("entry_b", pa.string(), nullable=False),
        pa.field("p_value", pa.float64(), nullable=False),
        pa.field("n_units", pa.int64(), nullable=False),
        pa.field("n_patterns", pa.int64(), nullable=False),
        pa.field("exact", pa.bool_(), nullable=False),
    ]
)
"""One row for each pair that was tested; see `FlipTests`. The values are not corrected yet."""
TESTED = ("p_value", "n_units", "n_patterns", "exact")  # What is kept of a test


def pairs_path(benchmark: str) -> str:
    """Where the tests of a board are."""
    return f"boards/{benchmark}.pairs.parquet"


@dataclass(frozen=True)
class Pairs:
    """The tests of the headline of a board."""

    revision: str  # of the benchmark
    entry_ids: tuple[str, ...]  # in the order of the tests
    tests: FlipTests  # shape (M, M)


def pairs_file(benchmark: str, pairs: Pairs) -> bytes:
    """The tests of a board as a Parquet file."""
    a, b = np.triu_indices(len(pairs.entry_ids), 1)
    there = np.isfinite(pairs.tests.p_value[a, b])
    a, b = a[there], b[there]
    ids = pa.array(pairs.entry_ids, pa.string())
    columns = [
        pa.array([benchmark] * len(a), pa.string()),
        pa.array([pairs.revision] * len(a), pa.string()),
        ids.take(pa.array(a)),
        ids.take(pa.array(b)),
        *(pa.array(getattr(pairs.tests, name)[a, b]) for name in TESTED),
    ]
    buffer = BytesIO()
    table = pa.Table.from_arrays(
        [c.cast(f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )
    with pq.ParquetWriter(buffer, SCHEMA, compression="zstd") as writer:
        if len(table):  # `datasets` does not load an empty row group.
            writer.write_table(table)
    return buffer.getvalue()


def read_pairs(
    repository: Repository, benchmark: str, revision: str, usable: Collection[str]
) -> Pairs | None:
    """The tests of a board as far as they still hold; None where there are none."""
    try:
        content = repository.read(pairs_path(benchmark))
        table = parquet_table(content)
    except (NotFoundError, pa.ArrowException):
        return None  # What cannot be read is tested again.
    if table.schema.remove_metadata() != SCHEMA:
        return None
    named = pc.unique(pa.chunked_array([*table["entry_a"].chunks, *table["entry_b"].chunks]))
    wanted = frozenset(usable)
    known = tuple(entry_id for entry_id in named.to_pylist() if entry_id in wanted)
    a, b = (_places(table[name], known) for name in ("entry_a", "entry_b"))
    of_revision = pc.equal(table["revision"], revision).to_numpy()
    rows = np.flatnonzero((a >= 0) & (b >= 0) & of_revision)
    found = {name: table[name].to_numpy(zero_copy_only=False)[rows] for name in TESTED}
    return Pairs(revision, known, _symmetric(len(known), a[rows], b[rows], found))


def _places(ids: Any, known: Sequence[str]) -> IntArray:
    """Where each id is among the known ones; -1 where it is not."""
    found = pc.index_in(ids, value_set=pa.array(known, pa.string()))
    return np.asarray(found.fill_null(-1).to_numpy(), np.intp)


def tests_of(
    entry_ids: Sequence[str],
    contributions: FloatArray,
    seed: int,
    known: Pairs | None,
    most_drawn: int | None = None,
) -> FlipTests:
    """The tests between each two entries; only those that are not known are made.

    Args:
        entry_ids: the entries, each once.
        contributions: shape (M, G), one row for each; a row with NaN is not tested.
        seed: of the board.
        known: tests of some of them, with the same seed; a bound in place of a draw is none.
        most_drawn: see `sign_flips.pair_tests`.
    """
    if known is None or not contributions.shape[1]:
        return flip_tests(contributions, seed)
    n = len(entry_ids)
    able: NDArray[np.bool_] = np.asarray(np.isfinite(contributions).all(axis=1))
    place = {entry_id: i for i, entry_id in enumerate(known.entry_ids)}
    places = (place.get(e, -1) if ok else -1 for e, ok in zip(entry_ids, able, strict=True))
    at = np.fromiter(places, np.intp, n)
    a, b = np.triu_indices(n, 1)
    tested = able[a] & able[b]
    a, b = a[tested], b[tested]
    before = known.tests.p_value[at[a], at[b]] if known.entry_ids else np.full(len(a), np.nan)
    old = (at[a] >= 0) & (at[b] >= 0) & np.isfinite(before)
    if known.entry_ids:
        old &= ~known.tests.bounded[at[a], at[b]]
    fresh = pair_tests(contributions, a[~old], b[~old], seed, most_drawn=most_drawn)
    found: dict[str, NDArray[Any]] = {}
    for name in TESTED:
        of_known, own = getattr(known.tests, name), getattr(fresh, name)
        found[name] = np.zeros(len(a), own.dtype)
        found[name][old] = of_known[at[a[old]], at[b[old]]]
        found[name][~old] = own
    made = _symmetric(n, a, b, found)
    totals = np.where(able, contributions.sum(axis=1), np.nan)
    made.p_value[able, able] = 1.0
    return replace(made, difference=np.subtract.outer(totals, totals))


def _symmetric(n: int, a: IntArray, b: IntArray, found: dict[str, NDArray[Any]]) -> FlipTests:
    """Tests of pairs as matrices; differences are left open."""
    tests = FlipTests.untested(n)
    for one, other in ((a, b), (b, a)):
        for name in TESTED:
            getattr(tests, name)[one, other] = found[name]
    return tests
