"""Tables to take away: values survive every format, and nothing in a CSV is a formula."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.tables import (
    ABOUT,
    Column,
    Table,
    Type,
    columns_of,
    harmless,
    to_csv,
    to_json,
    to_parquet,
)  # fmt: skip
from leaderboard.text import clean

COLUMNS = (
    Column("text", Type.TEXT, "Words."),
    Column("number", Type.NUMBER, "In seconds."),
    Column("count", Type.COUNT),
    Column("flag", Type.FLAG),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.none() | TEXTS,
            "number": st.none() | st.floats(allow_nan=True, allow_infinity=True),
            "count": st.none() | st.integers(-(2**63), 2**63 - 1),
            "flag": st.none() | st.booleans(),
        }
    ),
    max_size=20,
)


def table(rows: list[dict[str, Any]]) -> Table:
    return Table("made-up", COLUMNS, rows, {"as_of": "2026-01-01", "title": "Über ∞"})


def same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return one == other and type(one) is type(other)


@given(ROWS)
def test_parquet_keeps_every_value_and_tells_nan_from_missing(rows: list[dict[str, Any]]) -> None:
    read = pq.read_table(io.BytesIO(to_parquet(table(rows))))
    assert read.num_rows == len(rows)
    for before, after in zip(rows, read.to_pylist(), strict=True):
        assert all(same(before[name], after[name]) for name in before), (before, after)
    about = json.loads(read.schema.metadata[ABOUT])
    assert about == {"name": "made-up", "as_of": "2026-01-01", "title": "Über ∞"}
    assert read.schema.field("number").metadata == {b"meaning": b"In seconds."}


@given(ROWS)
def test_json_keeps_every_value_that_json_has(rows: list[dict[str, Any]]) -> None:
    text = to_json(table(rows))
    assert text.isascii()
    read = json.loads(text, parse_constant=pytest.fail)
    assert [column["name"] for column in read["columns"]] == ["text", "number", "count", "flag"]
    for before, after in zip(rows, read["rows"], strict=True):
        number = before["number"]
        expected = {**before, "number": number if _finite(number) else None}
        assert all(same(expected[name], after[name]) for name in expected)


@given(ROWS)
def test_csv_keeps_every_value_and_runs_none(rows: list[dict[str, Any]]) -> None:
    lines = list(csv.DictReader(io.StringIO(to_csv(table(rows)), newline="")))
    assert len(lines) == len(rows)
    for before, after in zip(rows, lines, strict=True):
        number, count = before["number"], before["count"]
        assert after["count"] == ("" if count is None else str(count))
        assert after["flag"] == {None: "", True: "true", False: "false"}[before["flag"]]
        missing = number is None or math.isnan(number)
        assert after["number"] == "" if missing else float(after["number"]) == number
        assert unmarked(after["text"]) == unmarked(clean(before["text"] or ""))
        assert not after["text"].startswith(("=", "@", "\t", "\r"))
        # Opened by a spreadsheet that splits at semicolons.
        assert not any(
            part.lstrip('" ').startswith(("=", "@")) for part in after["text"].split(";")
        )


def unmarked(text: str) -> str:
    return re.sub(r"(^|;)'", r"\1", text)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r=", " =", "\u202e=", "＝", "＠"])
def test_a_formula_is_a_text_whatever_it_hides_behind(start: str) -> None:
    assert str(harmless(f"{start}HYPERLINK(1)")).startswith("'")


PLAIN = ("-0.5", "+3", "1e-9", "clip", "a=b", "", -0.5, None, True, "counting;text")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("x;=1+1", "x;'=1+1"), ("x; =1+1", "x;' =1+1"), ('x";=1+1', "x\";'=1+1"),
        ('x;"=1+1', "x;'\"=1+1"), (";;@SUM(1)", ";;'@SUM(1)"), ("a;-1;-b", "a;-1;'-b"),
        ("a;\t=1", "a;' =1"), ("a;\r=1", "a;'=1"), *((plain, plain) for plain in PLAIN),
    ],
)  # fmt: skip
def test_a_formula_behind_a_semicolon_is_a_text_too(value: object, shown: object) -> None:
    assert harmless(value) == shown


def test_a_name_of_a_column_is_no_formula_either() -> None:
    names = ("=1+1", "x;=1+1", "\t=1", "\r=1", "plain")
    found = to_csv(Table("t", tuple(Column(name, Type.TEXT) for name in names)))
    (head,) = csv.reader(io.StringIO(found, newline=""))
    assert head == ["'=1+1", "x;'=1+1", "' =1", "'=1", "plain"]


def test_a_lone_surrogate_is_replaced_since_no_file_can_hold_it() -> None:
    one = table([{"text": "a\ud800b"}])
    assert pq.read_table(io.BytesIO(to_parquet(one)))["text"].to_pylist() == ["a?b"]
    assert json.loads(to_json(one))["rows"][0]["text"] == "a?b"
    assert "a?b" in to_csv(one)


def test_an_empty_table_keeps_its_columns_in_every_format() -> None:
    empty = table([])
    assert to_csv(empty) == "text,number,count,flag\n"
    assert json.loads(to_json(empty))["rows"] == []
    read = pq.read_table(io.BytesIO(to_parquet(empty)))
    assert [str(field.type) for field in read.schema] == ["string", "double", "int64", "bool"]


def test_equal_tables_make_equal_bytes() -> None:
    one, other = table([{"text": "x", "number": 0.1}]), table([{"number": 0.1, "text": "x"}])
    for form in (to_csv, to_json, to_parquet):
        assert form(one) == form(other)


def test_columns_are_typed_by_name_and_are_text_otherwise() -> None:
    found = columns_of(("a", "b", "c"), {Type.COUNT: "b", Type.FLAG: "c x"}, {"b": "How many."})
    assert found == (
        Column("a", Type.TEXT),
        Column("b", Type.COUNT, "How many."),
        Column("c", Type.FLAG),
    )


def _finite(value: float | None) -> bool:
    return value is None or math.isfinite(value)


def test_random_seeds_beyond_signed_numbers_survive_parquet() -> None:
    seeds = [1, 2**64 - 1, None]
    made = table([{"count": seed} for seed in seeds])
    assert pq.read_table(io.BytesIO(to_parquet(made)))["count"].to_pylist() == seeds
