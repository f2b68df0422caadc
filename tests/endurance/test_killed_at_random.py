"""Workers are killed hundreds of times at random moments: each submission is published once."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from evaluator.worker.ending.concluding import MAX_ATTEMPTS
from leaderboard.store.folder import folder_store
from tests.endurance.crew import Crew, Fell, Launcher
from tests.endurance.killing import Reaper
from tests.endurance.ladder import CallLog
from tests.endurance.stages import Stage
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

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SEED = 20260107
KILLS = 210
ACCOUNTS = [f"hub:u{n}" for n in range(8)]


def test_workers_killed_at_any_moment_publish_each_submission_once(
    launcher: Launcher, place: Path, how_long: float
) -> None:
    """With one worker at a time, and with two and three that are killed beside one another."""
    (place / "plain").mkdir()
    wanted = undisturbed(place / "plain", ACCOUNTS)
    fell, again, rounds = Fell(), 0, 0
    begun = time.monotonic()
    # A stage that is soon over is hit seldom: as many kills again, and once more, are to find it.
    while fell.kills < KILLS * how_long or (
        fell.kills < 3 * KILLS * how_long and not all(fell.at[stage] for stage in Stage)
    ):
        rounds += 1
        seed = SEED + rounds
        again += one_round(launcher, place / f"round-{rounds}", seed, fell, wanted)
    took = time.monotonic() - begun
    print(
        f"\n{fell} in {rounds} stores of {len(ACCOUNTS)}, {took:.0f} s; {again} pairs asked again"
    )
    assert all(fell.at[stage] for stage in Stage), "kills fell in every stage"


def one_round(launcher: Launcher, place: Path, seed: int, fell: Fell, wanted: Undisturbed) -> int:
    """A store that is worked through under kills; returns how many pairs were asked again."""
    place.mkdir()
    print(f"seed {seed}")
    store = folder_store(place / "store")
    ids = stock(store, ACCOUNTS)
    given = Given("w", 0, str(place), str(place / "store"), str(place / "scratch"))
    crew = Crew(launcher, given, fell)
    before = fell.kills
    Reaper(crew, random.Random(seed), workers=1 + seed % 3).until(lambda: all_finished(store, ids))
    check_published(store, ids, wanted)
    assert max(attempts(store, ids)) <= MAX_ATTEMPTS
    check_nothing_left(store, place / "store", given)
    return check_asked(CallLog(place / "calls"), fell.kills - before)
