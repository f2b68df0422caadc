"""Output of a box made harmless, and none of it lost for more than it deserves."""

from __future__ import annotations

import pytest

from evaluator.isolation.session import BoundedLog, plain_text


def test_a_title_that_never_ends_takes_only_its_own_line_with_it() -> None:
    assert plain_text(b"before\n\x1b]0;no end to it\nafter") == "before\n\nafter"


def test_a_title_that_never_ends_cannot_hide_that_output_was_left_out() -> None:
    log = BoundedLog(100)
    log.feed(b"\x1b]0;" + b"x" * 1000)
    assert "[904 bytes left out]" in log.text()


@pytest.mark.parametrize("at", range(1, 13))
def test_a_sequence_that_comes_in_two_reads_is_removed_as_one(at: int) -> None:
    said = b"A\x1b[31mB\x1b]0;t\x07C"
    log = BoundedLog(1000)
    log.feed(said[:at])
    log.feed(said[at:])
    assert log.text() == "ABC"
