"""Workers are killed at random moments and at chosen steps: each submission is published once.

A usual run samples both by a seed. A nightly one (ASSAY_NIGHTLY=1) kills at every step, and ten times
as often at random; ASSAY_ENDURANCE says how many times as often, ASSAY_KILLS how often at random.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.endurance.crew import Crew, Launcher, Member, Moments, Reaper
from tests.endurance.ground import ground
from tests.endurance.stages import Stage
from tests.endurance.verdict import ACCOUNTS, Undisturbed
from tests.kit.tiers import nightly

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

KILLED = -9
BESIDE = 4  # Workers at a time, where a number of kills is asked for
STEPPED: dict[str, Any] = {"ends": True, "delay_s": 0.0, "fresh_for_s": 0.0}
"""Workers whose runs have as many steps however long they take."""


@dataclass(frozen=True)
class Plan:
    """How often workers on a store of some kind are killed."""

    seed: int  # of moments and steps
    kills: int  # at random moments
    moments: Moments
    deaths: int  # at steps of each stage
    submissions: int  # of each store
    workers: int  # at a time, at most
    counted: int  # the submission of a store whose steps are counted
    steps: int  # that it takes, at least
    stages: frozenset[Stage]  # in which a step lies


PLANS = {
    # What a store in a folder gets with its first publication alone is left out of the steps.
    "folder": Plan(
        20260107, 15, Moments(0.3, 10, 0.02), 2, 6, 3, 2, 100, frozenset(Stage)
    ),
    "hub": Plan(
        20260321, 5, Moments(1.5, 10, 0.15), 1, 6, 2, 1, 40,
        frozenset({Stage.CLAIM, Stage.SCORE, Stage.PUBLISH}),
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
    """With one worker at a time, and with several that are killed beside one another."""
    plan, kills, again, seed, begun = PLANS[kind], 0, 0, PLANS[kind].seed, time.monotonic()
    while kills < (kills_wanted or plan.kills * how_long):
        seed += 1
        print(f"seed {seed}")
        with ground(kind, place / f"{seed}", launcher) as here:
            here.stock(ACCOUNTS[: plan.submissions])
            workers = BESIDE if kills_wanted else 1 + seed % plan.workers
            reaper = Reaper(here.crew, random.Random(seed), workers, plan.moments)
            killed = reaper.until(here.finished)
            again += here.check(alone, deaths=killed)
            kills += killed
    print(f"\n{kills} kills, {again} pairs asked again, {time.monotonic() - begun:.0f} s")


@each_kind
def test_a_worker_that_dies_at_any_step_loses_and_repeats_nothing(
    launcher: Launcher, place: Path, how_long: float, alone: Undisturbed, kind: str
) -> None:
    """Just before a change of a file, or before a request is sent and after its answer came."""
    plan, begun = PLANS[kind], time.monotonic()
    with ground(kind, place / "counted", launcher, **STEPPED) as here:
        for account in ACCOUNTS[: plan.counted]:
            here.stock([account])
            last = end_well(here.crew)
    assert len(last.stages) > plan.steps
    assert plan.stages <= set(last.stages)
    deaths = round(plan.deaths * how_long)
    steps = sampled_steps(last.stages, deaths, random.Random(plan.seed))
    fell = Counter[Stage]()
    for start in range(0, len(steps), plan.submissions):
        some = steps[start : start + plan.submissions]
        fell.update(dying_at(kind, launcher, place / f"from-{start}", some, alone=alone))
    where = ", ".join(f"{stage.name.lower()} {fell[stage]}" for stage in Stage)
    print(f"\n{where}, of {len(last.stages)} steps; {time.monotonic() - begun:.0f} s")
    assert plan.stages <= fell.keys()
    assert fell.total() > 0.9 * len(steps)


def sampled_steps(
    stages: Sequence[Stage], of_each: int, chance: random.Random
) -> list[tuple[Stage, int]]:
    """Some steps of each stage, or all steps in a nightly run; the first step of a stage is 1.

    A run on a busy machine has a few steps more than another, so steps are counted in each stage.
    """
    return [
        (stage, step)
        for stage, steps in sorted(Counter(stages).items())
        for step in sorted(
            chance.sample(range(1, steps + 1), steps if nightly() else min(of_each, steps))
        )
    ]


def dying_at(
    kind: str,
    launcher: Launcher,
    place: Path,
    steps: Sequence[tuple[Stage, int]],
    *,
    alone: Undisturbed,
) -> list[Stage]:
    """For each step a submission, a worker that dies at it, and one that ends what it began.

    Returns the stages in which they died.
    """
    stages = []
    with ground(kind, place, launcher, **STEPPED) as here:
        for (stage, step), account in zip(steps, ACCOUNTS, strict=False):
            here.stock([account])
            dying = here.crew.start(dies_in=stage, dies_at=step)
            code = launcher.wait(dying.pid)
            if code == 0 and dying.stages.count(stage) < step:
                continue
            assert code == KILLED, (stage, step, dying.said())
            stages.append(stage)
            end_well(here.crew)
        here.check(alone, tries=2, deaths=len(stages))
    return stages


def end_well(crew: Crew) -> Member:
    """Start a worker that ends when there is nothing to do, and wait until it has."""
    member = crew.start()
    assert crew.launcher.wait(member.pid) == 0, member.said()
    return member
