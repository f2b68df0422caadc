"""Caches: bounds of bytes and number, one budget for several, one making for all who ask; files on a disk."""

from __future__ import annotations

import gc
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.cache import PROCESS, Budget, DiskCache, MemoryCache
from tests.leaderboard.slow_making import Slow

AT_ONCE = 5


def cache_of(
    most_bytes: int | None = None, most: int | None = None, budget: Budget | None = None
) -> MemoryCache[bytes]:
    return MemoryCache(len, most_bytes, most, budget or Budget())


# Bounds.


def test_what_was_asked_for_longest_ago_makes_room() -> None:
    cache = cache_of(10, 2)
    cache.put("a", bytes(4))
    cache.put("b", bytes(4))
    assert cache.get("a") is not None
    cache.put("c", bytes(4))
    assert (cache.get("b"), cache.get("a"), cache.nbytes) == (None, bytes(4), 8)
    cache.put("a", bytes(3))  # in the place of the one before
    assert (cache.get("a"), cache.nbytes) == (bytes(3), 7)
    for key in "xyz":
        cache.put(key, b"")
    assert [cache.get(key) for key in "cayz"] == [None, None, b"", b""]


def test_the_newest_stays_however_large_it_is_within_the_budget() -> None:
    budget = Budget(100)
    cache = cache_of(10, budget=budget)
    cache.put("small", bytes(4))
    cache.put("large", bytes(50))
    assert (cache.get("small"), cache.get("large"), cache.nbytes) == (None, bytes(50), 50)
    cache.put("larger", bytes(101))
    assert (cache.nbytes, budget.nbytes) == (0, 0)
    assert cache.of("larger", lambda: bytes(101)) == bytes(101)


def test_caches_of_one_budget_make_room_for_each_other_and_a_lost_one_for_all() -> None:
    budget = Budget(10)
    one, two = (cache_of(budget=budget) for _ in range(2))
    one.put("a", bytes(4))
    two.put("b", bytes(4))
    assert one.get("a")
    two.put("c", bytes(4))  # b is the oldest of both
    assert (one.get("a"), two.get("b"), budget.nbytes) == (bytes(4), None, 8)
    del one
    gc.collect()
    assert budget.nbytes == 4
    assert MemoryCache(len)._budget is PROCESS


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 8), st.booleans()), max_size=40))
def test_no_more_is_held_than_may_be(asked: list[tuple[int, int, bool]]) -> None:
    budget = Budget(15)
    caches = [cache_of(10, 4, budget), cache_of(12, None, budget)]
    for key, size, which in asked:
        cache = caches[which]
        cache.put(key, bytes(size))
        assert cache.get(key) == bytes(size)
        for one in caches:
            held = [found for k in range(7) if (found := one.get(k)) is not None]
            assert sum(map(len, held)) == one.nbytes
        assert budget.nbytes == sum(one.nbytes for one in caches) <= 15
        assert caches[0].nbytes <= 10 and caches[1].nbytes <= 12


# Made once.


@pytest.mark.parametrize("fails", [False, True])
def test_what_many_ask_for_at_once_is_made_once_and_an_error_reaches_all(
    monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    waits = threading.Semaphore(0)

    class Counted(Future[Any]):
        def result(self, timeout: float | None = None) -> Any:
            waits.release()
            return super().result(timeout)

    monkeypatch.setattr("leaderboard.cache.Future", Counted)

    def make() -> bytes:
        if fails:
            raise ValueError("no")
        return b"12"

    cache, slow = cache_of(100), Slow(make)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = [pool.submit(cache.of, "key", slow) for _ in range(AT_ONCE)]
        for _ in range(AT_ONCE - 1):
            assert waits.acquire(timeout=60)
        slow.go.set()
    if fails:
        assert all(isinstance(one.exception(), ValueError) for one in asked)
    else:
        assert len({id(one.result()) for one in asked}) == 1
    assert slow.times == 1
    assert cache.of("key", lambda: b"3") == (b"3" if fails else b"12")  # No error is kept.


def test_another_key_does_not_wait_and_nothing_is_made_again_each_time() -> None:
    cache, slow = cache_of(100), Slow(lambda: b"1")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(cache.of, "slow", slow)
        assert slow.begun.wait(60)
        assert cache.of("quick", lambda: b"2") == b"2"
        slow.go.set()
        assert first.result() == b"1"
    made: list[int] = []
    optional: MemoryCache[bytes | None] = MemoryCache(lambda one: len(one or b""), budget=Budget())

    def nothing() -> None:
        made.append(1)

    for _ in range(2):
        assert optional.of("none", nothing) is None
    assert len(made) == 2


def test_files_are_bounded_and_those_not_used_for_longest_go(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "kept", 10_000, largest=1000)
    cache.put("large", b"x" * 1001)
    assert not (tmp_path / "kept").exists()
    for n in range(30):
        cache.put(f"{n}", bytes([n]) * 1000)
        os.utime(tmp_path / "kept" / f"{n}", (n, n))
        if n < 29:
            assert cache.get("0") == bytes(1000)
    kept = list((tmp_path / "kept").iterdir())
    assert sum(file.stat().st_size for file in kept) <= 11_000
    cache.drop("0")
    assert (cache.get("0"), cache.get("never")) == (None, None)


def test_only_the_owner_can_read_what_is_kept(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        DiskCache(tmp_path / "hub" / "contents", 1 << 20).put("one", b"private")
    finally:
        os.umask(before)
    assert (tmp_path / "hub" / "contents").stat().st_mode & 0o077 == 0
