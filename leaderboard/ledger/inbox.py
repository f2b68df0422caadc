"""Inbox of the private repository: submissions that were received, until the queue has them.

The commit that keeps an upload also receives it: record and first events are a line of the inbox. From
then on whoever may read the private repository sees it in the queue. The next commit of events, as a
rule its claim, writes what is public of it. The line stays for a while, for whoever still sees an older
version of the public repository.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

from pydantic import BaseModel, ConfigDict

from leaderboard.ledger.private_records import public_events, public_record, readable
from leaderboard.records import Event, Status, Submission
from leaderboard.replay import fold
from leaderboard.store.interface import NotFoundError, Store

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
