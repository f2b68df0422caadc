"""Results of a run: the parts that batches leave, and the score column of all of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

import pandas as pd

from benchmarks.schema import Questions
from evaluator.scoring.asking import Finding, PairRequest, Reply, Work, summed


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
    """Scores of some pairs, and what they cost."""

    # pair_id to score; NaN where the scorer gave none
    scores: dict[str, float] = field(default_factory=dict)
    elements: tuple[ElementScore, ...] = ()  # scores of the elements of these pairs
    answers: tuple[AnswerRow, ...] = ()  # what was asked on the way to these scores
    # what a reader must know of these pairs, their images and their texts
    findings: tuple[Finding, ...] = ()
    # device, precision and versions they were scored with
    environment: dict[str, str] = field(default_factory=dict)
    asks_elements: bool = False  # whether the scorer can score elements
    images: int = 0  # images that were asked about
    work: Work = field(default_factory=Work)  # what it cost
    peak_memory_bytes: int = 0  # the most memory it held until then


def part_of(
    asked: Sequence[Sequence[PairRequest]],
    reply: Reply,
    *,
    environment: dict[str, str],
    peak_memory_bytes: int,
) -> Part:
    """What came back for a batch."""
    pairs = [
        (pair, verdict)
        for pairs, verdicts in zip(asked, reply.verdicts, strict=True)
        for pair, verdict in zip(pairs, verdicts, strict=True)
    ]
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
        work=reply.work,
        peak_memory_bytes=peak_memory_bytes,
    )


def merged_parts(parts: Iterable[Part]) -> Part:
    """Many parts as one; a finding that several of them made is there once."""
    many = list(parts)

    return Part(
        scores={pair_id: score for part in many for pair_id, score in part.scores.items()},
        elements=tuple(element for part in many for element in part.elements),
        answers=tuple(answer for part in many for answer in part.answers),
        findings=distinct(finding for part in many for finding in part.findings),
        environment=_environment(many),
        asks_elements=any(part.asks_elements for part in many),
        images=sum(part.images for part in many),
        work=summed(part.work for part in many),
        peak_memory_bytes=max((part.peak_memory_bytes for part in many), default=0),
    )


def distinct(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One finding per code and item, in the order of their first."""
    first: dict[tuple[str, str, str], Finding] = {}
    for finding in findings:
        first.setdefault((finding.code, finding.item, finding.item_id), finding)
    return tuple(first.values())


def _elements(asked: Sequence[Sequence[PairRequest]], reply: Reply) -> Iterable[ElementScore]:
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


