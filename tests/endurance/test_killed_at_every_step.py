"""A worker dies just before each change of a file in turn: another ends what it began, once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from evaluator.worker.ending.concluding import MAX_ATTEMPTS
from leaderboard.store.folder import folder_store
from tests.endurance.crew import Crew, Fell, Launcher
from tests.endurance.ladder import CallLog
from tests.endurance.stages import Board, Stage
from tests.endurance.verdict import (
    Undisturbed,
    attempts,
    check_asked,
    check_nothing_left,
    check_published,
    undisturbed,
)
from tests.endurance.worker_process import Given
from tests.evaluator.worker.stock import stock

pytestmark = pytest.mark.slow

ACCOUNTS = [f"hub:u{n}" for n in range(8)]
EVERY = 6
"""By default every sixth step is died at; with ASSAY_ENDURANCE=6 every one."""
KILLED = -9


def test_a_worker_that_dies_at_any_change_of_a_file_loses_and_repeats_nothing(
    launcher: Launcher, place: Path, how_long: float
) -> None:
    (place / "plain").mkdir()
    wanted = undisturbed(place / "plain", ACCOUNTS)
    steps = steps_of_one(launcher, place / "counted")
    assert steps > 100
    stride = max(1, round(EVERY / how_long))
    todo = list(range(1, steps + 1, stride))
    fell, begun = Fell(), time.monotonic()
    for start in range(0, len(todo), len(ACCOUNTS)):
        some = todo[start : start + len(ACCOUNTS)]
        dying_at(launcher, place / f"from-{some[0]}", some, fell, wanted)
    print(f"\n{fell}, of {steps} steps every {stride}; {time.monotonic() - begun:.0f} s")
    assert fell.kills == len(todo)
    assert all(fell.at[stage] for stage in Stage if stage is not Stage.COMPUTE), "it writes nothing"


def steps_of_one(launcher: Launcher, place: Path) -> int:
    """How many changes of files a worker makes that runs one submission and ends.

    The second of a store is counted: what a store gets with its first publication alone is left out.
    """
    place.mkdir()
    given = given_at(place)
    crew = Crew(launcher, given)
    for account in ACCOUNTS[:2]:
        stock(folder_store(Path(given.store)), [account])
        member = crew.start()
        assert launcher.wait(member.pid) == 0, member.said()
    return Board(place / "board").read(0)[2]


def given_at(place: Path) -> Given:
    return Given(
        "w", 0, str(place), str(place / "store"), str(place / "scratch"), delay_s=0.0, ends=True
    )


def dying_at(
    launcher: Launcher, place: Path, steps: Sequence[int], fell: Fell, wanted: Undisturbed
) -> None:
    """For each step a submission, a worker that dies at it, and one that ends what it began."""
    place.mkdir()
    given = given_at(place)
    store = folder_store(place / "store")
    crew = Crew(launcher, given, fell)
    ids: list[str] = []
    for step in steps:
        ids += stock(store, ACCOUNTS[len(ids) : len(ids) + 1])
        dying = crew.start(dies_at=step)
        assert launcher.wait(dying.pid) == KILLED, (step, dying.said())
        fell.at[crew.board.read(0)[0]] += 1
        after = crew.start()
        assert launcher.wait(after.pid) == 0, (step, after.said())
    some = Undisturbed({name: wanted.by_id[name] for name in ids})
    check_published(store, ids, some)
    assert max(attempts(store, ids)) < MAX_ATTEMPTS
    check_nothing_left(store, place / "store", given)
    check_asked(CallLog(place / "calls"), len(steps))
