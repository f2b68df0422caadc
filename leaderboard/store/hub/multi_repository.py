"""Three dataset repositories as one, with commits that are whole or not there.

One repository decides: its commit is the version, and one of its files pins the commits at which
the others are read. A commit first goes to the others, based on their pins, and then to the one
that decides, with the new pins. Nobody reads the others at anything but a pin, so nobody sees half
of it; what a crash or a lost race left beyond a pin is undone by the next commit there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, StringConstraints, ValidationError

from benchmarks.errors import PlatformError, TransientError
from leaderboard.store.hub.client import Entry
from leaderboard.store.hub.faults import VersionGoneError, gone, no_store
from leaderboard.store.hub.layout import (
    PAYLOAD,
    Part,
    check_hub_path,
    is_ours,
    part_of,
    parts_with,
    store_of,
)
from leaderboard.store.hub.repository import HubRepository, without_absent
from leaderboard.store.interface import Changes, ConflictError, NotFoundError
from leaderboard.store.paths import check_clashes, check_path, check_prefix, folders_of

PINS = ".commits/pins.json"
Sha = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
"""Of a commit. The name of a branch in its place would be another version every day."""


class Pins(BaseModel):
    """The content of that file.

    Attributes:
        pins: part to the commit its files are read at.
        nonce: of the commit that wrote it.
        frozen_until: by the Hub's clock; until then a squash is at work, and nothing is committed.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    pins: Mapping[Part, Sha]
    nonce: str = ""
    frozen_until: AwareDatetime | None = None

    def __getitem__(self, part: Part) -> str:
        return self.pins[part]

    def moved(self, new: Mapping[Part, str]) -> Pins:
        """With other commits for some parts."""
        return self.model_copy(update={"pins": {**self.pins, **new}})

    def note(self, nonce: str) -> dict[str, bytes]:
        """The control file for a commit of this nonce."""
        text = self.model_copy(update={"nonce": nonce}).model_dump_json(exclude_none=True)
        return {PINS: text.encode()}


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
    pins: Pins  # where the others are read

    def of(self, part: Part) -> str:
        """The commit a part is read at."""
        return self.sha if part is Part.REQUESTS else self.pins[part]


class MultiRepository:
    """The public side of a store on the Hub."""

    def __init__(
        self,
        decisive: HubRepository,  # the repository whose commits are the versions
        payload: Mapping[Part, HubRepository],  # the others
        clock: Callable[[], datetime],  # of the Hub
    ) -> None:
        self.decisive = decisive
        self.payload = dict(payload)
        self._clock = clock
        self._begun = False

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
        return self._again(lambda: self._listed(prefix, self._version()))

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        """See `Repository`."""
        for path in changes:
            check_hub_path(path)
        touched = {part_of(path) for path in changes} | {Part.REQUESTS}
        self.decisive.client.budget.pay(len(touched))
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
                raise gone(self.decisive.name) from error
            raise no_store(
                self.decisive.name, f"{self.decisive.name} has no {PINS}, so it is no store yet."
            ) from error
        pins = read_pins(content, self.decisive.name)
        if set(PAYLOAD) - set(pins.pins):
            raise PlatformError("pins_broken", f"{PINS} in {self.decisive.name} lacks a part.")
        self._begun = True
        return Version(sha, pins)

    def repository(self, part: Part) -> HubRepository:
        """The repository of a part."""
        return self.decisive if part is Part.REQUESTS else self.payload[part]

    def _committed(self, changes: Changes, version: Version, message: str) -> str:
        self._check_thawed(version.pins)
        changes = self._possible(changes, version)
        pins = version.pins.moved(self._payload_committed(changes, version, message))
        deciding = _of(Part.REQUESTS, changes)
        return self.decisive.commit_with(deciding, pins.note, version.sha, message)

    def _payload_committed(
        self, changes: Changes, version: Version, message: str
    ) -> dict[Part, str]:
        """Commit what belongs to the others; returns their new pins. Nobody sees it yet."""
        new: dict[Part, str] = {}
        for part in PAYLOAD:
            mine = _of(part, changes)
            if mine:
                new[part] = self.payload[part].commit_onto(
                    version.pins[part], mine, message, lambda: self._check_head(version.sha)
                )
        return new

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

    def _possible(self, changes: Changes, version: Version) -> Changes:
        found = self._found(changes, version)

        def is_file(path: str) -> bool:
            entry = found.get((part_of(path), path))
            return entry is not None and entry.is_file

        def below(path: str) -> tuple[str, ...]:
            folders = (part for part in Part if not found.get((part, path), _A_FILE).is_file)
            return tuple(
                file
                for part in folders
                for file in self.repository(part).list_at(f"{path}/", version.of(part))
            )

        check_clashes(changes, is_file, below)
        there = {path: entry for (part, path), entry in found.items() if part is part_of(path)}
        return without_absent(changes, there)

    def _found(self, changes: Changes, version: Version) -> dict[tuple[Part, str], Entry]:
        """What is at all paths that matter to the changes: one request for each repository."""
        asked: dict[Part, set[str]] = {}
        for path, content in changes.items():
            for each in (path, *folders_of(path)):
                asked.setdefault(part_of(each), set()).add(each)
            if content is not None:
                for part in parts_with(f"{path}/"):
                    asked.setdefault(part, set()).add(path)
        return {
            (part, path): entry
            for part, paths in asked.items()
            for path, entry in self.repository(part).entries_at(paths, version.of(part)).items()
        }

    def _listed(self, prefix: str, version: Version) -> tuple[str, ...]:
        return tuple(
            sorted(
                path
                for part in parts_with(prefix)
                for path in self.repository(part).list_at(prefix, version.of(part))
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
            return ask(self.repository(part), self.version(sha).of(part))

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

    def _version(self) -> Version:
        return self.version(self.decisive.head())

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
        """What the pins name is nowhere: no squash of ours does that."""
        return TransientError(
            "pins_lost",
            f"{self.decisive.name} names a version of another repository of the store that is "
            f"not there: that one was deleted, or its history rewritten. {error.message}",
            "Run `python -m evaluator store create "
            f"hub:{store_of(self.decisive.name)}` to go on without what it held.",
        )


_A_FILE = Entry("", True, "")


def _of(part: Part, changes: Changes) -> Changes:
    return {path: content for path, content in changes.items() if part_of(path) is part}
