"""Sample of pairs on which a scorer is tested."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from benchmarks.schema import Pair, Questions


def sampled(
    questions: Questions, seed: bytes, *, n_images: int = 12, per_image: int = 3
) -> Questions:
    """A few pairs of a benchmark, chosen by a keyed hash: nobody can know them without the key.

    Args:
        questions: of the benchmark.
        seed: secret of the run, at most 64 bytes.
        n_images: distinct images at most.
        per_image: pairs of one image at most.

    Returns:
        The same questions with fewer pairs and images.
    """

    def place(name: str) -> bytes:
        return hashlib.blake2b(name.encode(), key=seed, person=b"trust", digest_size=16).digest()

    by_image: dict[str, list[Pair]] = {}
    for pair in questions.pairs:
        by_image.setdefault(pair.image_id, []).append(pair)
    chosen = sorted(by_image, key=place)[:n_images]
    pairs = tuple(
        pair
        for image in chosen
        for pair in sorted(by_image[image], key=lambda one: place(one.pair_id))[:per_image]
    )
    return replace(questions, images={one: questions.images[one] for one in chosen}, pairs=pairs)
