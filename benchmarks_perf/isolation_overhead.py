"""What isolation costs beside none: starting a box, and each pair that is scored in it.

    python -m benchmarks_perf.isolation_overhead [--rounds 60] [--docker-host unix://...]

A scorer that does nothing is asked about batches of pictures, two texts each, through each backend
that this machine has, and through a plain process. All boxes are open at once and are asked in
turn; of each, the fastest batch counts, which other work on the machine disturbed least. What a
scorer computes takes as long in a box as outside, so the gate is: what a box adds to a pair is less
than 2 % of 20 ms, about what a small model takes for one on a graphics card. gVisor is not held to
it: every system call is answered by a program there, and every byte goes through the engine.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

from PIL import Image

from benchmarks_perf.made_up_images import noise_jpeg
from evaluator.isolation.backend import Backend
from evaluator.isolation.bubblewrap.backend import Bubblewrap
from evaluator.isolation.containers.backends import Containers, docker, gvisor
from evaluator.isolation.containers.engine import Engine
from evaluator.isolation.job import Job
from evaluator.isolation.plain import PlainProcess
from evaluator.isolation.supervising.session import ScorerSession
from evaluator.scoring.images.canonical import canonical_png

GATE = 0.02
PAIR_S = 0.02
IMAGES, TEXTS = 4, 2
PAIRS = IMAGES * TEXTS
PLAIN = "none"
NOT_HELD = frozenset({"gvisor"})

_SCORER = """
class Scorer:
    def score(self, images, prompts):
        return [float(len(prompt)) for prompt in prompts]
"""
_STARTS = 3


@dataclass
class Side:
    """One backend, and the seconds it took.

    Attributes:
        start: until the scorer was constructed.
        batch: each batch.
        end: until nothing of the box was left.
    """

    start: list[float] = field(default_factory=list)
    batch: list[float] = field(default_factory=list)
    end: list[float] = field(default_factory=list)


def pictures() -> list[bytes]:
    """As many bytes as the canonical form of a photograph of 512 pixels, and easily decoded."""
    n_bytes = len(canonical_png(noise_jpeg(0)))
    side = math.isqrt(n_bytes // 3) + 1
    buffer = io.BytesIO()
    Image.new("RGB", (side, side), "teal").save(buffer, "BMP")
    return [buffer.getvalue()] * IMAGES


@contextmanager
def opened(
    backends: Mapping[str, Backend], folder: Path
) -> Iterator[Mapping[str, tuple[Side, ScorerSession]]]:
    """A box of each backend, with what it costs; all have ended afterwards."""
    found: dict[str, tuple[Side, ScorerSession]] = {}
    with ExitStack() as stack:
        for name, backend in backends.items():
            side = Side()
            for _ in range(_STARTS):
                begun = time.perf_counter()
                session = stack.enter_context(backend.start(Job(folder)))
                side.start.append(time.perf_counter() - begun)
                if len(side.start) < _STARTS:
                    side.end.append(_seconds(session.close))
            found[name] = (side, session)
        yield found


def _seconds(act: Callable[[], object]) -> float:
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def available(host: str | None) -> Mapping[str, Backend]:
    """What this machine has, and what it lacks told; none of it comes first."""
    found: dict[str, Backend] = {PLAIN: PlainProcess()}
    podman = Engine.podman(os.environ)
    asked: tuple[Backend, ...] = (
        Bubblewrap(),
        docker(os.environ, host),
        gvisor(os.environ, host),
        Containers(podman, "podman"),
        Containers(Engine.podman(os.environ, runtime="runc"), "podman with runc"),
    )
    for backend in asked:
        probe = backend.probe()
        if probe.ok:
            found[backend.name] = backend
        else:
            print(f"{backend.name}: not here. {probe.reason}")
    return found


def compare(backends: Mapping[str, Backend], rounds: int) -> bool:
    """Print the figures; whether the gate is met by each."""
    images = pictures()
    pairs = [(number, text) for number in range(IMAGES) for text in ("a cat", "a red cat")]
    with tempfile.TemporaryDirectory(prefix="assay-overhead-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # a box may run as another user
        (folder / "scorer.py").write_text(_SCORER)
        with opened(backends, folder) as boxes:
            for _ in range(rounds):
                for side, session in boxes.values():
                    side.batch.append(_seconds(partial(session.score, images, pairs)))
    print(f"batches of {IMAGES} images of {len(images[0]) // 1000} kB; {rounds} rounds")
    return _told({name: side for name, (side, _) in boxes.items()})


def _told(sides: Mapping[str, Side]) -> bool:
    print(f"{'':18} {'start':>8} {'end':>8} {'ms/batch':>9} {'added ms/pair':>14} {'of 20 ms':>9}")
    added = {
        name: (min(side.batch) - min(sides[PLAIN].batch)) / PAIRS for name, side in sides.items()
    }
    for name, side in sides.items():
        print(
            f"{name:18} {median(side.start):7.3f}s {median(side.end):7.3f}s "
            f"{1e3 * min(side.batch):9.2f} {1e3 * added[name]:14.3f} {added[name] / PAIR_S:9.2%}"
        )
    held = [seconds for name, seconds in added.items() if name not in NOT_HELD]
    met = all(seconds < GATE * PAIR_S for seconds in held)
    print(
        f"a box without gVisor adds less than {GATE:.0%} to a pair of {1e3 * PAIR_S:.0f} ms: {_yes(met)}"
    )
    return met


def _yes(met: bool) -> str:
    return "yes" if met else "NO"


def main() -> int:
    """Print the figures; 0 where the gate is met."""
    parser = argparse.ArgumentParser(description="Boxes against a plain process")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--docker-host", default=None)
    options = parser.parse_args()
    return 0 if compare(available(options.docker_host), options.rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
