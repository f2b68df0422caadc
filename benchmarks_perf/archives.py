"""Uploads: memory of the intake, the check of generations, and the hash that finds copies."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, groupby
from pathlib import Path
from random import Random
from typing import IO, Any

import numpy as np
from PIL import Image, ImageFilter

from benchmarks.demo.load import pictures
from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import SetPrompt
from benchmarks_perf.made_up import photo_like
from benchmarks_perf.measuring import MIB, Figure, added_memory, alone, interleaved
from evaluator.generation.manifest import TABLE, GenerationsManifest, ImageRow, encoded
from evaluator.submission.archives.archive import taken_in
from evaluator.submission.generations.archive import write
from evaluator.submission.generations.checking import Check, RequestedImages, in_order, usable_cores
from evaluator.submission.generations.images import ALIKE, distance, perceptual_hash, small_luma
from evaluator.submission.generations.sources import FolderSource, GenerationsLimits

MANY, GIB = 100_000, 1 << 30
SEEDS = (1, 2, 3, 4)
Change = Callable[[Image.Image], Image.Image]


def archive_memory(scratch: Path | None = None) -> Iterator[Figure]:
    """What taking an archive in adds to memory, and what comes of it; up to 2.8 GB of disk.

    What is taken is hashed and packed anew as well.
    """
    for make, wanted in (
        (_many_in_a_zip, "too_many_files"),
        (_many_in_a_tar, "too_many_files"),
        (_zeros_in_a_zip, "bomb"),
        (_zeros_in_a_tar, "too_large"),
        (_repeats_in_a_tar, "too_large"),
        (_noise_in_a_tar, "too_large"),
        (_weights_in_a_zip, "taken"),
    ):
        name = make.__name__.strip("_").replace("_", " ")
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            archive = Path(folder) / "archive"
            make(archive)
            outcome, added, took = alone(_taken_in, archive)
            details = f"{outcome} after {took:.1f} s; {archive.stat().st_size / 1e6:.1f} MB"
        limit = 32 if outcome == wanted else -1
        yield Figure(name, added / MIB, "MiB", at_most=limit, details=details)


def _taken_in(archive: Path) -> tuple[str, int, float]:
    """The error's code or `taken`, bytes added at the peak, and seconds that passed."""

    def take() -> str:
        try:
            with tempfile.TemporaryDirectory(dir=archive.parent) as place:
                with taken_in(archive, Path(place)) as content:
                    assert content.sha256
                    content.pack_to(Path(place) / "packed.zip")
                return "taken"
        except SubmitterError as error:
            return error.code

    start = time.perf_counter()
    outcome, added = added_memory(take)
    return outcome, added, time.perf_counter() - start


def _many_in_a_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(MANY):
            archive.writestr(zipfile.ZipInfo(f"data/{i}.txt"), b"some text")


def _many_in_a_tar(path: Path) -> None:
    with gzip.open(path, "wb", compresslevel=1) as file:
        for i in range(MANY):
            _member(file, f"data/{i}.txt", b"some text".ljust(512, b"\0"), 512)
        file.write(bytes(1024))


