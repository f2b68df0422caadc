"""History of a submission, from its events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from pydantic import AwareDatetime, BaseModel, ConfigDict, TypeAdapter

from leaderboard.ledger.editions import Edition
from leaderboard.store.interface import NotFoundError, Repository

EDITIONS = "reevaluation/editions.json"
LOOKED = "reevaluation/looked.json"
ANNOUNCED = "new_edition"
"""Action of a chronicle line that says what changed from what to what."""
MARGIN = timedelta(hours=1)
"""Longer than the time between an event's own and that of its commit."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Announced(_Frozen):
    """A benchmark's edition, since when it is the one that counts, and what was before it."""

    benchmark: str
    before: Edition | None
    edition: Edition
    at: AwareDatetime
    by: str
    reason: str

    @property
    def record(self) -> bytes:
        """What the chronicle holds the hash of."""
        return self.model_dump_json().encode()


History = Mapping[str, Sequence[Announced]]
"""Benchmark to its announcements, oldest first."""
_HISTORY = TypeAdapter(dict[str, tuple[Announced, ...]])


def read_history(public: Repository) -> dict[str, tuple[Announced, ...]]:
    """The announcements of a store; none where nothing was evaluated anew yet."""
    try:
        return _HISTORY.validate_json(public.read(EDITIONS))
    except NotFoundError:
        return {}


def history_file(history: History, new: Iterable[Announced]) -> dict[str, bytes]:
    """The file with further announcements."""
    every = {name: list(found) for name, found in history.items()}
    for one in new:
        every.setdefault(one.benchmark, []).append(one)
    content = {name: [a.model_dump(mode="json") for a in found] for name, found in every.items()}
    return {EDITIONS: json.dumps(content, indent=1, sort_keys=True).encode()}


def latest(history: History, benchmark: str) -> Announced | None:
    """The last announcement of a benchmark; None where there is none."""
    found = history.get(benchmark, ())
    return found[-1] if found else None


def is_past(history: History, benchmark: str, edition: Edition) -> bool:
    """Whether an edition counted once and does not any more.

    An installation that has it is older than the store: it must not turn the boards back.
    """
    found = history.get(benchmark, ())
    if not found or found[-1].edition == edition:
        return False
    return any(edition in (one.before, one.edition) for one in found)


class Looked(_Frozen):
    """Up to when all submissions were compared with which editions."""

    at: AwareDatetime
    editions: dict[str, str]
    """Benchmark to the tag of its edition."""

    def covers(self, since: datetime, editions: Mapping[str, Edition]) -> bool:
        """Whether a submission that has not moved since then need not be looked at again."""
        tags = {name: edition.tag for name, edition in editions.items()}
        return self.editions == tags and since < self.at - MARGIN


def read_looked(public: Repository) -> Looked | None:
    """The mark of the last look; None where nobody looked yet."""
    try:
        return Looked.model_validate_json(public.read(LOOKED))
    except NotFoundError:
        return None


def looked_file(at: datetime, editions: Mapping[str, Edition]) -> dict[str, bytes]:
    """The mark of a look that has ended."""
    tags = {name: edition.tag for name, edition in sorted(editions.items())}
    return {LOOKED: Looked(at=at, editions=tags).model_dump_json(indent=1).encode()}
