"""Differences between two sets of published rows, bit for bit; nothing here reads or runs anything.

A set is a list of tables. A table has rows by key, and facts about itself. Rows are matched by key,
so their order does not count. Metrics and models are named by name and version: their ids are
hashes of what was submitted, and a bundled module that moves to another folder has another id and
the same rows.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

IGNORED: Mapping[str, str] = {
    **dict.fromkeys(
        ("as_of", "at", "since", "received_at", "published_at"), "a time of day"
    ),
    **dict.fromkeys(
        ("pairs_per_s", "seconds", "seconds_per_1000_pairs", "peak_memory_gib", "wait_s"),
        "measured on the machine, and another one in every run",
    ),
    **dict.fromkeys(
        ("on_front", "cost"), "follows from measured seconds and memory"
    ),
    **dict.fromkeys(
        ("devices", "environment", "isolation", "versions"), "what the run ran on, not what it found"
    ),
    **dict.fromkeys(("place", "of", "attempts"), "depends on who worked when"),
    **dict.fromkeys(("page", "card"), "an address, a description: no row"),
}  # fmt: skip
"""Fields that are not compared, at any depth, and why."""

KEY_FIELDS = (
    "shown_as", "benchmark", "prompt_set", "entry_id", "entry_a", "entry_b", "submission_id",
    "submission_a", "submission_b", "name", "metric", "metric_a", "metric_b", "version", "kind",
    "token", "measure", "variant", "split", "facet", "skill", "case_id", "paper", "table",
)  # fmt: skip
"""Fields that say what a row is of; those that a row has are its key."""
_SAID_BY = {
    "metric": ("entry_id",), "submission_id": ("entry_id",), "name": ("submission_id",),
    "version": ("entry_id", "submission_id"), "kind": ("entry_id", "submission_id"),
    "metric_a": ("entry_a",), "metric_b": ("entry_b",), "measure": ("token",),
    "variant": ("token",), "split": ("token",), "facet": ("token",),
}  # fmt: skip
"""Fields that add nothing to a key where the row has one of the others."""
FACTS = "(about)"
"""Key of a table's facts about itself, beside its rows."""
_OVERALL = "all"


@dataclass(frozen=True)
class Table:
    """Rows of one answer, by key."""

    board: str  # benchmark or prompt set, or what spans them, e.g. `index`.
    kind: str  # what its rows are, e.g. `rankings`.
    name: str  # the query or command that answers it, the same on both sides
    rows: Mapping[str, Mapping[str, Any]]  # key to fields
    facts: Mapping[str, Any] = field(default_factory=dict)  # what the answer says of itself


class Level(StrEnum):
    """Where a difference lies."""

    BOARD = "board"
    TABLE = "table"
    ROW = "row"
    FIELD = "field"
    VALUE = "value"


@dataclass(frozen=True)
class Difference:
    """One difference between the sides."""

    # whether a whole board, table, row or field is on one side only, or a value differs
    level: Level
    board: str  # where
    table: str = ""  # query or command; empty where the board is missing
    row: str = ""  # key of the row; empty above rows
    field: str = ""  # name of the field; empty above fields
    a: Any = None  # the value in A; None where it has none
    b: Any = None  # likewise in B
    only_in: str = ""  # `A` or `B`; empty where both have a value


@dataclass
class Count:
    """How much of one kind of tables was compared."""

    tables: int = 0
    rows_a: int = 0
    rows_b: int = 0
    differences: int = 0


@dataclass(frozen=True)
class Comparison:
    """Everything found between two sides."""

    counts: Mapping[str, Count]  # kind of tables to how much was compared
    differences: tuple[Difference, ...]  # in the order of A
    notes: tuple[str, ...] = ()  # what is no difference and should be known

    @property
    def equal(self) -> bool:
        """Whether there is no difference."""
        return not self.differences

    def per_field(self) -> dict[str, int]:
        """How often each field differs, most often first; what is missing counts by its level."""
        named = Counter(one.field or f"({one.level} missing)" for one in self.differences)
        return dict(named.most_common())


