"""Scores files: what is read, what is refused, how scores are stored; problems as one error."""

from __future__ import annotations

import io
import math
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import scores
from benchmarks.errors import SubmitterError
from benchmarks.parquet import SCHEMA, read_overall, write_stored
from benchmarks.problems import Problem, ProblemsError, one_error, problem_kinds, problems_of
from benchmarks.schema import ScoreTable
from benchmarks.scores import check_metric_name, parse_scores, read_scores, write_scores
from tests.kit.toy import PAIRS, Toy

GOOD = "a,1\nb,2\nc,3\n"
DOUBLED = "a,1,9\nb,2,9\nc,3,9\n"
THREE = {"pair_id": list(PAIRS), "m": [1.0, 2.0, 3.0]}
TOY = Toy()


def parse(content: bytes | str, **options: object) -> ScoreTable:
    given = content.encode() if isinstance(content, str) else content
    return parse_scores(given, "s.file", TOY, TOY.answers(None), **options)  # type: ignore[arg-type]


def parquet(columns: dict[str, object]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, compression="zstd")
    return buffer.getvalue()


def refused(content: bytes | str, code: str, **options: object) -> str:
    with pytest.raises(SubmitterError) as caught:
        parse(content, **options)
    assert caught.value.code == code and caught.value.hint
    return caught.value.message


# What is read
def test_a_score_column_takes_the_name_given_and_may_be_turned() -> None:
    content = f"pair_id,score\n{GOOD}"
    assert parse(content).metrics == ("score",)
    table = parse(content, metric="clip", lower_is_better=("clip",))
    assert table.metrics == ("clip",)
    assert table.overall["clip"].tolist() == [1, 2, 3]
    assert table.oriented()["clip"].tolist() == [-1, -2, -3]
    assert check_metric_name("CLIP-Score.v2") == "CLIP-Score.v2"


def test_each_other_column_is_a_metric_and_the_order_is_the_benchmarks() -> None:
    table = parse("pair_id,m,n\nc,3,6\na,1,4\nb,2,5\n")
    assert (table.metrics, tuple(table.overall.index)) == (("m", "n"), PAIRS)
    assert table.overall["n"].tolist() == [4, 5, 6]
    quoted = parse(b'\xef\xbb\xbf"pair_id","m"\n"a","1"\nb,2\nc,3\n')
    assert quoted.overall["m"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("cell", ["", "nan", "NaN", "null", "NA", " "])
def test_an_empty_cell_is_a_missing_score_not_a_zero(cell: str) -> None:
    assert math.isnan(parse(f"pair_id,m\na,1\nb,{cell}\nc,3\n").overall["m"]["b"])


def test_documented_defects_are_mended_and_told() -> None:
    table = parse("pair_id,m,odd\na,1,1\nb,2,7!\nc,3,3\n")
    assert table.overall["odd"].tolist() == [1, 7, 3]
    assert table.repaired == {"odd": frozenset({"b"})}
    assert table.directions == {"odd": -1}
    assert table.oriented()["odd"].tolist() == [-1, -7, -3]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, 3], pa.uint8()), pa.array([1, 2, 3], pa.float32()), ["1", "2", "3"],
        [Decimal("1.0"), Decimal("2.0"), Decimal("3.0")],
        pa.array(["1", "2", "3"]).dictionary_encode(), pa.array(["1", "2", "3"], pa.large_string()),
    ],
)  # fmt: skip
def test_parquet_numbers_may_have_any_width_and_encoding(values: object) -> None:
    ids = pa.array(list(PAIRS)).dictionary_encode()
    assert parse(parquet({"pair_id": ids, "m": values})).overall["m"].tolist() == [1, 2, 3]


