"""How well the perceptual hash of generations tells copies from other pictures.

    python -m benchmarks_perf.generations_hash

The pictures that simulated models drew of the prompts of `demo_gecko` are hashed. Printed is, for
several distances, the share of pairs that would be taken for one picture: of two models' pictures of
one prompt, of any two pictures, and of a picture and its copy that was encoded anew, scaled or
changed. The gate, at the distance in use: at most 0.5% of the first, 0.01% of the second, and at
least 97% of copies as JPEG of quality 50 or at half the size.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from itertools import combinations, groupby
from typing import Any

import numpy as np
from PIL import Image, ImageFilter

from benchmarks.demo import gecko_split
from evaluator.submission.generations.perceptual import (
    ALIKE,
    distance,
    perceptual_hash,
    small_luma,
)

DISTANCES = (0, 2, 4, 6, 8)
Change = Callable[[Image.Image], Image.Image]


def _encoded(form: str, **options: Any) -> Change:
    def change(image: Image.Image) -> Image.Image:
        buffer = io.BytesIO()
        image.save(buffer, form, **options)
        return Image.open(io.BytesIO(buffer.getvalue())).convert("RGB")

    return change


def _scaled(factor: float) -> Change:
    return lambda image: image.resize(
        (int(image.width * factor), int(image.height * factor)), Image.Resampling.BICUBIC
    )


def _one_pixel(image: Image.Image) -> Image.Image:
    changed = image.copy()
    changed.putpixel((5, 5), (1, 2, 3))
    return changed


def _cut(image: Image.Image) -> Image.Image:
    edge = image.width // 50
    return image.crop((edge, edge, image.width - edge, image.height - edge))


CHANGES: dict[str, Change] = {
    "JPEG 90": _encoded("JPEG", quality=90),
    "JPEG 50": _encoded("JPEG", quality=50),
    "JPEG 20": _encoded("JPEG", quality=20),
    "WebP 60": _encoded("WEBP", quality=60),
    "half the size": _scaled(0.5),
    "1.5 times the size": _scaled(1.5),
    "2.34 times the size": _scaled(2.34),
    "blurred": lambda image: image.filter(ImageFilter.GaussianBlur(1)),
    "one pixel changed": _one_pixel,
    "2% cut at each edge": _cut,
}


def shares(distances: list[int]) -> dict[int, float]:
    """Distance to the share of pairs that are no further apart."""
    found = np.array(distances)
    return {most: float((found <= most).mean()) for most in DISTANCES}


def main() -> int:
    """Print the table; 0 where the gates are met."""
    drawn = gecko_split.questions().images
    images = {key: Image.open(io.BytesIO(read())).convert("RGB") for key, read in drawn.items()}
    hashes = {key: perceptual_hash(small_luma(image)) for key, image in images.items()}
    prompts = [list(keys) for _, keys in groupby(hashes, lambda key: key.rpartition("/")[0])]
    rows = {
        "of one prompt": [
            distance(hashes[a], hashes[b]) for keys in prompts for a, b in combinations(keys, 2)
        ],
        "any two": [distance(a, b) for a, b in combinations(hashes.values(), 2)],
    }
    for name, change in CHANGES.items():
        rows[name] = [
            distance(hashes[key], perceptual_hash(small_luma(change(image))))
            for key, image in images.items()
        ]
    print(f"{'at most so far apart':22}{'pairs':>8}" + "".join(f"{d:>9}" for d in DISTANCES))
    for name, distances in rows.items():
        told = "".join(f"{share:9.3%}" for share in shares(distances).values())
        print(f"{name:22}{len(distances):8}{told}")
    at = {name: shares(distances)[ALIKE] for name, distances in rows.items()}
    good = at["of one prompt"] <= 0.005 and at["any two"] <= 0.0001
    good &= at["JPEG 50"] >= 0.97 and at["half the size"] >= 0.97
    print(f"at {ALIKE} copies are told from others: {'yes' if good else 'NO'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
