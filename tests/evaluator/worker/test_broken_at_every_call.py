"""Whatever call of the store a worker dies at, or finds failing: each run is published once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import TransientError
from evaluator.worker.tasks import WorkerRole
from leaderboard.ledger.cleanup import tidy_all
from leaderboard.states import State
from tests.kit.worker import ASKED, Killed, Rig, Switch, breaking

PARTS = 4
"""The calls are dealt out to so many tests, which may run beside one another."""
CALLS = frozenset({"read", "fetch", "has", "list", "commit", "committed"})
"""Asking for the head alone comes between these, and changes nothing."""
Roles = tuple[WorkerRole, ...]
BOTH, APART = (WorkerRole.BOTH,), (WorkerRole.SCORE, WorkerRole.JUDGE)


def rig_of(folder: Path) -> tuple[Rig, tuple[str, ...]]:
    folder.mkdir()
    rig = Rig(folder, jobs=2)
    return rig, rig.stock(["hub:ada", "hub:ada"])


def ran(rig: Rig, roles: Roles, switch: Switch) -> None:
    """Workers that the switch kills, each followed by another process on the same disk."""
    plain, scored = rig.store, 0
    for role in roles:
        rig.store = breaking(plain, switch)
        try:
            rig.worker(f"w-{role}", role=role).run_all()
        except Killed:
            rig.store = plain
            rig.worker(f"again-{role}", role=role).run_all()
        if role is WorkerRole.JUDGE:
            assert len(rig.backend.asked) == scored, "what is handed over is not scored again"
        scored = len(rig.backend.asked)
    rig.store = plain


def all_results(rig: Rig, ids: Sequence[str]) -> list[Any]:
    assert rig.published_once(*ids)
    return [rig.results(name) for name in ids]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Roles], tuple[int, Any]]:
    """How many calls workers of some roles make, and what they publish."""

    @cache
    def run(roles: Roles) -> tuple[int, Any]:
        (rig, ids), switch = rig_of(tmp_path_factory.mktemp("plain") / "rig"), Switch(only=CALLS)
        ran(rig, roles, switch)
        assert switch.calls > 2 * PARTS
        return switch.calls, all_results(rig, ids)

    return run


@pytest.mark.first_quick
@pytest.mark.parametrize("roles", [BOTH, APART], ids=["both", "apart"])
@pytest.mark.parametrize("part", range(PARTS))
def test_a_process_that_dies_at_any_call_loses_and_repeats_nothing(
    tmp_path: Path, undisturbed: Callable[..., tuple[int, Any]], part: int, roles: Roles
) -> None:
    calls, expected = undisturbed(roles)
    for n in range(part + 1, calls + 1, PARTS):
        rig, ids = rig_of(tmp_path / str(n))
        ran(rig, roles, Switch(n, Killed(), only=CALLS))
        assert all_results(rig, ids) == expected, n
        assert not list((rig.folder / "scratch" / "outbox").glob("*")), n
        tidy_all(rig.store)
        assert rig.store.private.list("scored/") == (), n


@pytest.mark.first_quick
@pytest.mark.parametrize("part", range(PARTS))
def test_a_store_that_fails_at_any_call_costs_no_attempt(
    tmp_path: Path, undisturbed: Callable[..., tuple[int, Any]], part: int
) -> None:
    """Also where a commit was made and only the answer was lost."""
    calls, expected = undisturbed(BOTH)
    for n in range(part + 1, calls + 1, PARTS):
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
        assert all_results(rig, ids) == expected, n
        for name in ids:
            assert rig.states(name).count(State.CLAIMED) == 1, n
            assert State.FAILED not in rig.states(name)
        assert len(rig.backend.asked) == 2 * ASKED, f"call {n} made something be asked again"