def _zeros_in_a_zip(path: Path) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("zeros.txt", "w", force_zip64=True) as member,
    ):
        for _ in range(2 * GIB // MIB):
            member.write(bytes(MIB))


def _zeros_in_a_tar(path: Path) -> None:
    with gzip.open(path, "wb", compresslevel=1) as file:
        _member(file, "zeros.txt", bytes(MIB), 2 * GIB)
        file.write(bytes(1024))


def _repeats_in_a_tar(path: Path) -> None:
    """Four files that compress less than a bomb does."""
    block = Random(1).randbytes(400)
    text = b"".join(block[:i] + b"\n" * 200 for i in range(100, 400)) * 8
    with gzip.open(path, "wb", compresslevel=1) as file:
        for i in range(4):
            _member(file, f"{i}.txt", text, GIB // 2)
        file.write(bytes(1024))


def _noise_in_a_tar(path: Path) -> None:
    with path.open("wb") as file:
        for i in range(2):
            _member(file, f"{i}.bin", Random(i).randbytes(MIB), GIB)
        file.write(bytes(1024))


def _weights_in_a_zip(path: Path) -> None:
    """An honest scoring module with 900 MB of weights."""
    n_data = 900 * 10**6
    tensor = {"dtype": "F32", "shape": [n_data // 4], "data_offsets": [0, n_data]}
    header = json.dumps({"weight": tensor}).encode()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("assay.toml", b'name = "m"\nweights = "w.safetensors"')
        archive.writestr("scorer.py", b"class Scorer: ...")
        with archive.open("w.safetensors", "w") as member:
            member.write(len(header).to_bytes(8, "little") + header)
            _repeat(member, Random(1).randbytes(MIB), n_data)


def _member(file: IO[bytes] | gzip.GzipFile, name: str, block: bytes, n_bytes: int) -> None:
    """A file of a tar that repeats a block; its size is a multiple of 512."""
    info = tarfile.TarInfo(name)
    info.size = n_bytes
    file.write(info.tobuf(tarfile.USTAR_FORMAT))
    _repeat(file, block, n_bytes)


def _repeat(file: IO[bytes] | gzip.GzipFile, block: bytes, n_bytes: int) -> None:
    for _ in range(n_bytes // len(block)):
        file.write(block)
    file.write(block[: n_bytes % len(block)])


def generations_check(
    images: int = 300, few: int = 4000, many: int = 40_000, rounds: int = 5
) -> Iterator[Figure]:
    """Seconds that pass for images of 512 pixels, and memory of an image more.

    Both sides read the same files with as many threads: the check with hashes, blankness, pixels
    and rows, and Pillow's decoding, which takes less than a millisecond for a JPEG. Half of the
    bytes of an image more are the list of the zip that is written.
    """
    threads = usable_cores()
    for form, at_least in (("PNG", 0.6), ("JPEG", 0.45)):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            paths = _write_images(folder, images, 512, form)

            def check(place: Path = folder) -> None:
                source = FolderSource(place, GenerationsLimits())
                assert Check(source, _wanted(images), threads=threads).run(TABLE).complete

            def decode(files: list[Path] = paths) -> None:
                for _ in in_order(_decoded, files, threads):
                    pass

            sides: dict[str, Callable[[], object]] = {"decoding": decode, "check": check}
            interleaved(sides, 1)
            times = interleaved(sides, rounds, time.perf_counter)
        yield times.compared(f"rate of decoding a {form}", "decoding", "check", at_least=at_least)
    added = []
    for count in (few, many):
        with tempfile.TemporaryDirectory() as name:
            _write_images(Path(name), count, 64, "JPEG")
            added.append(alone(_checked_and_packed, Path(name), count))
    each = (added[1] - added[0]) / (many - few)
    details = f"{few} images {added[0] / MIB:.1f} MiB, {many} images {added[1] / MIB:.1f} MiB"
    yield Figure("an image more", each, "bytes", at_most=1500, details=details)


def _wanted(n_images: int) -> RequestedImages:
    prompts = [SetPrompt(f"p{n}", f"prompt {n}") for n in range(n_images // len(SEEDS))]
    return RequestedImages.of(prompts, SEEDS)


def _write_images(folder: Path, n_images: int, side: int, form: str) -> list[Path]:
    """Images and their table."""
    (folder / "images").mkdir()
    paths: list[Path] = []
    with (folder / TABLE).open("wb") as table:
        for number in range(n_images // len(SEEDS)):
            for seed in SEEDS:
                name = f"images/p{number}_{seed}.{form.lower()}"
                photo_like(len(paths), side).save(folder / name, form)
                paths.append(folder / name)
                prompt = f"prompt {number}"
                row = ImageRow(prompt_id=f"p{number}", seed=seed, file=name, prompt=prompt)
                table.write(encoded([row]))
    return paths


def _decoded(path: Path) -> None:
    with Image.open(io.BytesIO(path.read_bytes())) as image:
        image.load()


def _checked_and_packed(folder: Path, n_images: int) -> int:
    """Bytes that checking and packing a folder adds."""
    check = Check(FolderSource(folder, GenerationsLimits()), _wanted(n_images))

    def run() -> None:
        with tempfile.TemporaryDirectory() as place:
            write(Path(place) / "a.zip", GenerationsManifest(name="m"), check.stream(TABLE))

    added = added_memory(run)[1]
    assert check.report().complete
    return added


def _hash(image: Image.Image) -> Any:
    return perceptual_hash(small_luma(image))


def copies() -> Iterator[Figure]:
    """Shares of pairs that are taken for one picture, of what simulated models drew.

    Two models' pictures of one prompt, any two pictures, and each with a changed copy of itself.
    """
    drawn = pictures("gecko")
    images = {key: Image.open(io.BytesIO(read())).convert("RGB") for key, read in drawn.items()}
    hashes = {key: _hash(image) for key, image in images.items()}
    prompts = [list(keys) for _, keys in groupby(hashes, lambda key: key.rpartition("/")[0])]
    of_one = [distance(hashes[a], hashes[b]) for keys in prompts for a, b in combinations(keys, 2)]
    any_two = [distance(a, b) for a, b in combinations(hashes.values(), 2)]
    yield _share("of one prompt", of_one, at_most=0.005)
    yield _share("any two", any_two, at_most=0.0001)
    for name, change in _CHANGES.items():
        found = [distance(hashes[key], _hash(change(image))) for key, image in images.items()]
        held = 0.97 if name in {"JPEG of quality 50", "half the size"} else None
        yield _share(name, found, at_least=held)


def _share(
    name: str, distances: list[int], at_least: float | None = None, at_most: float | None = None
) -> Figure:
    shares = {most: float(np.mean(np.array(distances) <= most)) for most in (0, ALIKE, 4, 6, 8)}
    told = ", ".join(f"{most}: {share:.2%}" for most, share in shares.items())
    details = f"{len(distances)} pairs; by bits that differ at most: {told}"
    return Figure(name, shares[ALIKE], "", at_least, at_most, details)


def _encoded(form: str, quality: int, image: Image.Image) -> Image.Image:
    buffer = io.BytesIO()
    image.save(buffer, form, quality=quality)
    return Image.open(io.BytesIO(buffer.getvalue())).convert("RGB")


def _scaled(factor: float, image: Image.Image) -> Image.Image:
    size = int(image.width * factor), int(image.height * factor)
    return image.resize(size, Image.Resampling.BICUBIC)


def _one_pixel(image: Image.Image) -> Image.Image:
    changed = image.copy()
    changed.putpixel((5, 5), (1, 2, 3))
    return changed


def _cut(image: Image.Image) -> Image.Image:
    edge = image.width // 50
    return image.crop((edge, edge, image.width - edge, image.height - edge))


_CHANGES: dict[str, Change] = {
    "JPEG of quality 50": partial(_encoded, "JPEG", 50),
    "half the size": partial(_scaled, 0.5),
    "JPEG of quality 20": partial(_encoded, "JPEG", 20),
    "WebP of quality 60": partial(_encoded, "WEBP", 60),
    "1.5 times the size": partial(_scaled, 1.5),
    "blurred": lambda image: image.filter(ImageFilter.GaussianBlur(1)),
    "one pixel changed": _one_pixel,
    "cut by 2% at each edge": _cut,
}
