"""The log files of submissions: bounded in size, in number and in age."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from evaluator.worker.running.secrets_kept import HIDDEN, SecretsKept
from evaluator.worker.upkeep.log_files import LogLimits, SubmissionFiles, limits_of

DAY_S = 24 * 3600.0


def files_at(folder: Path, limits: LogLimits) -> SubmissionFiles:
    return SubmissionFiles(folder, lambda record: record.name, logging.Formatter(), limits)


def said(submission: str, n: int = 1) -> list[logging.LogRecord]:
    line = logging.LogRecord(submission, logging.INFO, "x", 1, "y" * 100, (), None)
    return [line] * n


def test_files_are_bounded_in_size_and_number(tmp_path: Path) -> None:
    files = files_at(tmp_path, LogLimits(n_bytes=2000, most=3))
    for number in range(6):
        for line in said(f"grey-{number:010}", 50):
            files.handle(line)
    files.close()
    kept = {path.name.partition(".")[0] for path in tmp_path.iterdir()}
    assert len(kept) == 3
    assert f"grey-{5:010}" in kept
    assert all(path.stat().st_size <= 2000 for path in tmp_path.iterdir())
    assert len(list(tmp_path.iterdir())) <= 6


def test_what_is_old_is_removed_when_a_worker_starts(tmp_path: Path) -> None:
    for name, days in (("grey-0000000000", 31), ("grey-0000000001", 29)):
        for file in (tmp_path / f"{name}.jsonl", tmp_path / f"{name}.jsonl.1"):
            file.write_text("{}")
            os.utime(file, (0, time.time() - days * DAY_S))
    files_at(tmp_path, LogLimits()).close()
    assert {path.name for path in tmp_path.iterdir()} == {
        "grey-0000000001.jsonl", "grey-0000000001.jsonl.1",
    }  # fmt: skip


def test_the_log_being_written_is_never_removed(tmp_path: Path) -> None:
    files = files_at(tmp_path, LogLimits(most=1, seconds=0.0))
    for line in said("grey-0000000000", 3):
        files.handle(line)
    files.close()
    assert (tmp_path / "grey-0000000000.jsonl").read_text().count("y" * 100) == 3


def test_limits_are_settings() -> None:
    assert limits_of({}) == LogLimits()
    given = {"ASSAY_LOG_MIB": "0.5", "ASSAY_LOGS_KEPT": "7", "ASSAY_LOG_DAYS": "2"}
    assert limits_of(given) == LogLimits(1 << 19, 7, 2 * DAY_S)
    with pytest.raises(SubmitterError, match="ASSAY_LOG_DAYS"):
        limits_of({"ASSAY_LOG_DAYS": "-1"})


def test_a_secret_that_is_changed_is_kept_out_before_and_after() -> None:
    environment = {"ASSAY_LIVE_SECRET": "the-one-before-it"}
    kept = SecretsKept.of(environment)
    assert kept("it was the-one-before-it") == f"it was {HIDDEN}"
    environment["ASSAY_LIVE_SECRET"] = "the-one-after-it"
    assert kept("the-one-before-it, the-one-after-it") == f"{HIDDEN}, {HIDDEN}"
