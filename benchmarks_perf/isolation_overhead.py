"""What isolation costs beside none: starting a box, and each pair that is scored in it.

    python -m benchmarks_perf.isolation_overhead [--rounds 12] [--docker-host unix://...]

A scorer that takes 20 ms for a pair, about what a small model takes on a graphics card, is asked
about batches of pictures through each backend that this machine has, and through a plain process;
so is one that does nothing, to show the cost of a batch by itself. All boxes are open at once and
are asked in turn; of each, the fastest batch counts, which other work on the machine disturbed
least. The gate: by each backend, a pair takes less than 2 % longer than by none.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np
from PIL import Image

from evaluator.isolation.backend import Backend
from evaluator.isolation.bubblewrap import Bubblewrap
from evaluator.isolation.container_engine import Engine
from evaluator.isolation.containers import Containers, docker, gvisor
from evaluator.isolation.job import Job
from evaluator.isolation.plain import PlainProcess
from evaluator.isolation.session import ScorerSession

GATE = 0.02
PAIR_S = 0.02
BATCH = 16
SIDE = 512
PLAIN = "none"

_SCORER = """
import time
class Scorer:
    def score(self, images, prompts):
        time.sleep({seconds} * len(prompts))
        return [float(len(prompt)) for prompt in prompts]
"""


@dataclass
class Side:
    """One backend, and the seconds it took.

    Attributes:
        start: until each of its scorers was constructed.
        slow: each batch of the scorer that takes its time.
        idle: each batch of the one that does nothing.
        end: until nothing of each box was left.
    """

    start: list[float] = field(default_factory=list)
    slow: list[float] = field(default_factory=list)
    idle: list[float] = field(default_factory=list)
    end: list[float] = field(default_factory=list)


def pictures() -> list[bytes]:
    """A batch of photographs' size: noise, half of it smoothed."""
    made = []
    for number in range(BATCH):
        values = np.random.default_rng(number).integers(0, 255, (SIDE // 4, SIDE // 4, 3), np.uint8)
        buffer = io.BytesIO()
        Image.fromarray(values).resize((SIDE, SIDE)).save(buffer, "PNG")
        made.append(buffer.getvalue())
    return made


@contextmanager
def asked_in_turn(
    backends: Mapping[str, Backend], folder: Path
) -> Iterator[Mapping[str, tuple[Side, ScorerSession, ScorerSession]]]:
    """Two boxes of each backend, by what they cost; all have ended afterwards."""
    opened: dict[str, tuple[Side, ScorerSession, ScorerSession]] = {}
    try:
        for name, backend in backends.items():
            side = Side()
            slow, idle = (_opened(backend, folder / scorer, side) for scorer in ("slow", "idle"))
            opened[name] = (side, slow, idle)
        yield opened
    finally:
        for side, *sessions in opened.values():
            for session in sessions:
                side.end.append(_seconds(session.close))


def _opened(backend: Backend, folder: Path, side: Side) -> ScorerSession:
    begun = time.perf_counter()
    session = backend.start(Job(folder)).__enter__()
    side.start.append(time.perf_counter() - begun)
    return session


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
    pairs = [(number, "a red cat") for number in range(BATCH)]
    with tempfile.TemporaryDirectory(prefix="assay-overhead-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # a box may run as another user
        for scorer, seconds in (("slow", PAIR_S), ("idle", 0.0)):
            (folder / scorer).mkdir()
            (folder / scorer / "scorer.py").write_text(_SCORER.format(seconds=seconds))
        with asked_in_turn(backends, folder) as opened:
            for _ in range(rounds):
                for side, slow, idle in opened.values():
                    side.slow.append(_seconds(lambda s=slow: s.score(images, pairs)))
                    side.idle.append(_seconds(lambda s=idle: s.score(images, pairs)))
    print(
        f"batches of {BATCH} images of {sum(map(len, images)) // BATCH // 1000} kB; {rounds} rounds"
    )
    return _told({name: side for name, (side, *_) in opened.items()})


def _told(sides: Mapping[str, Side]) -> bool:
    print(f"{'':18} {'start':>8} {'end':>8} {'ms/batch':>9} {'ms/pair':>8} {'more':>8}")
    fastest = {name: min(side.slow) / BATCH for name, side in sides.items()}
    for name, side in sides.items():
        more = fastest[name] / fastest[PLAIN] - 1
        print(
            f"{name:18} {median(side.start):7.3f}s {median(side.end):7.3f}s "
            f"{1e3 * min(side.idle):9.2f} {1e3 * fastest[name]:8.3f} {more:8.2%}"
        )
    met = all(pair / fastest[PLAIN] - 1 < GATE for pair in fastest.values())
    print(f"a pair of {1e3 * PAIR_S:.0f} ms takes less than {GATE:.0%} longer: {_yes(met)}")
    return met


def _yes(met: bool) -> str:
    return "yes" if met else "NO"


def main() -> int:
    """Print the figures; 0 where the gate is met."""
    parser = argparse.ArgumentParser(description="Boxes against a plain process")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--docker-host", default=None)
    options = parser.parse_args()
    return 0 if compare(available(options.docker_host), options.rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
