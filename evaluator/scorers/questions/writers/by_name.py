"""The writers, by name, with the models they need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from benchmarks.errors import SubmitterError
from evaluator.scorers.questions.entailing import Entails
from evaluator.scorers.questions.writers.dsg import DsgWriter
from evaluator.scorers.questions.writers.evalmuse import EvalMuseWriter
from evaluator.scorers.questions.writers.gecko import GeckoWriter
from evaluator.scorers.questions.writers.spans import (
    BvqaWriter,
    ModelSpans,
    SpacySpans,
    Spans,
    Vq2Writer,
)
from evaluator.scorers.questions.writers.tifa import TifaWriter
from evaluator.scorers.questions.writers.writer import Writer, WritesText

WriterName = Literal["tifa", "dsg", "gecko", "evalmuse", "bvqa", "vq2"]
PhrasesBy = Literal["model", "spacy"]


@dataclass(frozen=True)
class Helpers:
    """What writers may need.

    Attributes:
        model: writes; only BVQA with spaCy does without.
        verifier: confirms TIFA questions from the prompt.
        entails: says how likely the prompt entails Gecko questions.
        elements: of prompts whose elements are known (EvalMuse).
        phrases: who finds the phrases of BVQA and VQ2.
    """

    model: WritesText | None = None
    verifier: WritesText | None = None
    entails: Entails | None = None
    elements: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    phrases: PhrasesBy = "model"


def needs_model(name: WriterName, phrases: PhrasesBy) -> bool:
    """Whether a writer needs a language model."""
    return not (name == "bvqa" and phrases == "spacy")


def make_writer(name: WriterName, helpers: Helpers) -> Writer:
    """A writer.

    Raises:
        SubmitterError: `writer_needs_model`; `spacy_missing`.
    """
    if name == "bvqa":
        return BvqaWriter(_spans(helpers, entities=False))
    model = _model(helpers)
    if name == "tifa":
        return TifaWriter(model, helpers.verifier)
    if name == "dsg":
        return DsgWriter(model)
    if name == "gecko":
        return GeckoWriter(model, helpers.entails)
    if name == "evalmuse":
        return EvalMuseWriter(model, helpers.elements)
    return Vq2Writer(model, _spans(helpers, entities=True))


def _spans(helpers: Helpers, *, entities: bool) -> Spans:
    if helpers.phrases == "spacy":
        return SpacySpans(entities=entities)
    return ModelSpans(_model(helpers))


def _model(helpers: Helpers) -> WritesText:
    if helpers.model is None:
        raise SubmitterError(
            "writer_needs_model",
            "This writer asks a language model.",
            "Name one with --model, by Hub id or folder.",
        )
    return helpers.model