def test_elements_and_ids_of_any_form_are_read_and_written_tables_read_back(tmp_path: Path) -> None:
    table = parse("pair_id,score,element_id,element_score\na,1,,\nb,2,,\nc,,,\na,,e1,0.5\n")
    (element,) = table.elements["score"].to_dict("records")
    assert element == {"pair_id": "a", "element_id": "e1", "score": 0.5}
    file = tmp_path / "s.parquet"
    file.write_bytes(write_scores(table))
    again = read_scores(file, TOY, TOY.answers(None))
    pd.testing.assert_frame_equal(again.overall, table.overall)
    pd.testing.assert_frame_equal(again.elements["score"], table.elements["score"])
    numbered = {
        "pair_id": [*PAIRS, "a"],
        "score": [1.0, 2.0, 3.0, None],
        "element_id": pa.array([None, None, None, 7], pa.int64()),
        "element_score": [None, None, None, 0.5],
    }
    assert parse(parquet(numbered)).elements["score"]["element_id"].tolist() == ["7"]
    frame = pd.DataFrame({"m": [1.0, 2.0, 3.0]}, index=pd.Index(PAIRS, name="pair_id"))
    assert parse(frame.to_parquet()).overall["m"].tolist() == [1, 2, 3]
    assert parse(frame.reset_index().set_axis([5, 7, 8]).to_parquet()).metrics == ("m",)


@pytest.mark.parametrize("unit", [5e-324, 1e-300, 1e-101, 1.0, 1e101, 1e308])
def test_scores_in_an_extreme_unit_keep_their_order_and_proportions(unit: float) -> None:
    plain = pd.DataFrame({"a": [1.0, 0.0, -0.5, np.nan, 0.25]})
    scaled = ScoreTable(plain * unit, directions={"a": -1}).oriented()["a"]
    assert 1e-100 < scaled.abs().max() < 1e100
    if unit != 5e-324:  # the smallest double has no half
        np.testing.assert_allclose(scaled / scaled[0], plain["a"], rtol=1e-15)
    if unit == 1.0:  # ordinary scores are left as they are
        np.testing.assert_array_equal(scaled, -plain["a"])


# What is refused
@pytest.mark.parametrize(
    "name", ["score", "pair_id", "element_id", "element_score", "<b>", "", "x" * 65]
)
def test_a_metric_cannot_take_the_name_of_another_column(name: str) -> None:
    if name != "score":
        refused(f"pair_id,score\n{GOOD}", "bad_metric_name", metric=name)
    with pytest.raises(SubmitterError):
        check_metric_name(name)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("pair_id,m\na,1\nb,2\n", "missing_pairs", " c."),
        (f"pair_id,m\n{GOOD}d,4\n", "unknown_pairs", "'d' (line 5)"),
        (f"pair_id,m\n{GOOD}b,4\n", "duplicate_pairs", "'b' (line 5)"),
        ("pair_id,m\na,1\nb,two\nc,3\n", "not_numeric", "'m': 1 cell "),
        ("pair_id,m\n\n  \na,1\nb,two\nc,3\n", "not_numeric", "'two' (line 5)"),
        ("pair_id,m\r\n\r\n  \r\na,1\r\nb,two\r\nc,3\r\n", "not_numeric", "(line 5)"),
        ("pair_id,m\na,1\nb,7!\nc,3\n", "not_numeric", "'7!' (line 3)"),
        ("pair_id,m\na,1\nb,inf\nc,3\n", "not_numeric", "'inf' (line 3)"),
        (f"id,m\n{GOOD}", "no_pair_id", "id, m"),
        ("pair_id\na\nb\nc\n", "no_scores", ""),
        (f"pair_id,<b>m</b>\n{GOOD}", "bad_metric_name", "'<b>m</b>'"),
        ("", "unreadable_scores", ""),
        ("pair_id,m\na,1\nb,2\nc,3,4,5\n", "unreadable_scores", "line 4"),
        ("pair_id,m\na,1,9\nb,2,9\nc,3,9\n", "unreadable_scores", "cells"),
        ("PAR1 no table", "unreadable_scores", ""),
        ('pair_id,m\na,1\nb,"2\nc,3\n', "unreadable_scores", "line 3"),
        ("pair_id,m\n" + "," * (1 << 21), "unreadable_scores", "line 2"),
        ("pair_id,m,n,element_id,element_score\na,1,1,,\nb,2,2,,\nc,3,3,,\na,,,e,1\n", "unknown_elements", "several"),
        (f"pair_id,score,element_score\n{DOUBLED}", "unknown_elements", "element_id"),
        ("pair_id,m\n" + "a,1\n" * 10_001, "too_many_rows", "rows"),
        ("pair_id,m\n" + "\n" * 50_000, "too_many_rows", "lines"),
        (f"pair_id,{','.join(f'm{i}' for i in range(201))}\n", "too_many_metrics", "201"),
        (f"pair_id,CLIP,CLIP\n{DOUBLED}", "duplicate_columns", "'CLIP'"),
        (f"pair_id,CLIP, CLIP\n{DOUBLED}", "duplicate_columns", "'CLIP'"),
        (f"pair_id, pair_id,m\n{DOUBLED}", "duplicate_columns", "'pair_id'"),
        (f"pair_id,score,CLIP\n{DOUBLED}", "duplicate_columns", "'CLIP'"),
    ],
    ids=range(26),
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(text: str, code: str, said: str) -> None:
    assert said in refused(text, code, metric="CLIP")


