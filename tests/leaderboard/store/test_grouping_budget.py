"""Transactions that wait for the budget of commits."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.errors import SubmitterError
from leaderboard.store.grouping import Grouping
from leaderboard.store.interface import (
    Changes,
    transact,
)
from leaderboard.store.memory import MemoryRepository
from tests.leaderboard.store.grouping_rig import Gate, append_to, until


class Budgeted:
    """A budget that lets commits through when it is told to."""

    def __init__(self) -> None:
        self.open = threading.Event()

    def delay(self, commits: int) -> float:
        assert commits == 1
        return 0.0 if self.open.is_set() else 1.0

    def ready(self, commits: int) -> None:
        assert commits == 1
        assert self.open.wait(60)


def test_whatever_comes_while_the_budget_lets_none_through_is_one_commit() -> None:
    gate, budget = Gate(), Budgeted()
    store = Grouping(gate, budget)  # type: ignore[arg-type]
    with ThreadPoolExecutor(20) as pool:
        futures = [
            pool.submit(transact, store, append_to(store, "log", b"."), f"m{n}") for n in range(20)
        ]
        until(lambda: len(store._turns.waiting()) == 20)
        assert store.list() == ()
        budget.open.set()
        assert {future.result(60) for future in futures} == {"1"}
    assert store.read("log") == b"." * 20


def test_nobody_waits_for_the_budget_to_be_told_that_there_is_nothing_to_do() -> None:
    store = Grouping(MemoryRepository(), Budgeted())

    def refuse() -> Changes:
        raise SubmitterError("no", "Not this one.")

    assert transact(store, dict, "nothing") == "0"
    with pytest.raises(SubmitterError):
        transact(store, refuse, "refused")
