"""What is told of a job that ended without scores."""

from __future__ import annotations

from datetime import UTC, datetime

from evaluator.launching.outcomes import last_lines, one_line, why_it_ended
from evaluator.launching.planning import SeenJob

JOB = SeenJob("j1", "grey-00000000", "job-1", "ERROR", "exit code 3", datetime.now(UTC))


def test_the_reason_names_the_job_its_end_and_its_last_words() -> None:
    told = why_it_ended(JOB, ("no memory left", "stopped"))
    assert told.message == "Job j1 failed (exit code 3). It said last: no memory left | stopped"
    assert "not on the Hub" in why_it_ended(None, ()).message


def test_only_the_last_lines_are_told_and_not_much_of_them() -> None:
    assert last_lines((f"line {n}" for n in range(50)), ()) == tuple(
        f"line {n}" for n in range(45, 50)
    )
    long = last_lines(["x" * 5000] * 9, ())
    assert sum(map(len, long)) <= 600


def test_of_a_traceback_the_error_itself_is_told() -> None:
    log = ["Claimed.", "╭─ Traceback ─╮", "│ 101 │ budget", "╰─────╯", "NameError: budget"]
    assert last_lines(log, ()) == ("Claimed.", "NameError: budget")


def test_a_hostile_log_moves_no_cursor_and_turns_no_text() -> None:
    lines = last_lines(["\x1b[2J\x1b]0;title\x07gone\u202etxet", "\x00", "  \t "], ())
    assert lines == ("gonetxet",)
    assert one_line("a\r\nb\n\nc") == "a b c"


def test_secrets_are_hidden_even_where_the_clean_up_would_join_them() -> None:
    printed = ["token hf_secret", "token hf_\x00sec\u200bret", "hf_secret_longer"]
    assert last_lines(printed, ["hf_secret", "hf_secret_longer", ""]) == (
        "token ***",
        "token ***",
        "***",
    )
