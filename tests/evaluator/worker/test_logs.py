"""What a worker logs: one JSON object a line, a bounded file a submission, and never a secret."""

from __future__ import annotations

import json
import logging
import os
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from evaluator.worker.logs import (
    HIDDEN,
    Activity,
    LogFormat,
    Logged,
    LogLimits,
    RememberedClock,
    SecretRedaction,
    SubmissionFiles,
    limits_of,
    logging_to,
)

AT = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
GREY, REDD = "grey-0123456789", "redd-0123456789"
SECRETS = {
    "HF_TOKEN": "hf_abcdefghijklmnopqrstuvwx",
    "ASSAY_LIVE_SECRET": 'odd "secret" \\ of live',
    "ASSAY_WEBHOOK_SECRET": "the-webhook-secret-0123",
    "HF_TOKEN_PATH": "/home/ada/token-file",
}
log = logging.getLogger("evaluator.worker.test")


@dataclass
class Desk:
    """What a worker is at, and what it logged of it."""

    folder: Path
    errors: pytest.CaptureFixture[str]
    doing: Activity = field(default_factory=Activity)

    def logging(self, form: LogFormat = LogFormat.JSON) -> Any:
        logged = Logged("w1", lambda: AT, lambda: self.doing, SecretRedaction.of(SECRETS))
        return logging_to(form, logged, self.folder)

    def text(self) -> str:
        return self.errors.readouterr().err

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text().splitlines()]


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path / "logs", capsys)


def test_a_line_is_one_object_with_what_the_worker_is_at(desk: Desk) -> None:
    with desk.logging():
        log.info("Waiting.")
        desk.doing = Activity(GREY, 2)
        log.warning("%s failed: %s", GREY, TransientError("store_failed", "No disk."))
        log.info("Sent.", extra={"submission": REDD, "attempt": 1})
        try:
            raise PlatformError("incident", "It broke.")
        except PlatformError:
            log.exception("Incident\nin two lines")
    first, *others = desk.lines()
    assert first == {
        "time": "2026-01-01T12:00:00.000+00:00", "level": "info", "worker": "w1",
        "logger": "evaluator.worker.test", "submission": "", "attempt": 0, "code": "",
        "message": "Waiting.",
    }  # fmt: skip
    about = [[line[name] for name in ("submission", "attempt", "level", "code")] for line in others]
    assert about == [
        [GREY, 2, "warning", "store_failed"],
        [REDD, 1, "info", ""],  # A line that says what it is about is believed.
        [GREY, 2, "error", "incident"],
    ]
    assert others[2]["message"] == "Incident\nin two lines"
    assert "Traceback" in others[2]["exception"]
    files = {path.name: path.read_text().count("\n") for path in desk.folder.iterdir()}
    assert files == {f"{GREY}.jsonl": 2, f"{REDD}.jsonl": 1}


def test_as_text_a_line_says_level_and_submission(desk: Desk) -> None:
    with desk.logging(LogFormat.TEXT):
        log.info("Stopped.")
        log.info("Sent.", extra={"submission": REDD, "attempt": 1})
    first, second = desk.text().splitlines()
    assert first.endswith(" INFO Stopped.")
    assert second.endswith(f" INFO {REDD}: Sent.")


@pytest.mark.parametrize("form", LogFormat)
def test_what_a_scorer_makes_us_say_steers_no_terminal(desk: Desk, form: LogFormat) -> None:
    with desk.logging(form):
        log.warning("It said %s", "\x1b[2J\x1b]0;owned\x07\u202eevil")
    said = desk.text()
    assert "evil" in said
    assert not {"\x1b", "\u202e"} & set(said)


def test_a_long_message_keeps_its_beginning_and_its_end(desk: Desk) -> None:
    with desk.logging():
        log.info("begin" + "x" * 100_000 + "end")
    message = desk.lines()[0]["message"]
    assert len(message) < 9000
    assert (message[:5], message[-3:]) == ("begin", "end")


def test_signed_addresses_of_every_request_are_not_logged(desk: Desk) -> None:
    before = logging.getLogger("httpx").level
    with desk.logging(LogFormat.TEXT):
        assert not logging.getLogger("httpx").isEnabledFor(logging.INFO)
        assert log.isEnabledFor(logging.INFO)
    assert logging.getLogger("httpx").level == before


def test_lines_have_the_stores_time_without_asking_for_it() -> None:
    asked: list[None] = []
    seconds = [0.0]

    def clock() -> datetime:
        asked.append(None)
        if len(asked) > 1:
            raise TransientError("no_clock", "No answer.")
        return AT

    remembered = RememberedClock(clock, steady=lambda: seconds[0])
    assert remembered.last().tzinfo is not None
    assert asked == []
    assert remembered() == AT
    seconds[0] = 90.0
    for _ in range(2):
        assert remembered.last() == AT + timedelta(seconds=90)
        with pytest.raises(TransientError):
            remembered()
    assert len(asked) == 3


