"""All submissions with their state in one file, `queue.parquet`: a projection of all events.

Anyone can load it: what people ask for has a column each. The column `status` has the whole record
as JSON, and is what is read back here. Equal content gives equal bytes.

Submissions that were received wait in the inbox of the private repository until the queue has them.
The commit that keeps an upload also receives it: record and first events are a line of the inbox.
From then on whoever may read the private repository sees it in the queue. The next commit of events,
as a rule its claim, writes what is public of it. The line stays for a while, for whoever still sees
an older version of the public repository.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property, lru_cache

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, TypeAdapter

from benchmarks.errors import PlatformError, TransientError
from benchmarks.parquet import parquet_table
from leaderboard.ledger.private_records import public_events, public_record, readable
from leaderboard.records import Event, Status, Submission
from leaderboard.replay import fold
from leaderboard.store.interface import NotFoundError, Repository, Store

INBOX = "inbox.jsonl"
KEPT_FOR = timedelta(minutes=10)
"""For so long a line stays that the queue has; nobody sees a version that is older."""


class Received(BaseModel):
    """A line of the inbox: a submission with everything its author sent, and its first events."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    submission: Submission
    events: tuple[Event, ...]

    @cached_property
    def status(self) -> Status:
        """Its state, as anyone may see it."""
        events = public_events(self.submission, self.events)
        return fold(public_record(self.submission), events)


@dataclass(frozen=True)
class Inbox:
    """The inbox at one version."""

    content: bytes = b""
    lines: tuple[Received, ...] = ()

    def with_line(self, new: Received, known: Collection[str]) -> bytes:
        """The file with a further line, and without old ones that the queue has."""
        until = new.submission.received_at - KEPT_FOR
        kept = [
            line
            for line in self.lines
            if line.submission.submission_id not in known or line.submission.received_at > until
        ]
        return b"".join(map(line_bytes, (*kept, new)))


def line_bytes(line: Received) -> bytes:
    """A line as it is stored."""
    return line.model_dump_json().encode() + b"\n"


