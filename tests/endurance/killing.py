"""Workers on one store that are killed at random until all is published."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.endurance.crew import Crew
from tests.endurance.stages import Stage

LONGEST_S = 200.0
_AIMED = (Stage.CLAIM, Stage.SCORE, Stage.OUTBOX, Stage.COMPUTE, Stage.PUBLISH, Stage.CLEAR)


@dataclass
class Aim:
    """When somebody is to be killed: at a time, or so long after a stage was first seen."""

    at: float | None  # by the steady clock; None: it waits for its stage
    stage: Stage = Stage.BETWEEN  # that is waited for
    after_s: float = 0.0  # it was seen

    def is_due(self, seen: Stage, now: float) -> bool:
        """Whether it is time."""
        if self.at is None and seen is self.stage:
            self.at = now + self.after_s
        return self.at is not None and now >= self.at


@dataclass
class Reaper:
    """Kills members of a crew at random moments and starts others in their place.

    Half of them are killed at a random time after their start, the others at a random time after
    they are seen at a stage, so that the short ones are met as well.
    """

    crew: Crew  # whose
    chance: random.Random  # decides when; seeded
    workers: int = 2  # how many are at work at a time
    longest_ms: int = 300  # the longest random time from a start
    after_ms: int = 20  # the longest from when a stage is seen
    enough: int = 0  # after so many kills, all are left alone; 0: never

    def until(self, done: Callable[[], bool]) -> None:
        """Go on until that is so, then let all of them end in good order."""
        members = [(self.crew.start(line), self._aim()) for line in range(self.workers)]
        begun = looked = time.monotonic()
        while True:
            now = time.monotonic()
            for line, (member, aim) in enumerate(members):
                seen = self.crew.board.read(line)[0]
                if not self._has_enough() and aim.is_due(seen, now):
                    killed = member.kill()
                    members[line] = self.crew.start(line) if killed else member, self._aim()
            if now - looked > 0.1:
                looked = now
                if done():
                    break
            assert now - begun < LONGEST_S, f"not done; one of them says: {members[0][0].said()}"
            time.sleep(0.0002)
        for member, _ in members:
            member.end()

    def _has_enough(self) -> bool:
        return 0 < self.enough <= self.crew.fell.kills

    def _aim(self) -> Aim:
        seconds = self.chance.uniform(0.001, self.longest_ms / 1000.0)
        if self.chance.random() < 0.5:
            return Aim(time.monotonic() + seconds)
        stage = self.chance.choice(_AIMED)
        if stage is Stage.SCORE:
            return Aim(None, stage, self.chance.uniform(0.0, self.longest_ms / 1000.0))
        # Mostly at once: the shortest stage lasts a millisecond.
        return Aim(None, stage, self.chance.random() ** 3 * self.after_ms / 1000.0)
