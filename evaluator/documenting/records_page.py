"""`docs/reference/records.md`: every record and table that a store keeps, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel

from benchmarks.cases import SCHEMA as CASES
from benchmarks.rows import Row
from benchmarks.stored_scores import SCHEMA as SCORES
from evaluator.documenting.common_words import COMMON
from evaluator.documenting.field_words import field_words
from evaluator.documenting.markdown import code, page, table, text
from leaderboard.governance.bans import Ban
from leaderboard.governance.policy import Policy
from leaderboard.ledger.chronicle import Line
from leaderboard.ledger.queue_file import Queue, queue_bytes
from leaderboard.models.entries import ModelEntry
from leaderboard.models.pins import Pins
from leaderboard.publication.cell_columns import SCHEMA as CELLS
from leaderboard.ranking.pairs import SCHEMA as PAIRS
from leaderboard.records import Event, RunResult, Submission
from leaderboard.reevaluation.history import Announced
from leaderboard.store.backup.manifest import Manifest
from leaderboard.store.hub import card_texts

RECORDS: Mapping[type[BaseModel], str] = {
    Submission: "`submissions/ID/submission.json`: what was submitted.",
    Event: "`submissions/ID/events.jsonl`: a line for each transition.",
    RunResult: "`results/ID/BENCHMARK.json`: everything published about one run.",
    ModelEntry: "`models.json`: the models on the boards.",
    Line: "`chronicle/N.jsonl`: the public ledger.",
    Ban: "`bans.json`: accounts from which nothing is taken.",
    Policy: "`policy.json`: what each account is allowed.",
    Pins: "`model_judges.json`: which metrics an operator decided about.",
    Announced: "`reevaluation/editions.json`: revisions and versions that were announced.",
    Manifest: "`backup.json`, the first member of a backup.",
}
TABLES: Mapping[str, tuple[pa.Schema, str, Mapping[str, str]]] = {
    "Submissions": (
        pq.read_schema(BytesIO(queue_bytes(Queue()))),
        "`queue.parquet`: every submission with its state.",
        card_texts.OF_SUBMISSIONS,
    ),
    "Scores": (
        SCORES,
        "`results/ID/BENCHMARK.scores.parquet`: the score of every pair.",
        card_texts.OF_SCORES,
    ),
    "Boards": (CELLS, "`snapshot.parquet`: every value of every board.", card_texts.OF_CELLS),
    "Pairs": (
        PAIRS,
        "`boards/BENCHMARK.pairs.parquet`: every test between two entries of a board.",
        card_texts.OF_PAIRS,
    ),
    "Cases": (
        CASES,
        "`cases/BENCHMARK/REVISION.parquet`: the items behind the values, where answers are public.",
        card_texts.OF_CASES,
    ),
}

_INTRODUCTION = """\
What is listed here is what a release writes. What an earlier release wrote is read by all later ones
(one file of each kind and version is kept for the tests), so nothing has to be migrated by hand:
[upgrading](../upgrading.md). [Data formats](../data-formats.md) says what lies where."""


def records_page() -> str:
    """The document."""
    parts = [*_tables(), *_rows(), *_records()]
    return page("Records and tables", _INTRODUCTION, *parts)


def _tables() -> Iterator[str]:
    for title, (schema, what, words) in TABLES.items():
        yield f"## {title}"
        yield what
        cells = (
            [code(f.name), code(str(f.type)), "" if f.nullable else "always", _said(words, f.name)]
            for f in schema
        )
        yield table(("column", "type", "there", "what it says"), cells)


def _rows() -> Iterator[str]:
    yield "## Row"
    yield "One value, as `meta --json`, `report --json` and the field `rows` of a result have it."
    words = field_words(Row)
    yield table(
        ("field", "what it says"), ([code(name), _said(words, name)] for name in _fields_of(Row))
    )


def _records() -> Iterator[str]:
    shown: set[str] = set()
    for model, what in RECORDS.items():
        schema = model.model_json_schema()
        yield f"## {model.__name__}"
        yield what
        yield _fields(model, schema)
        for name, inner in _inside(model).items():
            if name not in shown:
                shown.add(name)
                yield f"### {name}"
                yield text((inner.__doc__ or "").split("\n\n")[0])
                yield _fields(inner, inner.model_json_schema())


def _fields(model: type[BaseModel], schema: Mapping[str, Any]) -> str:
    words, needed = field_words(model), schema.get("required", ())
    rows = (
        [code(name), _type(part), "always" if name in needed else "", _said(words, name)]
        for name, part in schema.get("properties", {}).items()
    )
    return table(("field", "type", "needed", "what it says"), rows)


def _inside(model: type[BaseModel]) -> Mapping[str, type[BaseModel]]:
    """Models that fields of a model hold, and those within them."""
    found: dict[str, type[BaseModel]] = {}
    waiting = [model]
    while waiting:
        for field in waiting.pop().model_fields.values():
            for inner in _models_in(field.annotation):
                if inner.__name__ not in found:
                    found[inner.__name__] = inner
                    waiting.append(inner)
    return found


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from _models_in(part)


def _type(part: Mapping[str, Any]) -> str:
    if "$ref" in part:
        return str(part["$ref"]).rpartition("/")[2]
    if "anyOf" in part:
        return " or ".join(_type(one) for one in part["anyOf"])
    if part.get("type") == "array":
        inner = part.get("items") or part.get("prefixItems", [{}])[0]
        return f"list of {_type(inner)}"
    if isinstance(part.get("additionalProperties"), Mapping):
        return f"object of {_type(part['additionalProperties'])}"
    if "enum" in part or "const" in part:
        return ", ".join(code(str(v)) or '""' for v in part.get("enum", [part.get("const")]))
    return text(str(part.get("format") or part.get("type", "any")))


def _said(words: Mapping[str, str], name: str) -> str:
    return text(words.get(name) or COMMON.get(name, ""))


def _fields_of(cls: type) -> list[str]:
    return list(getattr(cls, "__dataclass_fields__", {}))
