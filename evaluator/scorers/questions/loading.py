"""Loaders of metrics that ask questions: question files and models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.errors import SubmitterError
from evaluator.scorers.answering import AnswerModel, Reading
from evaluator.scorers.checkpoints import Source, resolve
from evaluator.scorers.models.text_models import (
    CausalTextModel,
    SentenceSimilarity,
    T5Entailment,
    load_entailment,
    load_similarity,
    load_text_model,
)
from evaluator.scorers.models.vlm_loading import load_answer_model
from evaluator.scorers.questions.files import QuestionFile, load_questions
from evaluator.scorers.questions.metric import QuestionMetric, QuestionScorer
from evaluator.scorers.questions.table import (
    load_table_answers,
    table_of,
)
from evaluator.scorers.registry import Checkpoint, Loaded, Runtime, ScorerRow


def open_questions(
    row: ScorerRow, runtime: Runtime, writer: str, *, imported: bool = False
) -> QuestionFile:
    """The question file that the operator names.

    `writer`: who writes such questions; `imported`: whether they come from a release of that name.
    """
    if runtime.questions is None:
        how = f"import {writer}" if imported else f"write --writer {writer}"
        raise SubmitterError(
            "questions_missing",
            f"{row.name} asks questions, which are written before images are scored.",
            f"Make them with `python -m evaluator questions {how}`, look them over, and name the "
            "file with --questions.",
        )
    return load_questions(runtime.questions)


def open_model(row: ScorerRow, runtime: Runtime, reading: Reading) -> AnswerModel:
    """The row's VLM, or a table of answers (role `table`), where there is one."""
    table = table_of(row, runtime)
    if table is not None:
        return load_table_answers(table)
    return load_answer_model(row, runtime, "model", reading)


def loaded(
    metric: QuestionMetric,
    model: AnswerModel,
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


def asking(
    metric: Callable[[Any], QuestionMetric], writer: str, *, imported: bool = False
) -> Callable[[ScorerRow, Any, Runtime], Loaded]:
    """Loads the questions, and the VLM or a table of its answers, for a metric made of its options."""

    def load(row: ScorerRow, options: Any, runtime: Runtime) -> Loaded:
        questions = open_questions(row, runtime, writer, imported=imported)
        return loaded(metric(options), open_model(row, runtime, options.reading), questions)

    return load


def open_text_model(
    name: str, runtime: Runtime, revision: str = ""
) -> tuple[CausalTextModel, Source]:
    """A language model by Hub id or folder, with where it came from."""
    source, _ = _resolved(name, runtime, revision)
    return load_text_model(source, runtime, "bfloat16"), source


def open_entailment(name: str, runtime: Runtime) -> T5Entailment:
    """A model of entailment by Hub id or folder."""
    source, row = _resolved(name, runtime, "")
    return load_entailment(source, row, runtime)


def open_encoder(
    name: str, runtime: Runtime, revision: str = ""
) -> tuple[SentenceSimilarity, Source]:
    """An encoder of sentences by Hub id or folder, with where it came from."""
    source, row = _resolved(name, runtime, revision)
    return load_similarity(source, row, runtime), source


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
