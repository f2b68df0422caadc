"""Any interleaving of transactions equals some order of them, one after the other."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

import pytest

from benchmarks.errors import AssayError, SubmitterError, TransientError
from leaderboard.store.grouping import Grouping
from leaderboard.store.interface import Changes, Repository, transact, transact_alone
from leaderboard.store.memory import MemoryRepository

KEYS = ("k0", "k1", "k2", "k3", "k4")


@dataclass(frozen=True)
class Random:
    """A transaction that depends on what it reads, and leaves a file that says what it read."""

    number: int
    seed: int

    @property
    def marker(self) -> str:
        return f"done/{self.number}"

    def on(self, store: Repository) -> Changes:
        if store.has(self.marker):
            return {}  # An earlier try went through, though nobody was told.
        choice = random.Random(self.seed)
        reads = choice.sample(KEYS, 2)
        seen = [store.read(key) if store.has(key) else b"-" for key in reads]
        last = sum(seen[0] + seen[1])
        if choice.random() < 0.2 and last % 2:
            raise SubmitterError("odd", f"{self.number} refuses.")
        if choice.random() < 0.2 and last % 3:
            return {}
        target = choice.choice(KEYS)
        changes: dict[str, bytes | None] = {self.marker: b"|".join(seen)}
        if choice.random() < 0.15:
            changes[f"{target}/inside"] = b"%d" % self.number  # A clash, unless the file is gone.
        elif choice.random() < 0.2:
            changes[target] = None
            changes[f"{target}/inside"] = None
        else:
            changes[target] = b"%d:%d" % (self.number, last)
        return changes


class Trouble:
    """A repository that loses races, fails and loses answers at random, and notes what it did."""

    def __init__(self, seed: int, often: float) -> None:
        self.under = MemoryRepository()
        self.committed: list[list[str]] = []
        self._choice = random.Random(seed)
        self._often = often

    def __getattr__(self, name: str) -> object:
        return getattr(self.under, name)

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        time.sleep(0.0005)
        fate = self._choice.random()
        if fate < self._often:
            self.under.commit({"foreign": b"x"}, parent=self.under.head(), message="another's")
        elif fate < 2 * self._often:
            raise TransientError("hub_down", "It failed before it was made.")
        version = self.under.commit(changes, parent=parent, message=message)
        lines = message.splitlines()
        self.committed.append(lines[2:] if len(lines) > 1 else lines)
        if fate > 1 - self._often:
            raise TransientError("hub_down", "Its answer was lost.")
        return version


def run_all(store: Repository, all_of: Sequence[Random]) -> dict[int, str]:
    """Run transactions in threads, again where the medium failed; how each ended."""
    ended: dict[int, str] = {}

    def run(one: Random) -> None:
        while one.number not in ended:
            with suppress(TransientError):
                ended[one.number] = outcome(store, one)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, all_of))
    return ended


def outcome(store: Repository, one: Random) -> str:
    try:
        transact(store, lambda: one.on(store), str(one.number), attempts=1000, sleep=lambda _: None)
    except TransientError:
        raise
    except AssayError as error:
        return error.code
    return "ok"


def states(all_of: Sequence[Random], order: Sequence[int]) -> Iterator[MemoryRepository]:
    """The store after each transaction, one after the other."""
    model = MemoryRepository()
    yield model
    for number in order:
        one = all_of[number]
        before = model.head()
        transact_alone(model, lambda: one.on(model), "m", attempts=1, sleep=lambda _: None)  # noqa: B023
        assert model.head() != before
        yield model


def refusal(model: MemoryRepository, one: Random) -> str:
    """Why a transaction would be refused now; empty where it would not."""
    copy = MemoryRepository()
    copy._files = dict(model._files)
    try:
        copy.commit(one.on(copy), parent="0", message="m")
    except AssayError as error:
        return error.code
    return ""


@pytest.mark.parametrize("often", [0.0, 0.15], ids=["calm", "in trouble"])
@pytest.mark.parametrize("seed", range(8))
def test_any_interleaving_equals_some_order(seed: int, often: float) -> None:
    medium = Trouble(seed, often)
    store = Grouping(medium, files=12)  # type: ignore[arg-type]
    all_of = [Random(n, seed * 1000 + n) for n in range(80)]
    ended = run_all(store, all_of)
    order = [int(name) for names in medium.committed for name in names]
    assert len(order) == len(set(order))  # none twice
    assert {n for n in ended if store.has(f"done/{n}")} == set(order)  # none lost, none made up
    assert {ended[n] for n in order} == {"ok"}
    refused = {n: code for n, code in ended.items() if code != "ok"}
    assert refused
    for last in states(all_of, order):  # each is refused at some point of the order
        for number in [n for n in refused if refused[n] == refusal(last, all_of[n])]:
            del refused[number]
    assert refused == {}
    found = {p: store.read(p) for p in store.list() if p != "foreign"}
    assert found == {path: last.read(path) for path in last.list()}
    assert len(medium.committed) < len(order)  # some did go together
