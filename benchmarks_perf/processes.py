"""What isolation costs beside none."""

from __future__ import annotations

import io
import math
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from PIL import Image

from benchmarks_perf.made_up import noise_jpeg
from benchmarks_perf.measuring import Figure, interleaved
from evaluator.isolation.availability import PlainProcess
from evaluator.isolation.backend import Backend
from evaluator.isolation.bubblewrap import Bubblewrap
from evaluator.isolation.container_engine import Engine as ContainerEngine
from evaluator.isolation.containers import Containers, docker, gvisor
from evaluator.isolation.job import Job
from evaluator.scoring.images import canonical_png

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