def test_all_kinds_of_problems_are_told_at_once_with_number_example_and_remedy() -> None:
    text = "pair_id,m,<b>\na,two,1\na,1,x\nd,3,y\n"
    with pytest.raises(ProblemsError) as caught:
        parse(text, lower_is_better=("n",))
    kinds = {kind.code: (kind.count, kind.example) for kind in problem_kinds(caught.value.problems)}
    assert kinds == {
        "bad_metric_name": (1, "'<b>'"), "duplicate_pairs": (1, "'a' (line 3)"),
        "unknown_pairs": (1, "'d' (line 4)"), "missing_pairs": (2, "b"),
        "not_numeric": (3, "'two' (line 2)"), "unknown_metric": (1, ""),
    }  # fmt: skip
    assert caught.value.code == "several_problems"
    assert all(problem.hint for problem in caught.value.problems)
    assert "1 duplicate pair_id." in caught.value.problems[1].message
    header = "pair,CLIP,CLIP,<b>\n"
    with pytest.raises(ProblemsError) as caught:
        parse(header)
    assert {problem.code for problem in caught.value.problems} == {
        "no_pair_id", "duplicate_columns", "bad_metric_name",
    }  # fmt: skip
    elements = "pair_id,m,element_id,element_score\na,1,,\nb,2,,\nc,3,,\na,,e,1\na,,e,x\nz,,e,1\n"
    with pytest.raises(ProblemsError) as caught:
        parse(elements)
    assert [problem.code for problem in caught.value.problems] == [
        "unknown_pairs", "not_numeric", "duplicate_pairs",
    ]  # fmt: skip


def test_files_that_are_not_there_and_metrics_that_are_not_in_them(tmp_path: Path) -> None:
    with pytest.raises(SubmitterError) as caught:
        read_scores(tmp_path / "absent.csv", TOY, TOY.answers(None))
    assert caught.value.code == "file_missing"
    refused(f"pair_id,m\n{GOOD}", "unknown_metric", lower_is_better=("x",))


@pytest.mark.parametrize(
    "values",
    [
        [True, False, True], pa.array([1, 2, 3], pa.timestamp("us")), [b"1", b"2", b"3"],
        pa.array([1, 2, 3], pa.duration("s")), pa.array([1, 2, 3], pa.date32()), [[1.0]] * 3,
    ],
)  # fmt: skip
def test_parquet_columns_that_are_neither_numbers_nor_texts_are_refused(values: object) -> None:
    assert "'m'" in refused(parquet({**THREE, "m": values}), "not_numeric")


