"""Results of a run: parts that batches leave, the score column of all, and the shards they are kept in.

A run that was cut off goes on from its shards.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.errors import PlatformError, TransientError
from benchmarks.parquet import parquet_table
from benchmarks.schema import Questions
from benchmarks.sources.output import replace_durably, sync_folder
from evaluator.scoring.asking import PLAN_VERSION, Finding, PairRequest, Reply, Work, summed
from leaderboard.records import Cost


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
    # pair_id to the scores of the outputs after the first; absent where there are none
    others: dict[str, tuple[float, ...]] = field(default_factory=dict)
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
        others={pair.pair_id: verdict.others for pair, verdict in pairs if verdict.others},
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
        others={pair_id: scores for part in many for pair_id, scores in part.others.items()},
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


NO_SCORE = "no_score"


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
    cost: Cost  # what it took, all its starts together
    # columns `pair_id`, `question_id`, `question`, `expected`, `raw`, `value`, `valid`, or None
    # where the metric asks no questions
    answers: pd.DataFrame | None
    findings: tuple[Finding, ...]  # one per code and item
    environment: Mapping[str, str]  # what the scores were made with
    verdict: RunVerdict  # how much of the run has scores
    # columns `pair_id`, `other_id`, `margin`, or None; see `ScoreTable.margins`
    margins: pd.DataFrame | None = None
    resumed_pairs: int = 0  # pairs that were kept from an earlier start
    others: tuple[ScoreColumn, ...] = ()  # of the outputs after the first, of a metric with several

    @property
    def outputs(self) -> tuple[ScoreColumn, ...]:
        """The column of every output, each with its own verdict and findings."""
        return replace(self, others=()), *self.others


def column_of(
    questions: Questions, whole: Part, *, resumed: int, engine: str, outputs: int = 1
) -> ScoreColumn:
    """The column of a run that is complete."""
    first = _column_of(questions, whole, resumed, engine)
    if outputs == 1:
        return first
    none = (math.nan,) * (outputs - 1)
    rows = {pair: (score, *whole.others.get(pair, none)) for pair, score in whole.scores.items()}
    if any(len(row) != outputs for row in rows.values()):
        raise PlatformError(
            "wrong_outputs", f"A scorer that has {outputs} outputs was scored with another number."
        )
    columns = []
    for place in range(outputs):
        own = {pair: row[place] for pair, row in rows.items()}
        # What is said of a pair without a score is said of the outputs that have none.
        findings = tuple(
            one
            for one in whole.findings
            if one.scored or one.item != "pair" or math.isnan(own.get(one.item_id, math.nan))
        )
        part = replace(whole, scores=own, others={}, findings=findings)
        columns.append(_column_of(questions, part, resumed, engine))
    return replace(columns[0], others=tuple(columns[1:]))


def _column_of(questions: Questions, whole: Part, resumed: int, engine: str) -> ScoreColumn:
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
        cost=_cost(whole),
        answers=_answer_table(questions, whole) if whole.answers else None,
        findings=findings,
        environment={**whole.environment, "engine": engine},
        verdict=_verdict(questions, whole, findings),
        resumed_pairs=resumed,
    )


def _cost(whole: Part) -> Cost:
    pairs, seconds = len(whole.scores), whole.work.seconds
    return Cost(
        images=whole.images,
        pairs=pairs,
        pairs_per_s=pairs / seconds if seconds > 0 else 0.0,
        peak_memory_bytes=whole.peak_memory_bytes,
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
            unscored[next((reasons[key] for key in of if key in reasons), NO_SCORE)] += 1
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


_META = b"assay"
_SCHEMA = pa.schema(
    [
        ("pair_id", pa.string()),
        ("element_id", pa.string()),
        ("score", pa.float64()),
        ("question_id", pa.string()),
        ("question", pa.string()),
        ("expected", pa.string()),
        ("raw", pa.string()),
        ("valid", pa.bool_()),
    ]
)
_OTHERS = "others"
"""Column of the scores of the outputs after the first."""
_NO_ANSWER = (None, None, None, None, None)
_PLAIN = ("environment", "asks_elements", "images", "peak_memory_bytes")
"""Fields of a part that JSON holds as they are; so it does what the part cost."""
_WORK = tuple(field.name for field in fields(Work) if field.name != "usd")
"""Fields that every shard has; those of earlier releases have no prices."""


class FormatError(ValueError):
    """The bytes are not a part."""


def encoded(part: Part, fingerprint: str) -> bytes:
    """A part of the run with this fingerprint."""
    meta = {
        "fingerprint": fingerprint,
        "findings": [asdict(finding) for finding in part.findings],
        **{name: getattr(part, name) for name in _PLAIN},
        **asdict(part.work),
    }
    columns = list(zip(*_rows(part), strict=True)) or [()] * len(_SCHEMA.names)
    arrays = dict(zip(_SCHEMA.names, columns, strict=True))
    kept = _SCHEMA
    if (
        part.others
    ):  # In no other shard, so that those of a metric with one output stay as they were.
        kept = kept.append(pa.field(_OTHERS, pa.list_(pa.float64())))
        further = [part.others.get(pair_id) for pair_id in part.scores]
        arrays[_OTHERS] = further + [None] * (len(arrays["pair_id"]) - len(further))
    schema = kept.with_metadata({_META: json.dumps(meta).encode()})
    buffer = io.BytesIO()
    pq.write_table(pa.table(arrays, schema=schema), buffer)
    return buffer.getvalue()


def decoded(data: bytes) -> tuple[Part, str]:
    """A part and the fingerprint of its run."""
    try:
        table = parquet_table(data)
        meta = json.loads((table.schema.metadata or {})[_META])
        return _part(table, meta), str(meta["fingerprint"])
    except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise FormatError(str(error)) from error


def _rows(part: Part) -> Iterator[tuple[object, ...]]:
    for pair_id, score in part.scores.items():
        yield pair_id, None, score, *_NO_ANSWER
    for one in part.elements:
        yield one.pair_id, one.element_id, one.score, *_NO_ANSWER
    for a in part.answers:
        yield a.pair_id, None, a.value, a.question_id, a.question, a.expected, a.raw, a.valid


def _part(table: Any, meta: dict[str, Any]) -> Part:
    scores: dict[str, float] = {}
    elements, answers = [], []
    columns = (table[name].to_pylist() for name in _SCHEMA.names)
    for pair_id, element_id, score, question_id, *rest in zip(*columns, strict=True):
        if question_id is not None:
            question, expected, raw, valid = rest
            answers.append(AnswerRow(pair_id, question_id, question, expected, raw, score, valid))
        elif element_id is not None:
            elements.append(ElementScore(pair_id, element_id, score))
        else:
            scores[pair_id] = score
    others: dict[str, tuple[float, ...]] = {}
    if _OTHERS in table.column_names:
        # The lines of scores come first.
        further = table[_OTHERS].to_pylist()
        others = {pair: tuple(row) for pair, row in zip(scores, further, strict=False) if row}
    return Part(
        scores=scores,
        others=others,
        elements=tuple(elements),
        answers=tuple(answers),
        findings=tuple(Finding(**finding) for finding in meta["findings"]),
        work=Work(**{name: meta[name] for name in _WORK}, usd=meta.get("usd", 0.0)),
        **{name: meta[name] for name in _PLAIN},
    )


_LOG = logging.getLogger(__name__)
_SUFFIX = ".parquet"


def run_fingerprint(
    *, submission: str, benchmark: str, revision: str, plan_version: int = PLAN_VERSION
) -> str:
    """What must be equal for a score to be worth keeping."""
    parts = json.dumps([submission, benchmark, revision, plan_version])
    return hashlib.sha256(parts.encode()).hexdigest()


@dataclass(frozen=True)
class ShardFolder:
    """The shards of one run. A file is named by the hash of its bytes, and written whole or not."""

    folder: Path  # made when the first shard is written
    fingerprint: str  # of the run (`run_fingerprint`); a shard of any other is removed

    def write(self, part: Part) -> Path:
        """Keep a part; when this returns, it survives a loss of power."""
        data = encoded(part, self.fingerprint)
        path = self.folder / f"{hashlib.sha256(data).hexdigest()}{_SUFFIX}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            replace_durably(path, data)
            sync_folder(self.folder)
        except OSError as error:
            raise TransientError(
                "disk_failed",
                f"Finished scores cannot be kept on the worker's disk: {error.strerror or error}.",
                "Make room for the folder `scratch` of the store.",
            ) from error
        return path

    def load(self, pair_ids: Collection[str]) -> Part:
        """All that is kept of these pairs; whatever cannot be trusted is removed and logged."""
        wanted = frozenset(pair_ids)
        scores: dict[str, float] = {}
        kept = []
        for path in sorted(path for path in self.folder.glob("*") if path.is_file()):
            try:
                part = self._read(path)
                _check_pairs(part, wanted, scores)
            except _UntrustedError as error:
                _LOG.warning("Removed shard %s of an earlier start: %s", path.name, error)
                path.unlink(missing_ok=True)
                continue
            scores |= part.scores
            kept.append(part)
        return merged_parts(kept)

    def clear(self) -> None:
        """Keep nothing."""
        for path in self.folder.glob("*"):
            if path.is_file():
                path.unlink(missing_ok=True)

    def _read(self, path: Path) -> Part:
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            # A worker that lost its lease may still be at work here.
            raise _UntrustedError("it was renamed or removed meanwhile") from error
        if path.name != f"{hashlib.sha256(data).hexdigest()}{_SUFFIX}":
            raise _UntrustedError("it is damaged or was not finished")
        try:
            part, fingerprint = decoded(data)
        except FormatError as error:
            raise _UntrustedError("it is not a shard") from error
        if fingerprint != self.fingerprint:
            raise _UntrustedError("it belongs to another submission, revision or plan")
        return part


class _UntrustedError(Exception):
    """A file that may not be used."""


def _check_pairs(part: Part, wanted: Collection[str], known: Collection[str]) -> None:
    for pair_id in part.scores:
        if pair_id not in wanted:
            raise _UntrustedError("it holds pairs that nobody asked for")
        if pair_id in known:
            raise _UntrustedError("it repeats pairs of another shard")


class Keeper:
    """Collects parts and writes them now and then: one file per batch would be too many."""

    def __init__(self, shards: ShardFolder, every_s: float, clock: Callable[[], float]) -> None:
        self._shards = shards
        self._every_s = every_s
        self._clock = clock
        self._flushed = clock()
        self._waiting: list[Part] = []
        self.written: list[Part] = []

    def add(self, part: Part) -> None:
        """Keep this part, soon."""
        self._waiting.append(part)
        if self._clock() - self._flushed >= self._every_s:
            self.flush()

    def flush(self) -> None:
        """Keep everything now."""
        if self._waiting:
            part = merged_parts(self._waiting)
            self._shards.write(part)
            self.written.append(part)
            self._waiting = []
        self._flushed = self._clock()
