"""Whatever call of the store a worker dies at, or finds failing: each run is published once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import TransientError
from evaluator.worker.tasks import WorkerRole
from leaderboard.states import State
from tests.kit.store import memory_store
from tests.kit.tiers import all_slow_but_one
from tests.kit.worker import ASKED, Killed, Rig, Switch, breaking, published_once, results, stock

PARTS = 4
"""The calls are dealt out to so many tests, which may run beside one another."""
CALLS = frozenset({"read", "fetch", "has", "list", "commit", "committed"})
"""Asking for the head alone comes between these, and changes nothing."""
BOTH, APART = (WorkerRole.BOTH,), (WorkerRole.SCORE, WorkerRole.JUDGE)


def rig_of(folder: Path) -> tuple[Rig, tuple[str, ...]]:
    folder.mkdir()
    rig = Rig(folder, store=replace(memory_store(), jobs_per_commit=2))
    return rig, stock(rig.store, ["hub:ada", "hub:ada"])


def ran(rig: Rig, roles: Sequence[WorkerRole], switch: Switch) -> None:
    """Workers that the switch kills, each followed by another process on the same disk."""
    plain = rig.store
    for role in roles:
        rig.store = breaking(plain, switch)
        try:
            rig.worker(f"w-{role}", role=role).run_all()
        except Killed:
            rig.store = plain
            rig.worker(f"again-{role}", role=role).run_all()
    rig.store = plain


def all_results(rig: Rig, ids: Sequence[str]) -> list[Any]:
    assert all(published_once(rig.store, name) for name in ids)
    return [results(rig.store, name) for name in ids]


def undisturbed(folder: Path, roles: Sequence[WorkerRole], part: int) -> tuple[range, list[Any]]:
    """The calls of one part, and what is published."""
    (rig, ids), switch = rig_of(folder), Switch(only=CALLS)
    ran(rig, roles, switch)
    assert switch.calls > 2 * PARTS
    return range(part + 1, switch.calls + 1, PARTS), all_results(rig, ids)


@pytest.mark.parametrize("roles", all_slow_but_one([(BOTH,), (APART,)]), ids=["both", "apart"])
@pytest.mark.parametrize("part", all_slow_but_one(range(PARTS)))
def test_a_process_that_dies_at_any_call_loses_and_repeats_nothing(
    tmp_path: Path, part: int, roles: Sequence[WorkerRole]
) -> None:
    calls, wanted = undisturbed(tmp_path / "plain", roles, part)
    for n in calls:
        rig, ids = rig_of(tmp_path / str(n))
        ran(rig, roles, Switch(n, Killed(), only=CALLS))
        assert all_results(rig, ids) == wanted, n
        assert not list((rig.folder / "scratch" / "outbox").glob("*")), n


@pytest.mark.parametrize("part", all_slow_but_one(range(PARTS)))
def test_a_store_that_fails_at_any_call_costs_no_attempt(tmp_path: Path, part: int) -> None:
    """Also where a commit was made and only the answer was lost."""
    calls, wanted = undisturbed(tmp_path / "plain", BOTH, part)
    for n in calls:
        rig, ids = rig_of(tmp_path / str(n))
        plain, error = rig.store, TransientError("hub_down", "The Hub is down.")
        rig.store = breaking(plain, Switch(n, error, only=CALLS))
        worker = rig.worker("w1")
        for _ in range(6):
            try:
                worker.run_next()
            except TransientError:
                rig.clock.move(minutes=2)
        rig.store = plain
        assert all_results(rig, ids) == wanted, n
        for name in ids:
            assert rig.states(name).count(State.CLAIMED) == 1, n
            assert State.FAILED not in rig.states(name)
        assert len(rig.backend.asked) == 2 * ASKED, f"call {n} made something be asked again"
