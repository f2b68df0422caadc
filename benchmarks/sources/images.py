"""Images of a benchmark on disk, for its question side: all of them, or an error that counts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from benchmarks.errors import SubmitterError
from benchmarks.sources.archives import ZipImages

Reader = Callable[[], bytes]


def folder_images(
    benchmark: str, folder: Path, names: Mapping[str, str], *, remedy: str = ""
) -> dict[str, Reader]:
    """Readers of images in a folder.

    Args:
        benchmark: registry name, for the message.
        folder: where the images lie.
        names: image id to path below the folder, with `/`.
        remedy: how to get images that are missing; empty where `fetch` downloads them.

    Raises:
        SubmitterError: `images_missing`, with how many and the first of them.
    """
    there = _files_below(folder)
    _check_complete(benchmark, folder, names, there, remedy)
    return {image: (folder / name).read_bytes for image, name in names.items()}


def zip_images(benchmark: str, archive: ZipImages, names: Mapping[str, str]) -> dict[str, Reader]:
    """Readers of images inside a zip archive; like `folder_images`.

    Raises:
        SubmitterError: `images_missing` or `data_malformed`.
    """
    _check_complete(benchmark, archive, names, archive.names, "")
    return {image: partial(archive.read, name) for image, name in names.items()}


def _files_below(folder: Path) -> frozenset[str]:
    """Paths of all files below a folder: one walk instead of one question per image."""
    return frozenset(
        (Path(base) / file).relative_to(folder).as_posix()
        for base, _, files in os.walk(folder)
        for file in files
    )


def _check_complete(
    benchmark: str, where: object, names: Mapping[str, str], there: frozenset[str], remedy: str
) -> None:
    missing = [name for name in names.values() if name not in there]
    if missing:
        raise SubmitterError(
            "images_missing",
            f"{where} lacks {len(missing)} of the {len(names)} images of {benchmark}, "
            f"the first is {missing[0]!r}.",
            remedy or f"`python -m benchmarks fetch {benchmark}` downloads what is missing.",
        )
