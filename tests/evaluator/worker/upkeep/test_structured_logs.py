"""What a worker logs: one JSON object a line, a bounded file a submission, and never a secret."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import PlatformError, TransientError
from evaluator.worker.running.secrets_kept import HIDDEN, SecretsKept
from evaluator.worker.upkeep.structured_logs import (
    Doing,
    LogFormat,
    Logged,
    RememberedClock,
    logging_to,
)

AT = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
SECRETS = {
    "HF_TOKEN": "hf_abcdefghijklmnopqrstuvwx",
    "ASSAY_LIVE_SECRET": 'odd "secret" \\ of live',
    "ASSAY_WEBHOOK_SECRET": "the-webhook-secret-0123",
    "HF_TOKEN_PATH": "/home/ada/token-file",
}
log = logging.getLogger("evaluator.worker.test")


@dataclass
class Desk:
    """What a worker is at, as a test says it."""

    doing: Doing = field(default_factory=Doing)

    def logged(self) -> Logged:
        return Logged("w1", lambda: AT, lambda: self.doing, SecretsKept.of(SECRETS))


@pytest.fixture
def desk() -> Desk:
    return Desk()


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_line_is_one_object_with_what_the_worker_is_at(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with logging_to(LogFormat.JSON, desk.logged(), tmp_path):
        log.info("Waiting.")
        desk.doing = Doing("grey-0123456789", 2)
        log.warning("%s failed: %s", "grey-0123456789", TransientError("store_failed", "No disk."))
    first, second = lines(capsys)
    assert first == {
        "time": "2026-01-01T12:00:00.000+00:00",
        "level": "info",
        "logger": "evaluator.worker.test",
        "worker": "w1",
        "submission": "",
        "attempt": 0,
        "code": "",
        "message": "Waiting.",
    }
    assert (second["submission"], second["attempt"]) == ("grey-0123456789", 2)
    assert (second["level"], second["code"]) == ("warning", "store_failed")


def test_a_line_that_says_what_it_is_about_is_believed(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.doing = Doing("grey-0123456789", 2)
    with logging_to(LogFormat.JSON, desk.logged(), tmp_path):
        log.info("Sent.", extra={"submission": "redd-0123456789", "attempt": 1})
    (line,) = lines(capsys)
    assert (line["submission"], line["attempt"]) == ("redd-0123456789", 1)
    assert (tmp_path / "redd-0123456789.jsonl").is_file()
    with logging_to(LogFormat.TEXT, desk.logged(), tmp_path):
        log.info("Sent.", extra={"submission": "redd-0123456789", "attempt": 1})
    assert capsys.readouterr().err.endswith(" INFO redd-0123456789: Sent.\n")


def test_an_exception_is_told_with_its_code_on_the_same_line(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with logging_to(LogFormat.JSON, desk.logged(), tmp_path):
        try:
            raise PlatformError("incident", "It broke.")
        except PlatformError:
            log.exception("Incident\nwith two lines")
    (line,) = lines(capsys)
    assert line["code"] == "incident"
    assert "Traceback" in line["exception"]
    assert line["message"] == "Incident\nwith two lines"


def test_text_stays_as_it_was(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with logging_to(LogFormat.TEXT, desk.logged(), tmp_path):
        log.info("Stopped.")
    assert capsys.readouterr().err.endswith(" INFO Stopped.\n")


def test_what_a_scorer_makes_us_say_steers_no_terminal(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for form in LogFormat:
        with logging_to(form, desk.logged(), tmp_path):
            log.warning("It said %s", "\x1b[2J\x1b]0;owned\x07\u202eevil")
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert "\u202e" not in said


@pytest.mark.parametrize("form", LogFormat)
def test_no_secret_is_ever_logged(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: LogFormat
) -> None:
    desk.doing = Doing("grey-0123456789", 1)
    told = [value for name, value in SECRETS.items() if name != "HF_TOKEN_PATH"]
    with logging_to(form, desk.logged(), tmp_path):
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
    written = capsys.readouterr().err + (tmp_path / "grey-0123456789.jsonl").read_text()
    everything = written + "".join(
        str(json.loads(line)) for line in written.splitlines() if line.startswith("{")
    )
    for secret in (*told, "abc.def", "another-one", "0123abcd", "letmein", "hf_ZZZ"):
        assert secret not in everything
    assert HIDDEN in written
    assert "&part=1" in written


def test_what_is_no_secret_stays_readable() -> None:
    kept = SecretsKept.of(SECRETS)
    for text in ("/home/ada/token-file", "hf_hub_download failed", "half_finished", "2 tokens/s"):
        assert kept(text) == text
    assert SecretsKept(["short"])("a short text") == "a short text"


def test_each_submission_has_a_file_of_its_own(desk: Desk, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    with logging_to(LogFormat.TEXT, desk.logged(), folder):
        log.info("of nobody")
        for name in ("grey-0123456789", "redd-0123456789", "grey-0123456789"):
            desk.doing = Doing(name, 1)
            log.info("of %s", name)
        desk.doing = Doing("../../etc/cron.d/x", 1)
        log.info("of an id that is none")
    found = {path.name: path.read_text().count("\n") for path in folder.iterdir()}
    assert found == {"grey-0123456789.jsonl": 2, "redd-0123456789.jsonl": 1}
    assert folder.stat().st_mode & 0o077 == 0


def test_a_long_message_keeps_its_beginning_and_its_end(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with logging_to(LogFormat.JSON, desk.logged(), tmp_path):
        log.info("begin" + "x" * 100_000 + "end")
    (line,) = lines(capsys)
    assert len(line["message"]) < 9000
    assert line["message"].startswith("begin")
    assert line["message"].endswith("end")


def test_a_folder_that_takes_no_files_stops_nothing(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    desk.doing = Doing("grey-0123456789", 1)
    with logging_to(LogFormat.JSON, desk.logged(), tmp_path / "file" / "logs"):
        log.info("goes on")
    assert [line["message"] for line in lines(capsys)] == ["goes on"]


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
    assert remembered.last() == AT + timedelta(seconds=90)
    with pytest.raises(TransientError):
        remembered()
    assert remembered.last() == AT + timedelta(seconds=90)
    assert len(asked) == 2


def test_signed_addresses_of_every_request_are_not_logged(desk: Desk, tmp_path: Path) -> None:
    before = logging.getLogger("httpx").level
    with logging_to(LogFormat.TEXT, desk.logged(), tmp_path):
        assert not logging.getLogger("httpx").isEnabledFor(logging.INFO)
        assert log.isEnabledFor(logging.INFO)
    assert logging.getLogger("httpx").level == before
