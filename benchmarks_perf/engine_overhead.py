"""What the engine costs beside the scorer, against a bare loop.

    python -m benchmarks_perf.engine_overhead [--images 600] [--rounds 5]

A scorer that does nothing is asked about small images with two texts each, once through `run_plan`
(plan, reading ahead, batches, verdicts, shards on disk, the column at the end) with `ModelAsker`,
once in a loop that decodes each image and calls the scorer for its two texts. CPU seconds on one
thread, sides interleaved, median of per-round values. Both must give the same scores. The gate:
what the engine adds to a pair is at most 0.15 of decoding one JPEG of 512 pixels, measured in the
same rounds; a pass of a ViT-B/32 takes 50 times as long as that decoding.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from PIL import Image

from benchmarks.schema import Questions
from benchmarks_perf.made_up_images import croc_like, noise_jpeg, numbered, on_one_thread
from evaluator.scorers.family import Loaded
from evaluator.scorers.runtime import Runtime
from evaluator.scoring.embeddings.cache import EmbeddingCache
from evaluator.scoring.embeddings.packs import About
from evaluator.scoring.engine import run_plan
from evaluator.scoring.images.decoding import decode
from evaluator.scoring.in_process.asker import ModelAsker
from evaluator.scoring.plan import ScoringPlan
from evaluator.scoring.shards import ShardFolder

GATE = 0.15
SMALL = 16


class Nothing:
    """The cheapest score that still depends on the pair."""

    def score(self, images: Sequence[Image.Image], prompts: Sequence[str]) -> list[float]:
        """Number of letters by width."""
        return [len(p) / image.width for image, p in zip(images, prompts, strict=True)]


@dataclass(frozen=True)
class LoadedSource:
    """Opens askers over a scorer that is there already; with a folder, they keep embeddings."""

    loaded: Loaded
    runtime: Runtime
    kept: Path | None = None
    fingerprint: str = "0" * 64

    @contextmanager
    def open(self) -> Iterator[ModelAsker]:
        """See `AskerSource`."""
        if self.kept is None:
            yield ModelAsker(self.loaded, self.runtime)
            return
        about = About(self.fingerprint, self.loaded.preprocessing)
        with EmbeddingCache(self.kept, about) as cache:
            yield ModelAsker(self.loaded, self.runtime, cache=cache)


def through_engine(questions: Questions) -> dict[str, float]:
    """All scores by pair, from an empty folder of shards."""
    source = LoadedSource(Loaded(Nothing(), {}), Runtime())
    with tempfile.TemporaryDirectory() as folder:
        shards = ShardFolder(Path(folder), source.fingerprint)
        plan = ScoringPlan.of(questions, b"seed")
        column = run_plan(plan, questions, source, shards)
    return {str(pair): float(score) for pair, score in column.overall.items()}


def bare(questions: Questions) -> dict[str, float]:
    """The same scores by the shortest loop."""
    scorer, by_image = Nothing(), dict[str, list[Any]]()
    for pair in questions.pairs:
        by_image.setdefault(pair.image_id, []).append(pair)
    scores: dict[str, float] = {}
    for image_id, pairs in by_image.items():
        image = decode(questions.images[image_id]()).image
        found = scorer.score([image] * len(pairs), [questions.texts[p.text_id] for p in pairs])
        scores |= dict(zip((pair.pair_id for pair in pairs), found, strict=True))
    return scores


def _cpu(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _small() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (SMALL, SMALL), "teal").save(buffer, "JPEG")
    return buffer.getvalue()


def compare(n_images: int, rounds: int) -> bool:
    """Print the figures; whether scores agree and the gate is met."""
    small, large = _small(), noise_jpeg(0)
    images = [(lambda n=n: numbered(small, n)) for n in range(n_images)]
    questions = croc_like(images)
    n_pairs = len(questions.pairs)
    agree = through_engine(questions) == bare(questions)
    rows = [
        (
            1e6 * _cpu(lambda: through_engine(questions)) / n_pairs,
            1e6 * _cpu(lambda: bare(questions)) / n_pairs,
            1e6 * _cpu(lambda: [decode(large) for _ in range(20)]) / 20,
        )
        for _ in range(rounds)
    ]
    engine, loop, jpeg = (median(column) for column in zip(*rows, strict=True))
    added = median(one - other for one, other, _ in rows)
    ratio = median((one - other) / unit for one, other, unit in rows)
    print(f"{n_pairs} pairs; CPU microseconds on one thread, median of {rounds} rounds")
    print(f"engine, per pair              {engine:9.1f}")
    print(f"bare loop, per pair           {loop:9.1f}")
    print(f"added by the engine, per pair {added:9.1f}")
    print(f"decoding one 512-pixel JPEG   {jpeg:9.1f}")
    print(f"same scores: {'yes' if agree else 'NO'}")
    met = ratio <= GATE
    print(f"adds at most {GATE} of a decoding: {'yes' if met else 'NO'} ({ratio:.3f})")
    return agree and met


def main() -> int:
    """Print the figures; 0 where scores agree and the gate is met."""
    on_one_thread("benchmarks_perf.engine_overhead")
    parser = argparse.ArgumentParser(description="The engine against a bare loop")
    parser.add_argument("--images", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    return 0 if compare(options.images, options.rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
