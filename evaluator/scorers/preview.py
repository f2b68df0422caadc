"""Tries a metric on a few images and prompts, on the path that a run takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.errors import SubmitterError
from benchmarks.schema import Element
from evaluator.scorers.in_process import ModelSource
from evaluator.scorers.registry import Runtime, ScorerRow
from evaluator.scoring import batch_work
from evaluator.scoring.asking import Answered, Batch, Finding, PairRequest, RawItem
from evaluator.scoring.contract import Answer
from evaluator.scoring.images import ImageError, decode


@dataclass(frozen=True)
class PairPreview:
    """One pair, scored."""

    image: str  # path as it was given
    prompt: str  # as it was given
    score: float  # NaN where there is none
    problem: str = ""  # why there is none
    truncated: bool = False  # whether the prompt's end was not read
    image_remarks: tuple[str, ...] = ()  # what was done to the image
    prompt_remarks: tuple[str, ...] = ()  # what there is to say of the prompt, and of the pair
    # score of each named part; NaN where there is none
    elements: dict[str, float] = field(default_factory=dict)
    answers: tuple[Answer, ...] = ()  # what was asked on the way

    def to_json(self) -> dict[str, Any]:
        """For programs; what is no number is null."""
        return {
            "image": self.image,
            "prompt": self.prompt,
            "score": _finite(self.score),
            "problem": self.problem,
            "truncated": self.truncated,
            "remarks": [*self.image_remarks, *self.prompt_remarks],
            "elements": {name: _finite(value) for name, value in self.elements.items()},
            "answers": [
                {
                    "question_id": answer.question_id,
                    "question": answer.question,
                    "expected": answer.expected,
                    "raw": answer.raw,
                    "value": _finite(answer.value),
                    "valid": answer.valid,
                }
                for answer in self.answers
            ],
        }


@dataclass(frozen=True)
class Preview:
    """Every image with every prompt, and what they were scored with."""

    pairs: tuple[PairPreview, ...]
    environment: dict[str, str]


def try_out(
    row: ScorerRow,
    runtime: Runtime,
    images: Sequence[Path],
    prompts: Sequence[str],
    elements: Sequence[str] = (),
) -> Preview:
    """Score every image with every prompt."""
    named = tuple(Element(str(place), text) for place, text in enumerate(elements))
    items = tuple(
        RawItem(
            str(i),
            _read(path),
            tuple(PairRequest(f"{i}-{j}", str(j), text, named) for j, text in enumerate(prompts)),
        )
        for i, path in enumerate(images)
    )
    with ModelSource(row, runtime).open() as client:
        answered = batch_work.answered(client, Batch(0, items))
    return Preview(
        tuple(
            _tried(answered, str(path), text, (i, j), elements)
            for i, path in enumerate(images)
            for j, text in enumerate(prompts)
        ),
        answered.environment,
    )


def _read(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise SubmitterError("image_missing", f"There is no image {path}.") from error
    except OSError as error:
        why = error.strerror or str(error)
        raise SubmitterError("image_unreadable", f"{path} cannot be read ({why}).") from error
    try:
        decode(data)
    except ImageError as error:
        raise SubmitterError("image_unreadable", f"{path} cannot be scored: {error}.") from error
    return data


def _tried(
    answered: Answered, image: str, prompt: str, place: tuple[int, int], elements: Sequence[str]
) -> PairPreview:
    i, j = place
    reply = answered.reply
    verdict = reply.verdicts[i][j]
    of_image = _about(reply.findings, "image", str(i))
    of_text = _about(reply.findings, "text", str(j))
    of_pair = _about(reply.findings, "pair", f"{i}-{j}")
    found = reply.elements[i][j] if reply.elements is not None and elements else ()
    return PairPreview(
        image,
        prompt,
        verdict.score,
        verdict.problem,
        any(finding.code == "text_truncated" for finding in of_text),
        tuple(finding.message for finding in of_image),
        tuple(finding.message for finding in (*of_text, *of_pair)),
        {name: float(value) for name, value in zip(elements, found, strict=False)},
        verdict.answers,
    )


def _about(findings: Sequence[Finding], kind: str, item_id: str) -> list[Finding]:
    return [each for each in findings if each.item == kind and each.item_id == item_id]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
