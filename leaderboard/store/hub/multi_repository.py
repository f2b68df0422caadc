"""Transactions over the two public repositories of a store: whole or not there.

One repository decides: its commit is the version, and one of its files pins the commit at which the
results are read. A commit first goes to the results, based on their pin, and then to the one that
decides, with the new pin. Nobody reads the results at anything but the pin, so nobody sees half of
it; what a crash or a lost race left beyond the pin is undone by the next commit there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    StringConstraints,
    ValidationError,
    model_validator,
)

from benchmarks.errors import PlatformError, TransientError
from leaderboard.store.hub.faults import VersionGoneError, no_store, store_gone
from leaderboard.store.hub.layout import (
    OLD_SCORES,
    Part,
    check_hub_path,
    is_ours,
    part_of,
    parts_with,
    store_of,
    was_in_scores,
)
from leaderboard.store.hub.repository import HubRepository
from leaderboard.store.interface import (
    Changes,
    ConflictError,
    NotFoundError,
    check_path,
    check_prefix,
)

PINS = ".commits/pins.json"
Sha = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
"""Of a commit. The name of a branch in its place would be another version every day."""


class Pins(BaseModel):
    """The content of that file.

    Attributes:
        results: the commit at which the results are read.
        scores: likewise of the repository that a store of release 0.1.0 has until it is migrated.
        nonce: of the commit that wrote it.
        frozen_until: by the Hub's clock; until then a squash or a migration is at work, and nothing
            is committed.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    results: Sha
    scores: Sha | None = None
    nonce: str = ""
    frozen_until: AwareDatetime | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_release_0_1(cls, told: Any) -> Any:
        if isinstance(told, dict) and isinstance(told.get("pins"), dict):
            pins = {"results": None, OLD_SCORES: "", **told["pins"]}
            return {**told, "results": pins["results"], "scores": pins[OLD_SCORES]}
        return told

    def note(self, nonce: str) -> dict[str, bytes]:
        """The control file for a commit of this nonce; of an unmigrated store as 0.1.0 reads it."""
        pins = self.model_copy(update={"nonce": nonce}).model_dump(mode="json", exclude_none=True)
        if self.scores is not None:
            pins["pins"] = {part: pins.pop(part) for part in (OLD_SCORES, Part.RESULTS.value)}
        return {PINS: json.dumps(pins).encode()}


def read_pins(content: bytes, repo: str) -> Pins:
    """The pins."""
    try:
        return Pins.model_validate_json(content)
    except ValidationError as error:
        raise PlatformError(
            "pins_broken",
            f"{PINS} in {repo} cannot be read ({error.error_count()} faults).",
            "Put back an earlier version of that file from the repository's history.",
        ) from error


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Version:
    """One version of the whole."""

    sha: str  # the commit that decided it
    pins: Pins  # where the results are read


