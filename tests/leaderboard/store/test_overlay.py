"""A repository as it will be after a commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import PlatformError
from leaderboard.store.interface import NotFoundError
from leaderboard.store.memory import MemoryRepository
from leaderboard.store.overlay import Overlay


@pytest.fixture
def under() -> MemoryRepository:
    repository = MemoryRepository()
    repository.commit({"a/1": b"old", "a/2": b"kept"}, parent="0", message="first")
    return repository


def test_new_files_lie_over_those_that_are_there(under: MemoryRepository, tmp_path: Path) -> None:
    seen = Overlay(under, {"a/1": b"new", "a/3": b"more", "b": b"beside"})
    assert [seen.read(path) for path in ("a/1", "a/2", "a/3")] == [b"new", b"kept", b"more"]
    assert seen.list("a/") == ("a/1", "a/2", "a/3")
    for path in ("a/1", "a/2"):
        seen.fetch(path, tmp_path / path[-1])
    assert [(tmp_path / name).read_bytes() for name in "12"] == [b"new", b"kept"]
    assert seen.head() == under.head()
    with pytest.raises(NotFoundError):
        seen.read("c")


def test_nothing_can_be_committed_to_it(under: MemoryRepository) -> None:
    seen = Overlay(under, {"b": b"beside"})
    with pytest.raises(PlatformError, match="in a view"):
        seen.commit({"c": b""}, parent=seen.head(), message="no")
    assert under.list() == ("a/1", "a/2")
