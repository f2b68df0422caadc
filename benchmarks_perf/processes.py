"""What isolation costs beside none, and what Ray costs beside this process."""

from __future__ import annotations

import io
import math
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from PIL import Image

from benchmarks_perf.made_up import noise_jpeg
from benchmarks_perf.measuring import Figure, Times, interleaved, seconds
from evaluator.isolation.backend import Backend
from evaluator.isolation.bubblewrap.backend import Bubblewrap
from evaluator.isolation.containers.backends import Containers, docker, gvisor
from evaluator.isolation.containers.engine import Engine as ContainerEngine
from evaluator.isolation.job import Job
from evaluator.isolation.plain import PlainProcess
from evaluator.scoring.asking import Asked, Batch, Engine, Item, RawItem, Ready, Reply
from evaluator.scoring.contract import Verdict
from evaluator.scoring.images import canonical_png
from evaluator.scoring.local import LocalEngine
from evaluator.scoring.ray_cluster import RayCluster, RayOptions
from evaluator.scoring.ray_engine import RayEngine

PAIR_S = 0.02
"""What a small model takes for a pair on a graphics card."""
N_IMAGES = 4
_SCORER = """
class Scorer:
    def score(self, images, prompts):
        return [float(len(prompt)) for prompt in prompts]
"""


def isolation(rounds: int = 60, docker_host: str = "") -> Iterator[Figure]:
    """A scorer that does nothing, asked about batches of four images with two texts each.

    All sandboxes are open at once and are asked in turn; of each, the fastest batch counts, which
    other work on the machine disturbed least. What a scorer computes takes as long in a sandbox as
    outside. gVisor has no limit: every system call is answered by a program there.
    """
    n_bytes = len(canonical_png(noise_jpeg(0)))
    side, buffer = math.isqrt(n_bytes // 3) + 1, io.BytesIO()
    Image.new("RGB", (side, side), "teal").save(buffer, "BMP")
    pictures = [buffer.getvalue()] * N_IMAGES
    pairs = [(number, text) for number in range(N_IMAGES) for text in ("a cat", "a red cat")]
    with tempfile.TemporaryDirectory(prefix="assay-overhead-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)  # a sandbox may run as another user
        (folder / "scorer.py").write_text(_SCORER)
        asked, starts = {}, {}
        for backend in _available(docker_host or None):
            begun = time.perf_counter()
            session = stack.enter_context(backend.start(Job(folder)))
            starts[backend.name] = time.perf_counter() - begun
            asked[backend.name] = partial(session.score, pictures, pairs)
        taken = interleaved(asked, rounds, time.perf_counter).seconds
    plain = min(taken["none"])
    for name, batches in taken.items():
        added = (min(batches) - plain) / len(pairs)
        details = f"started in {starts[name]:.2f} s, a batch {1e3 * min(batches):.2f} ms"
        limit = None if name in {"none", "gvisor"} else 0.02
        title = f"{name}: added to a pair of {1e3 * PAIR_S:.0f} ms"
        yield Figure(title, added / PAIR_S, "x", at_most=limit, details=details)


def _available(host: str | None) -> Iterator[Backend]:
    """A plain process, and the sandboxes that this machine has."""
    yield PlainProcess(name="none")
    podman = ContainerEngine.podman(os.environ)
    asked: tuple[Backend, ...] = (
        Bubblewrap(),
        docker(os.environ, host),
        gvisor(os.environ, host),
        Containers(podman, "podman"),
        Containers(ContainerEngine.podman(os.environ, runtime="runc"), "podman with runc"),
    )
    yield from (backend for backend in asked if backend.probe().ok)


def ray_scaling(rounds: int = 3, batches: int = 60, work_ms: float = 40.0) -> Iterator[Figure]:
    """Time that passes for a batch, from the first answer to the last.

    A second actor gains only where a core is free: the load of the machine is in the details.
    """
    with (
        tempfile.TemporaryDirectory() as scratch,
        RayCluster(None, Path(scratch), cpus=2) as cluster,
    ):
        cluster.connect()

        def on_ray(actors: int) -> RayEngine:
            return RayEngine(cluster, RayOptions(actors=actors, threads=1, closed_within_s=0.0))

        for n_bytes in (10_000, 2_000_000):
            rows = [
                (
                    _per_batch(LocalEngine(), 0.0, batches, n_bytes),
                    _per_batch(on_ray(1), 0.0, batches, n_bytes),
                )
                for _ in range(rounds)
            ]
            more = median(remote - local for local, remote in rows)
            yield Figure(f"added to a batch of {n_bytes / 1e3:,.0f} kB", 1e3 * more, "ms")
        taken: dict[str, list[float]] = {"one actor": [], "two actors": []}
        for _ in range(rounds):
            for number, found in enumerate(taken.values(), 1):
                found.append(_per_batch(on_ray(number), work_ms / 1e3, batches, 10_000))
    figure = Times(taken).compared(f"batches of {work_ms:.0f} ms", "one actor", "two actors")
    load = f"; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    yield Figure(figure.name, figure.value, "x", details=figure.details + load)


@dataclass(frozen=True)
class BusySource:
    """Opens an asker that computes for so many seconds a batch."""

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


def _per_batch(engine: Engine, work_s: float, count: int, n_bytes: int) -> float:
    """Seconds a batch of one image; the first four, while an actor starts, are not timed."""
    side, buffer = max(1, int((n_bytes / 3) ** 0.5)), io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 256, (side, side, 3), dtype=np.uint8)
    Image.fromarray(noise).save(buffer, "PNG")
    batches = (
        Batch(
            number,
            (
                RawItem(
                    f"image {number}",
                    buffer.getvalue(),
                    (Asked(f"pair {number}", "text", "a prompt"),),
                ),
            ),
        )
        for number in range(count)
    )
    answers = iter(engine.run(batches, BusySource(work_s)))
    seen = [next(answers).batch for _ in range(4)]
    took = seconds(lambda: seen.extend(answer.batch for answer in answers), time.monotonic)
    assert sorted(seen) == list(range(count))
    return took / (count - 4)