# Secrets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", LogFormat)
def test_no_secret_is_ever_logged(desk: Desk, form: LogFormat) -> None:
    desk.doing = Activity(GREY, 1)
    told = [value for name, value in SECRETS.items() if name != "HF_TOKEN_PATH"]
    with desk.logging(form):
        for secret in told:
            log.info("with %s as an argument", secret)
            log.info({"in": secret})
            try:
                raise ValueError(f"refused {secret}")
            except ValueError:
                log.exception("It was refused")
        log.info("Authorization: Bearer abc.def-ghi")
        log.info("{'X-Webhook-Secret': 'another-one'}")
        log.info("GET https://files.test/x?X-Amz-Signature=0123abcd&part=1")
        log.info("https://ada:letmein-please@host/x")
        log.info("a token of somebody else: hf_ZZZZZZZZZZZZZZZZZZZZZZ")
    written = desk.text() + (desk.folder / f"{GREY}.jsonl").read_text()
    objects = [str(json.loads(line)) for line in written.splitlines() if line.startswith("{")]
    everything = written + "".join(objects)
    leaks = (*told, "abc.def", "another-one", "0123abcd", "letmein", "hf_ZZZ")
    assert not [secret for secret in leaks if secret in everything]
    assert HIDDEN in written
    assert "&part=1" in written


def test_what_is_no_secret_stays_readable() -> None:
    kept = SecretRedaction.of(SECRETS)
    for text in ("/home/ada/token-file", "hf_hub_download failed", "half_finished", "2 tokens/s"):
        assert kept(text) == text
    assert SecretRedaction(["short"])("a short text") == "a short text"


def test_a_secret_that_is_changed_is_kept_out_before_and_after() -> None:
    environment = {"ASSAY_LIVE_SECRET": "the-one-before-it"}
    kept = SecretRedaction.of(environment)
    assert kept("was=the-one-before-it") == f"was={HIDDEN}"
    environment["ASSAY_LIVE_SECRET"] = "the-one-after-it"
    assert kept("the-one-before-it, the-one-after-it") == f"{HIDDEN}, {HIDDEN}"


# Files, bounded in size, in number and in age -------------------------------------------------

DAY_S = 24 * 3600.0


def files_at(folder: Path, limits: LogLimits, lines: dict[str, int]) -> None:
    """Write so many lines for each submission."""
    files = SubmissionFiles(folder, lambda record: record.name, logging.Formatter(), limits)
    for name, n in lines.items():
        for _ in range(n):
            files.handle(logging.LogRecord(name, logging.INFO, "x", 1, "y" * 100, (), None))
    files.close()


def test_a_file_is_for_its_owner_alone_and_ids_that_are_none_have_none(desk: Desk) -> None:
    with desk.logging(LogFormat.TEXT):
        desk.doing = Activity(GREY, 1)
        log.info("of it")
        desk.doing = Activity("../../etc/cron.d/x", 1)
        log.info("of an id that is none")
    assert [path.name for path in desk.folder.iterdir()] == [f"{GREY}.jsonl"]
    assert desk.folder.stat().st_mode & 0o077 == 0


def test_a_folder_that_takes_no_files_stops_nothing(desk: Desk) -> None:
    desk.folder.touch()
    desk.doing = Activity(GREY, 1)
    with desk.logging():
        log.info("on")
    assert [line["message"] for line in desk.lines()] == ["on"]


def test_files_are_bounded_in_size_and_number(tmp_path: Path) -> None:
    names = [f"grey-{number:010}" for number in range(6)]
    files_at(tmp_path, LogLimits(n_bytes=2000, most=3), dict.fromkeys(names, 50))
    kept = {path.name.partition(".")[0] for path in tmp_path.iterdir()}
    assert len(kept) == 3
    assert names[-1] in kept
    assert all(path.stat().st_size <= 2000 for path in tmp_path.iterdir())
    assert len(list(tmp_path.iterdir())) <= 6


def test_what_is_old_is_removed_when_a_worker_starts(tmp_path: Path) -> None:
    for name, days in (("grey-0000000000", 31), ("grey-0000000001", 29)):
        for file in (tmp_path / f"{name}.jsonl", tmp_path / f"{name}.jsonl.1"):
            file.write_text("{}")
            os.utime(file, (0, time.time() - days * DAY_S))
    files_at(tmp_path, LogLimits(), {})
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept == {"grey-0000000001.jsonl", "grey-0000000001.jsonl.1"}


def test_the_log_being_written_is_never_removed(tmp_path: Path) -> None:
    files_at(tmp_path, LogLimits(most=1, seconds=0.0), {"grey-0000000000": 3})
    assert (tmp_path / "grey-0000000000.jsonl").read_text().count("y" * 100) == 3


def test_limits_are_settings() -> None:
    assert limits_of({}) == LogLimits()
    given = {"ASSAY_LOG_MIB": "0.5", "ASSAY_LOGS_KEPT": "7", "ASSAY_LOG_DAYS": "2"}
    assert limits_of(given) == LogLimits(1 << 19, 7, 2 * DAY_S)
    with pytest.raises(SubmitterError, match="ASSAY_LOG_DAYS"):
        limits_of({"ASSAY_LOG_DAYS": "-1"})
