"""Whatever call of the store a worker dies at, or finds failing: each run is published once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import TransientError
from evaluator.worker.roles import WorkerRole
from leaderboard.ledger.ledger import Ledger
from leaderboard.states import State
from leaderboard.store.memory import memory_store
from tests.evaluator.rig import Rig
from tests.evaluator.worker.breaking import (
    Killed,
    Switch,
    breaking,
    published_once,
    results,
)
from tests.evaluator.worker.stock import stock
from tests.tiers import all_slow_but_one

PARTS = 4
"""The calls are dealt out to so many tests, which may run beside one another."""
CALLS = frozenset({"read", "fetch", "has", "list", "commit", "committed"})
"""Asking for the head alone comes between these, and changes nothing."""
BOTH, APART = (WorkerRole.BOTH,), (WorkerRole.SCORE, WorkerRole.JUDGE)


def rig_of(folder: Path) -> tuple[Rig, tuple[str, ...]]:
    folder.mkdir()
    rig = Rig(folder, store=replace(memory_store(), jobs_per_commit=2))
    return rig, stock(rig.store, ["hub:ada", "hub:ada"])


def raising(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


def all_results(rig: Rig, ids: Sequence[str]) -> list[Any]:
    return [results(rig.store, name) for name in ids]


def undisturbed(folder: Path, roles: Sequence[WorkerRole]) -> tuple[int, list[Any]]:
    """How many calls there are, and what is published."""
    rig, ids = rig_of(folder)
    plain, switch = rig.store, Switch(only=CALLS)
    for role in roles:
        rig.store = breaking(plain, switch)
        rig.worker(f"w-{role}", role=role).run_all()
    rig.store = plain
    return switch.calls, all_results(rig, ids)


def killed_at(folder: Path, n: int, roles: Sequence[WorkerRole]) -> tuple[Rig, tuple[str, ...]]:
    """A worker dies at the n-th call, and another process takes over on the same disk."""
    rig, ids = rig_of(folder)
    plain, switch = rig.store, Switch(n, raising(Killed()), only=CALLS)
    for role in roles:
        rig.store = breaking(plain, switch)
        try:
            rig.worker(f"w-{role}", role=role).run_all()
        except Killed:
            rig.store = plain
            rig.worker(f"again-{role}", role=role).run_all()
    rig.store = plain
    return rig, ids


@pytest.mark.parametrize("roles", all_slow_but_one([(BOTH,), (APART,)]), ids=["both", "apart"])
@pytest.mark.parametrize("part", all_slow_but_one(range(PARTS)))
def test_a_process_that_dies_at_any_call_loses_and_repeats_nothing(
    tmp_path: Path, part: int, roles: Sequence[WorkerRole]
) -> None:
    calls, wanted = undisturbed(tmp_path / "plain", roles)
    assert calls > 2 * PARTS
    for n in range(part + 1, calls + 1, PARTS):
        rig, ids = killed_at(tmp_path / str(n), n, roles)
        assert all(published_once(rig.store, name) for name in ids), n
        assert all_results(rig, ids) == wanted, n
        assert not list((rig.folder / "scratch" / "outbox").glob("*")), n


@pytest.mark.parametrize("part", all_slow_but_one(range(PARTS)))
def test_a_store_that_fails_at_any_call_costs_no_attempt(tmp_path: Path, part: int) -> None:
    """Also where a commit was made and only the answer was lost."""
    calls, wanted = undisturbed(tmp_path / "plain", BOTH)
    for n in range(part + 1, calls + 1, PARTS):
        rig, ids = rig_of(tmp_path / str(n))
        plain = rig.store
        error = TransientError("hub_down", "The Hub is down.")
        rig.store = breaking(plain, Switch(n, raising(error), only=CALLS))
        worker = rig.worker("w1")
        for _ in range(6):
            try:
                worker.run_next()
            except TransientError:
                rig.clock.move(minutes=2)
        rig.store = plain
        assert all(published_once(plain, name) for name in ids), n
        assert all_results(rig, ids) == wanted, n
        for name in ids:
            states = [e.state for e in Ledger(plain).events(name)]
            assert states.count(State.CLAIMED) == 1, (n, states)
            assert State.FAILED not in states
        assert len(rig.backend.asked) == 2 * 8 * 3, f"call {n} made something be asked again"
