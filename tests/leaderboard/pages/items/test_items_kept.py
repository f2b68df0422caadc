"""What many ask for at once is read once; what cannot be read is told to all and tried again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from benchmarks.errors import TransientError
from leaderboard.pages.items.reading import Kept
from tests.leaderboard.api.asking import asking

AT_ONCE = 6


class Slow:
    """Makes something once it is let go, and counts how often."""

    def __init__(self, result: Callable[[], Any]) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self.times = 0
        self._result = result

    def __call__(self) -> Any:
        self.times += 1
        self.begun.set()
        assert self.go.wait(60)
        return self._result()


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """Counts those who wait for what another makes."""
    waits = threading.Semaphore(0)

    class Counted(Future[Any]):
        def result(self, timeout: float | None = None) -> Any:
            waits.release()
            return super().result(timeout)

    monkeypatch.setattr("leaderboard.together.Future", Counted)
    return waits


def all_at_once(kept: Kept, slow: Slow, waiting: threading.Semaphore) -> list[Future[Any]]:
    """What they get who ask while it is being made, the first included."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = [pool.submit(kept.get, "key", slow, len) for _ in range(AT_ONCE)]
        for _ in range(AT_ONCE - 1):
            assert waiting.acquire(timeout=60)
        slow.go.set()
        return asked


def test_what_many_ask_for_at_once_is_made_once(waiting: threading.Semaphore) -> None:
    kept, slow = Kept(100), Slow(lambda: [1, 2])
    found = [one.result() for one in all_at_once(kept, slow, waiting)]
    assert slow.times == 1
    assert all(one is found[0] for one in found)


def test_an_error_reaches_all_who_wait_and_is_not_kept(waiting: threading.Semaphore) -> None:
    def fails() -> list[int]:
        raise TransientError("store_down", "The store does not answer.", "Wait.")

    kept, slow = Kept(100), Slow(fails)
    for one in all_at_once(kept, slow, waiting):
        with pytest.raises(TransientError):
            one.result()
    assert slow.times == 1
    assert kept.get("key", lambda: [3], len) == [3]


def test_another_key_does_not_wait() -> None:
    kept, slow = Kept(100), Slow(lambda: [1])
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(kept.get, "slow", slow, len)
        assert slow.begun.wait(60)
        assert kept.get("quick", lambda: [2], len) == [2]
        slow.go.set()
        assert first.result() == [1]


def test_cold_requests_for_items_parse_the_cases_once_and_hold_no_turn_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = asking()
    read = api.source.items._read_cases
    card = api.source.reader.view().boards["ratings"].card
    slow = Slow(lambda: read(card, {}))
    monkeypatch.setattr(api.source.items, "_read_cases", lambda *_: slow())
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = [pool.submit(api.client.get, "/v1/items?benchmark=ratings") for _ in range(AT_ONCE)]
        assert slow.begun.wait(60)
        with api.source.turn(), api.source.turn():  # Both are free.
            pass
        slow.go.set()
        answers = [one.result() for one in asked]
    assert slow.times == 1
    # Their turns wait for 0.2 s only here; who got none was told so.
    assert {answer.status_code for answer in answers} <= {200, 503}
    assert len({answer.content for answer in answers if answer.status_code == 200}) == 1
