"""Scores on their way to a judge: they arrive as they were, under the benchmark's own ids."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.errors import PlatformError
from benchmarks.questions import Key
from benchmarks.schema import ScoreTable
from benchmarks.scores import write_scores
from evaluator.worker.ending.handed_over import handover_files, read_record, read_table, restored
from evaluator.worker.ending.judging import Scored
from leaderboard.records import FindingExample, Findings, Submission
from leaderboard.store.interface import Repository
from leaderboard.store.memory import memory_store
from tests.leaderboard.house import T0

KEY = Key(
    benchmark="toy",
    revision="1",
    tag="0123abcd",
    pairs={"p2": "a", "p1": "b"},
    images={"i1": "the image"},
    texts={"t1": "the text"},
    elements={"e2": ("the text", "x"), "e1": ("the text", "y")},
)


def submission(**more: Any) -> Submission:
    return Submission.model_validate(
        {
            "submission_id": "grey-0001",
            "kind": "metric",
            "name": "grey",
            "metrics": ("grey",),
            "benchmarks": ("toy",),
            "submitter": "ada",
            "content_sha256": "0" * 64,
            "archive": "uploads/x.zip",
            "received_at": T0,
            **more,
        }
    )


def table(pairs: list[str], parts: list[str] | None = None, **more: Any) -> ScoreTable:
    overall = pd.DataFrame({"grey": [0.1, np.nan]}, index=pd.Index(pairs, name="pair_id"))
    if parts is None:
        return ScoreTable(overall, **more)
    named = {
        "pair_id": [pairs[0], pairs[0], pairs[1]],
        "element_id": [*parts, parts[0]],
        "score": [1 / 3, np.nan, -0.0],
    }
    return ScoreTable(overall, elements={"grey": pd.DataFrame(named)}, **more)


def kept(scored: Scored, sent: Submission) -> Repository:
    private = memory_store().private
    files = handover_files(sent, scored, "1", "s1", "said")
    private.commit(files, parent=private.head(), message="scores")
    return private


@pytest.mark.parametrize("parts", [None, ["x", "y"]])
def test_scores_and_those_of_elements_arrive_to_the_last_bit(parts: list[str] | None) -> None:
    sent, before = submission(lower_is_better=("grey",)), table(["a", "b"], parts)
    private = kept(Scored("toy", before, ("fake",)), sent)
    after = read_table(private, sent, read_record(private, "grey-0001", "toy"))
    assert after.directions == {"grey": -1}
    assert after.elements.keys() == before.elements.keys()
    assert write_scores(after) == write_scores(before)


def test_pairs_elements_and_findings_get_their_own_ids_again() -> None:
    items = (("pair", "p1"), ("image", "i1"), ("text", "t1"))
    found = Findings(
        pairs=2,
        scored=1,
        examples=tuple(
            FindingExample.model_validate(
                {"code": "c", "item": item, "item_id": name, "message": "m", "scored": False}
            )
            for item, name in items
        ),
    )
    scored = Scored("toy", table(["p2", "p1"], ["e2", "e1"]), ("fake",), findings=found, tag="x")
    after = restored(scored, KEY)
    assert write_scores(after.table) == write_scores(table(["a", "b"], ["x", "y"]))
    assert after.findings is not None
    assert [one.item_id for one in after.findings.examples] == ["b", "the image", "the text"]
    assert after.tag == ""


def test_a_record_of_another_submission_is_refused() -> None:
    sent = submission()
    private = kept(Scored("toy", table(["a", "b"]), ()), sent)
    content = private.read("scored/grey-0001/toy.json")
    private.commit({"scored/grey-0002/toy.json": content}, parent=private.head(), message="copy")
    with pytest.raises(PlatformError, match="it is of grey-0001 on toy"):
        read_record(private, "grey-0002", "toy")


def test_a_scores_file_with_other_columns_is_refused() -> None:
    sent = submission()
    private = kept(Scored("toy", table(["a", "b"]), ()), sent)
    other = submission(metrics=("blue",))
    record = read_record(private, "grey-0001", "toy")
    with pytest.raises(PlatformError, match="its columns are"):
        read_table(private, other, record)


def test_a_scores_file_that_is_no_parquet_is_refused() -> None:
    sent = submission()
    private = kept(Scored("toy", table(["a", "b"]), ()), sent)
    record = read_record(private, "grey-0001", "toy")
    path, content = "scored/grey-0001/toy.scores.parquet", b"no parquet"
    private.commit({path: content}, parent=private.head(), message="meddle")
    named = record.model_copy(update={"scores_sha256": hashlib.sha256(content).hexdigest()})
    with pytest.raises(PlatformError) as caught:
        read_table(private, sent, named)
    assert caught.value.code == "handover_damaged"
