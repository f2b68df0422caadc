"""Takes queued submissions one after the other: scores them, judges them, publishes them.

A worker of one role alone does its part: it scores and hands over, or it judges and publishes.

A worker claims what it takes with a lease, and beats while it works. A dead worker's submissions
are taken by others: what was finished is published from its outbox, and of what was not, only the
missing shards are scored. Publishing is one commit, made only for what the worker still holds, so
nothing is published twice or half.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from benchmarks.errors import TransientError
from benchmarks.schema import Benchmark
from evaluator.worker.claims.heartbeat import RunProgress
from evaluator.worker.claims.liveness import SILENT_AFTER
from evaluator.worker.claims.pace import Pace
from evaluator.worker.claims.tasks import Task
from evaluator.worker.parts import Parts, Setting
from evaluator.worker.roles import WorkerRole
from evaluator.worker.rounds import Rounds
from evaluator.worker.running.scorer_role import ScorerRole
from evaluator.worker.upkeep.disk_room import DiskWatch
from leaderboard.desk import Gate
from leaderboard.store.interface import Store

OWED_FOR = timedelta(days=7)

log = logging.getLogger(__name__)


def _nobody_listens(_: RunProgress) -> None:
    """The default listener."""


class Worker:
    """One worker; works on one submission at a time.

    Args:
        name: unique among the workers a store ever had.
        store: where submissions come from and results go.
        registry: the benchmarks known here.
        data: folder of benchmark data, if there is one.
        scorers: runs scoring modules.
        listener: is told of progress.
        role: what it does.
        keys: folder of the keys of exported questions, for a judge.
        wake: set where something new may be waiting; None: it is looked for now and then.
        disk: looks after the room on the worker's disk; None: nobody does.
        silent_after: for how long another worker may be silent before it is taken for dead.
        pace: how long runs take here; None: nothing is known yet.
    """

    def __init__(
        self,
        name: str,
        store: Store,
        *,
        registry: Mapping[str, Benchmark],
        data: Path | None,
        scorers: ScorerRole,
        listener: Callable[[RunProgress], None] = _nobody_listens,
        role: WorkerRole = WorkerRole.BOTH,
        keys: Path | None = None,
        wake: threading.Event | None = None,
        disk: DiskWatch | None = None,
        silent_after: timedelta = SILENT_AFTER,
        pace: Pace | None = None,
    ) -> None:
        self.name = name
        self.scorers = scorers
        self._disk = disk
        self._clock = store.clock
        parts = Parts(
            Setting(
                name,
                store,
                registry,
                data,
                scorers,
                listener,
                role,
                keys,
                silent_after,
                pace or Pace(),
            )
        )
        self.heart = parts.heart
        self._parts = parts
        self._claims = parts.claims
        self._hand = parts.hand
        self._outgoing = parts.outgoing
        self._rounds = Rounds(self.run_next, parts.heart, wake)

    @property
    def gate(self) -> Gate:
        """Whether this worker runs strangers' code now."""
        return self._parts.slot.gate

    def run_forever(self, stop: threading.Event, poll_s: float = 1.0) -> None:
        """Work until told to stop. The worker outlives any defect; it is logged and slept over.

        Told to stop, it stops after the running batch, sends what is finished and hands back what
        is not.

        Args:
            stop: looked at after every batch.
            poll_s: how often to look for something new where nothing wakes it.
        """
        self._parts.one.stop = stop
        with self._at_work():
            self._rounds.until(stop, poll_s)

    def run_all(self, stop: threading.Event | None = None) -> None:
        """Work until nothing is left that this worker can do now, or it is told to stop.

        Raises:
            TransientError: the store fails.
        """
        self._parts.one.stop = stop = stop or threading.Event()
        with self._at_work():
            while not stop.is_set() and self.run_next():
                pass

    def run_next(self) -> bool:
        """Do the next thing: work on one submission, or send what is finished.

        Returns:
            False if there is nothing to do now.

        Raises:
            TransientError: the store fails, or there is no room on the disk; nothing is lost.
        """
        self._parts.endings.settle()
        self._outgoing.send_due()
        task = self._next()
        if task is None:
            return self._outgoing.send() or self._parts.fill()
        self._work(task)
        self._outgoing.send_due()
        return True

    def run(self, submission_id: str) -> bool:
        """Work on one submission, if it can be claimed.

        Raises:
            TransientError: the store fails, or there is no room on the disk.
        """
        with self._at_work():
            tasks = self._claims.take(submission_id)
            self._hand.take(tasks)
            for task in tasks:
                self._work(task)
            self._outgoing.send()
            return bool(tasks)

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """Known to others as alive, and left in good order."""
        with self._parts.presence, self.heart, self._parts.leaving:
            now = self._clock()
            self._parts.presence.sweep(now.timestamp())
            self._parts.endings.sweep((now - OWED_FOR).timestamp())
            self._parts.leftovers.sweep(now)
            yield

    def _next(self) -> Task | None:
        """The next submission in hand; several may be claimed for that."""
        if not self._hand.to_do:
            if self._disk is not None:
                self._disk.check()
            self._hand.take(self._claims.more())
            for later in self._hand.to_do[1:]:
                self._parts.uploads.have(later)
        return next(iter(self._hand.to_do), None)

    def _work(self, task: Task) -> None:
        try:
            self._parts.one.work(task)
        except KeyboardInterrupt:
            self._parts.leaving.leave()
            raise
        except TransientError:
            raise  # It stays in hand until the store answers, or the disk has room.
        except Exception:
            self._hand.let_go(task)  # Not even its end could be recorded: another attempt shows.
            raise
