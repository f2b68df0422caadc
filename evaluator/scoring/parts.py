"""Partial results of a run: scores, what led to them, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from evaluator.scoring.asking import Asked, Finding, Reply


@dataclass(frozen=True, slots=True)
class ElementScore:
    """The score of one element of one pair."""

    pair_id: str
    element_id: str
    score: float


class AnswerRow(NamedTuple):
    """One question that was asked about a pair; see `contract.Answer`."""

    pair_id: str
    question_id: str
    question: str
    expected: str
    raw: str
    value: float
    valid: bool


@dataclass(frozen=True, slots=True)
class Part:
    """Scores of some pairs, and what they cost.

    Attributes:
        scores: pair_id to score; NaN where the scorer gave none.
        elements: scores of the elements of these pairs.
        answers: what was asked on the way to these scores.
        findings: what a reader must know of these pairs, their images and their texts.
        environment: device, precision and versions they were scored with.
        asks_elements: whether the scorer can score elements.
        images: images that were asked about.
        calls: calls of the scorer.
        images_decoded: images that were decoded.
        images_encoded: rows that went through the image encoder.
        texts_encoded: rows that went through the text encoder.
        seconds: how long the scorer took.
        peak_memory_bytes: the most memory it held until then.
    """

    scores: dict[str, float] = field(default_factory=dict)
    elements: tuple[ElementScore, ...] = ()
    answers: tuple[AnswerRow, ...] = ()
    findings: tuple[Finding, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    asks_elements: bool = False
    images: int = 0
    calls: int = 0
    images_decoded: int = 0
    images_encoded: int = 0
    texts_encoded: int = 0
    seconds: float = 0.0
    peak_memory_bytes: int = 0


def part_of(
    asked: Sequence[Sequence[Asked]],
    reply: Reply,
    *,
    environment: dict[str, str],
    peak_memory_bytes: int,
) -> Part:
    """What came back for a batch.

    Args:
        asked: the pairs of each image, as they were asked.
        reply: to them.
        environment: of the asker.
        peak_memory_bytes: of the asker.
    """
    pairs = [
        (pair, verdict)
        for pairs, verdicts in zip(asked, reply.verdicts, strict=True)
        for pair, verdict in zip(pairs, verdicts, strict=True)
    ]
    work = reply.work
    return Part(
        scores={pair.pair_id: float(verdict.score) for pair, verdict in pairs},
        elements=tuple(_elements(asked, reply)),
        answers=tuple(
            AnswerRow(
                pair.pair_id, a.question_id, a.question, a.expected, a.raw, float(a.value), a.valid
            )
            for pair, verdict in pairs
            for a in verdict.answers
        ),
        findings=reply.findings,
        environment=dict(environment),
        asks_elements=reply.elements is not None,
        images=len(asked),
        calls=work.calls,
        images_decoded=work.images_decoded,
        images_encoded=work.images_encoded,
        texts_encoded=work.texts_encoded,
        seconds=work.seconds,
        peak_memory_bytes=peak_memory_bytes,
    )


def joined(parts: Iterable[Part]) -> Part:
    """Many parts as one; a finding that several of them made is there once."""
    many = list(parts)

    def total(name: str) -> Any:
        return sum(getattr(part, name) for part in many)

    return Part(
        scores={pair_id: score for part in many for pair_id, score in part.scores.items()},
        elements=tuple(element for part in many for element in part.elements),
        answers=tuple(answer for part in many for answer in part.answers),
        findings=distinct(finding for part in many for finding in part.findings),
        environment=_environment(many),
        asks_elements=any(part.asks_elements for part in many),
        images=total("images"),
        calls=total("calls"),
        images_decoded=total("images_decoded"),
        images_encoded=total("images_encoded"),
        texts_encoded=total("texts_encoded"),
        seconds=total("seconds"),
        peak_memory_bytes=max((part.peak_memory_bytes for part in many), default=0),
    )


def distinct(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One finding per code and item, in the order of their first."""
    first: dict[tuple[str, str, str], Finding] = {}
    for finding in findings:
        first.setdefault((finding.code, finding.item, finding.item_id), finding)
    return tuple(first.values())


def _elements(asked: Sequence[Sequence[Asked]], reply: Reply) -> Iterable[ElementScore]:
    if reply.elements is None:
        return
    for pairs, rows in zip(asked, reply.elements, strict=True):
        for pair, values in zip(pairs, rows, strict=True):
            for element, value in zip(pair.elements, values, strict=True):
                yield ElementScore(pair.pair_id, element.element_id, float(value))


def _environment(parts: Iterable[Part]) -> dict[str, str]:
    """Where starts of a run were made in different environments, all of them are named."""
    values: dict[str, list[str]] = {}
    for part in parts:
        for name, value in part.environment.items():
            known = values.setdefault(name, [])
            known += [one for one in value.split("; ") if one not in known]
    return {name: "; ".join(found) for name, found in values.items()}
