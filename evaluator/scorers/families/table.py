"""Scores that were computed elsewhere, looked up by pixels and prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.errors import SubmitterError
from benchmarks.sources.pins import sha256_of
from benchmarks.tables import read_table
from evaluator.scorers.answering import SharedImageScorer, pixel_hash
from evaluator.scorers.questions.table import by_image, finite_number, table_of
from evaluator.scorers.registry import Family, Frozen, Loaded, Runtime, ScorerRow
from evaluator.scoring.contract import Verdict


class Options(Frozen):
    """There are none."""


class TableScores(SharedImageScorer):
    """Scores by pixel hash and prompt; a pair that is not there has none, and that is said."""

    def __init__(self, scores: Mapping[tuple[str, str], float]) -> None:
        self._scores = scores

    def prepare(self, image: Image.Image) -> str:
        """The hash of the image's pixels."""
        return pixel_hash(image)

    def score_texts(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]]
    ) -> list[list[Verdict]]:
        """For each image, one verdict per prompt of its own list."""
        rows = zip(images, prompts, strict=True)
        return [[self._verdict(image, prompt) for prompt in of_image] for image, of_image in rows]

    def _verdict(self, image: str, prompt: str) -> Verdict:
        found = self._scores.get((image, prompt))
        if found is None:
            return Verdict(float("nan"), "the table has no score of this image with this prompt")
        return Verdict(found)


def load_table_scores(path: Path) -> TableScores:
    """Read a CSV file with the columns `image`, `prompt` and `score`.

    `image` is a path relative to the file's folder, or a pixel hash; see
    `evaluator.scorers.questions.table`. Rows with an empty score are left out.
    """
    table = read_table(path, ("image", "prompt", "score"))
    found = by_image(path, table, "prompt", "score")
    return TableScores(
        {key: finite_number(cell, path) for key, cell in found.items() if cell.strip()}
    )


def load(row: ScorerRow, options: Options, runtime: Runtime) -> Loaded:
    """A table of scores; the operator names another than the row's under the role `table`."""
    del options
    path = table_of(row, runtime)
    if path is None:
        raise SubmitterError(
            "table_missing",
            f"{row.name} looks scores up in a table.",
            "Name a CSV file with the columns image, prompt and score as table.",
        )
    scorer = load_table_scores(path)
    record = {"device": "none", "scores": f"{path.name} sha256:{sha256_of(path)}"}
    return Loaded(scorer, record)


FAMILY = Family("table of scores", Options, load)
