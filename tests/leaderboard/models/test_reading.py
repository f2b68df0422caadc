"""What pages read of the model track: once per change, and as before while the store is away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from benchmarks.errors import TransientError
from leaderboard.models.entries import PATH, ModelTrack, parse_track, track_bytes
from leaderboard.models.reading import KeptFile
from leaderboard.store.interface import transact
from leaderboard.store.memory import MemoryRepository
from tests.leaderboard.models.test_grid import entry


@dataclass
class Away:
    """A repository that goes away."""

    public: MemoryRepository
    away: bool = False

    def read(self, path: str) -> bytes:
        if self.away:
            raise TransientError("away", "It does not answer.")
        return self.public.read(path)


def counted(parse: Callable[[bytes], bytes]) -> tuple[list[int], Callable[[bytes], bytes]]:
    calls: list[int] = []

    def counting(content: bytes) -> bytes:
        calls.append(1)
        return parse(content)

    return calls, counting


def test_a_file_is_parsed_again_only_when_it_has_changed() -> None:
    store, (calls, parse) = MemoryRepository(), counted(bytes)
    kept: KeptFile[bytes] = KeptFile(store, "f", parse, b"none")
    assert kept.now() == b"none"
    transact(store, lambda: {"f": b"one"}, "one")
    assert [kept.now(), kept.now()] == [b"one", b"one"]
    assert len(calls) == 1
    transact(store, lambda: {"f": None}, "gone")
    assert kept.now() == b"none"


def test_while_the_store_is_away_what_was_read_last_stays() -> None:
    store = Away(MemoryRepository())
    kept: KeptFile[bytes] = KeptFile(store, "f", bytes, b"none")  # type: ignore[arg-type]
    store.away = True
    with pytest.raises(TransientError):
        kept.now()
    store.away = False
    transact(store.public, lambda: {"f": b"one"}, "one")
    assert kept.now() == b"one"
    store.away = True
    assert kept.now() == b"one"


def test_a_track_comes_back_as_it_was_written() -> None:
    track = ModelTrack({"model": entry("model", 10)})
    store = MemoryRepository()
    transact(store, lambda: {PATH: track_bytes(track)}, "models")
    assert KeptFile(store, PATH, parse_track, ModelTrack()).now() == track
