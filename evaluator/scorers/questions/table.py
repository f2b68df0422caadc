"""Tables of answers, which take the place of a model that answers questions."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from benchmarks.errors import SubmitterError
from benchmarks.sources.pins import sha256_of
from benchmarks.tables import read_table
from evaluator.scorers.answering import Candidate, pixel_hash
from evaluator.scorers.registry import Runtime, ScorerRow
from evaluator.scoring.images import ImageError, canonical_png

TABLE = "table"  # Role of a table of answers, which takes the place of the model
_HASH = re.compile(r"[0-9a-f]{64}")


class TableAnswers:
    """An answer model that looks its answers up."""

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
        """The answers of the table."""
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
        """A table holds words only."""
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
    """Read a table of answers."""
    table = read_table(path, ("image", "question", "answer"))
    found = by_image(path, table, "question", "answer")
    return TableAnswers(found, {"answers": f"{path.name} sha256:{sha256_of(path)}"})


def by_image(path: Path, table: pd.DataFrame, key: str, value: str) -> dict[tuple[str, str], str]:
    """The cells of a column by (pixel hash, cell of the column `key`)."""
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


def finite_number(cell: str, path: Path) -> float:
    """The number of a cell."""
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise SubmitterError(
            "bad_score", f"{path} holds {cell!r}, which is no finite number.", "Mend it."
        )
    return value


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


def table_of(row: ScorerRow, runtime: Runtime) -> Path | None:
    """The table that takes the place of a model: the operator's, else the row's; None without."""
    if TABLE in runtime.folders or TABLE not in row.checkpoints:
        return runtime.folders.get(TABLE)
    return Path(row.checkpoints[TABLE].id)
