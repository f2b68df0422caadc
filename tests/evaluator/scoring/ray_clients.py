"""What the tests of Ray send to actors: an client with accidents, light enough to start often."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.errors import SubmitterError
from evaluator.scoring.asking import Finding, Item, Ready, Reply, Work
from evaluator.scoring.contract import Verdict

WIDTH = 96
OTHERS_WITHIN_S = 120.0


@dataclass(frozen=True)
class AccidentSource:
    """Opens an client whose scores tell what it was asked with, and which meets accidents."""

    folder: Path  # where each process leaves a file named by its pid, and one for each batch
    pause_s: float = 0.0  # that a batch takes at least
    deadly: frozenset[str] = frozenset()  # image ids that kill the process that asks about them
    deadly_times: int = 1000  # how often; later processes survive them
    refused: frozenset[str] = frozenset()  # image ids that the client refuses for good
    dies_when_opened: bool = False  # whether no process survives its start
    together: int = 0  # so many processes have to be open before any of them asks
    fingerprint: str = field(default="client of the tests")

    @contextmanager
    def open(self) -> Iterator[AccidentClient]:
        mark(self.folder / "opened" / str(os.getpid()))
        if self.dies_when_opened:
            os.kill(os.getpid(), signal.SIGKILL)
        self._wait_for_others()
        yield self.client()
        mark(self.folder / "closed" / str(os.getpid()))

    def client(self) -> AccidentClient:
        return AccidentClient(self)

    def _wait_for_others(self) -> None:
        deadline = time.monotonic() + OTHERS_WITHIN_S
        while len(pids(self.folder)) < self.together and time.monotonic() < deadline:
            time.sleep(0.05)


class AccidentClient:
    """Scores depend on the image and the text; a matrix product makes them of the whole batch."""

    asks_elements = True

    def __init__(self, source: AccidentSource) -> None:
        self._source = source
        self._weights = np.random.default_rng(1).normal(size=(WIDTH, 64)).astype(np.float32)

    @property
    def peak_memory_bytes(self) -> int:
        return 1000

    @property
    def environment(self) -> dict[str, str]:
        return {"omp": os.environ.get("OMP_NUM_THREADS", "")}

    def ready(self, data: bytes) -> Ready:
        with Image.open(io.BytesIO(data)) as image:
            pixels = np.asarray(image.convert("RGB").resize((4, 4)), dtype=np.float32) / 255
        return Ready(pixels.reshape(-1), pixels.nbytes, pixels=16)

    def ask(self, items: Sequence[Item]) -> Reply:
        self._accidents(items)
        rows = np.stack([_row(item, pair.prompt) for item in items for pair in item.asked])
        scores = iter(self.scores(rows))
        verdicts = tuple(tuple(Verdict(next(scores)) for _ in item.asked) for item in items)
        elements = tuple(
            tuple(np.array([len(e.text) / 7 for e in pair.elements]) for pair in item.asked)
            for item in items
        )
        named = Finding("noted", "image", items[0].image_id, "First of its batch.", scored=True)
        work = Work(calls=1, images_encoded=len(items), seconds=0.25)
        mark(self._source.folder / "asked" / uuid.uuid4().hex)
        return Reply(verdicts, elements, (named,), work)

    def scores(self, rows: NDArray[np.float32]) -> list[float]:
        """One score per row, shape (n, WIDTH)."""
        return [float(value) for value in np.tanh(rows @ self._weights).mean(axis=1)]

    def _accidents(self, items: Sequence[Item]) -> None:
        time.sleep(self._source.pause_s)
        ids = {item.image_id for item in items}
        if ids & self._source.refused:
            raise SubmitterError("scorer_crashed", "It crashed on purpose.", "Mend it.")
        if ids & self._source.deadly and self._may_kill():
            os.kill(os.getpid(), signal.SIGKILL)

    def _may_kill(self) -> bool:
        killed = self._source.folder / "killed"
        mark(killed / str(os.getpid()))
        return len(list(killed.iterdir())) <= self._source.deadly_times


def _row(item: Item, prompt: str) -> NDArray[np.float32]:
    text = np.frombuffer(hashlib.sha384(prompt.encode()).digest(), dtype=np.uint8) / 255.0
    return np.concatenate([item.image.content, text.astype(np.float32)])


class UnsendableSource:
    """Holds what no other process can have."""

    fingerprint = "none"

    def __init__(self) -> None:
        self.lock = threading.Lock()

    @contextmanager
    def open(self) -> Iterator[AccidentClient]:
        raise AssertionError
        yield


def pids(folder: Path, what: str = "opened") -> list[int]:
    """Processes that left a mark, in the order in which they did."""
    place = folder / what
    marks = sorted(place.iterdir(), key=lambda p: p.stat().st_mtime_ns) if place.is_dir() else []
    return [int(mark.name) for mark in marks]


def alive(pid: int) -> bool:
    """Whether a process is there and more than a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(found: Sequence[int], within_s: float = 15.0) -> bool:
    """Whether all of these processes end in time."""
    deadline = time.monotonic() + within_s
    while any(map(alive, found)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(alive, found))


def mark(path: Path) -> None:
    """Leave a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
