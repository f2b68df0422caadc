"""The actors of one run: started, given batches, replaced when they die, ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import ray
from ray.exceptions import (
    NodeDiedError,
    ObjectLostError,
    OutOfMemoryError,
    RayActorError,
    RayError,
    WorkerCrashedError,
)

from benchmarks.errors import TransientError
from evaluator.scoring.engines import Answered, Batch
from evaluator.scoring.on_ray.actor import AskerActor, Failure, Place
from evaluator.scoring.on_ray.queue import BatchQueue
from evaluator.scoring.on_ray.slots import RayOptions, Slots

_LOG = logging.getLogger(__name__)
_LOST = (RayActorError, WorkerCrashedError, OutOfMemoryError, NodeDiedError, ObjectLostError)
_MOST_BARREN = 3
"""Actors of a slot that died one after the other without an answer; then it is given up."""
_LOOK_EVERY_S = 1.0


@dataclass
class _Slot:
    """A place for an actor, and the actor that fills it now.

    Attributes:
        number: of the slot.
        actor: its handle.
        due: what it was told to do before it can be asked.
        stage: how far it is with that.
        held: what it was asked.
        barren: actors before it that died without an answer.
    """

    number: int
    actor: Any
    due: Any
    stage: Literal["placing", "opening", "open"] = "placing"
    held: dict[Any, Batch] = field(default_factory=dict)
    barren: int = 0

    @property
    def awaited(self) -> list[Any]:
        return list(self.held) if self.stage == "open" else [self.due]


class Crew:
    """All slots of a run.

    Args:
        queue: where batches come from.
        source: of the asker, sent to the cluster already.
        slots: how many, and what each takes.
        threads: that an actor computes with.
        options: of the engine.
    """

    def __init__(
        self, queue: BatchQueue, source: Any, slots: Slots, threads: int, options: RayOptions
    ) -> None:
        self._queue = queue
        self._source = source
        self._options = options
        self._threads = threads
        self._shape = slots
        self._class = ray.remote(AskerActor).options(
            num_cpus=slots.cpus,
            num_gpus=slots.gpus,
            # Beside the batches there must be a way in for `close`.
            max_concurrency=options.in_flight + 1,
            max_restarts=0,
            max_task_retries=0,
        )
        self._slots: list[_Slot] = []
        self._seen_placed = time.monotonic()

    def answers(self) -> Iterator[Answered]:
        """All answers, as they come.

        Raises:
            AssayError: as an asker raised it.
            TransientError: `workers_lost`.
            PlatformError: `worker_killed_by_batch`.
        """
        for number in range(self._queue.draw_ahead(self._shape.actors)):
            self._slots.append(self._started(number))
        while self._hand_out():
            awaited = {ref: slot for slot in self._slots for ref in slot.awaited}
            done, _ = ray.wait(list(awaited), num_returns=1, timeout=_LOOK_EVERY_S)
            for ref in done:
                answer = self._settle(awaited[ref], ref)
                if answer is not None:
                    yield answer
            self._check_placed()

    def close(self) -> None:
        """End all actors: let them end their askers, then make sure."""
        if not ray.is_initialized():
            return
        opened = [slot.actor for slot in self._slots if slot.stage != "placing"]
        try:
            closed = [actor.close.remote() for actor in opened]
            if closed:
                ray.wait(closed, num_returns=len(closed), timeout=self._options.closed_within_s)
            for slot in self._slots:
                ray.kill(slot.actor)
        except RayError as error:
            _LOG.warning("Ray actors could not be ended in order: %s", error)

    def _started(self, number: int, barren: int = 0) -> _Slot:
        actor: Any = self._class.remote(self._threads, self._options.ready_threads)
        return _Slot(number, actor, actor.place.remote(), barren=barren)

    def _hand_out(self) -> bool:
        """Give open actors what they can hold; False when all is done."""
        for slot in self._slots:
            while slot.stage == "open" and len(slot.held) < self._options.in_flight:
                batch = self._queue.take(list(slot.held.values()))
                if batch is None:
                    break
                slot.held[slot.actor.answer.remote(batch)] = batch
        return not self._queue.empty or any(slot.held for slot in self._slots)

    def _settle(self, slot: _Slot, ref: Any) -> Answered | None:
        """Take what an actor has done; None where that is no answer."""
        try:
            result = ray.get(ref)
        except _LOST as error:
            self._replace(slot, error)
            return None
        if isinstance(result, Failure):
            raise result.error()
        if ref in slot.held:
            self._queue.answered(slot.held.pop(ref))
            slot.barren = 0
            answer: Answered = result
            return answer
        self._advance(slot, result)
        return None

    def _advance(self, slot: _Slot, result: Place | None) -> None:
        if slot.stage == "opening":
            slot.stage = "open"
            return
        slot.stage, slot.due = "opening", slot.actor.open.remote(self._source)
        if result is not None:
            _LOG.info("Actor %d runs on %s as %d.", slot.number, result.host, result.pid)

    def _replace(self, slot: _Slot, error: RayError) -> None:
        """Put back what a dead actor held, and start another in its place."""
        why = _first_line(error)
        _LOG.warning("Actor %d died (%s); its batches go to others.", slot.number, why)
        ray.kill(slot.actor)
        self._slots.remove(slot)
        self._queue.put_back(slot.held.values())
        if slot.barren + 1 < _MOST_BARREN:
            self._slots.append(self._started(slot.number, slot.barren + 1))
        elif not self._slots:
            raise _lost(f"The last of {self._shape.actors} Ray actors was lost: {why}")

    def _check_placed(self) -> None:
        """Give up where the cluster has had no room for any actor for long."""
        now = time.monotonic()
        if any(slot.stage != "placing" for slot in self._slots):
            self._seen_placed = now
        elif now - self._seen_placed > self._options.placed_within_s:
            shape = self._shape
            raise _lost(
                f"The cluster had no room for an actor with {shape.cpus:g} CPUs and "
                f"{shape.gpus:g} GPUs within {self._options.placed_within_s:.0f} s"
            )


def _lost(what: str) -> TransientError:
    return TransientError(
        "workers_lost", f"{what}.", "Run it again to go on; what was scored before is kept."
    )


def _first_line(error: RayError) -> str:
    """The telling line of Ray's many."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "exit detail" in line or "dead because" in line]
    return (told or lines or [type(error).__name__])[0][:300].rstrip(".")