_NO_SCORE = "no_score"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run cost, all its starts together."""

    images: int  # images that were asked about
    pairs: int  # pairs that were scored
    seconds: float  # time spent in the scorer
    pairs_per_s: float  # their ratio; 0 where no time passed
    peak_memory_bytes: int  # the most memory that the scorer held
    resumed_pairs: int  # pairs that were kept from an earlier start
    calls: int = 0  # calls of the scorer
    images_decoded: int = 0  # images that were decoded
    images_encoded: int = 0  # rows that went through the image encoder
    texts_encoded: int = 0  # rows that went through the text encoder


@dataclass(frozen=True)
class RunVerdict:
    """How much of a run has scores."""

    pairs: int  # that were asked for
    scored: int  # of them, with a score
    # code of a finding to the number of pairs without a score for that reason
    unscored: Mapping[str, int] = field(default_factory=dict)
    # code of a finding to the number of images, texts or pairs that are scored all the same
    remarks: Mapping[str, int] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """The same in words."""
        if self.scored == self.pairs:
            said = f"All {self.pairs} pairs were scored"
        else:
            missing = self.pairs - self.scored
            said = (
                f"{self.scored} of {self.pairs} pairs were scored and {missing} were not "
                f"({_listed(self.unscored)})"
            )
        return f"{said}; to be known: {_listed(self.remarks)}." if self.remarks else f"{said}."


@dataclass(frozen=True)
class ScoreColumn:
    """The scores of one metric on one benchmark."""

    # index `pair_id` in the benchmark's order; NaN: the scorer gave no score
    overall: pd.Series[float]
    # columns `pair_id`, `element_id`, `score`, or None where there are none
    elements: pd.DataFrame | None
    cost: Cost  # what it took
    # columns `pair_id`, `question_id`, `question`, `expected`, `raw`, `value`, `valid`, or None
    # where the metric asks no questions
    answers: pd.DataFrame | None
    findings: tuple[Finding, ...]  # one per code and item
    environment: Mapping[str, str]  # what the scores were made with
    verdict: RunVerdict  # how much of the run has scores


def column_of(questions: Questions, whole: Part, *, resumed: int, engine: str) -> ScoreColumn:
    """The column of a run that is complete."""
    pair_ids = [pair.pair_id for pair in questions.pairs]
    overall = pd.Series(
        [whole.scores[pair_id] for pair_id in pair_ids],
        index=pd.Index(pair_ids, name="pair_id"),
        dtype="float64",
        name="score",
    )
    findings = distinct([*_empty_texts(questions), *whole.findings])
    with_elements = whole.asks_elements and bool(questions.elements)
    return ScoreColumn(
        overall=overall,
        elements=_element_table(questions, whole) if with_elements else None,
        cost=_cost(whole, resumed),
        answers=_answer_table(questions, whole) if whole.answers else None,
        findings=findings,
        environment={**whole.environment, "engine": engine},
        verdict=_verdict(questions, whole, findings),
    )


def _cost(whole: Part, resumed: int) -> Cost:
    pairs, seconds = len(whole.scores), whole.work.seconds
    return Cost(
        images=whole.images,
        pairs=pairs,
        pairs_per_s=pairs / seconds if seconds > 0 else 0.0,
        peak_memory_bytes=whole.peak_memory_bytes,
        resumed_pairs=resumed,
        **asdict(whole.work),
    )


def _empty_texts(questions: Questions) -> Iterator[Finding]:
    asked = {pair.text_id for pair in questions.pairs}
    for text_id, text in questions.texts.items():
        if text_id in asked and not text.strip():
            message = "The prompt is empty; its pairs are scored as the scorer scores that."
            yield Finding("text_empty", "text", text_id, message, scored=True)


def _verdict(questions: Questions, whole: Part, findings: tuple[Finding, ...]) -> RunVerdict:
    reasons = {(f.item, f.item_id): f.code for f in findings if not f.scored}
    unscored: Counter[str] = Counter()
    for pair in questions.pairs:
        if math.isnan(whole.scores[pair.pair_id]):
            of = ("pair", pair.pair_id), ("image", pair.image_id), ("text", pair.text_id)
            unscored[next((reasons[key] for key in of if key in reasons), _NO_SCORE)] += 1
    return RunVerdict(
        pairs=len(questions.pairs),
        scored=len(questions.pairs) - unscored.total(),
        unscored=dict(unscored.most_common()),
        remarks=dict(Counter(f.code for f in findings if f.scored).most_common()),
    )


def _element_table(questions: Questions, whole: Part) -> pd.DataFrame:
    """Elements in the benchmark's order of pairs, and in each text's own order."""
    scores = {(one.pair_id, one.element_id): one.score for one in whole.elements}
    rows = [
        (pair.pair_id, element.element_id, scores.get((pair.pair_id, element.element_id), math.nan))
        for pair in questions.pairs
        for element in questions.elements.get(pair.text_id, ())
    ]
    frame = pd.DataFrame(rows, columns=["pair_id", "element_id", "score"])
    return frame.astype({"score": "float64"})


def _answer_table(questions: Questions, whole: Part) -> pd.DataFrame:
    """Answers in the benchmark's order of pairs, and as they were asked."""
    place = {pair.pair_id: n for n, pair in enumerate(questions.pairs)}
    rows = sorted(whole.answers, key=lambda answer: place[answer.pair_id])
    frame = pd.DataFrame(rows, columns=list(AnswerRow._fields))
    return frame.astype({"value": "float64", "valid": "bool"})


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {code}" for code, n in counts.items())
