"""What Ray costs per batch, and what a second actor gains.

    python -m benchmarks_perf.ray_scaling [--rounds 5] [--batches 60] [--work-ms 40]

Overhead: batches of one small image that an asker answers at once are carried by this process and
by one actor, alternately in one run; the figure is the median over the rounds of the difference of
wall time per batch, of everything but the start of the actor. CPU seconds of this process alone
are given as well: what an actor burns is its own.

Scaling: batches that an asker computes on for so many milliseconds of CPU time are carried by one
actor and by two. A second actor gains only where a core is free, so the share of the cores that
this process and its actors could get is printed beside it: with the machine's load.
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from PIL import Image

from evaluator.scoring.asking import Asked, Item, Ready, Reply
from evaluator.scoring.contract import Verdict
from evaluator.scoring.engines import Batch, Engine, RawItem
from evaluator.scoring.local import LocalEngine
from evaluator.scoring.on_ray.cluster import RayCluster
from evaluator.scoring.on_ray.engine import RayEngine
from evaluator.scoring.on_ray.slots import RayOptions


@dataclass(frozen=True)
class BusySource:
    """Opens an asker that computes for a while.

    Attributes:
        work_s: CPU seconds of a batch.
    """

    work_s: float
    fingerprint: str = "busy"

    @contextmanager
    def open(self) -> Iterator[BusyAsker]:
        """See `AskerSource`."""
        yield BusyAsker(self.work_s)


class BusyAsker:
    """Burns CPU time, and scores by the number of bytes."""

    asks_elements = False
    peak_memory_bytes = 0

    def __init__(self, work_s: float) -> None:
        self._work_s = work_s
        self._matrix = np.ones((64, 64), dtype=np.float32)

    @property
    def environment(self) -> dict[str, str]:
        """See `Asker`."""
        return {}

    def ready(self, data: bytes) -> Ready:
        """See `Asker`."""
        return Ready(float(len(data)), 8)

    def ask(self, items: Sequence[Item]) -> Reply:
        """See `Asker`."""
        end = time.thread_time() + self._work_s
        while time.thread_time() < end:
            self._matrix @ self._matrix
        return Reply(tuple(tuple(Verdict(i.image.content) for _ in i.asked) for i in items))


@dataclass(frozen=True)
class Timing:
    """From the first answer, when the asker is open for sure, to the last.

    Attributes:
        wall_s: per batch.
        cpu_s: of this process, per batch.
    """

    wall_s: float
    cpu_s: float


def batches(count: int, n_bytes: int) -> Iterator[Batch]:
    """One image each."""
    buffer = io.BytesIO()
    side = max(1, int((n_bytes / 3) ** 0.5))
    noise = np.random.default_rng(0).integers(0, 256, (side, side, 3), dtype=np.uint8)
    Image.fromarray(noise).save(buffer, "PNG")
    for number in range(count):
        asked = Asked(f"pair {number}", "text", "a prompt")
        yield Batch(number, (RawItem(f"image {number}", buffer.getvalue(), (asked,)),))


def timed(engine: Engine, source: BusySource, count: int, n_bytes: int, skipped: int) -> Timing:
    """Carry batches, and check that all came back; the first few are not timed."""
    seen = []
    wall = cpu = 0.0
    for answer in engine.run(batches(count, n_bytes), source):
        seen.append(answer.batch)
        if len(seen) == skipped:
            wall, cpu = time.monotonic(), time.process_time()
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    assert sorted(seen) == list(range(count))
    return Timing(wall / (count - skipped), cpu / (count - skipped))


class OneConnection:
    """The cluster, connected to once: starting it is no part of what is measured."""

    def __init__(self, cluster: RayCluster) -> None:
        self._cluster = cluster

    def engine(self, actors: int) -> RayEngine:
        """With so many actors."""
        return RayEngine(self._cluster, RayOptions(actors=actors, threads=1, closed_within_s=0.0))


def overhead(ray: OneConnection, rounds: int, count: int, n_bytes: int) -> None:
    """What a batch costs more than in this process."""
    rows = []
    for _ in range(rounds):
        local = timed(LocalEngine(), BusySource(0.0), count, n_bytes, skipped=4)
        remote = timed(ray.engine(1), BusySource(0.0), count, n_bytes, skipped=4)
        rows.append((local, remote))
    more = median(remote.wall_s - local.wall_s for local, remote in rows)
    cpu = median(remote.cpu_s - local.cpu_s for local, remote in rows)
    print(
        f"overhead of Ray per batch of {n_bytes / 1024:,.0f} KiB: {more * 1e3:.2f} ms wall, "
        f"{cpu * 1e3:.2f} ms CPU of the driver",
        flush=True,
    )


def scaling(ray: OneConnection, rounds: int, count: int, work_s: float) -> None:
    """How much faster two actors are than one."""
    ratios, ones, twos = [], [], []
    for _ in range(rounds):
        one = timed(ray.engine(1), BusySource(work_s), count, 10_000, skipped=4)
        two = timed(ray.engine(2), BusySource(work_s), count, 10_000, skipped=4)
        ones.append(one.wall_s)
        twos.append(two.wall_s)
        ratios.append(one.wall_s / two.wall_s)
    print(
        f"batches of {work_s * 1e3:.0f} ms of CPU time: one actor {median(ones) * 1e3:.1f} ms per "
        f"batch, two {median(twos) * 1e3:.1f} ms; ratio {median(ratios):.2f} "
        f"[{min(ratios):.2f}..{max(ratios):.2f}]",
        flush=True,
    )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--work-ms", type=float, default=40.0)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    with (
        tempfile.TemporaryDirectory() as scratch,
        RayCluster(None, Path(scratch), cpus=2) as cluster,
    ):
        cluster.connect()
        ray = OneConnection(cluster)
        loads = [os.getloadavg()[0]]
        for n_bytes in (10_000, 2_000_000):
            overhead(ray, arguments.rounds, arguments.batches, n_bytes)
        loads.append(os.getloadavg()[0])
        scaling(ray, arguments.rounds, arguments.batches, arguments.work_ms / 1e3)
        loads.append(os.getloadavg()[0])
    shown = ", ".join(f"{load:.1f}" for load in loads)
    print(f"{os.cpu_count()} cores; load before, between and after: {shown}")
    return 0


if __name__ == "__main__":
    # Actors find the asker by the name of this module, which `__main__` is not.
    from benchmarks_perf.ray_scaling import main as measured

    sys.exit(measured())
