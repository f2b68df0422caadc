"""Receipts of dry runs: strict to read, and compared in words."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from benchmarks.errors import SubmitterError
from evaluator.submission.receipts import (
    MAX_BYTES,
    differences,
    environment_versions,
    read_receipt,
    written,
)
from leaderboard.records import Receipt

CONTENT = "a" * 64


def _receipt(**changes: Any) -> Receipt:
    values: dict[str, Any] = {
        "content_sha256": CONTENT,
        "versions": {"python": "3.11.9", "torch": "2.15.0+cpu"},
        "isolation": ("no network", "read-only files"),
        "benchmark": "demo_croc",
        "pairs": 200,
        "scores_sha256": "b" * 64,
        "checked_at": datetime(2026, 1, 2, tzinfo=UTC),
    }
    return Receipt(**{**values, **changes})


def _code(content: bytes) -> str:
    with pytest.raises(SubmitterError) as raised:
        read_receipt(content)
    return raised.value.code


def test_what_is_written_is_read_back() -> None:
    assert read_receipt(written(_receipt())) == _receipt()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not json",
        b"[]",
        b"\xff\xfe",
        b"[" * 5000,
        b"{}",
        written(_receipt()) + b" " * MAX_BYTES,
        json.dumps({**json.loads(written(_receipt())), "more": 1}).encode(),
        json.dumps({**json.loads(written(_receipt())), "pairs": "200"}).encode(),
        json.dumps({**json.loads(written(_receipt())), "schema_version": 2}).encode(),
        written(_receipt(pairs=-1)),
        written(_receipt(content_sha256=CONTENT)).replace(b"aaaa", b"AAAA"),
        written(_receipt(versions={"torch": "2\n3"})),
        written(_receipt(versions={"<b>": "1"})),
        written(_receipt(versions={f"p{i}": "1" for i in range(201)})),
        written(_receipt(isolation=("\u202egnp.exe",))),
        written(_receipt(isolation=("\x1b[31mred",))),
        written(_receipt(benchmark="=1+1")),
    ],
)
def test_anything_else_is_refused(content: bytes) -> None:
    assert _code(content) == "bad_receipt"


def test_what_is_refused_is_not_echoed_with_control_characters() -> None:
    hostile = written(_receipt(versions={"\x1b[2Jtorch": "1"}))
    with pytest.raises(SubmitterError) as raised:
        read_receipt(hostile)
    assert "\x1b" not in str(raised.value)


def test_a_receipt_of_other_files_is_refused() -> None:
    with pytest.raises(SubmitterError) as raised:
        differences(_receipt(), "c" * 64, {})
    assert raised.value.code == "receipt_mismatch"
    assert "aaaaaaaaaaaa" in raised.value.message
    assert "check" in raised.value.hint


def test_other_versions_are_named() -> None:
    ours = {"python": "3.11.9", "torch": "2.16.0", "pillow": "12.0"}
    theirs = _receipt(versions={"python": "3.11.9", "torch": "2.15.0", "timm": "1.0"})
    assert differences(theirs, CONTENT, ours) == (
        "pillow 12.0 is here and was not where the dry run was made",
        "the dry run had timm 1.0, which is not here",
        "the dry run had torch 2.15.0, here it is 2.16.0",
    )


def test_the_same_environment_has_no_differences() -> None:
    receipt = _receipt(versions=environment_versions())
    assert differences(receipt, CONTENT, environment_versions()) == ()


def test_a_long_list_of_differences_is_cut() -> None:
    said = differences(_receipt(versions={f"p{i:02}": "1" for i in range(40)}), CONTENT, {})
    assert len(said) == 13
    assert said[-1] == "and 28 more packages differ"


def test_versions_are_those_that_run() -> None:
    found = environment_versions()
    assert found["numpy"] == np.__version__
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert found["assay"]
