"""`docs/reference/records.md`: every record and table that a store keeps, field by field."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from io import BytesIO
from itertools import pairwise, takewhile
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel

from benchmarks.cases import SCHEMA as CASES
from benchmarks.parquet import SCHEMA as SCORES
from benchmarks.rated_images import SCHEMA as RATINGS
from benchmarks.rows import Row
from leaderboard.ledger.audit_log import Line
from leaderboard.ledger.editions import Announced
from leaderboard.ledger.judge_pins import Pins
from leaderboard.ledger.policy import Ban, Policy
from leaderboard.ledger.queue_file import Queue, queue_bytes
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.publication.pairs_file import SCHEMA as PAIRS
from leaderboard.publication.snapshot import SCHEMA as CELLS
from leaderboard.records import Event, RunResult, Submission
from leaderboard.store.backup import Manifest
from leaderboard.store.hub import cards
from leaderboard.votes.records import Poll, Vote
from leaderboard.votes.results import VoteResults
from leaderboard.votes.revisions import SCHEMA as VOTES
from leaderboard.votes.revisions import TEXTS as OF_VOTES
from tools.reference.markdown import code, page, table, text

COMMON: Mapping[str, str] = {
    "account": "Whose: `hub:NAME` or `local:NAME`.",
    "after": "Value after the change; null where there was none.",
    "allowances": "Kind of submission to what is allowed within the period.",
    "at": "When, by the clock of the store.",
    "authors": "As the manifest names them.",
    "before": "What was before; null where there was nothing.",
    "benchmark": "Registry name, for example `ts2`.",
    "by": "Who did it: an account, a submitter, a worker.",
    "card": "How the images were made.",
    "checked_at": "When, by the clock of the machine that checked.",
    "checks": "Each with what came out.",
    "code": "Stable identifier in snake_case, for programs; empty where nothing was wrong.",
    "content_sha256": "Hash of what was submitted, whatever it was packed in.",
    "cost": "What the run used; null where no code was run.",
    "description": "As the manifest has it.",
    "edition": "Revision of the data, and versions of protocol and contract.",
    "entry_point": "File and class of the scorer.",
    "fault": "Whose: the submitter's, the world's or the platform's; empty where nothing failed.",
    "hint": "What to do about it.",
    "images": "Distinct images; of generations, what was found in them.",
    "images_decoded": "Files that were decoded.",
    "item": "Which kind of thing it was found about.",
    "item_id": "Public id of the image, text or pair.",
    "judged_at": "When the measures were computed.",
    "kind": "`metric`, `scores` or `generations`.",
    "largest": "Largest difference, in units of the score; null where none was measured.",
    "lease_until": "Until when the worker holds it without a further sign of life.",
    "licence": "As the manifest has it.",
    "links": "Name to address, as the manifest has them.",
    "lower_is_better": "Metrics for which a lower score is better.",
    "max_change": "Largest absolute change of their scores, in units of the score.",
    "message": "What is wrong, in a sentence.",
    "metric": "Name of the metric.",
    "n_bytes": "Size in bytes.",
    "n_images": "Number of images.",
    "n_pairs": "Number of pairs.",
    "n_resamples": "Bootstrap resamples behind each interval.",
    "name": "As the manifest has it.",
    "pair_id": "Which pair of the benchmark, by its public id.",
    "pairs": "Pairs that were asked for.",
    "pairs_per_s": "Pairs scored in a second.",
    "peak_memory_bytes": "Largest memory of all its processes together.",
    "period_days": "Length of the period that allowances are for.",
    "pins": "Each with its reason.",
    "present": "Images that are there.",
    "prompt_set": "Registry name of the prompt set.",
    "protocol": "Version of the benchmark's protocol.",
    "published_at": "When it came onto the boards.",
    "reason": "Why; everybody can read it.",
    "received_at": "When it came in, by the clock of the store.",
    "resampling_seed": "Seed of the plan that was drawn once for the revision.",
    "revision": "Pinned revision of the benchmark's data.",
    "same_content_as": "Earlier submissions of others with the very same images.",
    "schema_version": "Of this record; a reader refuses one that it does not know.",
    "scored_at": "When.",
    "seeds": "Of the images, ascending.",
    "selection": "First image of each seed, or the best of several.",
    "shared": "Images that other models have, too.",
    "state": "One of the [states](states.md).",
    "submission_id": "Whose it is: the id of the submission.",
    "submitter": "Name of the account.",
    "trained_on": "Benchmarks that its training has seen, as the manifest says.",
    "verdict": "What was decided.",
    "version": "As the manifest has it.",
    "wanted": "Images that the prompt set asks for.",
    "weights": "The bundled file of weights.",
}


_ENTRY = re.compile(r"^(\w+): (.*)$")


def field_words(model: type) -> Mapping[str, str]:
    """Name of each field to its words; fields without words are not there."""
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if cls not in (object, BaseModel) and cls.__module__.split(".")[0] != "pydantic":
            found |= _words_of_class(cls)
    return found


def _words_of_class(cls: type) -> Mapping[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    if not isinstance(tree, ast.ClassDef):
        return {}
    return {**_words_of_docstring(ast.get_docstring(tree) or ""), **_words_below(tree.body)}


def _words_below(body: list[ast.stmt]) -> Mapping[str, str]:
    """A text that stands alone after a field is about that field."""
    return {
        field.target.id: " ".join(said.value.value.split())
        for field, said in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(said, ast.Expr)
        and isinstance(said.value, ast.Constant)
        and isinstance(said.value.value, str)
    }


def _words_of_docstring(docstring: str) -> Mapping[str, str]:
    """The entries of `Attributes:`."""
    _, _, after = docstring.partition("Attributes:\n")
    listed = takewhile(lambda line: not line or line[0] == " ", after.splitlines())
    found: dict[str, str] = {}
    name = ""
    for line in textwrap.dedent("\n".join(listed)).splitlines():
        if entry := _ENTRY.match(line):
            name, said = entry.groups()
            found[name] = said
        elif name and line.startswith(" "):
            found[name] += f" {line.strip()}"
    return found


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
    Poll: "`votes/PROMPT_SET/poll.json`, private: how people vote on the images of a prompt set.",
    Vote: "`votes/PROMPT_SET/votes-N.jsonl`, private: a ballot with its answer on each line.",
    VoteResults: "`votes/PROMPT_SET/N/board.json`: the board of a published revision of votes.",
    Manifest: "`backup.json`, the first member of a backup.",
}
TABLES: Mapping[str, tuple[pa.Schema, str, Mapping[str, str]]] = {
    "Submissions": (
        pq.read_schema(BytesIO(queue_bytes(Queue()))),
        "`queue.parquet`: every submission with its state.",
        cards.OF_SUBMISSIONS,
    ),
    "Scores": (
        SCORES,
        "`results/ID/BENCHMARK.scores.parquet`: the score of every pair.",
        cards.OF_SCORES,
    ),
    "Boards": (CELLS, "`snapshot.parquet`: every value of every board.", cards.OF_CELLS),
    "Pairs": (
        PAIRS,
        "`boards/BENCHMARK.pairs.parquet`: every test between two entries of a board.",
        cards.OF_PAIRS,
    ),
    "Cases": (
        CASES,
        "`cases/BENCHMARK/REVISION.parquet`: the items behind the values, where answers are public.",
        cards.OF_CASES,
    ),
    "Ratings": (
        RATINGS,
        "`ratings/BENCHMARK/REVISION.parquet`: what people said of images, where answers are public.",
        cards.OF_RATINGS,
    ),
    "Votes": (
        VOTES,
        "`votes/PROMPT_SET/N/votes.parquet`: a published revision of people's votes on models.",
        OF_VOTES,
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
