"""What a scores file may be, and what is said of one that is wrong."""

from __future__ import annotations

import io
import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import scores
from benchmarks.errors import SubmitterError
from benchmarks.schema import ScoreTable
from benchmarks.scores import check_metric_name, parse_scores, read_scores, write_scores
from tests.benchmarks.toy import PAIRS, Toy


def read(tmp_path: Path, text: str, **options: object) -> ScoreTable:
    file = tmp_path / "s.csv"
    file.write_text(text)
    toy = Toy()
    return read_scores(file, toy, toy.answers(None), **options)  # type: ignore[arg-type]


def parse(content: bytes, **options: object) -> ScoreTable:
    toy = Toy()
    return parse_scores(content, "s.file", toy, toy.answers(None), **options)  # type: ignore[arg-type]


def parquet(columns: dict[str, object]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, compression="zstd")
    return buffer.getvalue()


def refused(content: bytes, code: str, **options: object) -> str:
    with pytest.raises(SubmitterError) as caught:
        parse(content, **options)
    assert caught.value.code == code
    assert caught.value.hint
    return caught.value.message


GOOD = "a,1\nb,2\nc,3\n"
DOUBLED = "a,1,9\nb,2,9\nc,3,9\n"
MANY = [f"m{i}" for i in range(201)]


def test_a_score_column_takes_the_name_given_and_may_be_turned() -> None:
    content = f"pair_id,score\n{GOOD}".encode()
    assert parse(content).metrics == ("score",)
    table = parse(content, metric="clip", lower_is_better=("clip",))
    assert table.metrics == ("clip",)
    assert table.overall["clip"].tolist() == [1, 2, 3]
    assert table.oriented()["clip"].tolist() == [-1, -2, -3]
    assert check_metric_name("CLIP-Score.v2") == "CLIP-Score.v2"
    with pytest.raises(SubmitterError):
        check_metric_name("score")


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


def test_a_parquet_of_more_rows_than_needed_is_refused_unread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n = 100_000
    texts = pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), ["x" * 200])
    content = parquet({"pair_id": texts, "score": np.zeros(n)})
    assert len(content) < 20_000
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *_, **__: pytest.fail("was read"))
    assert "at most 10000 rows" in refused(content, "too_many_rows")


def test_a_parquet_whose_texts_repeat_into_gigabytes_is_refused() -> None:
    n = 5000
    texts = pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), ["x" * 1_000_000])
    content = parquet({"pair_id": texts, "score": np.zeros(n)})
    assert len(content) < 100_000
    assert "1024 MB" in refused(content, "file_too_large")


@pytest.mark.parametrize(
    "values",
    [
        [True, False, True],
        pa.array([1, 2, 3], pa.timestamp("us")),
        pa.array([1, 2, 3], pa.duration("s")),
        pa.array([1, 2, 3], pa.date32()),
        [b"1", b"2", b"3"],
        [[1.0], [2.0], [3.0]],
    ],
)
def test_parquet_columns_that_are_neither_numbers_nor_texts_are_refused(values: object) -> None:
    said = refused(parquet({"pair_id": list(PAIRS), "m": values}), "not_numeric")
    assert "column 'm'" in said


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, 3], pa.uint8()),
        pa.array([1, 2, 3], pa.float32()),
        [Decimal("1.0"), Decimal("2.0"), Decimal("3.0")],
        ["1", "2", "3"],
        pa.array(["1", "2", "3"]).dictionary_encode(),
        pa.array(["1", "2", "3"], pa.large_string()),
    ],
)
def test_parquet_numbers_may_have_any_width_and_encoding(values: object) -> None:
    ids = pa.array(list(PAIRS)).dictionary_encode()
    assert parse(parquet({"pair_id": ids, "m": values})).overall["m"].tolist() == [1, 2, 3]


def test_whole_number_ids_stay_whole_beside_empty_cells() -> None:
    table = parse(
        parquet(
            {
                "pair_id": [*PAIRS, "a"],
                "score": [1.0, 2.0, 3.0, None],
                "element_id": pa.array([None, None, None, 7], pa.int64()),
                "element_score": [None, None, None, 0.5],
            }
        )
    )
    assert table.elements["score"]["element_id"].tolist() == ["7"]


def test_a_parquet_of_broken_text_is_refused() -> None:
    offsets = pa.py_buffer(np.arange(4, dtype=np.int32).tobytes())
    broken = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"\xff\xfe\xfd")])
    content = parquet({"pair_id": broken, "m": [1.0, 2.0, 3.0]})
    assert "UTF8" in refused(content, "unreadable_scores")


def test_a_frame_indexed_by_pair_id_or_by_nothing_much_is_read() -> None:
    frame = pd.DataFrame({"m": [1.0, 2.0, 3.0]}, index=pd.Index(PAIRS, name="pair_id"))
    assert parse(frame.to_parquet()).overall["m"].tolist() == [1, 2, 3]
    filtered = frame.reset_index().set_axis([5, 7, 8])
    assert parse(filtered.to_parquet()).metrics == ("m",)


