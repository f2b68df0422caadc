"""Scores as a store keeps them: one schema for all files, and read back as they were."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import scores
from benchmarks.errors import SubmitterError
from benchmarks.schema import ScoreTable
from benchmarks.scores import parse_scores, write_scores
from benchmarks.stored_scores import SCHEMA, read_overall, write_stored
from tests.benchmarks.toy import PAIRS, Toy


def table(**metrics: list[float]) -> ScoreTable:
    overall = pd.DataFrame(metrics, index=pd.Index(list(PAIRS), name="pair_id"), dtype="float64")
    return ScoreTable(overall)


def with_elements() -> ScoreTable:
    parts = pd.DataFrame(
        {"pair_id": ["a", "a", "c"], "element_id": ["e1", "e2", "e1"], "score": [0.5, None, 0.1]}
    )
    return ScoreTable(table(clip=[0.1, math.nan, -0.0]).overall, elements={"clip": parts})


def stored(scores: ScoreTable, submission_id: str = "clip-00000000") -> bytes:
    return write_stored(scores, submission_id=submission_id, benchmark="toy", revision="1")


def parse(content: bytes) -> ScoreTable:
    toy = Toy()
    return parse_scores(content, "s.parquet", toy, toy.answers(None))


def changed(content: bytes, **columns: Any) -> bytes:
    """A stored file with some of its columns replaced."""
    frame = pq.read_table(io.BytesIO(content)).to_pandas().assign(**columns)
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "scores",
    [
        table(clip=[1.0, 2.0, 3.0]),
        table(clip=[math.nan] * 3),
        table(m=[1.0, math.nan, 3.0], n=[0.1, 0.2, 1e-300]),
        with_elements(),
    ],
    ids=["plain", "no score at all", "two metrics", "elements"],
)
def test_every_file_has_the_same_columns_and_types_and_is_read_back(scores: ScoreTable) -> None:
    content = stored(scores)
    assert pq.read_schema(io.BytesIO(content)) == SCHEMA
    again = parse(content)
    pd.testing.assert_frame_equal(again.overall, scores.overall, check_exact=True)
    assert set(again.elements) == set(scores.elements)
    for metric, parts in scores.elements.items():
        pd.testing.assert_frame_equal(again.elements[metric], parts, check_dtype=False)


def test_a_missing_score_is_null_and_not_nan() -> None:
    read = pq.read_table(io.BytesIO(stored(with_elements())))
    assert read["score"].to_pylist() == [0.1, None, -0.0, None, None, None]
    assert read["element_score"].to_pylist() == [None, None, None, 0.5, None, 0.1]
    assert read["element_id"].to_pylist() == [None, None, None, "e1", "e2", "e1"]


def test_equal_scores_make_equal_bytes() -> None:
    assert stored(with_elements()) == stored(with_elements())


@pytest.mark.parametrize(
    "scores", [table(m=[1.0, math.nan, 3.0], n=[4.0, 5.0, 6.0]), with_elements()]
)
def test_scores_of_pairs_are_read_from_files_of_the_form_before_as_well(scores: ScoreTable) -> None:
    new, old = read_overall(stored(scores)), read_overall(write_scores(scores))
    pd.testing.assert_frame_equal(new, old, check_exact=True, check_index_type=False)
    assert np.array_equal(new.to_numpy(), scores.overall.to_numpy(), equal_nan=True)


def refused(content: bytes) -> SubmitterError:
    with pytest.raises(SubmitterError) as caught:
        parse(content)
    return caught.value


def test_scores_of_several_submissions_are_not_one_scores_file() -> None:
    content = stored(table(clip=[1.0, 2.0, 3.0]))
    mixed = changed(content, submission_id=["clip-00000000", "clip-00000000", "other-000000"])
    assert refused(mixed).code == "several_submissions"


def test_a_pair_that_stands_twice_is_found() -> None:
    doubled = changed(stored(table(clip=[1.0, 2.0, 3.0])), pair_id=["a", "b", "b"])
    assert refused(doubled).code == "duplicate_pairs"


@pytest.mark.parametrize("column", ["metric", "pair_id"])
def test_a_row_that_names_no_metric_or_pair_is_refused(column: str) -> None:
    broken = changed(stored(table(clip=[1.0, 2.0, 3.0])), **{column: ["clip", None, "clip"]})
    assert refused(broken).code == "unreadable_scores"


@pytest.mark.parametrize("name", ["element_id", "<script>", "x" * 65])
def test_a_metric_that_no_column_could_be_named_after_is_refused(name: str) -> None:
    named = changed(stored(table(clip=[1.0, 2.0, 3.0])), metric=[name] * 3)
    assert refused(named).code in {"bad_metric_name", "no_scores", "duplicate_columns"}


def test_few_rows_do_not_become_millions_of_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "MAX_CELLS", 8)
    spread = changed(stored(table(clip=[1.0, 2.0, 3.0])), metric=["k", "l", "m"])
    assert refused(spread).code == "too_many_rows"