def test_parquet_of_broken_or_no_numbers_is_refused_by_its_row() -> None:
    offsets = pa.py_buffer(np.arange(4, dtype=np.int32).tobytes())
    broken = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"\xff\xfe\xfd")])
    assert "UTF8" in refused(parquet({**THREE, "pair_id": broken}), "unreadable_scores")
    assert "'two' (row 2)" in refused(parquet({**THREE, "m": ["1", "two", "3"]}), "not_numeric")


def test_a_parquet_of_many_rows_or_much_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def repeated(n: int, text: str) -> bytes:
        texts = pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), [text])
        content = parquet({"pair_id": texts, "score": np.zeros(n)})
        assert len(content) < 100_000
        return content

    assert "1024 MB" in refused(repeated(5000, "x" * 1_000_000), "file_too_large")
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *_, **__: pytest.fail("was read"))
    assert "10000" in refused(repeated(100_000, "x" * 200), "too_many_rows")


def test_parquet_is_cut_off_where_csv_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for n in (201, 1000):
        many = {"pair_id": ["a"], **{f"m{i}": [1.0] for i in range(n)}}
        refused(parquet(many), "too_many_metrics")
    with monkeypatch.context() as patch:
        patch.setattr(scores, "MAX_INFLATED", 100)
        refused(parquet(THREE), "file_too_large")
    monkeypatch.setattr(scores, "MAX_CELLS", 5)
    refused(f"pair_id,m\n{GOOD}", "too_many_rows")
    refused(parquet(THREE), "too_many_rows")


# What a store keeps: one schema for all files
def table(**metrics: list[float]) -> ScoreTable:
    index = pd.Index(list(PAIRS), name="pair_id")
    return ScoreTable(pd.DataFrame(metrics, index=index, dtype="float64"))


def with_elements() -> ScoreTable:
    parts = pd.DataFrame(
        {"pair_id": ["a", "a", "c"], "element_id": ["e1", "e2", "e1"], "score": [0.5, None, 0.1]}
    )
    return ScoreTable(table(clip=[0.1, math.nan, -0.0]).overall, elements={"clip": parts})


def stored(scores: ScoreTable) -> bytes:
    return write_stored(scores, submission_id="clip-00000000", benchmark="toy", revision="1")


@pytest.mark.parametrize(
    "scores",
    [
        table(clip=[1.0, 2.0, 3.0]), table(clip=[math.nan] * 3), with_elements(),
        table(m=[1.0, math.nan, 3.0], n=[0.1, 0.2, 1e-300]),
    ],
)  # fmt: skip
def test_every_file_has_the_same_columns_and_is_read_back(scores: ScoreTable) -> None:
    content = stored(scores)
    assert pq.read_schema(io.BytesIO(content)) == SCHEMA
    assert content == stored(scores)
    again = parse(content)
    pd.testing.assert_frame_equal(again.overall, scores.overall, check_exact=True)
    assert set(again.elements) == set(scores.elements)
    for metric, parts in scores.elements.items():
        pd.testing.assert_frame_equal(again.elements[metric], parts, check_dtype=False)
    new, old = read_overall(content), read_overall(write_scores(scores))  # of the form before
    pd.testing.assert_frame_equal(new, old, check_exact=True, check_index_type=False)
    assert np.array_equal(new.to_numpy(), scores.overall.to_numpy(), equal_nan=True)


def test_a_missing_score_is_null_and_not_nan() -> None:
    read = pq.read_table(io.BytesIO(stored(with_elements())))
    assert read["score"].to_pylist() == [0.1, None, -0.0, None, None, None]
    assert read["element_score"].to_pylist() == [None, None, None, 0.5, None, 0.1]
    assert read["element_id"].to_pylist() == [None, None, None, "e1", "e2", "e1"]


