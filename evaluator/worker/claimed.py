"""Claimed jobs of a worker: held until the store has their ends, given way, or released."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from benchmarks.errors import AssayError, TransientError
from evaluator.worker.claims import AHEAD
from evaluator.worker.finalizer import Finalizer
from evaluator.worker.liveness import Liveness
from evaluator.worker.publish_queue import PublishQueue
from evaluator.worker.spool import UploadCache
from evaluator.worker.tasks import Task, about

log = logging.getLogger(__name__)


class ClaimedJobs:
    """The submissions that are this worker's, by id."""

    def __init__(
        self, tell: Callable[[Iterable[str]], None], clear: Callable[[Task], None]
    ) -> None:
        self._tell = tell
        self._clear = clear
        self._to_do: dict[str, Task] = {}
        self._finished: dict[str, Task] = {}

    @property
    def to_do(self) -> tuple[Task, ...]:
        """What is not finished, in the order in which it is to be done."""
        return tuple(self._to_do.values())

    @property
    def empty(self) -> bool:
        """Whether nothing at all is held."""
        return not self._to_do and not self._finished

    def holds(self, submission_id: str) -> bool:
        """Whether it is one of them."""
        return submission_id in self._to_do or submission_id in self._finished

    def take(self, tasks: Iterable[Task]) -> None:
        """These were claimed."""
        self._to_do |= {task.submission_id: task for task in tasks}
        self._told()

    def postpone(self, task: Task) -> None:
        """The others are done before it: what it needs cannot be had now."""
        if self._to_do.pop(task.submission_id, None) is not None:
            self._to_do[task.submission_id] = task

    def finish(self, task: Task) -> None:
        """It waits for nothing but the store."""
        self._to_do.pop(task.submission_id, None)
        self._finished[task.submission_id] = task
        self._told()

    def let_go(self, task: Task) -> None:
        """It is over, or another's; what is left of it is removed."""
        self._to_do.pop(task.submission_id, None)
        self._finished.pop(task.submission_id, None)
        self._told()
        self._clear(task)

    def drop_to_do(self) -> None:
        """All that is not finished was handed back."""
        self._to_do.clear()
        self._told()

    def _told(self) -> None:
        self._tell((*self._to_do, *self._finished))


OVERRUN = "Its worker is busy with another for longer than was expected; another worker is free."


@dataclass(frozen=True)
class Preemption:
    """Lets idle workers have what this one claimed ahead and cannot begin in time."""

    hand: ClaimedJobs  # what this worker holds
    endings: Finalizer  # hands back
    liveness: Liveness  # knows who is idle
    clock: Callable[[], datetime]  # the store's time

    def look(self, task: Task) -> None:
        """Hand back all but the run under way, if it overran all that was claimed and one is idle.

        A store that fails changes nothing: they stay claimed, and it is tried at the next look.
        """
        begun, later = task.begun_at, self._later(task)
        if begun is None or not later or self.clock() - begun <= AHEAD:
            return
        if not self.liveness.others_idle():
            return
        try:
            self.endings.hand_back(later, OVERRUN)
        except TransientError as error:
            log.info("Not handed back yet: %s", error, extra=about(task.submission_id))
            return
        for one in later:
            log.info(OVERRUN, extra=about(one.submission_id))
            self.hand.let_go(one)

    def _later(self, task: Task) -> list[Task]:
        return [one for one in self.hand.to_do if one.submission_id != task.submission_id]


WITHIN_S = 30.0
"""A store that does not answer for so long keeps no worker from ending."""
_PAUSES_S = (0.0, 1.0, 3.0)
STOPPED = "The worker was stopped; what was finished is kept."


@dataclass(frozen=True)
class Release:
    """Entered while a worker works, so that it leaves in good order however that ends.

    What the store cannot take stays where it is: in the outbox, and claimed by a worker that beats
    no more, so that others find it.
    """

    outgoing: PublishQueue  # what is finished
    endings: Finalizer  # hands back
    hand: ClaimedJobs  # what is held
    uploads: UploadCache  # of what is to be handed back; they are removed
    sleep: Callable[[float], None] = time.sleep  # how to wait; passed in by tests

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After anything but an error or an order to stop, this process may be in any state.
        if kind is None or issubclass(kind, Exception | KeyboardInterrupt):
            self.leave()

    def leave(self) -> None:
        """Do it now, in bounded time."""
        if self.hand.empty:
            return
        thread = threading.Thread(target=self._in_order, name="leaving", daemon=True)
        thread.start()
        thread.join(WITHIN_S)
        if thread.is_alive():
            log.warning("The store does not answer; the worker ends without it.")

    def _in_order(self) -> None:
        self._persistently(self.outgoing.send)
        for task in self.hand.to_do:
            self.uploads.drop(task.submission_id)
        if self._persistently(self._hand_back):
            self.hand.drop_to_do()

    def _hand_back(self) -> None:
        self.endings.hand_back(self.hand.to_do, STOPPED)

    def _persistently(self, action: Callable[[], object]) -> bool:
        for pause in _PAUSES_S:
            self.sleep(pause)
            try:
                action()
            except TransientError as error:
                log.warning("On leaving: %s", error)
            except AssayError:
                log.exception("Not done on leaving.")
                return False
            else:
                return True
        return False
