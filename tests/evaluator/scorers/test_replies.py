"""What is read of the replies of judges: a number that they state, or nothing and the reason.

The replies lie in `replies.toml`, by reader: a row that has ratings or comparisons written, or one
of the ways to read that other families use.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.scorers.answering import WrittenReply
from evaluator.scorers.models import judge_replies
from evaluator.scorers.models.reply_text import read_first, read_flags
from evaluator.scorers.registry import family_of, load_rows
from tests.evaluator.scorers.common import later

rating = later("evaluator.scorers.families.written_rating")
comparison = later("evaluator.scorers.families.written_comparison")

ROWS = {
    name: row
    for name, row in load_rows().items()
    if row.family in {"written_rating", "written_comparison"}
}
HUGE = 100_000
TABLE = tomllib.loads((Path(__file__).parent / "replies.toml").read_text(encoding="utf-8"))


def by_row(name: str, reply: str, *, cut: bool = False) -> tuple[Any, str]:
    """What a row reads of a reply; None for no number."""
    family = rating.rated if ROWS[name].family == "written_rating" else comparison.margin
    value, problem = family(WrittenReply(reply, cut), family_of(ROWS[name]).check(ROWS[name]))
    return (None if math.isnan(value) else value), problem


def by_numbers(read: Callable[[str], judge_replies.Reading], reply: str) -> tuple[Any, str]:
    """The numbers that a way to read gives, one of them by itself; None for none."""
    found = read(reply)
    return (found.numbers[0] if len(found.numbers) == 1 else found.numbers or None), found.problem


def by_word(words: tuple[str, ...], reply: str) -> tuple[Any, str]:
    found = read_first(reply, words)
    return found.word or None, found.problem


READERS: dict[str, Callable[[str], tuple[Any, str]]] = {
    **{name: partial(by_row, name) for name in ROWS},
    **{f"{n} flags": partial(by_numbers, partial(read_flags, count=n)) for n in range(4)},
    "list of a rating": partial(
        by_numbers, lambda reply: judge_replies.read_list(reply, "score", 1, 0, 10)
    ),
    "rating in an object": partial(
        by_numbers, lambda reply: judge_replies.read_number(reply, "score", 0, 10)
    ),
    "whole number": partial(
        by_numbers, lambda reply: judge_replies.read_integer(reply, "overall", 1, 100)
    ),
    "yes or no": partial(by_word, ("yes", "no")),
    "first rating": partial(by_word, ("4", "3", "2", "1", "0", "-1")),
}


def written(reply: Any) -> str:
    """A reply of the table; a huge one is told by what is repeated."""
    if isinstance(reply, str):
        return reply
    pieces = reply["repeat"]
    repeated = (piece * (HUGE // (len(piece) * len(pieces))) for piece in pieces)
    return str(reply.get("begin", "")) + "".join(repeated) + str(reply.get("end", ""))


READ = [(name, *entry) for name, its in TABLE.items() for entry in its.get("read", ())]
UNREAD = [
    (name, *(entry if isinstance(entry, list) else (entry, "")))
    for name, its in TABLE.items()
    for entry in its.get("unread", ())
]


def of_reply(value: Any) -> str:
    """A short name of a case."""
    return str(value)[:24]


@pytest.mark.parametrize(("name", "reply", "expected"), READ, ids=of_reply)
def test_what_a_reply_states_is_read(name: str, reply: Any, expected: Any) -> None:
    value, problem = READERS[name](written(reply))
    assert not problem
    if isinstance(expected, str):
        assert value == expected
    else:
        assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("name", "reply", "reason"), UNREAD, ids=of_reply)
def test_what_cannot_be_read_has_a_reason_and_no_number(name: str, reply: Any, reason: str) -> None:
    value, problem = READERS[name](written(reply))
    assert value is None
    assert problem and reason in problem


@pytest.mark.parametrize(
    ("name", "reply"), [entry[:2] for entry in READ if entry[0] in ROWS][::6], ids=of_reply
)
def test_a_reply_that_was_cut_is_not_read(name: str, reply: str) -> None:
    value, problem = by_row(name, reply, cut=True)
    assert value is None and "cut" in problem


def test_every_row_is_read_of_some_reply() -> None:
    alike = {name for name in ROWS if "qwen3vl" in name or "v1.5" in name}
    assert set(ROWS) <= {name for name, *_ in READ} | alike


@pytest.mark.slow
@given(st.sampled_from(sorted(READERS)), st.text())
def test_of_any_text_a_number_is_read_or_the_reason_is_told(name: str, reply: str) -> None:
    value, problem = READERS[name](reply)
    assert (value is None) == bool(problem)


@pytest.mark.parametrize("numbers", [(0, 0, 0), (1, 1, 1), (0.123, 0.9, 0.55), (0.7, 0, 1)])
def test_imagedoctor_weighs_its_axes_as_the_authors_do(numbers: tuple[float, ...]) -> None:
    a, b, c = numbers
    reply = (
        f"<think>...</think><answer>Semantic Alignment score: {a}\nMisalignment Locations: none\n"
        f"Aesthetic score: {b}\nPlausibility score: {c}\nOverall Impression score: 0.5</answer>"
    )
    assert by_row("imagedoctor", reply)[0] == pytest.approx(0.8 * a + 0.1 * b + 0.1 * c, abs=1e-12)
