"""Noun phrases of a prompt, and what BVQA and VQ2 make of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from benchmarks.errors import SubmitterError
from evaluator.scorers.questions.metric import filled
from evaluator.scorers.questions.writers import wording
from evaluator.scorers.questions.writers.writer import (
    WritesText,
    Written,
    lines_of,
    make_questions,
)


class Spans(Protocol):
    """Finds phrases."""

    def of(self, prompt: str) -> tuple[list[str], list[str]]:
        """The phrases of a prompt, in its order, and what could not be used."""


class SpacySpans:
    """Noun chunks of spaCy, as the authors of BVQA take them, and entities too for VQ2.

    Args:
        entities: whether named entities count.
        pipeline: name of an installed spaCy pipeline.

    Raises:
        SubmitterError: `spacy_missing`.
    """

    def __init__(self, *, entities: bool, pipeline: str = "en_core_web_sm") -> None:
        try:
            load: Callable[[str], Any] = import_module("spacy").load
            self._parse = load(pipeline)
        except (ImportError, OSError) as error:
            raise SubmitterError(
                "spacy_missing",
                f"spaCy with its pipeline {pipeline} is not installed here.",
                "Install both, or let a language model list the phrases with --model.",
            ) from error
        self._entities = entities

    def of(self, prompt: str) -> tuple[list[str], list[str]]:
        """See `Spans`."""
        parsed = self._parse(prompt)
        found = [(chunk.start_char, chunk.text) for chunk in parsed.noun_chunks]
        if self._entities:
            found += [(entity.start_char, entity.text) for entity in parsed.ents]
        return list(dict.fromkeys(text for _, text in sorted(found))), []


@dataclass(frozen=True)
class ModelSpans:
    """Noun phrases as a language model lists them; phrases that are not the prompt's are faults."""

    model: WritesText
    max_new_tokens: int = 256

    def of(self, prompt: str) -> tuple[list[str], list[str]]:
        """See `Spans`."""
        text = self.model.generate([filled(wording.SPANS, prompt=prompt)], self.max_new_tokens)[0]
        found: dict[str, None] = {}
        faults: list[str] = []
        for line in lines_of(text):
            if line.lower() in prompt.lower():
                found[line] = None
            else:
                faults.append(f"{line!r} is not in the prompt")
        return list(found), faults


@dataclass(frozen=True)
class BvqaWriter:
    """One question per noun phrase: the phrase with a question mark (T2I-CompBench).

    Attributes:
        spans: finds them.
    """

    spans: Spans

    def write(self, prompt: str) -> Written:
        """No call but that for the phrases."""
        phrases, faults = self.spans.of(prompt)
        if not phrases and not faults:
            return Written(none_because="no noun phrases")
        questions, bad = make_questions(
            prompt,
            (
                {
                    "question_id": str(number),
                    "question": f"{phrase}?",
                    "choices": ("yes", "no"),
                    "expected": "yes",
                    "element": phrase,
                }
                for number, phrase in enumerate(phrases, start=1)
            ),
        )
        return Written(questions, (*faults, *bad))


@dataclass(frozen=True)
class Vq2Writer:
    """Questions whose answer is a phrase of the prompt (Yarom et al. 2023, VQ2).

    The authors sample five per phrase, without a seed; here they are the model's likeliest list.

    Attributes:
        model: writes them.
        spans: finds the phrases.
        per_span: most questions per phrase.
    """

    model: WritesText
    spans: Spans
    per_span: int = 5

    def write(self, prompt: str) -> Written:
        """One call per phrase, all of them together."""
        phrases, faults = self.spans.of(prompt)
        if not phrases:
            return Written((), tuple(faults), "" if faults else "no phrases")
        asked = [
            filled(wording.VQ2_QUESTIONS, prompt=prompt, answer=phrase, count=str(self.per_span))
            for phrase in phrases
        ]
        fields = [
            {"question": question, "expected": phrase, "element": phrase}
            for phrase, text in zip(phrases, self.model.generate(asked, 256), strict=True)
            for question in self._questions(phrase, text, faults)
        ]
        numbered = ({"question_id": str(n), **one} for n, one in enumerate(fields, start=1))
        questions, bad = make_questions(prompt, numbered)
        return Written(questions, (*faults, *bad))

    def _questions(self, phrase: str, text: str, faults: list[str]) -> list[str]:
        lines = list(dict.fromkeys(lines_of(text)))
        faults += [f"{line!r} is no question" for line in lines if not line.endswith("?")]
        found = [line for line in lines if line.endswith("?")][: self.per_span]
        if not found:
            faults.append(f"{phrase!r} has no question")
        return found
