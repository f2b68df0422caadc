"""`docs/data-formats.md` names every file of a store, and where it is on the Hub."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pytest

from leaderboard.store.hub.layout import part_of
from leaderboard.store.paths import CONTROL
from tests.end_to_end.finished_demo import finished_demo

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "data-formats.md").read_text("utf-8")
_NAMES = {
    "ID": "[^/]+",
    "BENCHMARK": "[a-z0-9_]+",
    "PROMPT_SET": "[a-z0-9_]+",
    "DIGEST": "[0-9a-f]{64}",
}


def _documented() -> dict[str, str]:
    """Path with its placeholders to the ending of the repository it is said to be in."""
    rows = [
        line.split("|") for line in TEXT.splitlines() if line.startswith(("| `public/", "| `priv"))
    ]
    return {
        path: row[2].strip().strip("`").removeprefix("-")
        for row in rows
        for path in re.findall(r"`([^`]+)`", row[1])
    }


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"(ID|BENCHMARK|PROMPT_SET|DIGEST|\*|\.\.\.)", path)
    known = {**_NAMES, "*": "[^/]+", "...": ".+"}
    return re.compile("".join(known.get(part, re.escape(part)) for part in parts))


@pytest.mark.slow
@pytest.mark.isolation
def test_every_file_of_a_store_is_documented(tmp_path_factory: pytest.TempPathFactory) -> None:
    store = finished_demo(tmp_path_factory)
    patterns = {path: _pattern(path) for path in _documented() if path != "private/..."}
    files = [
        str(PurePosixPath(file.relative_to(store)))
        for side in ("public", "private")
        for file in (store / side).rglob("*")
        if file.is_file() and CONTROL not in file.parts
    ]
    assert len(files) > 50
    assert [file for file in files if not any(p.fullmatch(file) for p in patterns.values())] == []


def test_every_path_is_said_to_be_in_the_repository_that_holds_it() -> None:
    documented = _documented()
    assert len(documented) > 20
    for path, repository in documented.items():
        side, _, rest = path.partition("/")
        held = part_of(rest.replace("*", "x")).value if side == "public" else "submissions"
        assert repository == held, path
