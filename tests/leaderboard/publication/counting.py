"""A store that tells what was read of it, and a house whose metrics differ by chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any
from unittest import mock

import numpy as np

from leaderboard.publication.rebuilding import differences, queue_differences, rebuilt
from leaderboard.publication.results import Published
from leaderboard.publication.snapshot import Snapshot, read_snapshot
from leaderboard.ranking.draws import Draws
from leaderboard.records import Submission
from leaderboard.store.interface import Repository, Store
from tests.kit import governed as houses
from tests.kit.governed import CARDS, House

_DRAWS, _BLOCKS = 40, 20


class Counting:
    """A repository that counts what it is asked."""

    def __init__(self, under: Repository) -> None:
        self._under = under
        self.asked: Counter[str] = Counter()
        self.paths: list[str] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._under, name)

        def counted(*words: Any, **more: Any) -> Any:
            self.asked[name] += 1
            if name == "read":
                self.paths.append(words[0])
            return method(*words, **more)

        return counted

    def forget(self) -> None:
        """Count from here."""
        self.asked.clear()
        self.paths.clear()

    def below(self, prefix: str) -> list[str]:
        """Files read whose paths begin so."""
        return [path for path in self.paths if path.startswith(prefix)]


def counted(store: Store) -> tuple[Store, Counting, Counting]:
    """The same store, counting; with its public and its private side."""
    public: Any = Counting(store.public)
    private: Any = Counting(store.private)
    return replace(store, public=public, private=private), public, private


def _noisy(submission: Submission, benchmark: str, value: float, at: datetime) -> Published:
    """A run whose value, resamples and contributions are its own, and add up."""
    plain = houses.run_of(submission, benchmark, value, at)
    digits = [int(submission.content_sha256[:8], 16), int(at.timestamp()) % 1000, len(benchmark)]
    rng = np.random.default_rng(digits)
    n = len(plain.result.rows)
    shares = rng.normal(0.5, 1.0, (n, _BLOCKS)) / _BLOCKS
    resamples = shares.sum(axis=1, keepdims=True) + 0.1 * rng.normal(size=(n, _DRAWS))
    totals = zip(plain.result.rows, shares.sum(axis=1), strict=True)
    rows = tuple({**row, "value": float(total)} for row, total in totals)
    result = plain.result.model_copy(update={"rows": rows})
    return Published(submission, result, Draws(resamples, shares))


@contextmanager
def noisy_house(**more: object) -> Iterator[House]:
    """A house in which every run has other figures, always the same ones."""
    original = houses.run_of

    def run_of(*words: object) -> Published:
        with mock.patch.object(houses, "run_of", original):
            return _noisy(*words)  # type: ignore[arg-type]

    with mock.patch.object(houses, "run_of", run_of):
        yield House(**more)  # type: ignore[arg-type]


def shown_of(house: House) -> Snapshot:
    found = read_snapshot(house.store.public)
    assert found is not None
    return found


def wrong_in(house: House) -> list[str]:
    """What queue and snapshot have that events and results do not make, or lack."""
    right = rebuilt(house.store, CARDS, house.clock())
    boards = differences(read_snapshot(house.store.public), right)
    return [str(one) for one in (*boards, *queue_differences(house.store))]
