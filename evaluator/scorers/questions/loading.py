"""Loaders of metrics that ask questions: question files, models, tables of answers."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from benchmarks.accumulation.command import read_columns
from benchmarks.errors import SubmitterError
from benchmarks.sources.pins import sha256_of
from evaluator.scorers.answering import Candidate, LoadedAnswerModel, Reading, pixel_hash
from evaluator.scorers.checkpoints import Source, resolve
from evaluator.scorers.models.text_models import (
    T5Entailment,
    TextModel,
    load_entailment,
    load_text_model,
)
from evaluator.scorers.models.vlm_loading import load_answer_model
from evaluator.scorers.questions.files import QuestionFile, load_questions
from evaluator.scorers.questions.metric import QuestionMetric, QuestionScorer
from evaluator.scorers.registry import Checkpoint, Loaded, Runtime, ScorerRow
from evaluator.scoring.images import ImageError, canonical_png

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
    table = read_columns(path, ("image", "question", "answer"))
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


TABLE = "table"  # Role of a table of answers, which takes the place of the model


def open_questions(row: ScorerRow, runtime: Runtime, writer: str) -> QuestionFile:
    """The question file that the operator names."""
    if runtime.questions is None:
        raise SubmitterError(
            "questions_missing",
            f"{row.name} asks questions, which are written before images are scored.",
            f"Write them with `python -m evaluator questions write --writer {writer}`, look them "
            "over, and name the file with --questions.",
        )
    return load_questions(runtime.questions)


def open_model(row: ScorerRow, runtime: Runtime, reading: Reading) -> LoadedAnswerModel:
    """The row's VLM, or a table of answers (role `table`), where there is one."""
    table = table_of(row, runtime)
    if table is not None:
        return load_table_answers(table)
    return load_answer_model(row, runtime, "model", reading)


def table_of(row: ScorerRow, runtime: Runtime) -> Path | None:
    """The table that takes the place of a model: the operator's, else the row's; None without."""
    if TABLE in runtime.folders or TABLE not in row.checkpoints:
        return runtime.folders.get(TABLE)
    return Path(row.checkpoints[TABLE].id)


def loaded(
    metric: QuestionMetric,
    model: LoadedAnswerModel,
    questions: QuestionFile,
    extra: dict[str, str] | None = None,
) -> Loaded:
    """The scorer, with what its record says."""
    for question in questions:
        why = metric.unfit(question)
        if why:
            raise SubmitterError(
                "questions_unfit",
                f"{questions.name}: question {question.question_id!r} of prompt "
                f"{question.prompt!r} {why}.",
                "Use the questions that this metric is defined with.",
            )
    environment = {
        **model.environment,
        "questions": f"{questions.name} sha256:{questions.sha256}",
        **(extra or {}),
    }
    return Loaded(QuestionScorer(metric, model, questions), environment)


def open_text_model(name: str, runtime: Runtime, revision: str = "") -> tuple[TextModel, Source]:
    """A language model by Hub id or folder, with where it came from."""
    source, _ = _resolved(name, runtime, revision)
    return load_text_model(source, runtime, "bfloat16"), source


def open_entailment(name: str, runtime: Runtime) -> T5Entailment:
    """A model of entailment by Hub id or folder."""
    source, row = _resolved(name, runtime, "")
    return load_entailment(source, row, runtime)


def _resolved(name: str, runtime: Runtime, revision: str) -> tuple[Source, ScorerRow]:
    row = ScorerRow(
        name="question-writer",
        family="question_answering",
        title="Question writer",
        summary="Writes questions.",
        formula="none",
        source="none",
        checkpoints={"model": Checkpoint(id=name, revision=revision)},
    )
    folder = Path(name)
    here = replace(runtime, folders={"model": folder}) if folder.is_dir() else runtime
    return resolve(row, here), row