class InboxReader:
    """Reads the inbox, and parses it again only where it has changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen = "", Inbox()

    def read(self) -> Inbox:
        """The inbox; an empty one for whoever may not read the private repository."""
        if not self._store.private_readable():
            return Inbox()
        head, (at, found) = self._store.private.head(), self._seen
        if head != at:
            found = self._parsed(found)
            self._seen = head, found
        return found

    def _parsed(self, before: Inbox) -> Inbox:
        try:
            content = self._store.private.read(INBOX)
        except NotFoundError:
            return Inbox()
        if content == before.content:
            return before
        with readable(INBOX):
            lines = map(Received.model_validate_json, content.splitlines())
            return Inbox(content, tuple(lines))


QUEUE = "queue.parquet"
OLD_QUEUE = "queue.json"
"""Of older stores: the same as a list in JSON. The next write puts the other in its place."""
VERSION = "1"
_VERSION_KEY, _SEGMENTS_KEY = b"assay.schema_version", b"assay.chronicle_segments"
_LOOKS = 5
_REMEMBERED = 10_000
_OLD = TypeAdapter(tuple[Status, ...])
_TIME = pa.timestamp("us", tz="UTC")
_TEXTS = pa.list_(pa.string())
_COLUMNS: Mapping[str, tuple[pa.DataType, Callable[[Status], object]]] = {
    "submission_id": (pa.string(), lambda s: s.submission.submission_id),
    "kind": (pa.string(), lambda s: str(s.submission.kind)),
    "name": (pa.string(), lambda s: s.submission.name),
    "version": (pa.string(), lambda s: s.submission.version),
    "metrics": (_TEXTS, lambda s: s.submission.metrics),
    "benchmarks": (_TEXTS, lambda s: s.submission.benchmarks),
    "submitter": (pa.string(), lambda s: s.submission.submitter),
    "account": (pa.string(), lambda s: s.submission.account),
    "private": (pa.bool_(), lambda s: s.submission.private),
    "received_at": (_TIME, lambda s: s.submission.received_at),
    "state": (pa.string(), lambda s: str(s.state)),
    "since": (_TIME, lambda s: s.since),
    "by": (pa.string(), lambda s: s.by),
    "code": (pa.string(), lambda s: s.code),
    "fault": (pa.string(), lambda s: s.fault),
    "reason": (pa.string(), lambda s: s.reason),
    "attempts": (pa.int64(), lambda s: s.attempts),
    "lease_until": (_TIME, lambda s: s.lease_until),
    "on_boards": (pa.bool_(), lambda s: s.on_boards),
    "scored_at": (_TIME, lambda s: s.scored_at),
    "status": (pa.string(), lambda s: s.model_dump_json()),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in _COLUMNS.items()])
"""Columns of the file."""


@dataclass(frozen=True)
class Queue:
    """All submissions of a store in public form."""

    statuses: tuple[Status, ...] = ()  # oldest first
    # how many segments the chronicle had when this was written; 0 where that is not known. There
    # may be more by now.
    segments: int = 0
    # whether it was read from the file of older stores
    old: bool = field(default=False, compare=False)
    inbox: Inbox = field(default=Inbox(), compare=False)

    @cached_property
    def received(self) -> Mapping[str, Received]:
        """What the inbox has and the file not yet, by id."""
        known = {status.submission.submission_id for status in self.statuses}
        lines = {line.submission.submission_id: line for line in self.inbox.lines}
        return {name: line for name, line in lines.items() if name not in known}

    @cached_property
    def every(self) -> tuple[Status, ...]:
        """All submissions, oldest first, with those that were just received."""
        if not self.received:
            return self.statuses
        return in_order((*self.statuses, *(one.status for one in self.received.values())))

    @cached_property
    def by_id(self) -> Mapping[str, Status]:
        """All of them by id, in that order."""
        return {status.submission.submission_id: status for status in self.every}

    def with_inbox(self, inbox: Inbox) -> Queue:
        """The same with an inbox beside it."""
        return replace(self, inbox=inbox)


def in_order(statuses: Iterable[Status]) -> tuple[Status, ...]:
    """Oldest first; those of one moment by their id."""
    return tuple(
        sorted(statuses, key=lambda s: (s.submission.received_at, s.submission.submission_id))
    )


def queue_bytes(queue: Queue) -> bytes:
    """The file of a queue."""
    schema = SCHEMA.with_metadata(
        {_VERSION_KEY: VERSION.encode(), _SEGMENTS_KEY: str(queue.segments).encode()}
    )
    arrays = [
        pa.array([value(status) for status in queue.statuses], kind)
        for kind, value in _COLUMNS.values()
    ]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), sink, compression="zstd")
    content: bytes = sink.getvalue().to_pybytes()
    return content


def read_queue(public: Repository, head: str) -> Queue:
    """The queue of a store, in whichever form it is; an empty one where there is none."""
    for _ in range(_LOOKS):
        for path, parse in ((QUEUE, from_bytes), (OLD_QUEUE, _from_old)):
            try:
                return parse(public.read(path))
            except NotFoundError:
                continue
        # The one may have taken the other's place between the two looks.
        before, head = head, public.head()
        if head == before:
            return Queue()
    raise TransientError("store_busy", f"The store changed each time {QUEUE} was looked for.")


def has_queue(public: Repository) -> bool:
    """Whether the store has a queue of either form."""
    return public.has(QUEUE) or public.has(OLD_QUEUE)


def from_bytes(content: bytes) -> Queue:
    """The queue of a file."""
    try:
        table = parquet_table(content, ["status"])
        facts = table.schema.metadata or {}
        if facts.get(_VERSION_KEY, b"").decode() != VERSION:
            raise _too_new(facts.get(_VERSION_KEY, b"").decode())
        statuses = tuple(map(_status, table.column("status").to_pylist()))
        return Queue(statuses, int(facts.get(_SEGMENTS_KEY, b"0")))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(QUEUE, error) from error


def _from_old(content: bytes) -> Queue:
    try:
        return Queue(in_order(_OLD.validate_json(content)), old=True)
    except ValueError as error:
        raise _damaged(OLD_QUEUE, error) from error


@lru_cache(maxsize=_REMEMBERED)
def _status(line: str) -> Status:
    """A record, which never changes: of the next version of a queue nearly all are known."""
    return Status.model_validate_json(line)


def _damaged(path: str, error: Exception) -> PlatformError:
    return PlatformError(
        "queue_damaged",
        f"{path} of the public repository cannot be read: {str(error)[:200]}",
        "Put back an earlier version of the file; the events have all it says.",
    )


def _too_new(version: str) -> PlatformError:
    return PlatformError(
        "queue_too_new",
        f"{QUEUE} is of version {version[:20]!r}, and this program reads version {VERSION}.",
        "Use the version of Assay that wrote it, or a newer one.",
    )
