"""The engine that spreads batches over the actors of a Ray cluster.

Each actor opens the asker once and is given the next batch when it has done one. Batches are cut
before, so the scores are those of `LocalEngine` bit for bit, given the same number of threads and
the same kind of device. An asker that keeps what it computed from batch to batch may give other
last bits: a dual encoder encodes a text with the other new texts of a batch, and which of them are
new to an actor depends on what it was asked before (measured: 2e-6 in float32).

What travels is our own: the `AskerSource`, batches of images and texts, replies. Nothing that a
stranger's code made is unpickled; an asker that runs such code in a box runs it in the same box,
beside the actor.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import chain

import ray

from benchmarks.errors import PlatformError
from evaluator.scoring.asking import AskerSource
from evaluator.scoring.engines import Answered, Batch
from evaluator.scoring.on_ray.cluster import RayCluster
from evaluator.scoring.on_ray.crew import Crew
from evaluator.scoring.on_ray.queue import BatchQueue
from evaluator.scoring.on_ray.slots import RayOptions, slots_of


class RayEngine:
    """Asks through actors; see `Engine`.

    Args:
        cluster: connected to when there is something to ask.
        options: how batches are spread.
    """

    def __init__(self, cluster: RayCluster, options: RayOptions | None = None) -> None:
        self._cluster = cluster
        self._options = options or RayOptions()

    @property
    def name(self) -> str:
        """See `Engine`."""
        return "ray"

    def run(self, batches: Iterable[Batch], source: AskerSource) -> Iterator[Answered]:
        """See `Engine`; answers come in any order.

        Raises:
            SubmitterError: `ray_no_room`, `ray_address`.
            TransientError: `ray_unreachable`, `workers_lost`.
            PlatformError: `worker_killed_by_batch`, several actors died with the same batch;
                `ray_not_started`; `source_not_portable`.
        """
        drawn = iter(batches)
        first = next(drawn, None)
        if first is None:
            return
        self._cluster.connect()
        threads = self._options.threads or threads_here()
        # An actor is on one machine: it must not ask for more cores than one has.
        slots = slots_of(ray.cluster_resources(), self._options, min(threads, _cores_of_one()))
        crew = Crew(BatchQueue(chain([first], drawn)), _sent(source), slots, threads, self._options)
        try:
            yield from crew.answers()
        finally:
            crew.close()


def threads_here() -> int:
    """How many threads a computation of this process is spread over."""
    # Loaded only where actors are started, for it takes seconds.
    threads: int = import_module("torch").get_num_threads()
    return threads


def _cores_of_one() -> int:
    """Of the smallest machine of the cluster that has any."""
    cores = [node["Resources"].get("CPU", 0.0) for node in ray.nodes() if node["Alive"]]
    return max(1, int(min((found for found in cores if found > 0), default=1.0)))


def _sent(source: AskerSource) -> ray.ObjectRef[AskerSource]:
    """One copy of the source for all actors."""
    try:
        return ray.put(source)
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise PlatformError(
            "source_not_portable",
            f"A {type(source).__name__} cannot be sent to another process: {error}.",
            "--engine local does without that.",
        ) from error
