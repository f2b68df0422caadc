"""A store that outgrows its medium moves, and comes back the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError, TransientError
from leaderboard.store.copying import copy_store
from leaderboard.store.folder import folder_store
from leaderboard.store.hub.hub_store import hub_store
from leaderboard.store.interface import Repository, Store
from leaderboard.store.memory import memory_store
from tests.hub.server import HubServer
from tests.leaderboard.store.hub_rig import NAME, created


@pytest.fixture
def filled() -> Store:
    store = memory_store()
    results = {f"results/{n}/a.scores.parquet": b"PAR1" * n for n in range(230)}
    files = {**results, "queue.json": b"q", "results/1/a.json": b"{}", "snapshot.parquet": b"s"}
    store.public.commit(files, parent=store.public.head(), message="m")
    store.private.commit({"uploads/1.zip": bytes(3_000_000)}, parent="0", message="m")
    return store


@pytest.mark.slow
def test_a_store_goes_to_the_hub_and_back_and_is_the_same(
    hub: HubServer, tmp_path: Path, filled: Store
) -> None:
    created(hub, tmp_path / "made")
    there = hub_store(NAME, tmp_path / "cache", endpoint=hub.endpoint, token=hub.token)
    said = list(copy_store(filled, there, tmp_path))
    assert said == [
        "public: 200 files copied.",
        "public: 33 files copied.",
        "public: all 233 files are the same in both.",
        "private: 1 files copied.",
        "private: all 1 files are the same in both.",
    ]
    back = folder_store(tmp_path / "back")
    list(copy_store(there, back, tmp_path))
    assert _read(back.public) == _read(filled.public)
    assert _read(back.private) == _read(filled.private)
    left = [file for file in tmp_path.iterdir() if file.is_file()]
    assert left == []


def test_a_copy_that_was_stopped_sends_only_the_rest(tmp_path: Path, filled: Store) -> None:
    target = memory_store()
    stopped = copy_store(filled, target, tmp_path)
    next(stopped)
    del stopped
    wrong = {"results/0/a.scores.parquet": b"changed since"}
    target.public.commit(wrong, parent=target.public.head(), message="m")
    said = list(copy_store(filled, target, tmp_path))
    assert said[0] == "public: 34 files copied."
    assert _read(target.public) == _read(filled.public)


def test_a_store_that_holds_something_else_is_not_written_over(
    tmp_path: Path, filled: Store
) -> None:
    target = memory_store()
    target.public.commit({"mine": b"1"}, parent=target.public.head(), message="m")
    with pytest.raises(SubmitterError, match="'mine'") as refused:
        list(copy_store(filled, target, tmp_path))
    assert refused.value.code == "target_not_empty"
    assert target.public.list() == ("mine",)


def test_a_store_written_to_while_it_is_copied_is_no_copy(tmp_path: Path, filled: Store) -> None:
    going = copy_store(filled, memory_store(), tmp_path)
    next(going)
    filled.public.commit({"new": b"1"}, parent=filled.public.head(), message="m")
    with pytest.raises(TransientError, match="written to"):
        list(going)


def _read(repository: Repository) -> dict[str, bytes]:
    return {path: repository.read(path) for path in repository.list()}
