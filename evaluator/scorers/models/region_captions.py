"""Captions of an image: one of it all, and those of its regions.

    python -m evaluator.scorers.models.region_captions IMAGE...

prints the keys by which a caption file names images.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol

from PIL import Image
from pydantic import Field, ValidationError

from benchmarks.errors import SubmitterError
from evaluator.scorers.answering import AnswerModel, pixel_hash
from evaluator.scorers.registry import Frozen
from evaluator.scoring.images import decode

_Fraction = Annotated[float, Field(ge=0, le=1)]


class Region(Frozen):
    """A part of an image."""

    text: str = Field(min_length=1)
    box: tuple[_Fraction, _Fraction, _Fraction, _Fraction] | None = None
    """Left, top, right, bottom, as fractions of the image's width and height."""


class Captions(Frozen):
    """A line of a caption file."""

    image: str = Field(pattern=r"^[0-9a-f]{64}$")  # `pixel_hash` of the image
    caption: str = Field(min_length=1)
    regions: tuple[Region, ...] = ()


@dataclass(frozen=True, slots=True)
class Described:
    """What is known of an image."""

    caption: str = ""  # of the whole image
    regions: tuple[str, ...] = ()  # one line per region
    problem: str = ""  # why nothing is known; empty where something is


class Describer(Protocol):
    """Says what can be seen in images."""

    def prepare(self, image: Image.Image) -> Any:
        """What `describe` takes in place of the image; called by several threads at once."""

    def describe(self, images: Sequence[Any]) -> list[Described]:
        """One description per prepared image."""


class CaptionFile:
    """Captions that were made elsewhere, such as GRiT's dense captions."""

    def __init__(self, lines: Sequence[Captions]) -> None:
        self._found = {line.image: line for line in lines}

    def prepare(self, image: Image.Image) -> str:
        """The image's key."""
        return pixel_hash(image)

    def describe(self, images: Sequence[Any]) -> list[Described]:
        """One description per key."""
        return [self._of(key) for key in images]

    def _of(self, key: str) -> Described:
        line = self._found.get(key)
        if line is None:
            return Described(problem="the caption file does not have this image")
        return Described(line.caption, tuple(_written(region) for region in line.regions))


class CaptionModel:
    """Captions by a vision-language model (VLM)."""

    def __init__(self, model: AnswerModel, caption: str, regions: str, max_new_tokens: int) -> None:
        self._model = model
        self._requests = [caption, regions]
        self._max_new_tokens = max_new_tokens

    def prepare(self, image: Image.Image) -> Any:
        """What the VLM takes in place of the image."""
        return self._model.prepare(image)

    def describe(self, images: Sequence[Any]) -> list[Described]:
        """Two answers per image."""
        if not images:
            return []
        asked = [self._requests for _ in images]
        answers = self._model.generate(images, asked, self._max_new_tokens)
        return [_described(caption, regions) for caption, regions in answers]


def load_captions(path: Path) -> CaptionFile:
    """Read a caption file: JSON Lines of `Captions`."""
    if not path.is_file():
        raise SubmitterError("captions_missing", f"There is no caption file {path}.")
    lines = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            lines.append(Captions.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise SubmitterError(
                "bad_captions", f"{path}, line {number}: {where} {first['msg']}."
            ) from error
    return CaptionFile(lines)


def _described(caption: str, regions: str) -> Described:
    if not caption.strip():
        return Described(problem="the model that describes images said nothing")
    lines = (line.strip(" \t-*•") for line in regions.splitlines())
    return Described(" ".join(caption.split()), tuple(line for line in lines if line))


def _written(region: Region) -> str:
    if region.box is None:
        return region.text
    return f"{region.text} [{', '.join(f'{side:.2f}' for side in region.box)}]"


def main() -> int:
    """Print the key of each image and its path."""
    parser = argparse.ArgumentParser(description="Keys of images in a caption file")
    parser.add_argument("images", type=Path, nargs="+")
    for path in parser.parse_args().images:
        print(pixel_hash(decode(path.read_bytes()).image), path)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