def make_table(
    board: str,
    kind: str,
    name: str,
    rows: Iterable[Mapping[str, Any]],
    *,
    facts: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Table:
    """A table from records as a program prints or serves them."""
    known = labels or {}
    keyed: dict[str, Mapping[str, Any]] = {}
    seen: Counter[str] = Counter()
    for record in rows:
        row = _cleaned(record, known)
        key = key_of(row)
        seen[key] += 1
        # Rows that nothing tells apart are told apart by their order.
        keyed[key if seen[key] == 1 else f"{key} #{seen[key]}"] = row
    return Table(board, kind, name, keyed, _cleaned(facts or {}, known))


def key_of(row: Mapping[str, Any]) -> str:
    """The key of a row: the values of its key fields, joined by dots."""
    named = [
        str(row[name])
        for name in KEY_FIELDS
        if row.get(name) not in (None, "")
        and all(row.get(other) is None for other in _SAID_BY.get(name, ()))
    ]
    return " · ".join(dict.fromkeys(named)) or _OVERALL


def labels_of(
    entries: Sequence[Mapping[str, Any]], submissions: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """Ids to names: name and version, with the submitter where two share those.

    What even the submitter does not tell apart keeps its id.
    """
    return _labels(entries, "entry_id", "metric") | _labels(submissions, "submission_id", "name")


def _labels(records: Sequence[Mapping[str, Any]], id_field: str, name: str) -> dict[str, str]:
    short = {one[id_field]: f"{one[name]} {one['version']}".strip() for one in records}
    long = {one[id_field]: f"{short[one[id_field]]} by {one['submitter']}" for one in records}
    n_short, n_long = Counter(short.values()), Counter(long.values())
    return {
        one: short[one] if n_short[short[one]] == 1 else long[one]
        for one in short
        if n_short[short[one]] == 1 or n_long[long[one]] == 1
    }


def _cleaned(value: Any, labels: Mapping[str, str]) -> Any:
    """A value without ignored fields, with names for ids."""
    if isinstance(value, Mapping):
        return {name: _cleaned(v, labels) for name, v in value.items() if name not in IGNORED}
    if isinstance(value, list | tuple):
        return [_cleaned(one, labels) for one in value]
    if isinstance(value, str):
        parts = value.split(",")
        if all(part in labels for part in parts):
            return ",".join(sorted(labels[part] for part in parts))
    return value


def compare_tables(
    a: Sequence[Table],
    b: Sequence[Table],
    *,
    tolerance: float = 0.0,
    ignored: Iterable[str] = (),
) -> Comparison:
    """All differences between the tables of two sides.

    A field that only B has is a note and no difference, since columns may be added.
    """
    left, right = ({(t.board, t.kind, t.name): t for t in side} for side in (a, b))
    boards = [{t.board for t in side} for side in (a, b)]
    counts: dict[str, Count] = {}
    found: list[Difference] = []
    added: Counter[str] = Counter()
    for key in dict.fromkeys((*left, *right)):
        board, kind, name = key
        one, other = left.get(key), right.get(key)
        count = counts.setdefault(kind, Count())
        count.tables += 1
        count.rows_a += len(one.rows) if one else 0
        count.rows_b += len(other.rows) if other else 0
        if one is None or other is None:
            side = "A" if other is None else "B"
            if all(board in has for has in boards):
                here = [Difference(Level.TABLE, board, name, only_in=side)]
            elif any(d.level is Level.BOARD and d.board == board for d in found):
                continue  # Said already, of the whole board.
            else:
                here = [Difference(Level.BOARD, board, only_in=side)]
        else:
            here = list(_of_table(one, other, tolerance, frozenset(ignored), added))
        count.differences += len(here)
        found += here
    notes = tuple(f"B adds {what} ({n} tables)" for what, n in added.items())
    return Comparison(counts, tuple(found), notes)


def _of_table(
    a: Table, b: Table, tolerance: float, ignored: frozenset[str], added: Counter[str]
) -> Iterator[Difference]:
    for key in dict.fromkeys((*a.rows, *b.rows)):
        if key not in a.rows or key not in b.rows:
            side = "A" if key in a.rows else "B"
            yield Difference(Level.ROW, a.board, a.name, key, only_in=side)
    both = {key: (a.rows[key], b.rows[key]) for key in a.rows if key in b.rows}
    for pairs in ({FACTS: (a.facts, b.facts)}, both):
        fields = [dict.fromkeys(n for pair in pairs.values() for n in pair[i]) for i in (0, 1)]
        for name in fields[0]:
            if name not in fields[1] and name not in ignored:
                yield Difference(Level.FIELD, a.board, a.name, field=name, only_in="A")
        new = [name for name in fields[1] if name not in fields[0] and name not in ignored]
        added.update(f"`{name}` to {a.kind}" for name in new)
        shared = [name for name in fields[0] if name in fields[1] and name not in ignored]
        for key, (row_a, row_b) in pairs.items():
            for name in shared:
                x, y = row_a.get(name), row_b.get(name)
                if not same(x, y, tolerance):
                    yield Difference(Level.VALUE, a.board, a.name, key, name, x, y)


def same(a: Any, b: Any, tolerance: float = 0.0) -> bool:
    """Whether two JSON values are the same: NaN is NaN, null is not NaN, 1 is not 1.0."""
    if tolerance and isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
    if tolerance and isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y, tolerance) for x, y in zip(a, b, strict=True))
    if tolerance and isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k], tolerance) for k in a)
    # The shortest text that reads back as a float has all of its bits, the sign of zero too.
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)
