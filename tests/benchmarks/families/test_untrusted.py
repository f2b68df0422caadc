"""Cards of strangers: what no card may hold, and what is only ever data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.families import load_card
from benchmarks.families.untrusted import FILL_IN
from benchmarks.problems import ProblemsError
from tests.benchmarks.checks import refused
from tests.benchmarks.families.cards import RATED, with_keys, write_card

FILE = RATED["files"][0]


def nested(depth: int) -> dict[str, Any]:
    return {"x": nested(depth - 1)} if depth else {"x": 1}


def file(**keys: Any) -> dict[str, Any]:
    return {"files": [with_keys(FILE, keys)]}


ODD: dict[str, tuple[dict[str, Any], str]] = {
    "escape sequence in a title": ({"title": "\x1b[2J"}, "title: '\\x1b[2J'"),
    "text that runs backwards": ({"summary": "a\u202eb"}, "summary: 'a\\u202eb'"),
    "null in a path": (file(path="a\0.csv"), "files.0.path: 'a\\x00.csv'"),
    "key with a line feed and a bell": ({"links": {"a\x07": "b"}}, "links: the key 'a\\x07'"),
    "text of a book": ({"description": "x" * 20_001}, "description: has 20,001"),
    "number that is none": ({"gold": {"mean": {"scale": [0, float("inf")]}}}, "gold.mean.scale.1"),
    "number of 400 digits": ({"gold": {"mean": {"n": 10**400}}}, "gold.mean.n: a number beyond"),
    "tables in tables": ({"links": nested(20)}, "links.x: is nested"),
    "blank to fill in": ({"licence": FILL_IN}, "licence: is to be filled in"),
    "name of 61 letters": ({"name": "a" * 61}, "name"),
    "name of a path": ({"name": "../mine"}, "name"),
    "file outside": (file(path="../../labels.csv"), "files.0.path: '../../labels.csv'"),
    "copy outside": (file(also=["/etc/passwd"]), "files.0.path: '/etc/passwd'"),
    "file on this machine": (file(supplied="", url="file:///etc/passwd"), "files.0.url"),
    "images at an address that is not declared": (
        {"images": {"source": "url", "path": "x", "name": "file:///{image}"}}, "images.path: 'x'",
    ),
    "images of a folder that is not declared": (
        {"images": {"source": "folder", "path": "/etc"}}, "images.path: '/etc'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ODD)
def test_what_no_card_may_hold_is_refused_with_its_place(tmp_path: Path, case: str) -> None:
    keys, says = ODD[case]
    with refused("invalid_benchmark", says) as caught:
        load_card(write_card(tmp_path, with_keys(RATED, keys)))
    assert caught.value.message.isprintable()
    assert isinstance(caught.value, ProblemsError)
    located = [problem.line is not None for problem in caught.value.problems]
    assert all(located) is (case != "tables in tables")


def test_signs_of_many_scripts_are_no_control_characters(tmp_path: Path) -> None:
    title = "क्\u200dष 👩\u200d🎨️ العربية"
    card = load_card(write_card(tmp_path, with_keys(RATED, {"title": title}))).card
    assert card.title == title
