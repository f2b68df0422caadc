"""Images are known again when they are encoded anew or scaled, and others are not taken for them."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image, ImageFilter

from benchmarks.errors import PlatformError
from evaluator.submission.generations.checking import Hashes, RequestedImages
from evaluator.submission.generations.images import ALIKE, distance, perceptual_hash, small_luma
from evaluator.submission.generations.intake import (
    hashes_file,
    kept_hashes,
    shared_images,
)
from tests.evaluator.submission.generations.made_images import picture
from tests.kit.pictures import encoded

WANTED = RequestedImages({f"p{i}": None for i in range(50)}, (1, 2))
IDS = tuple(WANTED.texts)


def hash_of(image: Image.Image) -> int:
    return perceptual_hash(small_luma(image))


def again(image: Image.Image, form: str, quality: int) -> Image.Image:
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
def test_a_copy_is_alike(changed: Callable[[Image.Image], Image.Image]) -> None:
    pictures = [picture(n, 128) for n in range(40)]
    near = [distance(hash_of(one), hash_of(changed(one))) for one in pictures]
    assert sum(d <= ALIKE for d in near) >= 39


def test_other_pictures_are_not_alike_and_the_hash_is_what_it_was() -> None:
    hashes = [hash_of(picture(n)) for n in range(80)]
    assert min(distance(a, b) for a, b in itertools.combinations(hashes, 2)) > ALIKE
    # Stored hashes are compared with new ones: another value needs another name.
    assert hashes[0] == 0xF4EFAAA360AC31A2


def made_hashes(seed: int, n: int = 100) -> Hashes:
    words = np.random.default_rng(seed).integers(0, 2**64, (2, n), dtype=np.uint64)
    return Hashes(np.arange(n), words[0], words[1])


def shared(mine: Hashes, *others: Hashes) -> list[tuple[int, int]]:
    """Which of the others share images, and how many."""
    kept = [kept_hashes(f"{n}", hashes_file(one, WANTED), IDS) for n, one in enumerate(others)]
    return [(int(one.submission_id), one.n_images) for one in shared_images(mine, WANTED, kept)]


def test_images_alike_of_the_same_prompt_are_flagged_whatever_their_seed() -> None:
    mine, other, few, moved = (made_hashes(n) for n in range(4))
    swapped = mine.alike.reshape(50, 2)[:, ::-1].reshape(-1)
    other.alike[:20] = swapped[:20] ^ np.uint64(0b1010)
    few.alike[:4] = mine.alike[:4]  # chance
    moved.alike[:] = np.roll(mine.alike, 2)  # of other prompts
    assert shared(mine, few, other, moved) == [(1, 20)]


def test_equal_pixels_are_flagged_from_the_first_and_under_any_prompt() -> None:
    mine, other = made_hashes(0), made_hashes(1)
    other.pixels[7] = mine.pixels[90]
    kept = kept_hashes("them", hashes_file(other, WANTED), IDS)
    [found] = shared_images(mine, WANTED, [kept])
    assert (found.submission_id, found.n_images, found.examples) == ("them", 1, (("p45", 1),))


def test_it_agrees_with_counting_one_by_one() -> None:
    rng = np.random.default_rng(5)
    mine, other = made_hashes(3), made_hashes(4)
    for one in (mine, other):
        one.alike[:] = rng.integers(0, 16, 100)

    def alike(i: int, j: int) -> bool:
        return distance(int(mine.alike[i]), int(other.alike[j])) <= ALIKE

    n = sum(any(alike(i, j) for j in (i // 2 * 2, i // 2 * 2 + 1)) for i in range(100))
    assert shared(mine, other) == [(0, n)]


def test_hashes_of_no_images_or_of_lost_prompts_are_read() -> None:
    assert shared(made_hashes(0), made_hashes(0, 0)) == []
    lost = kept_hashes("lost", hashes_file(made_hashes(0), WANTED), ("p49",))
    assert set(lost.prompts) == {-1, 0}
    with pytest.raises(PlatformError):
        kept_hashes("bad", b"no parquet", IDS)
