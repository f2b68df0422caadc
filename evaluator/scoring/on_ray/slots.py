"""Number of actors, and each one's share of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.errors import SubmitterError


@dataclass(frozen=True, slots=True)
class RayOptions:
    """How batches are spread over a cluster; only `threads` can change a score, in its last bits.

    Attributes:
        actors: None: one for each GPU, or for each `threads` CPUs where no GPU is used.
        gpus: of one actor; None: one where the cluster has any.
        threads: that an actor computes with. None: as many as this process, so that scores are
            those of a local run bit for bit.
        ready_threads: of an actor, that make images ready.
        in_flight: batches an actor holds: one is asked while the next is made ready.
        placed_within_s: how long to wait until the cluster has room for a first actor.
        closed_within_s: how long an actor may take to end its asker before it is killed.
    """

    actors: int | None = None
    gpus: float | None = None
    threads: int | None = None
    ready_threads: int = 2
    in_flight: int = 2
    placed_within_s: float = 120.0
    closed_within_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Slots:
    """Actors, and what one of them takes of the cluster."""

    actors: int
    cpus: float
    gpus: float


def slots_of(resources: Mapping[str, float], options: RayOptions, threads: int) -> Slots:
    """Divide a cluster.

    Args:
        resources: of the cluster, as Ray names them: `CPU`, `GPU`.
        options: what is wanted.
        threads: that an actor computes with.

    Raises:
        SubmitterError: `ray_no_room`, not one actor fits.
    """
    cpus, gpus = resources.get("CPU", 0.0), resources.get("GPU", 0.0)
    wanted = options.gpus if options.gpus is not None else float(gpus >= 1)
    if cpus <= 0 or wanted > gpus or (options.actors is not None and options.actors < 1):
        raise SubmitterError(
            "ray_no_room",
            f"Not one actor fits: it needs a CPU and {wanted:g} GPUs, and the cluster has "
            f"{cpus:g} CPUs and {gpus:g} GPUs; {options.actors or 'any number of'} actors.",
            "Choose another device or another cluster.",
        )
    most = int(gpus / wanted) if wanted else max(1, int(cpus // threads))
    actors = options.actors or most
    share = cpus / actors
    # Ray takes fractions of one CPU, but no fractions beyond.
    return Slots(actors, float(min(threads, int(share))) if share >= 1 else share, wanted)
