"""What others build on changes only on purpose, and every part of it is explained."""

from __future__ import annotations

import ast
import difflib
from pathlib import Path

import pytest

from tests.house.modules import parsed
from tests.house.public_api import COMMAND, FILE, PUBLIC, lines_of, listing, undocumented


def test_the_public_names_are_those_that_are_written_down() -> None:
    kept, found = FILE.read_text(encoding="utf-8"), listing()
    changes = "\n".join(
        difflib.unified_diff(kept.splitlines(), found.splitlines(), "kept", "found", "", "", 0, "")
    )
    assert kept == found, (
        "What others build on has changed. If that is meant, say so in CHANGELOG.md and run\n"
        f"  {COMMAND}\n{changes}"
    )


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_part_has_a_docstring(name: str) -> None:
    assert list(undocumented(parsed(Path(name)))) == []


def test_a_change_of_any_public_part_is_seen() -> None:
    module = ast.parse(
        '"""Doc."""\nLIMIT = 3\n_inner = 4\n'
        "class A(B, total=False):\n    x: int = 0\n    _y: int = 1\n"
        "    @property\n    def z(self) -> str: ...\n    def _w(self): ...\n"
        "class _Hidden: ...\nasync def f(a, *, b: int = 2) -> None: ...\n"
    )
    assert list(lines_of(module)) == [
        "LIMIT = 3",
        "class A(B, total=False)",
        "  x: int = 0",
        "  @property def z(self) -> str",
        "def f(a, *, b: int=2) -> None",
    ]
    assert list(undocumented(module)) == ["A", "A.z", "f"]
