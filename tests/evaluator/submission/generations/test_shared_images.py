"""Images are known again when they are encoded anew or scaled, and others are not taken for them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from PIL import Image, ImageFilter

from benchmarks.errors import PlatformError
from evaluator.submission.generations.checking import Hashes
from evaluator.submission.generations.perceptual import (
    ALIKE,
    distance,
    perceptual_hash,
    small_luma,
)
from evaluator.submission.generations.shared import hashes_file, kept_hashes, shared_images
from evaluator.submission.generations.wanted import Wanted
from tests.evaluator.submission.generations.made_images import encoded, picture

WANTED = Wanted({f"p{i}": None for i in range(50)}, (1, 2))
IDS = tuple(WANTED.texts)


def hash_of(image: Image.Image) -> int:
    return perceptual_hash(small_luma(image))


def again(image: Image.Image, form: str, quality: int) -> Image.Image:
    import io

    return Image.open(io.BytesIO(encoded(image, form, quality=quality))).convert("RGB")


@pytest.mark.parametrize(
    "changed",
    [
        lambda image: again(image, "JPEG", 50),
        lambda image: again(image, "WEBP", 60),
        lambda image: image.resize((100, 100), Image.Resampling.BICUBIC),
        lambda image: image.resize((77, 77), Image.Resampling.LANCZOS),
        lambda image: image.filter(ImageFilter.GaussianBlur(1)),
    ],
)
def test_a_copy_is_alike(changed: object) -> None:
    assert callable(changed)
    near = [
        distance(hash_of(picture(n, 128)), hash_of(changed(picture(n, 128)))) for n in range(40)
    ]
    assert sum(d <= ALIKE for d in near) >= 39


def test_other_pictures_are_not() -> None:
    hashes = [hash_of(picture(n)) for n in range(80)]
    assert min(distance(a, b) for a, b in itertools.combinations(hashes, 2)) > ALIKE


def test_the_hash_is_what_it_was() -> None:
    # Stored hashes are compared with new ones: another value needs another name.
    assert hash_of(picture(0)) == 0xF4EFAAA360AC31A2


def made_hashes(seed: int, n: int = 100) -> Hashes:
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 2**64, (2, n), dtype=np.uint64)
    return Hashes(np.arange(n), words[0], words[1])


def kept(name: str, hashes: Hashes) -> object:
    return kept_hashes(name, hashes_file(hashes, WANTED), IDS)


def test_images_alike_of_the_same_prompt_are_flagged_whatever_their_seed() -> None:
    mine, other = made_hashes(0), made_hashes(1)
    swapped = mine.alike.reshape(50, 2)[:, ::-1].reshape(-1)
    other.alike[:20] = swapped[:20] ^ np.uint64(0b1010)
    [found] = shared_images(mine, WANTED, [kept("them", other)])  # type: ignore[list-item]
    assert (found.submission_id, found.n_images) == ("them", 20)
    assert found.examples[0] == ("p0", 1)


def test_few_that_are_alike_are_chance_and_of_other_prompts_too() -> None:
    mine, few, moved = made_hashes(0), made_hashes(1), made_hashes(2)
    few.alike[:4] = mine.alike[:4]
    moved.alike[:] = np.roll(mine.alike, 2)
    assert shared_images(mine, WANTED, [kept("few", few), kept("moved", moved)]) == ()  # type: ignore[list-item]


def test_equal_pixels_are_flagged_from_the_first_and_under_any_prompt() -> None:
    mine, other = made_hashes(0), made_hashes(1)
    other.pixels[7] = mine.pixels[90]
    [found] = shared_images(mine, WANTED, [kept("them", other)])  # type: ignore[list-item]
    assert (found.n_images, found.examples) == (1, (("p45", 1),))


def test_it_agrees_with_counting_one_by_one() -> None:
    rng = np.random.default_rng(5)
    mine, other = made_hashes(3), made_hashes(4)
    mine.alike[:] = rng.integers(0, 16, 100)
    other.alike[:] = rng.integers(0, 16, 100)
    n = sum(
        any(
            distance(int(mine.alike[i]), int(other.alike[j])) <= ALIKE
            for j in (i // 2 * 2, i // 2 * 2 + 1)
        )
        for i in range(100)
    )
    [found] = shared_images(mine, WANTED, [kept("them", other)])  # type: ignore[list-item]
    assert found.n_images == n


def test_hashes_of_no_images_or_of_lost_prompts_are_read() -> None:
    empty = Hashes(np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.uint64))
    found = kept_hashes("none", hashes_file(empty, WANTED), IDS)
    assert shared_images(made_hashes(0), WANTED, [found]) == ()
    lost = kept_hashes("lost", hashes_file(made_hashes(0), WANTED), ("p49",))
    assert set(lost.prompts) == {-1, 0}
    with pytest.raises(PlatformError):
        kept_hashes("bad", b"no parquet", IDS)
