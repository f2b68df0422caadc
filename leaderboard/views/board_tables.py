"""Tests between metrics, and boards as tables and CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.statistics.joint_tests import LEVEL
from leaderboard.publication.entries import Entry
from leaderboard.publication.measure_names import token
from leaderboard.publication.reader import BoardIndex
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.slices import Ranked
from leaderboard.tables import Column, Table, Type, Value, columns_of
from leaderboard.views.boards import METADATA, Values

MOST_METRICS = 30
"""More rows and columns than this cannot be read; the tests count in the correction all the same."""


class Pair(NamedTuple):
    """One test, as the matrix and its CSV show it."""

    a: str  # entry that stands higher on the board
    b: str  # the other
    difference: float  # value of a less that of b
    p_corrected: float  # two-sided, of all pairs of the ranking together, 0..1
    n_units: int  # blocks of clusters in which the two differ
    n_patterns: int  # patterns of signs behind the p-value
    exact: bool  # whether those are all patterns

    @property
    def significant(self) -> bool:
        """Whether the two differ at 5 % of all tests of the ranking together."""
        return self.p_corrected < LEVEL


def tested_places(
    ranked: Ranked, most: int | None = MOST_METRICS, among: Collection[str] | None = None
) -> list[int]:
    """Places of the metrics that were tested, in board order, the first `most` of them."""
    tested = np.flatnonzero(np.isfinite(ranked.ordering.corrected).any(axis=1)).tolist()
    looked_at = [p for p in tested if among is None or ranked.cells[p].entry_id in among]
    return looked_at[:most]


def pairs(
    ranked: Ranked, most: int | None = MOST_METRICS, among: Collection[str] | None = None
) -> tuple[Pair, ...]:
    """The tests between the first metrics of a ranking, in board order."""
    tests = ranked.ordering.tests
    places = np.array(tested_places(ranked, most, among), np.intp)
    if tests is None or len(places) < 2:
        return ()
    first, second = (places[side] for side in np.triu_indices(len(places), 1))
    names = [cell.entry_id for cell in ranked.cells]
    return tuple(
        Pair(
            names[a],
            names[b],
            difference=float(tests.difference[a, b]),
            p_corrected=float(tests.p_value[a, b]),
            n_units=int(tests.n_units[a, b]),
            n_patterns=tests.n_patterns,
            exact=tests.exact,
        )
        for a, b in zip(first.tolist(), second.tolist(), strict=True)
    )


COLUMNS = (
    "rank_low", "rank", "rank_high", "metric", "version", "submitter", "kind", "benchmark",
    "revision", "measure", "variant", "split", "facet", "skill", "value", "ci_low", "ci_high",
    "n_items", "n_clusters", "n_missing", "pairs_per_s", "usd_per_1000_pairs", "note", "submission_id",
    "best_share", "tier", "ci_method", "seed", "n_resamples", "plan", "versions",
    "account", "entry_id",
)  # fmt: skip
PAIR_COLUMNS = (
    "metric_a", "metric_b", "difference", "p_corrected", "n_units", "n_patterns", "exact",
    "entry_a", "entry_b", "kind_a", "kind_b",
)  # fmt: skip
IN_FILTER = "rank_in_filter"  # Column of a filtered board beside the ranks of the whole board
_ENDS = ("ci_low", "ci_high")
_TYPES = {
    Type.NUMBER: "value ci_low ci_high pairs_per_s usd_per_1000_pairs best_share difference p_corrected",
    Type.COUNT: "rank_low rank rank_high n_items n_clusters n_missing tier seed "
    "n_resamples n_units n_patterns rank_in_filter",
    Type.FLAG: "exact",
}
_MEANINGS = {
    "rank_low": "Best rank that the tests leave open, of all metrics at once at 95%.",
    "rank": "Rank on the board, whatever is filtered; missing where there is too little to order.",
    "rank_in_filter": "Rank among the entries of this table.",
    "rank_high": "Worst rank that the tests leave open, likewise.",
    "kind": "metric: run by Assay; scores: as submitted, not re-run.",
    "skill": "Missing: all skills; several joined by +: their unweighted mean.",
    "value": "Of the measure.",
    "ci_low": "Lower end of the 95% interval.",
    "ci_high": "Upper end of the 95% interval.",
    "n_clusters": "What is resampled and permuted.",
    "n_missing": "Pairs without a score.",
    "pairs_per_s": "Pairs scored per second; missing where no code was run.",
    "usd_per_1000_pairs": "Price of its replies; missing where it is not paid for.",
    "best_share": "Share of the resamples in which it has the best value, from 0 to 1.",
    "tier": "The tests tell no two metrics of one apart, at 5% for all of them together.",
    "seed": "Of resamples and tests.",
    "plan": "Hash of the resampling plan.",
    "difference": "Value of metric a less that of metric b.",
    "p_corrected": "Paired permutation tests, two-sided, of all pairs of this ranking together.",
    "n_units": "Clusters or blocks of them in which the two differ.",
    "n_patterns": "Patterns of signs behind the p-value.",
    "exact": "Whether those are all patterns.",
    "kind_a": "metric: run by Assay; scores: as submitted, not re-run.",
    "kind_b": "Likewise.",
}


def board_table(
    cells: Iterable[Cell],
    entries: Mapping[str, Entry],
    board: BoardIndex,
    about: Mapping[str, Any] | None = None,
    further: Sequence[Values] = (),
    *,
    places: Mapping[str, int] | None = None,
) -> Table:
    """One row per entry of the slice, in the order of the cells."""
    found = tuple(cells)
    rows = [
        _record(cell, entries[cell.entry_id], board)
        | ({} if places is None else {IN_FILTER: places.get(cell.entry_id)})
        | _further(cell.entry_id, further)
        for cell in found
    ]
    columns = columns_of(COLUMNS, _TYPES, _MEANINGS)
    beside = () if places is None else columns_of((IN_FILTER,), _TYPES, _MEANINGS)
    added = tuple(column for values in further for column in _further_columns(values))
    return Table(table_name(found, board), (*columns, *beside, *added), rows, about or {})


def pairs_table(
    found: Iterable[Pair],
    entries: Mapping[str, Entry],
    name: str = "pairs",
    about: Mapping[str, Any] | None = None,
) -> Table:
    """One row per test between two metrics."""
    found = tuple(found)
    ids = {entry_id for pair in found for entry_id in (pair.a, pair.b)}
    names = {entry_id: entries[entry_id].metric for entry_id in ids}
    kinds = {entry_id: entries[entry_id].kind.value for entry_id in ids}
    rows: list[dict[str, Value]] = [
        {
            "metric_a": names[pair.a], "metric_b": names[pair.b], "difference": pair.difference,
            "p_corrected": pair.p_corrected, "n_units": pair.n_units,
            "n_patterns": pair.n_patterns, "exact": pair.exact,
            "entry_a": pair.a, "entry_b": pair.b, "kind_a": kinds[pair.a],
            "kind_b": kinds[pair.b],
        }
        for pair in found
    ]  # fmt: skip
    return Table(name, columns_of(PAIR_COLUMNS, _TYPES, _MEANINGS), rows, about or {})


def table_name(cells: Sequence[Cell], board: BoardIndex, ending: str = "") -> str:
    """A name of a file, without its ending, that says what is inside."""
    if not cells:
        return board.card.name
    parts = (board.card.name, cells[0].skill, token(cells[0].selector), ending)
    plain = "-".join(part for part in parts if part)
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in plain)


def _record(cell: Cell, entry: Entry, board: BoardIndex) -> dict[str, Value]:
    cost, stated = entry.cost.get(board.card.name), entry.provenance.get(board.card.name)
    return {
        **cell.model_dump(),
        "metric": entry.metric,
        "version": entry.version,
        "submitter": entry.submitter,
        "account": entry.account,
        "kind": entry.kind.value,
        "benchmark": board.card.name,
        "revision": board.card.revision,
        "pairs_per_s": cost.pairs_per_s if cost else None,
        "usd_per_1000_pairs": cost.usd_per_1000_pairs if cost else None,
        "submission_id": entry.submission_id,
        "tier": cell.tier,
        **(stated.model_dump() if stated else {}),
    }


def _further_columns(values: Values) -> tuple[Column, ...]:
    """The value of a further column, and the ends of its interval where it is a measure."""
    one = values.column
    kind = Type.TEXT if one.key in METADATA else Type.NUMBER
    found = (Column(one.key, kind, f"{one.title}: {one.meaning}"),)
    if one.selector is None:
        return found
    ends = zip(_ENDS, ("Lower", "Upper"), strict=True)
    return found + tuple(
        Column(f"{one.key}.{name}", Type.NUMBER, f"{end} end of the 95% interval of {one.title}.")
        for name, end in ends
    )


def _further(entry_id: str, further: Sequence[Values]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for values in further:
        key, cell = values.column.key, values.cells.get(entry_id)
        found[key] = values.words.get(entry_id) if values.words else values.of(entry_id)
        if cell is not None:
            found |= {f"{key}.{name}": getattr(cell, name) for name in _ENDS}
    return found
