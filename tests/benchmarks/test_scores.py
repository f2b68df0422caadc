"""What a scores file may be, and what is said of one that is wrong."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.errors import SubmitterError
from benchmarks.schema import ScoreTable
from benchmarks.scores import read_scores, write_scores
from tests.benchmarks.toy import PAIRS, Toy


def read(tmp_path: Path, text: str, **options: object) -> ScoreTable:
    file = tmp_path / "s.csv"
    file.write_text(text)
    toy = Toy()
    return read_scores(file, toy, toy.answers(None), **options)  # type: ignore[arg-type]


def test_a_single_score_column_takes_the_name_given(tmp_path: Path) -> None:
    table = read(tmp_path, "pair_id,score\na,1\nb,2\nc,3\n", metric="clip")
    assert table.metrics == ("clip",)
    assert table.overall["clip"].tolist() == [1, 2, 3]


def test_each_other_column_is_a_metric_and_the_order_is_the_benchmarks(tmp_path: Path) -> None:
    table = read(tmp_path, "pair_id,m,n\nc,3,6\na,1,4\nb,2,5\n")
    assert table.metrics == ("m", "n")
    assert list(table.overall.index) == list(PAIRS)
    assert table.overall["n"].tolist() == [4, 5, 6]


@pytest.mark.parametrize("cell", ["", "nan", "NaN", "null", "NA", " "])
def test_an_empty_cell_is_a_missing_score_not_a_zero(tmp_path: Path, cell: str) -> None:
    table = read(tmp_path, f"pair_id,m\na,1\nb,{cell}\nc,3\n")
    assert math.isnan(table.overall["m"]["b"])


def test_parquet_reads_like_csv_and_a_written_table_reads_back(tmp_path: Path) -> None:
    table = read(
        tmp_path, "pair_id,score,element_id,element_score\na,1,,\nb,2,,\nc,,,\na,,e1,0.5\n"
    )
    assert table.elements["score"].to_dict("records") == [
        {"pair_id": "a", "element_id": "e1", "score": 0.5}
    ]
    file = tmp_path / "s.parquet"
    file.write_bytes(write_scores(table))
    toy = Toy()
    again = read_scores(file, toy, toy.answers(None))
    pd.testing.assert_frame_equal(again.overall, table.overall)
    pd.testing.assert_frame_equal(again.elements["score"], table.elements["score"])


def test_documented_defects_are_mended_and_told(tmp_path: Path) -> None:
    table = read(tmp_path, "pair_id,m,odd\na,1,1\nb,2,7!\nc,3,3\n")
    assert table.overall["odd"].tolist() == [1, 7, 3]
    assert table.repaired == {"odd": frozenset({"b"})}
    assert table.directions == {"odd": -1}
    assert table.oriented()["odd"].tolist() == [-1, -7, -3]


def test_a_metric_said_to_be_lower_is_better_is_turned(tmp_path: Path) -> None:
    table = read(tmp_path, "pair_id,m\na,1\nb,2\nc,3\n", lower_is_better=("m",))
    assert table.oriented()["m"].tolist() == [-1, -2, -3]


GOOD = "a,1\nb,2\nc,3\n"


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("pair_id,m\na,1\nb,2\n", "missing_pairs", r"lacks 1 of the 3 pairs of toy: c\."),
        (f"pair_id,m\n{GOOD}d,4\n", "unknown_pairs", r"'d' \(line 5\)"),
        (f"pair_id,m\n{GOOD}b,4\n", "duplicate_pairs", r"'b' \(line 5\)"),
        ("pair_id,m\na,1\nb,two\nc,3\n", "not_numeric", r"column 'm': 1 cells .*'two' \(line 3\)"),
        ("pair_id,m\na,1\nb,7!\nc,3\n", "not_numeric", r"'7!' \(line 3\)"),
        ("pair_id,m\na,1\nb,inf\nc,3\n", "not_numeric", r"'inf' \(line 3\)"),
        (f"id,m\n{GOOD}", "no_pair_id", r"its columns: id, m"),
        ("pair_id\na\nb\nc\n", "no_scores", r"no score column"),
        (f"pair_id,<b>m</b>\n{GOOD}", "bad_metric_name", r"'<b>m</b>'"),
        ("", "unreadable_scores", r"neither CSV nor Parquet"),
        ("pair_id,m\na,1\nb,2\nc,3,4,5\n", "unreadable_scores", r"line 4"),
        ("pair_id,m\na,1,9\nb,2,9\nc,3,9\n", "unreadable_scores", r"more cells than"),
        ("PAR1 is not enough", "unreadable_scores", r"neither CSV nor Parquet"),
        (
            "pair_id,m,n,element_id,element_score\na,1,1,,\nb,2,2,,\nc,3,3,,\na,,,e,1\n",
            "unknown_elements",
            r"several metrics",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    tmp_path: Path, text: str, code: str, said: str
) -> None:
    with pytest.raises(SubmitterError, match=said) as caught:
        read(tmp_path, text)
    assert caught.value.code == code
    assert caught.value.hint
    assert caught.value.exit_code == 1


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    toy = Toy()
    with pytest.raises(SubmitterError, match=r"no scores file .*absent\.csv"):
        read_scores(tmp_path / "absent.csv", toy, toy.answers(None))


def test_an_unknown_lower_is_better_metric_is_named(tmp_path: Path) -> None:
    with pytest.raises(SubmitterError, match="no metric x"):
        read(tmp_path, f"pair_id,m\n{GOOD}", lower_is_better=("x",))
