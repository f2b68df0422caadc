"""A benchmark of twelve pairs, and a scorer without a box that writes down what it is asked."""

from __future__ import annotations

import functools
import io
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from PIL import Image

from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import Answers, Pair, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan, resampled_mean
from evaluator.isolation.backend import Probe
from evaluator.isolation.inside.wire_protocol import Capability
from tests.kit.toy import Toy, _picture

IMAGES = tuple(f"i{n:02d}" for n in range(6))
TEXTS = ("one grey pixel", "two grey pixels")
PAIRS = tuple(f"{image}-{k}" for image in IMAGES for k in range(len(TEXTS)))
STEP = 16  # Of brightness between two images, so that one may be told from another after any change


class Ladder(Toy):
    """Few enough images that the trust checks ask for all of them, whatever their key.

    Scores are whole numbers, so that sums of them are the same in any order.
    """

    def __init__(self, measuring: Callable[[], None] = lambda: None) -> None:
        self._measuring = measuring

    def answers(self, data: Path | None) -> Answers:
        return Answers(pair_ids=PAIRS, clusters=IMAGES)

    def questions(self, data: Path | None) -> Questions:
        return Questions(
            images={image: _picture(STEP * n) for n, image in enumerate(IMAGES)},
            texts={text: text for text in TEXTS},
            pairs=tuple(
                Pair(f"{image}-{k}", image, text)
                for image in IMAGES
                for k, text in enumerate(TEXTS)
            ),
        )

    def measure(self, scores: ScoreTable, answers: Any, plan: ResamplingPlan) -> Measured:
        self._measuring()
        built = MeasuredBuilder(plan.n_resamples)
        for name in scores.metrics:
            values = scores.overall[name].to_numpy().reshape(len(IMAGES), len(TEXTS)).mean(axis=1)
            row = Row(
                benchmark="toy",
                revision=self.card.revision,
                metric=name,
                measure="mean",
                value=float(values.mean()),
                n_clusters=len(IMAGES),
            )
            built.add(row, resampled_mean(values, plan.counts), IMAGES, values)
        return built.build()


@dataclass(frozen=True)
class Asked:
    """One request to the scorer of a submission."""

    worker: str  # who asked
    module: str  # name of the module, which is that of the submission on the boards
    box: int  # which of the boxes of this worker's run: 1 for the trust checks, 2 for the run
    pairs: tuple[str, ...]  # what was asked
    at: int  # when, in nanoseconds of the machine's steady clock


@dataclass
class CallLog:
    """What was asked of all scorers, in a file outside the store; a line is written at once."""

    file: Path

    def note(self, asked: Asked) -> None:
        line = json.dumps(asked.__dict__).encode() + b"\n"
        fd = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            os.write(fd, line)
        finally:
            os.close(fd)

    def read(self) -> list[Asked]:
        """In the order in which it was asked."""
        lines = self.file.read_bytes().splitlines() if self.file.exists() else []
        found = [json.loads(line) for line in lines]
        return sorted(
            (Asked(**{**one, "pairs": tuple(one["pairs"])}) for one in found), key=lambda a: a.at
        )


def score_of(module: str, brightness: int, text: int) -> float:
    """Another for each module, image and text; a whole number."""
    return float(int(module.lstrip("m")) * 4096 + brightness * 4 + text)


@dataclass
class LoggedBox:
    """Stands where a box stands."""

    backend: LoggedBackend
    module: str
    number: int
    capabilities: Capability = Capability.SCORE
    peak_memory_bytes: int = 1
    log: str = "hello from the scorer\n"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass

    def score(self, images: Sequence[bytes], pairs: Sequence[tuple[int, str]]) -> Any:
        found = [(_brightness(images[image]), TEXTS.index(text)) for image, text in pairs]
        names = tuple(f"i{b // STEP:02d}-{k}" for b, k in found)
        self.backend.calls.note(
            Asked(self.backend.worker, self.module, self.number, names, time.monotonic_ns())
        )
        time.sleep(self.backend.delay_s)
        return np.array([score_of(self.module, b, k) for b, k in found])


@dataclass
class LoggedBackend:
    """Starts such boxes."""

    worker: str  # who uses it
    calls: CallLog  # where requests are written down
    delay_s: float = 0.0  # of every request
    name: str = "fake"
    _started: dict[str, int] = field(default_factory=dict)

    def probe(self) -> Probe:
        return Probe(ok=True, layers=("fake",))

    def start(self, job: Any, **_: Any) -> Any:
        manifest = (job.folder / "assay.toml").read_text()
        module = manifest.partition('"')[2].partition('"')[0]
        self._started[module] = self._started.get(module, 0) + 1
        return LoggedBox(self, module, 2 - self._started[module] % 2)


def asked_of_runs(asked: Sequence[Asked]) -> Mapping[str, list[Asked]]:
    """What runs were asked, trust checks left out, by module."""
    found: dict[str, list[Asked]] = {}
    for one in asked:
        if one.box == 2:
            found.setdefault(one.module, []).append(one)
    return found


@functools.lru_cache(maxsize=256)
def _brightness(data: bytes) -> int:
    pixel = Image.open(io.BytesIO(data)).getpixel((0, 0))
    assert isinstance(pixel, tuple)
    return int(pixel[0])
