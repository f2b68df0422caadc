"""Readers of JSON and TOML that say where something is wrong."""

from __future__ import annotations

import json
import time
import tomllib
from typing import Any

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.parsing import key_lines, line_of, parse_json

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


@pytest.mark.slow
@given(VALUES, st.booleans())
def test_plain_json_is_read_as_it_is(value: Any, as_escapes: bool) -> None:
    content = json.dumps(value, ensure_ascii=as_escapes)
    assert parse_json(content.encode()) == parse_json(content.encode("utf-8-sig")) == value


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "Expecting"), (b"\xff", "decode"), ("[1]".encode("utf-16"), "decode"),
        (b"[" * 100_000, "nested"), (b'{"a":' * 100_000, "nested"),
        (b'[{"a": 1, "b": 2, "a": 3}]', "'a' stands twice"),
        (b'{"x": {"a": {}, "a": {}}}', "'a' stands twice"),
        (b'{"x": [1, NaN]}', "NaN at 'x' [1]"), (b"-Infinity", "-Infinity is"),
        (b'{"x": {"y": 1e400}}', "1e400 at 'x' 'y'"),
        (b'{"x": 9223372036854775808}', "9223372036854775808 at 'x'"),
        (b'{"x": -' + b"9" * 5000 + b"}", "at 'x'"),
        (b'[{"x": 1, "y": 1e999}, NaN]', "1e999 at [0] 'y'"),  # the first one in the file
        (rb'{"x": ["\ud800"]}', r"'\ud800' at 'x' [0]"),
        (rb'{"x": {"\uDC00": 1}}', r"'\udc00' at 'x'"), (b'"\xed\xa0\x80"', "decode"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_with_its_place(content: bytes, says: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_json(content)
    assert says in str(caught.value) and len(str(caught.value)) < 300
    assert parse_json(rb'["\ud83d\ude00"]') == ["\U0001f600"]  # two halves are one character


def test_a_key_that_stands_twice_among_many_is_found_at_once() -> None:
    names = [*(f"k{n}" for n in range(100_000)), "k99999"]
    content = "{" + ",".join(f'"{name}":0' for name in names) + "}"
    begun = time.monotonic()
    with pytest.raises(ValueError, match="k99999"):
        parse_json(content.encode())
    assert time.monotonic() - begun < 5.0


TEXT = '''\ufeff# a comment with name = "x"
name = "m" # and another = "x"
description = """
version = "not a key" \\"""
[not.a.table]
""" # the end
authors = [ # a list
  "a", # authors = 3
  "]",
  ["x"],
]
text = \'\'\'
weights = 1\'\'\'
inline = { a = 1, b = "}" }
"quoted key" . 'and literal'.bare = 1

[links]
"home page" = "https://x"
[a."b.c".d]
e = 1
[[list]]
f = 1
'''


def test_keys_are_found_and_what_looks_like_one_is_not() -> None:
    lines = key_lines(TEXT)
    assert {" / ".join(key): line for key, line in lines.items()} == {
        "name": 2, "description": 3, "authors": 7, "text": 12, "inline": 14,
        "quoted key / and literal / bare": 15, "links": 17, "links / home page": 18,
        "a / b.c / d": 19, "a / b.c / d / e": 20, "list": 21, "list / f": 22,
        "list / 0": 21, "list / 0 / f": 22,
    }  # fmt: skip
    assert tomllib.loads(TEXT.removeprefix("\ufeff"))["inline"] == {"a": 1, "b": "}"}
    around = [("authors", 2, 0), ("inline", "a"), ("links", "home page"), ("missing",), ()]
    assert [line_of(lines, key) for key in around] == [7, 14, 18, None, None]


def test_what_stands_in_one_of_several_tables_is_found_there() -> None:
    lines = key_lines("[[t]]\na = 1\n[t.c]\nx = 1\n[[t]]\na = 2\n[t.c]\nx = 2\ny = 3\n")
    places = [("t", 0, "a"), ("t", 1, "a"), ("t", 1, "c", "x"), ("t", 1, "z"), ("t", "c", "y")]
    assert [line_of(lines, place) for place in places] == [2, 6, 8, 5, 9]


LEAVES = st.one_of(
    st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=8),
    st.sampled_from(["'", '"', "#", "[", '"""', "a = 1", "'''"]),
    st.integers(-9, 9),
    st.lists(st.sampled_from(["]", "#", "x"]), max_size=3),
)
KEYS = st.text("ab-_ .#='\"[]", min_size=1, max_size=4)


@given(st.dictionaries(KEYS, st.one_of(LEAVES, st.dictionaries(KEYS, LEAVES, max_size=3))))
def test_every_key_of_a_written_file_is_found_where_it_is(values: dict[str, Any]) -> None:
    text = tomlkit.dumps(values)
    lines, rows = key_lines(text), text.split("\n")
    assert tomllib.loads(text) == values
    for key, value in values.items():
        row = rows[lines[key,] - 1]
        if isinstance(value, dict):
            assert row.startswith("[")
            for inner, leaf in value.items():
                assert tomllib.loads(rows[lines[key, inner] - 1]) == {inner: leaf}
        else:
            assert tomllib.loads(row) == {key: value}


@given(st.text("a=[]{}'\"#\\\n.", max_size=60))
def test_it_never_fails(text: str) -> None:
    assert all(1 <= line <= text.count("\n") + 1 for line in key_lines(text).values())