class MultiRepository:
    """The public side of a store on the Hub."""

    def __init__(
        self,
        decisive: HubRepository,  # the repository whose commits are the versions
        results: HubRepository,  # what the versions pin
        old_scores: HubRepository,  # read in a store of release 0.1.0, and asked nothing in others
        clock: Callable[[], datetime],  # of the Hub
    ) -> None:
        self.decisive, self.results, self.old_scores = decisive, results, old_scores
        self._clock = clock
        self._begun = False
        self._migrated = False

    def head(self) -> str:
        """See `Repository`."""
        return self.decisive.head()

    def fresh_head(self) -> str:
        """The version the Hub is at now."""
        return self.decisive.fresh_head()

    def read(self, path: str) -> bytes:
        """See `Repository`."""
        return self._at_head(path, lambda repository, sha: repository.read_at(path, sha))

    def fetch(self, path: str, target: Path) -> None:
        """See `Repository`."""
        self._at_head(path, lambda repository, sha: repository.fetch_at(path, sha, target))

    def has(self, path: str) -> bool:
        """See `Repository`."""
        check_path(path)
        if not is_ours(path):
            return False
        return self._at_head(path, lambda repository, sha: repository.has_at(path, sha))

    def list(self, prefix: str = "") -> tuple[str, ...]:
        """See `Repository`."""
        check_prefix(prefix)
        return self._again(lambda: self._listed(prefix, self.version(self.decisive.head())))

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        """See `Repository`."""
        for path in changes:
            check_hub_path(path)
        self.decisive.client.budget.pay(1 + any(part_of(path) is Part.RESULTS for path in changes))
        self._check_head(parent)
        try:
            return self._committed(changes, self.version(parent), message)
        except VersionGoneError as error:
            self._check_head(parent)  # It was squashed away, or the store was made anew.
            raise self._lost(error) from error

    def version(self, sha: str) -> Version:
        """The version a commit decided."""
        try:
            content = self.decisive.read_at(PINS, sha)
        except NotFoundError as error:
            if self._begun:
                raise store_gone(self.decisive.name) from error
            raise no_store(
                self.decisive.name, f"{self.decisive.name} has no {PINS}, so it is no store yet."
            ) from error
        pins = read_pins(content, self.decisive.name)
        self._begun = True
        self._migrated = pins.scores is None
        return Version(sha, pins)

    def check_migrated(self) -> None:
        """Refuse to write to a store of release 0.1.0."""
        if not self._migrated and self.version(self.decisive.head()).pins.scores is not None:
            raise unmigrated(self.decisive.name)

    def _committed(self, changes: Changes, version: Version, message: str) -> str:
        if version.pins.scores is not None:
            raise unmigrated(self.decisive.name)
        self._check_thawed(version.pins)
        payload, deciding = _of(Part.RESULTS, changes), _of(Part.REQUESTS, changes)
        pins = version.pins
        if payload:
            payload = self.results.possible(payload, pins.results)
        if deciding:
            deciding = self.decisive.possible(deciding, version.sha)
        if payload:  # Nobody sees it yet.
            new = self.results.commit_onto(
                pins.results, payload, message, lambda: self._check_head(version.sha)
            )
            pins = pins.model_copy(update={"results": new})
        return self.decisive.commit_with(deciding, pins.note, version.sha, message)

    def _check_head(self, parent: str) -> None:
        """Stop early where the race is lost: every commit that is not made is one to spare."""
        head = self.decisive.fresh_head()
        if head != parent:
            raise ConflictError(parent, head)

    def _check_thawed(self, pins: Pins) -> None:
        if pins.frozen_until is not None and self._clock() < pins.frozen_until:
            raise TransientError(
                "store_squashing",
                f"The history of the store is being squashed, until {pins.frozen_until:%H:%M:%S} "
                "UTC at the latest.",
                "Try again then; nothing was lost.",
            )

    def _holders(self, version: Version, part: Part) -> Iterator[tuple[HubRepository, str]]:
        """Who holds the files of a part, and at which commit."""
        if part is Part.REQUESTS:
            yield self.decisive, version.sha
            return
        yield self.results, version.pins.results
        if version.pins.scores is not None:
            yield self.old_scores, version.pins.scores

    def _listed(self, prefix: str, version: Version) -> tuple[str, ...]:
        return tuple(
            sorted(
                path
                for part in parts_with(prefix)
                for repository, sha in self._holders(version, part)
                for path in repository.list_at(prefix, sha)
                if part_of(path) is part
            )
        )

    def _at_head(self, path: str, ask: Callable[[HubRepository, str], _T]) -> _T:
        check_path(path)
        if not is_ours(path):
            raise NotFoundError(path)
        part = part_of(path)

        def once() -> _T:
            sha = self.decisive.head()
            if part is Part.REQUESTS:
                return self._unless_unmade(sha, lambda: ask(self.decisive, sha))
            first, *old = self._holders(self.version(sha), part)
            return ask(*(old[0] if old and was_in_scores(path) else first))

        return self._again(once)

    def _unless_unmade(self, sha: str, ask: Callable[[], _T]) -> _T:
        """The answer; where it is that nothing is there, only if there is a store at all.

        One that is being made again is not to be taken for an empty one.
        """
        try:
            found = ask()
        except NotFoundError:
            self.version(sha)
            raise
        if found is False:
            self.version(sha)
        return found

    def _again(self, ask: Callable[[], _T]) -> _T:
        """The answer; once more where the version that was read is gone since."""
        try:
            return ask()
        except VersionGoneError:
            self.decisive.forget_head()
        try:
            return ask()
        except VersionGoneError as error:
            raise self._lost(error) from error

    def _lost(self, error: VersionGoneError) -> TransientError:
        """What the pin names is nowhere: no squash of ours does that."""
        return TransientError(
            "pins_lost",
            f"{self.decisive.name} names a version of another repository of the store that is "
            f"not there: that one was deleted, or its history rewritten. {error.message}",
            "Run `python -m evaluator store create "
            f"hub:{store_of(self.decisive.name)}` to go on without what it held.",
        )


def unmigrated(repository: str) -> TransientError:
    """What whoever wants to write to a store of release 0.1.0 is told."""
    name = store_of(repository)
    return TransientError(
        "store_unmigrated",
        f"hub:{name} is a store of release 0.1.0: it can be read, and takes nothing until its "
        "scores and results are one repository.",
        f"Stop all workers and sites of 0.1.0, then run `python -m evaluator store migrate "
        f"hub:{name}`.",
    )


def _of(part: Part, changes: Changes) -> Changes:
    return {path: content for path, content in changes.items() if part_of(path) is part}
