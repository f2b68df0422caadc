"""Answers that a model gave elsewhere, read from a table: closed models, and released answers.

A scorer sees pixels and no names, so an image is known by the SHA-256 of its pixels. The table is a
CSV file with the columns

    image      path of an image, relative to the table's folder; or the hash itself, 64 hex digits
    question   what was asked, as the question file has it
    answer     the model's own words
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from benchmarks.accumulation.command import read_columns
from benchmarks.errors import SubmitterError
from benchmarks.sources.pins import sha256_of
from evaluator.scorers.answering import Candidate
from evaluator.scorers.pixel_hash import pixel_hash
from evaluator.scoring.images.canonical import ImageError
from evaluator.scoring.images.canonical_image import canonical_png

_HASH = re.compile(r"[0-9a-f]{64}")


class TableAnswers:
    """An answer model that looks its answers up.

    Args:
        answers: (pixel hash, question) to answer.
        environment: for the record.
    """

    def __init__(
        self, answers: Mapping[tuple[str, str], str], environment: dict[str, str] | None = None
    ) -> None:
        self._answers = answers
        self.environment = environment or {}

    def prepare(self, image: Image.Image) -> str:
        """The hash of the image's pixels."""
        return pixel_hash(image)

    def generate(
        self, images: Sequence[str], prompts: Sequence[Sequence[str]], max_new_tokens: int
    ) -> list[list[str]]:
        """The answers of the table.

        Raises:
            SubmitterError: `answer_missing`, with the first that is not there.
        """
        del max_new_tokens
        return [
            [self._answer(image, prompt) for prompt in of_image]
            for image, of_image in zip(images, prompts, strict=True)
        ]

    def answer_logprobs(
        self,
        images: Sequence[str],
        prompts: Sequence[Sequence[str]],
        candidates: Sequence[Sequence[Sequence[Candidate]]],
    ) -> list[list[list[NDArray[np.float64]]]]:
        """A table holds words only.

        Raises:
            SubmitterError: `table_without_probabilities`, always.
        """
        del images, prompts, candidates
        raise SubmitterError(
            "table_without_probabilities",
            "This metric needs probabilities of answers, which a table of answers does not hold.",
            "Use a metric that reads answers, such as TIFA or DSG, or import its scores.",
        )

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Never."""
        return [False] * len(prompts)

    def _answer(self, image: str, question: str) -> str:
        found = self._answers.get((image, question))
        if found is None:
            raise SubmitterError(
                "answer_missing",
                f"The table has no answer to {question!r} about the image with pixels {image}.",
                "Answer every question about every image; an answer may be empty.",
            )
        return found


def load_table_answers(path: Path) -> TableAnswers:
    """Read a table of answers.

    Raises:
        SubmitterError: `file_missing`, `unreadable_file`, `missing_columns`, `image_missing`,
            `image_unreadable`; `duplicate_answers`, two different answers to one question.
    """
    table = read_columns(path, ("image", "question", "answer"))
    found = by_image(path, table, "question", "answer")
    return TableAnswers(found, {"answers": f"{path.name} sha256:{sha256_of(path)}"})


def by_image(path: Path, table: pd.DataFrame, key: str, value: str) -> dict[tuple[str, str], str]:
    """The cells of a column by (pixel hash, cell of the column `key`).

    Args:
        path: of the table; its folder is where image paths begin.
        table: with column `image`.
        key: name of a column.
        value: name of a column.

    Raises:
        SubmitterError: see `load_table_answers`.
    """
    hashes = {name: _hash_of(path.parent, name) for name in dict.fromkeys(table["image"])}
    found: dict[tuple[str, str], str] = {}
    rows = zip(table["image"], table[key], table[value], strict=True)
    for number, (image, asked, given) in enumerate(rows, start=2):
        if found.setdefault((hashes[image], asked), given) != given:
            raise SubmitterError(
                f"duplicate_{value}s",
                f"{path}, line {number}: another {value} for image {image} and {asked!r} stands "
                "above (images with the same pixels are one image).",
                "Keep one.",
            )
    return found


def _hash_of(folder: Path, name: str) -> str:
    if _HASH.fullmatch(name):
        return name
    path = folder / name
    try:
        png = canonical_png(path.read_bytes())
    except OSError as error:
        raise SubmitterError(
            "image_missing", f"The table names {name}, which is not in {folder}."
        ) from error
    except ImageError as error:
        raise SubmitterError("image_unreadable", f"{path} cannot be read: {error}.") from error
    with Image.open(io.BytesIO(png)) as image:
        return pixel_hash(image)
