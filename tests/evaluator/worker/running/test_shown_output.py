"""A long output is shown by its end, which says how much is not there."""

from __future__ import annotations

from evaluator.worker.running.scoring_run import LOG_CHARS, ending


def test_a_short_output_is_shown_whole() -> None:
    assert ending("") == ""
    assert ending("x" * LOG_CHARS) == "x" * LOG_CHARS


def test_of_a_long_one_the_end_is_shown_and_what_is_left_out_is_told() -> None:
    told, shown = ending("start" + "é" * (LOG_CHARS + 1_000)).split("\n")
    assert told == "(1,005 characters before this are left out)"
    assert shown == "é" * LOG_CHARS
