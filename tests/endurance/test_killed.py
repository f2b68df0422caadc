"""Workers are killed at random moments and at every step: each submission is published once."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.endurance.crew import Crew, Fell, Launcher, Reaper
from tests.endurance.ground import ground
from tests.endurance.stages import Stage
from tests.endurance.verdict import ACCOUNTS, Undisturbed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

KILLED = -9
BESIDE = 4  # Workers at a time, where a number of kills is asked for
STEPPED: dict[str, Any] = {"ends": True, "delay_s": 0.0, "fresh_for_s": 0.0}
"""Workers whose runs have as many steps however long they take."""


@dataclass(frozen=True)
class Plan:
    """How often workers on a store of some kind are killed."""

    seed: int  # of the random moments
    kills: int  # at random, at least; with ASSAY_ENDURANCE so many times as many
    # in which a kill must fall; a stage that is soon over is hit seldom, so up to three times as
    # many kills are to find it
    stages: frozenset[Stage]
    every: int  # so many steps are lived between two that are died at; with ASSAY_ENDURANCE fewer
    submissions: int  # of each store
    workers: int  # at a time, at most
    # the longest random times in milliseconds: from a start, and from a stage
    moments: tuple[int, int]
    counted: int  # the submission of a store whose steps are counted
    steps: int  # that it takes, at least
    met: frozenset[Stage]  # stages in which a step must lie


PLANS = {
    # What a store in a folder gets with its first publication alone is left out of the steps;
    # computing writes nothing.
    "folder": Plan(
        20260107, 180, frozenset(Stage), 2, 8, 3, (300, 20), 2, 100,
        frozenset(Stage) - {Stage.COMPUTE},
    ),
    "hub": Plan(
        20260321, 32, frozenset({Stage.CLAIM, Stage.SCORE, Stage.PUBLISH}), 12, 6, 2, (1500, 150),
        1, 40, frozenset(),
    ),
}  # fmt: skip
each_kind = pytest.mark.parametrize("kind", PLANS)


@each_kind
def test_workers_killed_at_any_moment_publish_each_submission_once(  # noqa: PLR0917 (fixtures)
    launcher: Launcher,
    place: Path,
    how_long: float,
    kills_wanted: int,
    alone: Undisturbed,
    kind: str,
) -> None:
    """With one worker at a time, and with several that are killed beside one another.

    With ASSAY_KILLS always with four, until so many were killed.
    """
    plan, fell, again, seed, begun = PLANS[kind], Fell(), 0, PLANS[kind].seed, time.monotonic()
    enough, published = kills_wanted or plan.kills * how_long, 0
    while fell.kills < enough or (fell.kills < 3 * enough and not plan.stages <= fell.at.keys()):
        seed += 1
        print(f"seed {seed}")
        before = fell.kills
        with ground(kind, place / f"{seed}", launcher, fell) as here:
            here.stock(ACCOUNTS[: plan.submissions])
            workers = BESIDE if kills_wanted else 1 + seed % plan.workers
            Reaper(here.crew, random.Random(seed), workers, *plan.moments).until(here.finished)
            again += here.check(alone, deaths=fell.kills - before)
            published += len(here.ids)
    took = f"{time.monotonic() - begun:.0f} s"
    print(f"\n{fell}, {took}; {published} published once each, {again} pairs asked again")
    assert plan.stages <= fell.at.keys(), "kills fell in every stage"


@each_kind
def test_a_worker_that_dies_at_any_step_loses_and_repeats_nothing(
    launcher: Launcher, place: Path, how_long: float, alone: Undisturbed, kind: str
) -> None:
    """Just before a change of a file, or before a request is sent and after its answer came."""
    plan, fell, begun = PLANS[kind], Fell(), time.monotonic()
    with ground(kind, place / "counted", launcher, **STEPPED) as here:
        for account in ACCOUNTS[: plan.counted]:
            here.stock([account])
            end_well(here.crew)
        steps = here.crew.board.read(0)[2]
    assert steps > plan.steps
    stride = max(1, round(plan.every / how_long))
    todo = list(range(1, steps + 1, stride))
    for start in range(0, len(todo), plan.submissions):
        some = todo[start : start + plan.submissions]
        dying_at(kind, launcher, place / f"from-{some[0]}", some, fell=fell, alone=alone)
    print(f"\n{fell}, of {steps} steps every {stride}; {time.monotonic() - begun:.0f} s")
    assert fell.kills == len(todo)
    assert plan.met <= fell.at.keys()


def dying_at(
    kind: str,
    launcher: Launcher,
    place: Path,
    steps: Sequence[int],
    *,
    fell: Fell,
    alone: Undisturbed,
) -> None:
    """For each step a submission, a worker that dies at it, and one that ends what it began."""
    with ground(kind, place, launcher, fell, **STEPPED) as here:
        for step, account in zip(steps, ACCOUNTS, strict=False):
            here.stock([account])
            dying = here.crew.start(dies_at=step)
            assert launcher.wait(dying.pid) == KILLED, (step, dying.said())
            fell.at[here.crew.board.read(0)[0]] += 1
            end_well(here.crew)
        here.check(alone, tries=2, deaths=len(steps))


def end_well(crew: Crew) -> None:
    """Start a worker that ends when there is nothing to do."""
    member = crew.start()
    assert crew.launcher.wait(member.pid) == 0, member.said()
