"""Engine that spreads batches over the actors of a Ray cluster.

Each actor opens the client once and is given the next batch when it has done one. Batches are cut
before, so the scores are those of `LocalEngine` bit for bit, given the same number of threads and
the same kind of device. An client that keeps what it computed from batch to batch may give other
last bits: a dual encoder encodes a text with the other new texts of a batch, and which of them are
new to an actor depends on what it was asked before (measured: 2e-6 in float32).

What travels is our own: the `ClientSource`, batches of images and texts, replies. Nothing that
untrusted code made is unpickled; an client that runs such code in a sandbox runs it in the same
sandbox, beside the actor.
"""

from __future__ import annotations

import logging
import pickle
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain
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

from benchmarks.errors import PlatformError, TransientError
from evaluator.scoring.asking import Answered, Batch, ClientSource
from evaluator.scoring.ray_cluster import (
    ClientActor,
    Failure,
    RayCluster,
    RayOptions,
    Slots,
    slots_of,
)

MOST_DEATHS = 3


class BatchQueue:
    """Draws batches as they are asked for.

    An actor holds several batches when it dies, and any of them may be why. Each of them is then
    given to an actor that holds nothing else, so that a second death tells which it was.
    """

    def __init__(self, batches: Iterable[Batch], most_deaths: int = MOST_DEATHS) -> None:
        self._batches = iter(batches)
        self._most_deaths = most_deaths
        self._drawn: deque[Batch] = deque()
        self._suspects: deque[Batch] = deque()
        self._deaths: Counter[int] = Counter()
        self._exhausted = False

    @property
    def empty(self) -> bool:
        """Whether there is nothing left to take, as far as was drawn."""
        return self._exhausted and not self._drawn and not self._suspects

    def draw_ahead(self, most: int) -> int:
        """Draw so many batches, and say how many there are."""
        while len(self._drawn) < most and (batch := self._next()) is not None:
            self._drawn.append(batch)
        return len(self._drawn)

    def take(self, held: Sequence[Batch]) -> Batch | None:
        """The next batch for an actor that holds these already; None: nothing for it now."""
        if any(self._deaths[batch.number] for batch in held):
            return None
        if self._suspects:
            return None if held else self._suspects.popleft()
        return self._drawn.popleft() if self._drawn else self._next()

    def answered(self, batch: Batch) -> None:
        """It is done."""
        del self._deaths[batch.number]

    def put_back(self, held: Iterable[Batch]) -> None:
        """Their actor died."""
        for batch in held:
            self._deaths[batch.number] += 1
            if self._deaths[batch.number] >= self._most_deaths:
                raise _killed_by(batch, self._deaths[batch.number])
            self._suspects.append(batch)

    def _next(self) -> Batch | None:
        batch = next(self._batches, None)
        self._exhausted = batch is None
        return batch


def _killed_by(batch: Batch, deaths: int) -> PlatformError:
    names = [item.image_id for item in batch.items]
    shown = ", ".join(map(repr, names[:8])) + (f" and {len(names) - 8} more" if names[8:] else "")
    return PlatformError(
        "worker_killed_by_batch",
        f"{deaths} worker processes died, one after the other, while they were asked about batch "
        f"{batch.number}: images {shown}.",
        "If they ran out of memory, ask for less at once; what was scored before is kept.",
    )


_LOG = logging.getLogger(__name__)
_LOST = (RayActorError, WorkerCrashedError, OutOfMemoryError, NodeDiedError, ObjectLostError)
_MOST_BARREN = 3
"""Actors of a slot that died one after the other without an answer; then it is given up."""
_LOOK_EVERY_S = 1.0


@dataclass
class _Slot:
    """A place for an actor, and the actor that fills it now."""

    number: int  # of the slot
    actor: Any  # its handle
    due: Any  # what it was told to do before it can be asked
    stage: Literal["placing", "opening", "open"] = "placing"  # how far it is with that
    held: dict[Any, Batch] = field(default_factory=dict)  # what it was asked
    barren: int = 0  # actors before it that died without an answer

    @property
    def awaited(self) -> list[Any]:
        return list(self.held) if self.stage == "open" else [self.due]


class WorkerPool:
    """All slots of a run."""

    def __init__(
        self, queue: BatchQueue, source: Any, slots: Slots, threads: int, options: RayOptions
    ) -> None:
        self._queue = queue
        self._source = source
        self._options = options
        self._threads = threads
        self._shape = slots
        self._class = ray.remote(ClientActor).options(
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
        """All answers, as they come."""
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
        """End all actors: let them end their clients, then make sure."""
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

    def _advance(self, slot: _Slot, result: str | None) -> None:
        if slot.stage == "opening":
            slot.stage = "open"
            return
        slot.stage, slot.due = "opening", slot.actor.open.remote(self._source)
        if result is not None:
            _LOG.info("Actor %d runs on %s.", slot.number, result)

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


class RayEngine:
    """Asks through actors; see `Engine`."""

    name = "ray"

    def __init__(self, cluster: RayCluster, options: RayOptions | None = None) -> None:
        self._cluster = cluster
        self._options = options or RayOptions()

    def run(self, batches: Iterable[Batch], source: ClientSource) -> Iterator[Answered]:
        """See `Engine`; answers come in any order."""
        drawn = iter(batches)
        first = next(drawn, None)
        if first is None:
            return
        self._cluster.connect()
        threads = self._options.threads or threads_here()
        # An actor is on one machine: it must not ask for more cores than one has.
        slots = slots_of(ray.cluster_resources(), self._options, min(threads, _cores_of_one()))
        pool = WorkerPool(
            BatchQueue(chain([first], drawn)), _sent(source), slots, threads, self._options
        )
        try:
            yield from pool.answers()
        finally:
            pool.close()


def threads_here() -> int:
    """How many threads a computation of this process is spread over."""
    # Loaded only where actors are started, for it takes seconds.
    threads: int = import_module("torch").get_num_threads()
    return threads


def _cores_of_one() -> int:
    """Of the smallest machine of the cluster that has any."""
    cores = [node["Resources"].get("CPU", 0.0) for node in ray.nodes() if node["Alive"]]
    return max(1, int(min((found for found in cores if found > 0), default=1.0)))


def _sent(source: ClientSource) -> ray.ObjectRef[ClientSource]:
    """One copy of the source for all actors."""
    try:
        return ray.put(source)
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise PlatformError(
            "source_not_portable",
            f"A {type(source).__name__} cannot be sent to another process: {error}.",
            "--engine local does without that.",
        ) from error
