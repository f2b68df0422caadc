"""Editions of benchmarks: which revision a result was made with, and since when each counts."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from pydantic import AwareDatetime, BaseModel, ConfigDict, TypeAdapter

from benchmarks.schema import Card
from leaderboard.records import RunResult
from leaderboard.store.interface import NotFoundError, Repository

FIRST_CONTRACT = 2  # The contract of results that are older than its being stored
CONTRACT = 2
"""The contract now, as `evaluator.scoring.asking.PLAN_VERSION` has it: what a scorer is given."""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Edition(BaseModel):
    """What a result was made with, or a board is made for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    revision: str
    protocol: int = 1
    contract: int | None = FIRST_CONTRACT
    """None where no code was run: such a result fits any contract."""

    @classmethod
    def of_card(cls, card: Card) -> Edition:
        """The edition a benchmark has here and now."""
        return cls(revision=card.revision, protocol=card.protocol, contract=CONTRACT)

    @classmethod
    def of_result(cls, result: RunResult) -> Edition:
        """The edition a result was made with."""
        contract = result.contract
        if contract is None and result.cost is not None:
            contract = FIRST_CONTRACT
        return cls(revision=result.revision, protocol=result.protocol, contract=contract)

    @property
    def tag(self) -> str:
        """Its name in paths and links: the revision as a rule."""
        name = self.revision
        if not _PLAIN.fullmatch(name):
            digest = hashlib.sha256(name.encode()).hexdigest()[:12]
            name = f"{re.sub(r'[^A-Za-z0-9._-]', '-', name)[:40].strip('.-')}~{digest}"
        if self.protocol != 1:
            name += f"~p{self.protocol}"
        if self.contract not in (None, FIRST_CONTRACT):
            name += f"~c{self.contract}"
        return name

    @property
    def label(self) -> str:
        """As people are told: `revision r2, protocol 3`."""
        found = [f"revision {self.revision}"]
        if self.protocol != 1:
            found.append(f"protocol {self.protocol}")
        if self.contract not in (None, FIRST_CONTRACT):
            found.append(f"scoring contract {self.contract}")
        return ", ".join(found)

    def fits(self, board: Edition) -> bool:
        """Whether a result of this edition may stand on a board of that one."""
        return (self.revision, self.protocol) == (board.revision, board.protocol) and (
            self.contract in (None, board.contract)
        )


def is_current(result: RunResult, card: Card) -> bool:
    """Whether a result may stand on the board of a benchmark as it is here and now."""
    return Edition.of_result(result).fits(Edition.of_card(card))


def scores_stand(made: Edition, card: Card) -> bool:
    """Whether the scores behind a result of an edition answer what a benchmark asks now.

    Then its measures can be computed from them again, and no code need run.
    """
    same = made.revision == card.revision or made.revision in card.same_questions_as
    return same and made.contract in (None, CONTRACT)


NEW_REVISION = "new_revision"
NEW_SCORER = "new_scorer"
NEW_PROTOCOL = "new_protocol"
OTHER_REVISION = "other_revision"  # Code of a scores file that no new result can be made of


EDITIONS = "reevaluation/editions.json"
LOOKED = "reevaluation/looked.json"
ANNOUNCED = "new_edition"  # Action of a chronicle line that says what changed from what to what
MARGIN = timedelta(hours=1)  # Longer than the time between an event's own and that of its commit


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


History = Mapping[str, Sequence[Announced]]  # Benchmark to its announcements, oldest first
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


class ComparedEditions(_Frozen):
    """Up to when all submissions were compared with which editions."""

    at: AwareDatetime
    editions: dict[str, str]
    """Benchmark to the tag of its edition."""

    def covers(self, since: datetime, editions: Mapping[str, Edition]) -> bool:
        """Whether a submission that has not moved since then need not be looked at again."""
        tags = {name: edition.tag for name, edition in editions.items()}
        return self.editions == tags and since < self.at - MARGIN


def read_looked(public: Repository) -> ComparedEditions | None:
    """The mark of the last look; None where nobody looked yet."""
    try:
        return ComparedEditions.model_validate_json(public.read(LOOKED))
    except NotFoundError:
        return None


def looked_file(at: datetime, editions: Mapping[str, Edition]) -> dict[str, bytes]:
    """The mark of a look that has ended."""
    tags = {name: edition.tag for name, edition in sorted(editions.items())}
    return {LOOKED: ComparedEditions(at=at, editions=tags).model_dump_json(indent=1).encode()}
