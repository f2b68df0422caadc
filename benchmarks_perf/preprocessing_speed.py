"""From a JPEG to what a CLIP takes, against Pillow with open_clip's own transform.

    python -m benchmarks_perf.preprocessing_speed [--images 8] [--rounds 7]

Images of 512 pixels, 1/f noise at quality 95, to 224 pixels; CPU seconds on one thread, ways
interleaved, median of per-round ratios. The fast way is `decode` and `resized_and_cropped` with
torchvision's resampling of bytes; its pixels must be within one grey level of Pillow's. The exact
way must give open_clip's floats bit for bit. Ours is timed with and without the normalisation,
which is done for a batch at once. The gate: decoding and resizing fast takes at most 0.7 of the
yardstick.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import open_clip  # type: ignore[import-untyped]
import torch
from open_clip.transform import PreprocessCfg, image_transform_v2  # type: ignore[import-untyped]
from PIL import Image

from benchmarks_perf.made_up_images import noise_jpeg, on_one_thread
from evaluator.scoring.images.decoding import decode
from evaluator.scoring.images.preprocessing import ImageBackend, normalised, resized_and_cropped

SIZE, GATE = 224, 0.7
MEAN, STD = open_clip.OPENAI_DATASET_MEAN, open_clip.OPENAI_DATASET_STD
YARDSTICK = "Pillow + open_clip"


def ways(jpegs: list[bytes]) -> dict[str, Callable[[], torch.Tensor]]:
    """What is timed, each for all images; returns a batch."""
    transform = image_transform_v2(PreprocessCfg(size=SIZE), is_train=False)

    def yardstick() -> torch.Tensor:
        return torch.stack([transform(Image.open(io.BytesIO(jpeg))) for jpeg in jpegs])

    def ours(backend: ImageBackend) -> torch.Tensor:
        return torch.stack(
            [resized_and_cropped(decode(jpeg).image, SIZE, backend) for jpeg in jpegs]
        )

    return {
        YARDSTICK: yardstick,
        "ours, fast": lambda: ours("torchvision"),
        "ours, fast, normalised": lambda: normalised(ours("torchvision"), MEAN, STD),
        "ours, exact": lambda: ours("pil"),
        "ours, exact, normalised": lambda: normalised(ours("pil"), MEAN, STD),
    }


def _timed(run: Callable[[], torch.Tensor]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def compare(n_images: int, rounds: int) -> bool:
    """Print the table; whether pixels agree and the gate is met."""
    jpegs = [noise_jpeg(seed) for seed in range(n_images)]
    cases = ways(jpegs)
    found = {name: run() for name, run in cases.items()}
    names = list(cases)
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            times[name].append(_timed(cases[name]))
    print(f"{n_images} images to {SIZE} pixels; CPU, one thread, median of {rounds} rounds")
    print(f"{'':26}{'ms an image':>12}{'of yardstick':>14}")
    ratios = {}
    for name in names:
        ratios[name] = median(np.divide(times[name], times[YARDSTICK]))
        print(f"{name:26}{1e3 * median(times[name]) / n_images:12.2f}{ratios[name]:14.2f}")
    apart = (found["ours, fast"].int() - found["ours, exact"].int()).abs()
    exact = torch.equal(found["ours, exact, normalised"], found[YARDSTICK])
    print(f"fast within 1 grey level (mean {apart.float().mean():.4f}): {_yes(apart.max() <= 1)}")
    print(f"exact equal to open_clip's bit for bit: {_yes(exact)}")
    met = ratios["ours, fast"] <= GATE
    print(f"fast at most {GATE} of the yardstick: {_yes(met)} ({ratios['ours, fast']:.2f})")
    return bool(apart.max() <= 1) and exact and bool(met)


def _yes(holds: object) -> str:
    return "yes" if holds else "NO"


def main() -> int:
    """Print the table; 0 where pixels agree and the gate is met."""
    on_one_thread("benchmarks_perf.preprocessing_speed")
    parser = argparse.ArgumentParser(description="Preprocessing against Pillow and open_clip")
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    return 0 if compare(options.images, options.rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
