"""A part as the bytes of one Parquet file: a table of scores, elements and answers, and the rest.

Rows without `element_id` and `question_id` are scores of pairs; `score` is what an answer
contributes in the rows of answers. Counts, findings and the environment are metadata.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.parquet import parquet_table
from evaluator.scoring.asking import Finding
from evaluator.scoring.parts import AnswerRow, ElementScore, Part

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
_NO_ANSWER = (None, None, None, None, None)
_PLAIN = (
    "environment",
    "asks_elements",
    "images",
    "calls",
    "images_decoded",
    "images_encoded",
    "texts_encoded",
    "seconds",
    "peak_memory_bytes",
)
"""Fields of a part that JSON holds as they are."""


class FormatError(ValueError):
    """The bytes are not a part."""


def encoded(part: Part, fingerprint: str) -> bytes:
    """A part of the run with this fingerprint."""
    meta = {
        "fingerprint": fingerprint,
        "findings": [asdict(finding) for finding in part.findings],
        **{name: getattr(part, name) for name in _PLAIN},
    }
    columns = list(zip(*_rows(part), strict=True)) or [()] * len(_SCHEMA.names)
    arrays = dict(zip(_SCHEMA.names, columns, strict=True))
    schema = _SCHEMA.with_metadata({_META: json.dumps(meta).encode()})
    buffer = io.BytesIO()
    pq.write_table(pa.table(arrays, schema=schema), buffer)
    return buffer.getvalue()


def decoded(data: bytes) -> tuple[Part, str]:
    """A part and the fingerprint of its run.

    Raises:
        FormatError: the bytes are not a part, or one of another version.
    """
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
    return Part(
        scores=scores,
        elements=tuple(elements),
        answers=tuple(answers),
        findings=tuple(Finding(**finding) for finding in meta["findings"]),
        **{name: meta[name] for name in _PLAIN},
    )
