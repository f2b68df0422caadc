"""JSON that a plain reader would change or fail on is refused, and the message says where."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.sources.strict_json import parse_json

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(st.characters(max_codepoint=99)), inner)
    ),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_plain_json_is_read_as_it_is(value: Any, as_escapes: bool) -> None:
    content = json.dumps(value, ensure_ascii=as_escapes)
    assert parse_json(content.encode()) == value
    assert parse_json(content.encode("utf-8-sig")) == value


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "Expecting value"),
        (b"\xff", "can't decode"),
        ("[1]".encode("utf-16"), "can't decode"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'[{"a": 1, "b": 2, "a": 3}]', "key 'a' stands twice"),
        (b'{"x": {"a": {}, "a": {}}}', "key 'a' stands twice"),
        (b'{"x": [1, NaN]}', "NaN at 'x' [1] is no finite number"),
        (b"-Infinity", "-Infinity is no finite number"),
        (b'{"x": {"y": 1e400}}', "1e400 at 'x' 'y' is no finite number"),
        (b'{"x": 9223372036854775808}', "9223372036854775808 at 'x'"),
        (b'{"x": -' + b"9" * 5000 + b"}", "at 'x' is no finite number"),
        (b'[{"x": 1, "y": 1e999}, NaN]', "1e999 at [0] 'y'"),  # the first one in the file
        (rb'{"x": ["\ud800"]}', r"the text '\ud800' at 'x' [0] holds half"),
        (rb'{"x": {"\uDC00": 1}}', r"the key '\udc00' at 'x' holds half"),
        (b'"\xed\xa0\x80"', "can't decode"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(content: bytes, says: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_json(content)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 300


def test_escaped_pairs_of_halves_are_one_character() -> None:
    assert parse_json(rb'["\ud83d\ude00"]') == ["\U0001f600"]
