"""Does memory stay flat when there are more images?

    python -m benchmarks_perf.scoring_memory [--images 800]

A small dual encoder scores n and 4 n JPEGs of 512 pixels with two texts each, through `run_plan`
and `ModelAsker`, with embeddings kept on disk; then 4 n once more from what was kept. Each run has
a process of its own. Images are made as they are read, so that the benchmark holds none itself.
The gates:
the peak at 4 n is at most 1.1 of the peak at n; each further image adds at most a quarter of its
encoded size (scores and ids stay in memory, images and vectors must not; threads' allocators hold
back some more, so that the figure differs from run to run); the run from kept embeddings adds no
more than the run that made them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from benchmarks_perf.engine_overhead import LoadedSource
from benchmarks_perf.made_up_images import croc_like, noise_jpeg, numbered, on_one_thread
from evaluator.scorers.family import Loaded
from evaluator.scorers.runtime import Runtime
from evaluator.scoring.contract import Vectors
from evaluator.scoring.engine import run_plan
from evaluator.scoring.images.preprocessing import normalised, resized_and_cropped
from evaluator.scoring.in_process.device import peak_rss_bytes
from evaluator.scoring.plan import ScoringPlan
from evaluator.scoring.shards import ShardFolder

PEAK_GATE, IMAGE_GATE = 1.1, 0.25
SIZE, WIDTH, PATCH = 224, 512, 32
MIB = 2**20


class SmallDual:
    """A patch embedding, averaged; texts are averaged bytes. As wide as a ViT-B/32's vectors."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.patches = torch.nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.bytes = torch.nn.Embedding(256, WIDTH)

    def prepare(self, image: Image.Image) -> torch.Tensor:
        """Bytes of pixels."""
        return resized_and_cropped(image, SIZE, "torchvision")

    def encode_images(self, images: Sequence[torch.Tensor]) -> Vectors:
        """See `DualEncoder`."""
        pixels = normalised(torch.stack(list(images)), [0.5] * 3, [0.25] * 3)
        vectors: Vectors = self.patches(pixels).flatten(2).mean(-1).numpy()
        return vectors

    def encode_texts(self, prompts: Sequence[str]) -> Vectors:
        """See `DualEncoder`."""
        rows = [self.bytes(torch.tensor(list(prompt.encode()))).mean(0) for prompt in prompts]
        vectors: Vectors = torch.stack(rows).numpy()
        return vectors

    def similarity(self, image_vectors: Vectors, text_vectors: Vectors) -> NDArray[np.float64]:
        """See `DualEncoder`."""
        products: NDArray[np.float64] = (image_vectors * text_vectors).sum(-1, dtype=np.float64)
        return products

    def score(self, images: Sequence[Any], prompts: Sequence[str]) -> list[float]:
        """See `Scorer`."""
        scores: list[float] = self.similarity(
            self.encode_images(images), self.encode_texts(prompts)
        ).tolist()
        return scores


def measure(n_images: int, folder: Path) -> None:
    """Score so many images; print what that added to the peak, and what was decoded."""
    jpeg = noise_jpeg(0)

    def image(number: int) -> Callable[[], bytes]:
        return lambda: numbered(jpeg, number)

    # Whatever is allocated once, whichever the number of images, is there before.
    _run(8, image, folder / "warm")
    before = peak_rss_bytes()
    decoded = _run(n_images, image, folder / "kept")
    print(peak_rss_bytes() - before, before, decoded)


def _run(n_images: int, image: Callable[[int], Callable[[], bytes]], kept: Path) -> int:
    questions = croc_like([image(number) for number in range(n_images)])
    source = LoadedSource(Loaded(SmallDual(), {}), Runtime(), kept)
    with tempfile.TemporaryDirectory() as folder:
        shards = ShardFolder(Path(folder), source.fingerprint)
        plan = ScoringPlan.of(questions, b"seed")
        return run_plan(plan, questions, source, shards).cost.images_decoded


def _apart(n_images: int, folder: Path) -> tuple[int, int, int]:
    module = "benchmarks_perf.scoring_memory"
    command = [sys.executable, "-m", module, "--measure", str(folder), "--images", str(n_images)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    added, before, decoded = (int(word) for word in told.split())
    return added, before, decoded


def compare(n_images: int) -> bool:
    """Print the table; whether the gates are met."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as four:
        runs = {
            "n images": (n_images, _apart(n_images, Path(one))),
            "4 n images": (4 * n_images, _apart(4 * n_images, Path(four))),
            "4 n, from kept embeddings": (4 * n_images, _apart(4 * n_images, Path(four))),
        }
    print(f"{'':28}{'images':>8}{'decoded':>9}{'MiB before':>12}{'MiB added':>11}")
    for name, (images, (added, before, decoded)) in runs.items():
        print(f"{name:28}{images:8}{decoded:9}{before / MIB:12.0f}{added / MIB:11.1f}")
    (n, base, _), (four_n, base_four, _), (kept, _, _) = (told for _, told in runs.values())
    ratio, again = (base_four + four_n) / (base + n), kept / four_n
    share = (four_n - n) / (3 * n_images) / len(noise_jpeg(0))
    flat, small, cheap = ratio <= PEAK_GATE, share <= IMAGE_GATE, again <= 1
    print(f"peak at 4 n at most {PEAK_GATE} of that at n: {_yes(flat)} ({ratio:.2f})")
    print(f"a further image at most {IMAGE_GATE} of its bytes: {_yes(small)} ({share:.2f})")
    print(f"kept embeddings add no more: {_yes(cheap)} ({again:.2f})")
    return flat and small and cheap


def _yes(holds: bool) -> str:
    return "yes" if holds else "NO"


def main() -> int:
    """Print the table; 0 where the gates are met."""
    on_one_thread("benchmarks_perf.scoring_memory")
    parser = argparse.ArgumentParser(description="Peak memory at n and 4 n images")
    parser.add_argument("--images", type=int, default=800)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.measure:
        measure(options.images, options.measure)
        return 0
    return 0 if compare(options.images) else 1


if __name__ == "__main__":
    sys.exit(main())