@pytest.mark.parametrize(
    ("columns", "codes"),
    [
        ({"submission_id": ["clip-00000000", "clip-00000000", "other-000000"]}, "several_submissions"),
        ({"pair_id": ["a", "b", "b"]}, "several_problems"),
        ({"metric": ["clip", None, "clip"]}, "unreadable_scores"),
        ({"pair_id": ["clip", None, "clip"]}, "unreadable_scores"),
        ({"metric": ["element_id"] * 3}, "bad_metric_name no_scores duplicate_columns"),
        ({"metric": ["<script>"] * 3}, "bad_metric_name"), ({"metric": ["x" * 65] * 3}, "bad_metric_name"),
        ({"metric": ["k", "l", "m"]}, "too_many_rows"),  # few rows would become many cells
    ],
)  # fmt: skip
def test_a_stored_file_that_somebody_changed_is_refused(
    columns: dict[str, Any], codes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scores, "MAX_CELLS", 8)
    content = stored(table(clip=[1.0, 2.0, 3.0]))
    frame = pq.read_table(io.BytesIO(content)).to_pandas().assign(**columns)
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), buffer)
    with pytest.raises(SubmitterError) as caught:
        parse(buffer.getvalue())
    assert caught.value.code in codes.split()


# Problems of a submission, by kind and as one error.


MISSING = [
    Problem("missing", f"No file (for p{n}).", "Add it.", file=f"p{n}.png") for n in range(76)
]
BLANK = Problem("blank", "It is of one colour.", "Generate it again.", file="x.png")


def test_problems_of_one_code_and_remedy_are_one_kind_in_the_order_they_were_found() -> None:
    missing, blank = problem_kinds([*MISSING, BLANK])
    assert (missing.code, missing.count, missing.example, missing.hint) == (
        "missing", 76, "p0.png", "Add it.",
    )  # fmt: skip
    assert (blank.count, blank.listed) == (1, (BLANK,))
    assert "76 missing" in missing.sentence and "p0.png" in missing.sentence


def test_what_is_counted_but_not_listed_is_in_the_numbers() -> None:
    found = problem_kinds([*MISSING, BLANK], {"missing": 500, "blank": 1, "extra": 3})
    assert [(kind.code, kind.count) for kind in found] == [
        ("missing", 500), ("blank", 1), ("extra", 3),
    ]  # fmt: skip
    assert found[2].listed == () and "3 extra" in found[2].sentence


def test_each_key_of_a_manifest_stands_for_itself() -> None:
    lines = [Problem("bad_manifest", f"{key}: wrong.", "Correct that key.", "assay.toml", 3)
             for key in ("name", "version")]  # fmt: skip
    assert [kind.sentence for kind in problem_kinds(lines)] == [
        "assay.toml:3: name: wrong.", "assay.toml:3: version: wrong.",
    ]  # fmt: skip


def test_a_problem_of_many_rows_names_the_first_and_counts_the_rest() -> None:
    one = Problem("m", "It lacks 7 pairs.", count=7, examples=tuple("abcdefg"))
    assert one.sentence == "It lacks 7 pairs: a, b, c, d, e and 2 more."
    (kind,) = problem_kinds([one])
    assert (kind.count, kind.example, kind.sentence) == (7, "a", one.sentence)


def test_one_error_keeps_the_code_of_one_problem_and_says_every_kind_of_several() -> None:
    single = one_error([BLANK])
    assert (single.code, single.hint, single.problems) == ("blank", BLANK.hint, (BLANK,))
    several = one_error([*MISSING, BLANK])
    assert several.code == "several_problems" and several.message.startswith("77 things")
    assert len(several.message.splitlines()) == 3 and "Add it." in several.message
    assert problems_of(several) == (*MISSING, BLANK)
    again = pickle.loads(pickle.dumps(several))
    assert (again.code, again.message) == (several.code, several.message)
    other = SubmitterError("no_file", "None.", "Choose one.")
    assert problems_of(other) == (Problem("no_file", "None.", "Choose one."),)
