"""The kinds of stored records: their models, and how their files are written and read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pydantic import BaseModel

from evaluator.worker.handoff import ScoreBundle, read_record
from evaluator.worker.handoff import record_path as handed_over_path
from leaderboard.ledger import judge_pins as pins
from leaderboard.ledger import policy
from leaderboard.ledger.audit_log import Line, read_lines, segment_path
from leaderboard.ledger.editions import EDITIONS, Announced, history_file, read_history
from leaderboard.ledger.judge_pins import Pins, read_pins
from leaderboard.ledger.ledger import event_line
from leaderboard.ledger.policy import Ban, Policy, bans_file, read_bans, read_policy
from leaderboard.ledger.private_records import record_bytes
from leaderboard.ledger.queue_file import (
    INBOX,
    OLD_QUEUE,
    QUEUE,
    InboxReader,
    Queue,
    Received,
    line_bytes,
    queue_bytes,
    read_queue,
)
from leaderboard.publication.model_entries import ModelEntry, ModelTrack, parse_track, track_bytes
from leaderboard.records import Event, RunResult, Status, Submission
from leaderboard.votes.records import Poll, Vote, poll_path, votes_path
from leaderboard.votes.results import VoteResults
from leaderboard.votes.storing import poll_of, read_votes, vote_lines
from tests.kit.store import MemoryRepository, memory_store
from tests.leaderboard.golden import samples

FOLDER = Path(__file__).parent / "records"
FIELDS = Path(__file__).parent / "fields.json"
"""For each kind the newest file, and the fields its model had when it was written."""


@dataclass(frozen=True)
class Kind:
    """One kind of record.

    Attributes:
        model: of one record.
        sample: values of a record in which each field says something.
        write: a file with one record, as the present code writes it.
        read: the records of a file, as the present code reads it.
        suffix: of its files as they are written now.
        legible: what two files must share to be the same.
    """

    model: type[BaseModel]
    sample: Mapping[str, Any]
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Sequence[BaseModel]]
    suffix: str = ".json"
    legible: Callable[[bytes], object] = bytes

    def a_record(self) -> BaseModel:
        """One in which each field says something."""
        return self.model.model_validate_json(json.dumps(self.sample))

    def fields(self) -> dict[str, object]:
        """Name to type of every field, those of records inside included."""
        schema = self.model.model_json_schema()
        parts = {self.model.__name__: schema, **schema.get("$defs", {})}
        found: dict[str, object] = {}
        for name, part in parts.items():
            if "enum" in part:
                found[name] = part["enum"]
            for field, kind in part.get("properties", {}).items():
                found[f"{name}.{field}"] = _bare(kind)
        return found


def _bare(schema: object) -> object:
    """A schema without its words."""
    if isinstance(schema, dict):
        return {k: _bare(v) for k, v in schema.items() if k not in ("title", "description")}
    return [_bare(each) for each in schema] if isinstance(schema, list) else schema


def _holding(path: str, content: bytes) -> MemoryRepository:
    repository = MemoryRepository()
    repository.commit({path: content}, parent="0", message="golden")
    return repository


def _queue(content: bytes) -> Sequence[Status]:
    path = QUEUE if content.startswith(b"PAR1") else OLD_QUEUE
    repository = _holding(path, content)
    return read_queue(repository, repository.head()).statuses


def _handed_over(content: bytes) -> Sequence[ScoreBundle]:
    named = str(samples.HANDED_OVER["submission_id"]), str(samples.HANDED_OVER["benchmark"])
    return (read_record(_holding(handed_over_path(*named), content), *named),)


def _table(content: bytes) -> object:
    table = pq.read_table(BytesIO(content))
    return table.schema.remove_metadata(), table.schema.metadata, table.to_pylist()


def _announced(content: bytes) -> Sequence[Announced]:
    history = read_history(_holding(EDITIONS, content))
    return [announced for each in history.values() for announced in each]


def _json_of(model: type[BaseModel]) -> Callable[[bytes], Sequence[BaseModel]]:
    return lambda content: (model.model_validate_json(content),)


def _indented(record: BaseModel) -> bytes:
    return record.model_dump_json(indent=1).encode()


# fmt: off
KINDS: Mapping[str, Kind] = {
    "submission": Kind(Submission, samples.SUBMISSION, record_bytes, _json_of(Submission)),
    "event": Kind(
        Event, samples.EVENT, lambda event: event_line(event) + b"\n",
        lambda content: [Event.model_validate_json(line) for line in content.splitlines()], ".jsonl",
    ),
    "queue": Kind(
        Status, samples.STATUS, lambda status: queue_bytes(Queue((status,), segments=3)),
        _queue, ".parquet", _table,
    ),
    "received": Kind(
        Received, samples.RECEIVED, line_bytes,
        lambda content: InboxReader(replace(memory_store(), private=_holding(INBOX, content))).read().lines,
        ".jsonl",
    ),
    "model": Kind(
        ModelEntry, samples.MODEL, lambda entry: track_bytes(ModelTrack({entry.submission_id: entry})),
        lambda content: tuple(parse_track(content).entries.values()),
    ),
    "result": Kind(RunResult, samples.RESULT, _indented, _json_of(RunResult)),
    "ban": Kind(
        Ban, samples.BAN, lambda ban: bans_file({ban.account: ban})[policy.BANS_PATH],
        lambda content: tuple(read_bans(_holding(policy.BANS_PATH, content)).values()),
    ),
    "policy": Kind(
        Policy, samples.POLICY, _indented,
        lambda content: (read_policy(_holding(policy.POLICY_PATH, content)),),
    ),
    "pins": Kind(
        Pins, samples.PINS, _indented, lambda content: (read_pins(_holding(pins.PATH, content)),)
    ),
    "line": Kind(
        Line, samples.LINE, lambda line: line.model_dump_json().encode() + b"\n",
        lambda content: read_lines(_holding(segment_path(1), content)), ".jsonl",
    ),
    "handed_over": Kind(ScoreBundle, samples.HANDED_OVER, _indented, _handed_over),
    "announced": Kind(
        Announced, samples.ANNOUNCED, lambda one: history_file({}, [one])[EDITIONS], _announced
    ),
    "poll": Kind(
        Poll, samples.POLL, _indented,
        lambda content: (poll_of(_holding(poll_path("demo_prompts"), content), "demo_prompts"),),
    ),
    "vote_results": Kind(VoteResults, samples.VOTE_RESULTS, _indented, _json_of(VoteResults)),
    "vote": Kind(
        Vote, samples.VOTE, lambda vote: vote_lines([vote]),
        lambda content: read_votes(_holding(votes_path("demo_prompts", 0), content), "demo_prompts"),
        ".jsonl",
    ),
}
# fmt: on


def golden_files(kind: str) -> tuple[Path, ...]:
    """Its files, oldest first."""
    return tuple(sorted((FOLDER / kind).iterdir()))
