"""Opens what metrics that ask questions have in common: the question file and who answers."""

from __future__ import annotations

from pathlib import Path

from benchmarks.errors import SubmitterError
from evaluator.scorers.answering import LoadedAnswerModel
from evaluator.scorers.family import Loaded
from evaluator.scorers.models.vlm_loading import load_answer_model
from evaluator.scorers.models.vlm_reading import Reading
from evaluator.scorers.questions.file import QuestionFile, load_questions
from evaluator.scorers.questions.metric import QuestionMetric
from evaluator.scorers.questions.scorer import QuestionScorer
from evaluator.scorers.questions.table import load_table_answers
from evaluator.scorers.row import ScorerRow
from evaluator.scorers.runtime import Runtime

TABLE = "table"
"""Role of a table of answers, which takes the place of the model."""


def open_questions(row: ScorerRow, runtime: Runtime, writer: str) -> QuestionFile:
    """The question file that the operator names.

    Args:
        row: for the message.
        runtime: names the file.
        writer: of the questions that this metric is defined with.

    Raises:
        SubmitterError: `questions_missing`, `bad_questions`.
    """
    if runtime.questions is None:
        raise SubmitterError(
            "questions_missing",
            f"{row.name} asks questions, which are written before images are scored.",
            f"Write them with `python -m evaluator questions write --writer {writer}`, look them "
            "over, and name the file with --questions.",
        )
    return load_questions(runtime.questions)


def open_model(row: ScorerRow, runtime: Runtime, reading: Reading) -> LoadedAnswerModel:
    """The row's VLM, or a table of answers (role `table`), where there is one.

    Raises:
        SubmitterError: what is wrong with the checkpoint or the table.
    """
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
    """The scorer, with what its record says.

    Raises:
        SubmitterError: `questions_unfit`, a question that this metric cannot ask.
    """
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
