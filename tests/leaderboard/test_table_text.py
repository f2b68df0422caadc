"""Tables for papers: estimates with their intervals, and no text of others that is a command."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.table_text import to_latex, to_markdown
from leaderboard.tables import Column, Table, Type

COLUMNS = (
    Column("metric", Type.TEXT), Column("value", Type.NUMBER), Column("ci_low", Type.NUMBER),
    Column("ci_high", Type.NUMBER), Column("rank_low", Type.COUNT), Column("rank", Type.COUNT),
    Column("rank_high", Type.COUNT), Column("p_value", Type.NUMBER), Column("best", Type.FLAG),
    Column("note", Type.TEXT),
)  # fmt: skip
ROWS: list[dict[str, Any]] = [
    {"metric": "a_b", "value": 0.41237, "ci_low": 0.4, "ci_high": 0.425, "rank": 1, "rank_low": 1,
     "rank_high": 2, "p_value": 0.00001, "best": True},
    {"metric": "c|d & <x>", "value": -0.5, "ci_low": math.nan, "ci_high": None, "rank": None,
     "p_value": 0.25, "best": False},
]  # fmt: skip


def table(rows: list[dict[str, Any]], **about: Any) -> Table:
    return Table("board-x", COLUMNS, rows, about)


def cells(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[one.strip() for one in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_an_estimate_stands_with_its_interval_and_empty_columns_not_at_all() -> None:
    head, _, first, second = cells(to_markdown(table(ROWS, as_of="2026-01-02", snapshot=None)))
    assert head == ["metric", "value", "rank", "p_value", "best"]
    assert first == ["a\\_b", "0.412 \\[0.400, 0.425\\]", "1 \\[1, 2\\]", "1.00e-05", "yes"]
    assert second == ["c\\|d & \\<x\\>", "-0.500", "", "0.250", "no"]
    said = to_markdown(table(ROWS, as_of="2026-01-02", snapshot=None)).splitlines()[-1]
    assert said == "Assay. board-x. as of: 2026-01-02."


def test_a_table_without_rows_has_its_heads() -> None:
    (head, _) = cells(to_markdown(table([])))
    assert head == ["metric", "value", "rank", "p_value", "best", "note"]
    assert r"\textbf{p\_value}" in to_latex(table([]))


@pytest.mark.parametrize("name", ["[2pt] x", "*starred*", "[ours]"])
def test_no_cell_is_an_argument_of_the_line_above(name: str) -> None:
    lines = to_latex(table([{"metric": name, "value": 1.0}])).splitlines()
    assert lines[lines.index(r"\midrule") + 1].startswith(f"{{}}{name} &")


HOSTILE = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(HOSTILE, HOSTILE)
def test_no_text_breaks_out_of_its_cell(name: str, about: str) -> None:
    rows: list[dict[str, Any]] = [{"metric": name, "value": 1.0}]
    found = cells(to_markdown(table(rows, about=about)))
    assert len(found) == 3
    lines = to_latex(table(rows, about=about)).splitlines()
    inside = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    assert len(inside) <= 1
    plain = re.sub(
        r"\\(textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar)\{\}",
        "",
        "".join(inside),
    )
    assert not plain.startswith(("[", "*"))  # The rule above would take them as its own.
    plain = re.sub(r"\\[{}&%$#_]", "", plain.removeprefix("{}").removesuffix(r" \\"))
    assert not set(plain.replace(" & ", "")) & set("\\{}%$#_~^")
