"""Loads the models that write, confirm and filter questions; imports torch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from evaluator.scorers.checkpoints import Source, resolve
from evaluator.scorers.models.entailment import T5Entailment, load_entailment
from evaluator.scorers.models.text_generation import TextModel, load_text_model
from evaluator.scorers.row import Checkpoint, ScorerRow
from evaluator.scorers.runtime import Runtime


def open_text_model(name: str, runtime: Runtime, revision: str = "") -> tuple[TextModel, Source]:
    """A language model by Hub id or folder, with where it came from.

    Raises:
        SubmitterError: what is wrong with the checkpoint.
        TransientError: `hub_unreachable`.
    """
    source, _ = _resolved(name, runtime, revision)
    return load_text_model(source, runtime, "bfloat16"), source


def open_entailment(name: str, runtime: Runtime) -> T5Entailment:
    """A model of entailment by Hub id or folder.

    Raises:
        SubmitterError: what is wrong with the checkpoint.
        TransientError: `hub_unreachable`.
    """
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
