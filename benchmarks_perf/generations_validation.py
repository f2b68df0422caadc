"""How fast generations are checked, against decoding them and nothing else; and in what memory.

    python -m benchmarks_perf.generations_validation [--images 300] [--memory 4000 40000]

Two sides read the same files of a folder with the same number of threads, in turns within one run:
the check (hash, decoding, blankness, pixels, perceptual hash, rows) and plain decoding with Pillow.
Then a folder of small images is checked and packed, in a process of its own each time, with few and
with many images. The gates: the check keeps 0.6 of the rate of decoding for 512-pixel PNGs, and 0.45
for JPEGs, whose decoding takes less than a millisecond; a further image adds at most 1,500 bytes to
the peak, of which the list of a zip that is written takes about half.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from PIL import Image

from benchmarks.prompt_sets.prompt_set import SetPrompt
from evaluator.generation.manifest import GenerationsManifest
from evaluator.generation.rows import TABLE, ImageRow, encoded
from evaluator.scoring.in_process.device import peak_rss_bytes
from evaluator.submission.generations.checking import Check
from evaluator.submission.generations.in_folder import FolderSource
from evaluator.submission.generations.limits import GenerationsLimits
from evaluator.submission.generations.parallel import in_order, usable_cores
from evaluator.submission.generations.wanted import Wanted
from evaluator.submission.generations_archive import write

RATE_GATES = {"PNG": 0.6, "JPEG": 0.45}
BYTES_GATE = 1500
SEEDS = (1, 2, 3, 4)
_TURNS = 5


def photo_like(number: int, side: int) -> Image.Image:
    """Smooth colours with fine grain, another picture for each number."""
    rng = np.random.default_rng(number)
    coarse = Image.fromarray(rng.integers(0, 256, (12, 12, 3), dtype=np.uint8))
    smooth = np.asarray(coarse.resize((side, side), Image.Resampling.BICUBIC), np.int16)
    grain = rng.integers(-6, 7, (side, side, 1), dtype=np.int16)
    return Image.fromarray(np.clip(smooth + grain, 0, 255).astype(np.uint8))


def folder_of(folder: Path, n_images: int, side: int, form: str) -> tuple[Wanted, list[Path]]:
    """Write images and their table."""
    prompts = [SetPrompt(f"p{n}", f"prompt {n}") for n in range(n_images // len(SEEDS))]
    (folder / "images").mkdir(parents=True)
    paths: list[Path] = []
    with (folder / TABLE).open("wb") as table:
        for prompt in prompts:
            for seed in SEEDS:
                name = f"images/{prompt.prompt_id}_{seed}.{form.lower()}"
                buffer = io.BytesIO()
                photo_like(len(paths), side).save(buffer, form)
                (folder / name).write_bytes(buffer.getvalue())
                paths.append(folder / name)
                row = ImageRow(prompt_id=prompt.prompt_id, seed=seed, file=name, prompt=prompt.text)
                table.write(encoded([row]))
    return Wanted.of(prompts, SEEDS), paths


def rates(folder: Path, wanted: Wanted, paths: list[Path], threads: int) -> tuple[float, float]:
    """Images a second of the check and of decoding; the median of turns about."""

    def check() -> None:
        report = Check(FolderSource(folder, GenerationsLimits()), wanted, threads=threads).run(
            TABLE
        )
        assert report.complete, report.counts

    def decode() -> None:
        for _ in in_order(_decoded, paths, threads):
            pass

    sides: dict[Callable[[], None], list[float]] = {check: [], decode: []}
    for side in sides:
        side()
    for _ in range(_TURNS):
        for side, seconds in sides.items():
            began = time.perf_counter()
            side()
            seconds.append(time.perf_counter() - began)
    checked, decoded = (len(paths) / median(seconds) for seconds in sides.values())
    return checked, decoded


def _decoded(path: Path) -> None:
    with Image.open(io.BytesIO(path.read_bytes())) as image:
        image.load()


def measure(folder: Path) -> None:
    """Check and pack a folder; print what that added to the peak, and how long it took."""
    n_prompts = sum(1 for _ in (folder / "images").iterdir()) // len(SEEDS)
    prompts = [SetPrompt(f"p{n}", f"prompt {n}") for n in range(n_prompts)]
    wanted = Wanted.of(prompts, SEEDS)
    before, began = peak_rss_bytes(), time.perf_counter()
    check = Check(FolderSource(folder, GenerationsLimits()), wanted)
    with tempfile.TemporaryDirectory() as place:
        write(Path(place) / "a.zip", GenerationsManifest(name="m"), check.stream(TABLE))
    assert check.report().complete, check.report().counts
    print(peak_rss_bytes() - before, before, time.perf_counter() - began)


def _apart(folder: Path) -> tuple[int, int, float]:
    module = "benchmarks_perf.generations_validation"
    command = [sys.executable, "-m", module, "--measure", str(folder)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return int(told[0]), int(told[1]), float(told[2])


def compare_rates(n_images: int, threads: int) -> bool:
    """Print the rates; whether the gate is met."""
    good = True
    print(f"{'512 x 512':12}{'check/s':>10}{'decode/s':>10}{'ratio':>8}   threads {threads}")
    for form, gate in RATE_GATES.items():
        with tempfile.TemporaryDirectory() as place:
            wanted, paths = folder_of(Path(place) / "f", n_images, 512, form)
            checked, decoded = rates(Path(place) / "f", wanted, paths, threads)
        kept = checked / decoded >= gate
        good &= kept
        said = f"at least {gate}: {'yes' if kept else 'NO'}"
        print(f"{form:12}{checked:10.0f}{decoded:10.0f}{checked / decoded:8.2f}   {said}")
    return good


def compare_memory(few: int, many: int) -> bool:
    """Print peaks; whether the gate is met."""
    added: list[int] = []
    print(f"{'images':>8}{'MiB before':>12}{'MiB added':>11}{'seconds':>9}")
    for n_images in (few, many):
        with tempfile.TemporaryDirectory() as place:
            folder_of(Path(place) / "f", n_images, 64, "JPEG")
            more, before, seconds = _apart(Path(place) / "f")
        added.append(more)
        print(f"{n_images:8}{before / 2**20:12.0f}{more / 2**20:11.1f}{seconds:9.1f}")
    each = (added[1] - added[0]) / (many - few)
    good = each <= BYTES_GATE
    print(
        f"a further image adds at most {BYTES_GATE} bytes: {'yes' if good else 'NO'} ({each:.0f})"
    )
    return good


def main() -> int:
    """Print both tables; 0 where the gates are met."""
    parser = argparse.ArgumentParser(description="Rate and memory of the check of generations")
    parser.add_argument("--images", type=int, default=300)
    parser.add_argument("--memory", type=int, nargs=2, default=(4000, 40_000))
    parser.add_argument("--threads", type=int, default=usable_cores())
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure)
        return 0
    fast = compare_rates(options.images, options.threads)
    return 0 if compare_memory(*options.memory) and fast else 1


if __name__ == "__main__":
    sys.exit(main())
