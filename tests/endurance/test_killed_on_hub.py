"""Workers on a store of the Hub are killed at random and beside every request."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.worker.ending.concluding import MAX_ATTEMPTS
from leaderboard.store.interface import Store
from tests.endurance.crew import Crew, Fell, Launcher
from tests.endurance.hub_rig import opened
from tests.endurance.killing import Reaper
from tests.endurance.ladder import CallLog
from tests.endurance.stages import Board, Stage
from tests.endurance.verdict import (
    Undisturbed,
    all_finished,
    attempts,
    check_asked,
    check_nothing_left,
    check_published,
    undisturbed,
)
from tests.endurance.worker_process import Given
from tests.evaluator.worker.stock import stock
from tests.hub.server import running_hub

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SEED = 20260321
KILLS = 32
EVERY = 12
ACCOUNTS = [f"hub:u{n}" for n in range(6)]
HIT = (Stage.CLAIM, Stage.SCORE, Stage.PUBLISH)
KILLED = -9


def test_workers_killed_at_any_moment_publish_each_submission_once_on_the_hub(
    launcher: Launcher, place: Path, how_long: float
) -> None:
    (place / "plain").mkdir()
    wanted = undisturbed(place / "plain", ACCOUNTS)
    fell, again, rounds, begun = Fell(), 0, 0, time.monotonic()
    # A stage that is soon over is hit seldom: as many kills again, and once more, are to find it.
    while fell.kills < KILLS * how_long or (
        fell.kills < 3 * KILLS * how_long and not all(fell.at[stage] for stage in HIT)
    ):
        rounds += 1
        again += one_round(launcher, place / f"round-{rounds}", SEED + rounds, fell, wanted)
    took = time.monotonic() - begun
    print(
        f"\n{fell} in {rounds} stores of {len(ACCOUNTS)}, {took:.0f} s; {again} pairs asked again"
    )
    assert all(fell.at[stage] for stage in HIT), "kills fell in every one of these stages"


def one_round(launcher: Launcher, place: Path, seed: int, fell: Fell, wanted: Undisturbed) -> int:
    place.mkdir()
    print(f"seed {seed}")
    with running_hub() as hub:
        given, store = opened(hub, place)
        ids = stock(store, ACCOUNTS)
        before = fell.kills
        reaper = Reaper(Crew(launcher, given, fell), random.Random(seed), 1 + seed % 2, 1500, 150)
        reaper.until(lambda: all_finished(store, ids))
        return checked(store, ids, wanted, given, fell.kills - before)


def checked(
    store: Store, ids: Sequence[str], wanted: Undisturbed, given: Given, deaths: int
) -> int:
    """How many pairs were asked again, when all is as it must be."""
    check_published(store, ids, wanted)
    assert max(attempts(store, ids)) <= MAX_ATTEMPTS
    check_nothing_left(store, Path(given.scratch), given)
    return check_asked(CallLog(Path(given.place) / "calls"), deaths)


def test_a_worker_that_dies_beside_any_request_loses_and_repeats_nothing(
    launcher: Launcher, place: Path, how_long: float
) -> None:
    """Just before a request is sent, and just after its answer came."""
    (place / "plain").mkdir()
    wanted = undisturbed(place / "plain", ACCOUNTS)
    steps = steps_of_one(launcher, place / "counted")
    assert steps > 40
    stride = max(1, round(EVERY / how_long))
    todo = list(range(1, steps + 1, stride))
    fell, begun = Fell(), time.monotonic()
    for start in range(0, len(todo), len(ACCOUNTS)):
        some = todo[start : start + len(ACCOUNTS)]
        dying_at(launcher, place / f"from-{some[0]}", some, fell, wanted)
    print(f"\n{fell}, of {steps} steps every {stride}; {time.monotonic() - begun:.0f} s")
    assert fell.kills == len(todo)


def steps_of_one(launcher: Launcher, place: Path) -> int:
    """How many sides of requests there are in one submission's run, however long it takes."""
    place.mkdir()
    with running_hub() as hub:
        given, store = opened(hub, place)
        given = replace(given, fresh_for_s=0.0)
        stock(store, ACCOUNTS[:1])
        member = Crew(launcher, given).start(ends=True)
        assert launcher.wait(member.pid) == 0, member.said()
    return Board(place / "board").read(0)[2]


def dying_at(
    launcher: Launcher, place: Path, steps: Sequence[int], fell: Fell, wanted: Undisturbed
) -> None:
    """For each step a submission, a worker that dies at it, and one that ends what it began."""
    place.mkdir()
    with running_hub() as hub:
        given, store = opened(hub, place)
        given = replace(given, fresh_for_s=0.0)
        crew = Crew(launcher, given, fell)
        ids: list[str] = []
        for step in steps:
            ids += stock(store, ACCOUNTS[len(ids) : len(ids) + 1])
            dying = crew.start(dies_at=step, ends=True)
            assert launcher.wait(dying.pid) == KILLED, (step, dying.said())
            fell.at[crew.board.read(0)[0]] += 1
            after = crew.start(ends=True)
            assert launcher.wait(after.pid) == 0, (step, after.said())
        some = Undisturbed({name: wanted.by_id[name] for name in ids})
        checked(store, ids, some, given, len(steps))
