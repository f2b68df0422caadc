"""Reasons that people give for what they do."""

from __future__ import annotations

import pytest

from benchmarks.errors import SubmitterError
from leaderboard.governance.reasons import MOST_CHARS, checked_reason


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("  It read\n\tfile names. ", "It read file names."),
        ("\x1b[31mred\x1b[0m\x07", "[31mred[0m"),
        ("name\u202etxt.exe\u2069 and a\u200bb", "nametxt.exe and ab"),
        ("one\u2028two\u2029three", "one two three"),
        ("half \ud800 a letter", "half a letter"),
        ("Größe, 大きさ, حجم", "Größe, 大きさ, حجم"),
        ("<b>=1+1</b>", "<b>=1+1</b>"),
    ],
)
def test_a_reason_is_one_line_that_steers_nothing(given: str, kept: str) -> None:
    assert checked_reason(given) == kept


def test_the_length_is_that_of_what_is_kept() -> None:
    assert checked_reason("\x00" * 1000 + "x" * MOST_CHARS) == "x" * MOST_CHARS
    with pytest.raises(SubmitterError, match="has 501 characters"):
        checked_reason("x" * (MOST_CHARS + 1))


def test_none_at_all_is_refused_unless_something_stands_for_it() -> None:
    with pytest.raises(SubmitterError, match="No reason is given"):
        checked_reason("\u200b \n")
    assert checked_reason("", otherwise="Withdrawn by its author.") == "Withdrawn by its author."
