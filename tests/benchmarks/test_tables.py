"""CSV files of people: cells as they are written, and none under the name of another column."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.tables import read_table
from tests.kit.refusals import refused


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        ("prompt,subject\na red, shiny cat,Animals\na dog,Animals\n", "uneven_lines", "line 2"),
        ("prompt,subject\na dog,Animals\na red, shiny cat,Animals\n", "uneven_lines", "line 3"),
        ("prompt,subject\na dog,Animals\n\na cat\n", "uneven_lines", "line 4"),
        ("prompt,subject\na dog,Animals,\n", "uneven_lines", "3 cells"),
        ("prompt,subject\n,,\n", "uneven_lines", "3 cells"),
        ("prompt,prompt\na,b\n", "duplicate_columns", "prompt"),
        ("text,subject\na dog,Animals\n", "missing_columns", "no column prompt"),
        ("", "unreadable_file", "table.csv"),
    ],
)
def test_cells_that_may_stand_in_another_column_are_refused(
    tmp_path: Path, content: str, code: str, says: str
) -> None:
    file = tmp_path / "table.csv"
    file.write_text(content)
    with refused(code, says):
        read_table(file, ("prompt",))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with refused("file_missing", "none.csv"):
        read_table(tmp_path / "none.csv")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_cells_stay_text_and_blank_lines_are_passed_over(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "table.csv"
    file.write_text('\nid,prompt\n01,"a red,\nshiny cat"\n\n  \nNA,\n', encoding=encoding)
    assert read_table(file).to_dict("list") == {
        "id": ["01", "NA"], "prompt": ["a red,\nshiny cat", ""],
    }  # fmt: skip


def test_long_cells_and_tabs_are_read(tmp_path: Path) -> None:
    file = tmp_path / "table.tsv"
    file.write_text('id\tpaths\n"1\t' + "x" * 200_000)
    (row,) = read_table(file, separator="\t", quotes=False).to_dict("records")
    assert (row["id"], len(row["paths"])) == ('"1', 200_000)