@pytest.mark.parametrize("name", ["pair_id", "element_id", "element_score", "<b>", "", "x" * 65])
def test_a_metric_cannot_take_the_name_of_another_column(name: str) -> None:
    refused(f"pair_id,score\n{GOOD}".encode(), "bad_metric_name", metric=name)
    with pytest.raises(SubmitterError, match="cannot name a metric"):
        check_metric_name(name)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("pair_id,m\na,1\nb,2\n", "missing_pairs", "lacks 1 of the 3 pairs of toy: c."),
        (f"pair_id,m\n{GOOD}d,4\n", "unknown_pairs", "'d' (line 5)"),
        (f"pair_id,m\n{GOOD}b,4\n", "duplicate_pairs", "'b' (line 5)"),
        ("pair_id,m\na,1\nb,two\nc,3\n", "not_numeric", "column 'm': 1 cells"),
        ("pair_id,m\n\n  \na,1\nb,two\nc,3\n", "not_numeric", "'two' (line 5)"),
        ("pair_id,m\r\n\r\n  \r\na,1\r\nb,two\r\nc,3\r\n", "not_numeric", "(line 5)"),
        ("pair_id,m\na,1\nb,7!\nc,3\n", "not_numeric", "'7!' (line 3)"),
        ("pair_id,m\na,1\nb,inf\nc,3\n", "not_numeric", "'inf' (line 3)"),
        (f"id,m\n{GOOD}", "no_pair_id", "id, m"),
        ("pair_id\na\nb\nc\n", "no_scores", ""),
        (f"pair_id,<b>m</b>\n{GOOD}", "bad_metric_name", "'<b>m</b>'"),
        ("", "unreadable_scores", ""),
        ("pair_id,m\na,1\nb,2\nc,3,4,5\n", "unreadable_scores", "line 4"),
        ("pair_id,m\na,1,9\nb,2,9\nc,3,9\n", "unreadable_scores", "more cells"),
        ("PAR1 is not enough", "unreadable_scores", ""),
        ('pair_id,m\na,1\nb,"2\nc,3\n', "unreadable_scores", "line 3"),
        ("pair_id,m\n" + "," * (1 << 21), "unreadable_scores", "line 2"),
        (
            "pair_id,m,n,element_id,element_score\na,1,1,,\nb,2,2,,\nc,3,3,,\na,,,e,1\n",
            "unknown_elements",
            "several",
        ),
        (f"pair_id,score,element_score\n{DOUBLED}", "unknown_elements", "element_id"),
        ("pair_id,m\n" + "a,1\n" * 10_001, "too_many_rows", "more rows"),
        ("pair_id,m\n" + "\n" * 50_000, "too_many_rows", "more lines"),
        (f"pair_id,{','.join(MANY)}\n", "too_many_metrics", "has 201"),
        (f"pair_id,CLIP,CLIP\n{DOUBLED}", "duplicate_columns", "'CLIP'"),
        (f"pair_id,CLIP, CLIP\n{DOUBLED}", "duplicate_columns", "'CLIP'"),
        (f"pair_id, pair_id,m\n{DOUBLED}", "duplicate_columns", "'pair_id'"),
        (f"pair_id,score,CLIP\n{DOUBLED}", "duplicate_columns", "'CLIP'"),
    ],
    ids=range(26),
)
def test_what_is_wrong_is_said_with_its_place(text: str, code: str, said: str) -> None:
    assert said in refused(text.encode(), code, metric="CLIP")


def test_files_that_are_not_there_and_metrics_that_are_not_in_them(tmp_path: Path) -> None:
    with pytest.raises(SubmitterError) as caught:
        read_scores(tmp_path / "absent.csv", Toy(), Toy().answers(None))
    assert caught.value.code == "file_missing"
    refused(f"pair_id,m\n{GOOD}".encode(), "unknown_metric", lower_is_better=("x",))


def test_parquet_is_counted_in_rows_and_cut_off_where_csv_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    three = {"pair_id": list(PAIRS), "m": [1.0, 2.0, 3.0]}
    assert "'two' (row 2)" in refused(parquet({**three, "m": ["1", "two", "3"]}), "not_numeric")
    for n in (201, 1000):
        many = {"pair_id": ["a"], **{f"m{i}": [1.0] for i in range(n)}}
        refused(parquet(many), "too_many_metrics")
    with monkeypatch.context() as patch:
        patch.setattr(scores, "MAX_INFLATED", 100)
        refused(parquet(three), "file_too_large")
    monkeypatch.setattr(scores, "MAX_CELLS", 5)
    refused(f"pair_id,m\n{GOOD}".encode(), "too_many_rows")
    refused(parquet(three), "too_many_rows")


def test_quoted_cells_behind_a_byte_order_mark_are_read() -> None:
    table = parse(b'\xef\xbb\xbf"pair_id","m"\n"a","1"\nb,2\nc,3\n')
    assert table.overall["m"].tolist() == [1, 2, 3]
