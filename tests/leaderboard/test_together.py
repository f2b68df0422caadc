"""A value is made once for all who want it at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from leaderboard.together import Together


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """Released once by everybody who begins to wait for what another makes."""
    waits = threading.Semaphore(0)

    class Counted(Future[Any]):
        def result(self, timeout: float | None = None) -> Any:
            waits.release()
            return super().result(timeout)

    monkeypatch.setattr("leaderboard.together.Future", Counted)
    return waits


def all_at_once(
    together: Together[int], outcome: int | Exception, waiting: threading.Semaphore
) -> list[object]:
    """What each of five threads gets that want the same; the number of makings comes last."""
    makings = 0

    def make() -> int:
        nonlocal makings
        makings += 1
        for _ in range(4):
            assert waiting.acquire(timeout=60)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def ask() -> object:
        try:
            return together.of("key", make)
        except ValueError as error:
            return error

    with ThreadPoolExecutor(5) as pool:
        asked = [pool.submit(ask) for _ in range(5)]
    return [*(one.result() for one in asked), makings]


def test_all_get_what_one_makes(waiting: threading.Semaphore) -> None:
    assert all_at_once(Together(), 7, waiting) == [7, 7, 7, 7, 7, 1]


def test_an_error_reaches_all_and_the_next_tries_again(waiting: threading.Semaphore) -> None:
    together: Together[int] = Together()
    error = ValueError("no")
    assert all_at_once(together, error, waiting) == [*[error] * 5, 1]
    assert together.of("key", lambda: 8) == 8


def test_other_keys_do_not_wait_and_nothing_is_kept() -> None:
    together: Together[int] = Together()
    assert together.of("outer", lambda: together.of("inner", lambda: 9)) == 9
    assert [together.of("key", lambda n=n: n) for n in (1, 2)] == [1, 2]  # type: ignore[misc]
