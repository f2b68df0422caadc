"""A store that tells what was read of it, and a house whose metrics differ by chance."""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from unittest import mock

import numpy as np

from leaderboard.publication.published import Published
from leaderboard.ranking.draws import Draws
from leaderboard.records import Submission
from leaderboard.store.interface import Changes, Repository, Store
from tests.leaderboard import house as houses
from tests.leaderboard.house import House

_DRAWS, _BLOCKS = 40, 20


class Counting:
    """A repository that counts what it is asked."""

    def __init__(self, under: Repository) -> None:
        self._under = under
        self.asked: Counter[str] = Counter()
        self.paths: builtins.list[str] = []

    def head(self) -> str:
        self.asked["head"] += 1
        return self._under.head()

    def read(self, path: str) -> bytes:
        self.asked["read"] += 1
        self.paths.append(path)
        return self._under.read(path)

    def fetch(self, path: str, target: Path) -> None:
        self.asked["fetch"] += 1
        self._under.fetch(path, target)

    def has(self, path: str) -> bool:
        self.asked["has"] += 1
        return self._under.has(path)

    def list(self, prefix: str = "") -> tuple[str, ...]:
        self.asked["list"] += 1
        return self._under.list(prefix)

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        self.asked["commit"] += 1
        return self._under.commit(changes, parent=parent, message=message)

    def forget(self) -> None:
        """Count from here."""
        self.asked.clear()
        self.paths.clear()

    def below(self, prefix: str) -> builtins.list[str]:
        """Files read whose paths begin so."""
        return [path for path in self.paths if path.startswith(prefix)]


def counted(store: Store) -> tuple[Store, Counting, Counting]:
    """The same store, counting; with its public and its private side."""
    public, private = Counting(store.public), Counting(store.private)
    return replace(store, public=public, private=private), public, private


def _noisy(submission: Submission, benchmark: str, value: float, at: datetime) -> Published:
    """A run whose value, resamples and contributions are its own, and add up."""
    plain = houses.run_of(submission, benchmark, value, at)
    digits = [int(submission.content_sha256[:8], 16), int(at.timestamp()) % 1000, len(benchmark)]
    rng = np.random.default_rng(digits)
    n = len(plain.result.rows)
    shares = rng.normal(0.5, 1.0, (n, _BLOCKS)) / _BLOCKS
    resamples = shares.sum(axis=1, keepdims=True) + 0.1 * rng.normal(size=(n, _DRAWS))
    rows = tuple(
        {**row, "value": float(total)}
        for row, total in zip(plain.result.rows, shares.sum(axis=1), strict=True)
    )
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
