"""Rows are compared bit for bit, by what they are of, without what differs in every run."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest

from tools.row_differences import (
    FACTS,
    IGNORED,
    Difference,
    Level,
    Table,
    compare_tables,
    key_of,
    labels_of,
    make_table,
    same,
)

ROW = {
    "entry_id": "clip 1", "measure": "srcc", "skill": None, "value": 0.1, "ci_low": math.nan,
    "ci_high": None, "tier_holm_5_percent": 1, "rank": 1, "note": "",
}  # fmt: skip
OTHER = {**ROW, "entry_id": "blip 1", "value": 0.2}
PUBLISHED = (
    "value", "ci_low", "ci_high", "p_value", "p_holm", "rank_low", "rank", "rank_high",
    "tier_holm_5_percent", "n_items", "n_clusters", "n_missing", "note", "plan", "seed",
)  # fmt: skip
KEY = "clip 1 · srcc"
NAME = "boards/ts2"
FACT = {"n_tests": 3, "notes": [{"note": "few"}]}


def table(*rows: dict[str, Any], board: str = "ts2", name: str = NAME, **facts: Any) -> Table:
    return make_table(board, "rankings", name, rows, facts={**FACT, **facts})


def changed(name: str, value: Any) -> Table:
    return table({**ROW, name: value}, OTHER)


def value(name: str, a: Any, b: Any, row: str = KEY) -> Difference:
    return Difference(Level.VALUE, "ts2", NAME, row, name, a, b)


A = table(ROW, OTHER)
NEXT = math.nextafter(0.1, 1)


@pytest.mark.parametrize(
    ("b", "expected"),
    [
        ([A], []),
        ([table(OTHER, ROW)], []),
        ([changed("value", NEXT)], [value("value", 0.1, NEXT)]),
        ([changed("tier_holm_5_percent", 2)], [value("tier_holm_5_percent", 1, 2)]),
        ([changed("rank", 1.0)], [value("rank", 1, 1.0)]),
        ([changed("note", "few")], [value("note", "", "few")]),
        ([changed("ci_high", math.nan)], [value("ci_high", None, math.nan)]),
        ([changed("value", None)], [value("value", 0.1, None)]),
        ([table(ROW)], [Difference(Level.ROW, "ts2", NAME, "blip 1 · srcc", only_in="A")]),
        (
            [table(ROW, OTHER, {**ROW, "skill": "colour"})],
            [Difference(Level.ROW, "ts2", NAME, f"{KEY} · colour", only_in="B")],
        ),
        ([table(ROW, OTHER, n_tests=4)], [value("n_tests", 3, 4, FACTS)]),
        (
            [table(ROW, OTHER, notes=[])],
            [value("notes", [{"note": "few"}], [], FACTS)],
        ),
        ([A, table(ROW, board="gecko")], [Difference(Level.BOARD, "gecko", only_in="B")]),
        (
            [A, table(ROW, board="gecko"), table(ROW, board="gecko", name="boards/gecko/pairs")],
            [Difference(Level.BOARD, "gecko", only_in="B")],
        ),
        ([], [Difference(Level.BOARD, "ts2", only_in="A")]),
        (
            [A, table(ROW, name="boards/ts2?skill=colour")],
            [Difference(Level.TABLE, "ts2", "boards/ts2?skill=colour", only_in="B")],
        ),
    ],
)
def test_a_difference_is_told_as_what_it_is(b: list[Table], expected: list[Difference]) -> None:
    found = compare_tables([A], b)
    # NaN is not equal to itself, so the values are compared by their text.
    assert repr(list(found.differences)) == repr(expected)
    assert found.equal == (not expected)


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (math.nan, math.nan, True),
        (math.nan, None, False),
        (0.0, -0.0, False),
        (1, 1.0, False),
        (1, True, False),
        (math.inf, math.inf, True),
        ({"a": 1, "b": [math.nan]}, {"b": [math.nan], "a": 1}, True),
        ([1, 2], [2, 1], False),
    ],
)
def test_values_are_the_same_by_their_bits(a: object, b: object, equal: bool) -> None:
    assert same(a, b) is equal


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (0.1, 0.1 + 1e-12, True),
        (0.1, 0.1 + 1e-6, False),
        (1e12, 1e12 + 1, True),
        (1, 2, False),
        (math.nan, math.nan, True),
        (math.nan, 0.1, False),
        (None, 0.0, False),
        ([{"p": 0.1}], [{"p": 0.1 + 1e-12}], True),
        ([0.1], [0.1, 0.2], False),
        ({"p": 0.1}, {"q": 0.1}, False),
    ],
)
def test_a_tolerance_is_of_floats_alone(a: object, b: object, equal: bool) -> None:
    assert same(a, b, 1e-9) is equal


@pytest.mark.parametrize("name", IGNORED)
def test_what_differs_in_every_run_is_left_out_at_any_depth(name: str) -> None:
    b = table({**ROW, name: 7}, OTHER, provenance={"ts2": {name: 7}})
    a = table({**ROW, name: 8}, OTHER, provenance={"ts2": {name: 8}})
    assert compare_tables([a], [b]).differences == ()


def test_every_ignored_field_has_its_reason() -> None:
    assert all(IGNORED.values())


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_is_published_is_never_left_out(name: str) -> None:
    found = compare_tables([table({**ROW, name: 7})], [table({**ROW, name: 8})])
    assert found.per_field() == {name: 1}


def test_further_fields_can_be_left_out() -> None:
    assert compare_tables([A], [changed("note", "few")], ignored=["note"]).equal


def test_a_new_field_is_a_note_and_a_lost_one_a_difference() -> None:
    wider = table({**ROW, "p_best": 1.0}, {**OTHER, "p_best": 0.0}, rule="strict")
    gained, lost = compare_tables([A], [wider]), compare_tables([wider], [A])
    assert gained.equal
    assert gained.notes == (
        "B adds `rule` to rankings (1 tables)",
        "B adds `p_best` to rankings (1 tables)",
    )
    assert [(d.level, d.field, d.only_in) for d in lost.differences] == [
        (Level.FIELD, "rule", "A"),
        (Level.FIELD, "p_best", "A"),
    ]


def test_counts_are_by_kind_and_by_field() -> None:
    pairs = make_table("ts2", "tests", "boards/ts2/pairs", [{"entry_a": "x", "p_value": 0.5}])
    b = [changed("value", 0.3), make_table("ts2", "tests", "boards/ts2/pairs", [])]
    found = compare_tables([A, pairs], b)
    counted = {
        kind: (n.tables, n.rows_a, n.rows_b, n.differences) for kind, n in found.counts.items()
    }
    assert counted == {"rankings": (1, 2, 2, 1), "tests": (1, 1, 0, 1)}
    assert found.per_field() == {"value": 1, "(row missing)": 1}


@pytest.mark.parametrize(
    ("row", "key"),
    [
        ({"entry_id": "clip 1", "metric": "clip", "version": "1", "value": 3}, "clip 1"),
        ({"entry_a": "clip 1", "metric_a": "clip", "entry_b": "blip 1"}, "clip 1 · blip 1"),
        ({"metric": "clip", "measure": "rank", "split": "nat"}, "clip · rank · nat"),
        ({"metric": "clip", "version": "1", "benchmark": "index"}, "index · clip · 1"),
        ({"token": "srcc~paper", "measure": "srcc", "skill": "count"}, "srcc~paper · count"),
        ({"value": 3}, "all"),
    ],
)
def test_a_key_says_what_a_row_is_of(row: dict[str, Any], key: str) -> None:
    assert key_of(row) == key


def test_rows_of_one_key_are_told_apart_by_their_order() -> None:
    assert list(table(ROW, ROW).rows) == [KEY, f"{KEY} #2"]


def entry(entry_id: str, version: str = "1", submitter: str = "us") -> dict[str, str]:
    metric = entry_id.partition("/")[2]
    return {"entry_id": entry_id, "metric": metric, "version": version, "submitter": submitter}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([entry("a/clip"), entry("b/blip")], ["clip 1", "blip 1"]),
        ([entry("a/clip"), entry("b/clip", "2")], ["clip 1", "clip 2"]),
        ([entry("a/clip"), entry("b/clip", submitter="you")], ["clip 1 by us", "clip 1 by you"]),
        ([entry("a/clip", version="")], ["clip"]),
        ([entry("a/clip"), entry("b/clip")], []),
    ],
)
def test_a_metric_has_a_name_that_tells_it_apart(
    entries: list[dict[str, str]], expected: list[str]
) -> None:
    assert list(labels_of(entries, ()).values()) == expected


def test_other_bytes_of_a_submission_give_it_another_id_and_the_same_rows() -> None:
    def side(*ids: str) -> Table:
        submissions = [
            {"submission_id": one, "name": name, "version": "1", "submitter": "us"}
            for one, name in zip(ids, ("m1", "m2", "m3"), strict=True)
        ]
        row = {"submission_id": ids[0], "better_than": ",".join(sorted(ids[1:])), "value": 0.1}
        known = labels_of((), submissions)
        facts = {"judges": [{"metric": ids[0]}]}
        return make_table("p", "model rankings", "models/p", [row], facts=facts, labels=known)

    assert compare_tables([side("x", "a", "b")], [side("y", "d", "c")]).equal


@pytest.mark.parametrize("change", [dict.clear, lambda row: row.update(value=9)])
def test_what_is_given_is_left_as_it_is(change: Callable[[dict[str, Any]], object]) -> None:
    row = copy.deepcopy(ROW)
    kept = table(row)
    change(row)
    assert repr(kept) == repr(table(ROW))
