"""Sources of generations: a folder, an archive or Parquet, all read in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from benchmarks.prompt_sets.prompt_set import IMAGES
from evaluator.generation.check import Kind, Problem
from evaluator.generation.rows import ImageRow


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an image cannot be used."""

    kind: Kind
    message: str


@dataclass(frozen=True, slots=True)
class Found:
    """The file of an image.

    Attributes:
        file: as the table names it.
        place: of the image, as it was asked for.
        read: gives its bytes, or why there are none; called once, in any thread.
    """

    file: str
    place: int
    read: Callable[[], bytes | Fault]


@dataclass(frozen=True, slots=True)
class TableLine:
    """One line of the table.

    Attributes:
        where: it stands, for messages.
        row: what it holds, or what is wrong with it.
    """

    where: str
    row: ImageRow | str


class Source(Protocol):
    """Where the images of a submission are.

    All methods raise SubmitterError where the whole of it cannot be read.
    """

    @property
    def name(self) -> str:
        """What it is called in messages."""

    def manifest(self) -> bytes | None:
        """`assay.toml`, or its beginning where it is too long; None where there is none."""

    def table(self, name: str) -> Iterator[TableLine] | str:
        """The lines of the table of images, or why there is none. May be asked for again.

        Args:
            name: its path, as the manifest says.
        """

    def images(self, files: Mapping[str, int]) -> Iterator[Found | Problem]:
        """The images, in the order in which they are read best, and the files that nobody named.

        Args:
            files: path to the image's place, as the table names them; those whose place is
                negative are known, and not wanted.
        """


def is_stray(file: str) -> bool:
    """Whether a file that no row names is one of images; others may lie beside them."""
    return file.startswith(f"{IMAGES}/")


def stray(file: str) -> Problem:
    """A file of images that no row names."""
    return Problem("extra", file, "no row names this file")
