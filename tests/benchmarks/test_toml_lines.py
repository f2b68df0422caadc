"""On which line a key of a manifest stands."""

from __future__ import annotations

import tomllib
from typing import Any

import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.toml_lines import key_lines, line_of

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
    assert dict(key_lines(TEXT)) == {
        ("name",): 2,
        ("description",): 3,
        ("authors",): 7,
        ("text",): 12,
        ("inline",): 14,
        ("quoted key", "and literal", "bare"): 15,
        ("links",): 17,
        ("links", "home page"): 18,
        ("a", "b.c", "d"): 19,
        ("a", "b.c", "d", "e"): 20,
        ("list",): 21,
        ("list", "f"): 22,
    }
    assert tomllib.loads(TEXT.removeprefix("\ufeff"))["inline"] == {"a": 1, "b": "}"}


def test_the_nearest_key_around_a_value_is_named() -> None:
    lines = key_lines(TEXT)
    assert line_of(lines, ("authors", 2, 0)) == 7
    assert line_of(lines, ("inline", "a")) == 14
    assert line_of(lines, ("links", "home page")) == 18
    assert line_of(lines, ("missing",)) is None
    assert line_of(lines, ()) is None


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
