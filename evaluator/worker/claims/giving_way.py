"""Hands back what is held for later, where the run under way takes far longer than was expected."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from benchmarks.errors import TransientError
from evaluator.worker.claims.hand import Hand
from evaluator.worker.claims.liveness import Liveness
from evaluator.worker.claims.pace import AHEAD
from evaluator.worker.claims.tasks import Task, about
from evaluator.worker.ending.concluding import Endings

REASON = "Its worker is busy with another for longer than was expected; another worker is free."

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GivingWay:
    """Lets idle workers have what this one claimed ahead and cannot begin in time.

    Attributes:
        hand: what this worker holds.
        endings: hands back.
        liveness: knows who is idle.
        clock: the store's time.
    """

    hand: Hand
    endings: Endings
    liveness: Liveness
    clock: Callable[[], datetime]

    def look(self, task: Task) -> None:
        """Hand back all but the run under way, if it overran all that was claimed and one is idle.

        A store that fails changes nothing: they stay claimed, and it is tried at the next look.

        Args:
            task: under way.
        """
        begun, later = task.begun_at, self._later(task)
        if begun is None or not later or self.clock() - begun <= AHEAD:
            return
        if not self.liveness.others_idle():
            return
        try:
            self.endings.hand_back(later, REASON)
        except TransientError as error:
            log.info("Not handed back yet: %s", error, extra=about(task.submission_id))
            return
        for one in later:
            log.info(REASON, extra=about(one.submission_id))
            self.hand.let_go(one)

    def _later(self, task: Task) -> list[Task]:
        return [one for one in self.hand.to_do if one.submission_id != task.submission_id]
