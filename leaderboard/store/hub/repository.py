"""Dataset repository of the Hub as versioned files.

The version is resolved first, by a request that fails when the Hub does; everything is then read
at that commit. So an outage is an error and never an old file that passes for a new one.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

from benchmarks.errors import PlatformError, TransientError
from leaderboard.cache import DiskCache
from leaderboard.store.disk import failing
from leaderboard.store.hub.budget import CommitsUsedUpError
from leaderboard.store.hub.client import LAST, Entry, HubClient
from leaderboard.store.hub.configurations import tables_in, tables_written, with_tables
from leaderboard.store.hub.faults import (
    REFUSALS,
    OvertakenError,
    VersionGoneError,
    refused_for,
    was_asked,
)
from leaderboard.store.hub.layout import CARD, check_hub_path, is_ours
from leaderboard.store.hub.uploads import Operation, PendingCommit, describe, new_nonce, operations
from leaderboard.store.hub.versions import FilesAtCommits
from leaderboard.store.interface import (
    Changes,
    ConflictError,
    NotFoundError,
    check_clashes,
    check_path,
    check_prefix,
    folders_of,
)

_COMMITS = 200  # Beyond so many commits, trees are compared


def undone(client: HubClient, repo: str, base: str, head: str) -> dict[str, Entry | None]:
    """Path to what was there and is put back; None where it is to be deleted."""
    told = _told_paths(client, repo, base, head)
    if told is None:
        before = {each.path: each for each in client.tree(repo, "", base)}
        after = {each.path: each for each in client.tree(repo, "", head)}
    else:
        before = _files_among(client, repo, told, base)
        after = _files_among(client, repo, told, head)
    return {
        path: before.get(path)
        for path in sorted(before.keys() | after.keys())
        if is_ours(path) and before.get(path) != after.get(path)
    }


def _told_paths(client: HubClient, repo: str, base: str, head: str) -> list[str] | None:
    """All paths that were touched since, if every commit since says which."""
    touched: set[str] = set()
    reached = False
    for commit in islice(client.history(repo), _COMMITS):
        reached = reached or commit.sha == head
        if commit.sha == base:
            return sorted(path for path in touched if is_ours(path))
        if reached:
            if commit.paths is None:
                return None
            touched.update(commit.paths)
    return None


def _files_among(client: HubClient, repo: str, paths: Iterable[str], sha: str) -> dict[str, Entry]:
    found = client.entries(repo, list(paths), sha)
    return {path: entry for path, entry in found.items() if entry.is_file}


_COMMIT = "/commit/"  # In the address of the request that makes a commit
_SEARCHED = 2000  # Commits that are looked through for one of ours


Control = Callable[[str], Mapping[str, bytes]]  # The control files of a commit, given its nonce

_ROUNDS = 12  # Races that a commit onto a pin may lose before it gives up
_MESSAGE_CHARS = 2000
_T = TypeVar("_T")


def last_note(nonce: str) -> dict[str, bytes]:
    """The control file of a repository that has no pins."""
    return {LAST: json.dumps({"nonce": nonce}).encode()}


class HubRepository(FilesAtCommits):
    """A dataset repository; safe among threads, processes and machines."""

    def __init__(
        self,
        client: HubClient,  # of the Hub
        name: str,  # of the repository, `OWNER/NAME`
        cache: DiskCache,  # contents that were read before
        *,
        fresh_for_s: float = 2.0,  # for so long the version is taken to be the one last seen
        steady: Callable[[], float] = time.monotonic,  # seconds that only go forward
        check_open: Callable[[], object] = lambda: None,  # raises where `commit` may not be made
    ) -> None:
        super().__init__(client, name, cache)
        self._fresh_for_s = fresh_for_s
        self._steady = steady
        self._check_open = check_open
        self._tables: frozenset[str] = frozenset()  # that the card was seen to name
        self._lock = threading.Lock()
        self._seen: tuple[str, float] | None = None
        self._forgotten_at = steady()

    def head(self) -> str:
        """See `Repository`; for a moment, the version last seen."""
        return self._seen_head() or self.fresh_head()

    def fresh_head(self) -> str:
        """The version the Hub is at now."""
        at = self._steady()
        sha = self.client.head(self.name)
        self._see(sha, at)
        return sha

    def forget_head(self) -> None:
        """Ask for the version when it is wanted next."""
        with self._lock:
            # An answer to what was asked before may still come: it is not to be remembered.
            self._seen, self._forgotten_at = None, self._steady()

    def read(self, path: str) -> bytes:
        """See `Repository`."""
        _check_readable(path)
        return self._at_head(lambda sha: self.read_at(path, sha))

    def fetch(self, path: str, target: Path) -> None:
        """See `Repository`."""
        _check_readable(path)
        self._at_head(lambda sha: self.fetch_at(path, sha, target))

    def has(self, path: str) -> bool:
        """See `Repository`."""
        check_path(path)

        def require(sha: str) -> None:
            if not self.has_at(path, sha):
                raise NotFoundError(path)

        try:
            self._at_head(require)
        except NotFoundError:
            return False
        return True

    def list(self, prefix: str = "") -> tuple[str, ...]:
        """See `Repository`."""
        check_prefix(prefix)
        return self._at_head(lambda sha: self.list_at(prefix, sha))

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        """See `Repository`."""
        for path in changes:
            check_hub_path(path)
        self._check_open()
        if self.head() != parent:  # it may be no version of ours at all, or a squashed one
            found = self.fresh_head()
            if found != parent:
                raise ConflictError(parent, found)
        try:
            return self.commit_with(self.possible(changes, parent), last_note, parent, message)
        except VersionGoneError as error:  # It was squashed away: the race is lost.
            self.forget_head()
            raise ConflictError(parent, "a squashed one") from error

    def possible(self, changes: Changes, sha: str) -> Changes:
        """The changes without deletions of what is not there at a commit."""
        asked = {*changes, *(folder for path in changes for folder in folders_of(path))}
        found = self.entries_at(asked, sha)

        def below(path: str) -> tuple[str, ...]:
            is_folder = path in found and not found[path].is_file
            return self.list_at(f"{path}/", sha) if is_folder else ()

        check_clashes(changes, lambda path: path in found and found[path].is_file, below)
        return without_absent(changes, found)

    def commit_with(self, changes: Changes, control: Control, parent: str, message: str) -> str:
        """Commit changes that are `possible` at the parent, together with control files."""
        whole = {**changes, **self._card(changes, parent)}
        return self._committed(_draft(whole, message, control), parent)

    def commit_onto(
        self,
        base: str,
        changes: Changes,
        message: str,
        wanted: Callable[[], object] = lambda: None,
    ) -> str:
        """Make a commit whose files are exactly those of `base`, changed.

        What was committed after `base` is undone in the same commit: nobody ever saw it. `wanted`
        raises where the commit is of no use any more.
        """
        for round_ in range(_ROUNDS):
            head = self.fresh_head()
            draft = self._onto(base, changes, message, head)
            if draft is None:
                return head
            try:
                return self._committed(draft, head, wanted)
            except ConflictError as error:
                wanted()
                self.client.rest(0.05 * 2 ** min(round_, 5), error)
        raise ConflictError(base, "a later one")

    def _onto(self, base: str, changes: Changes, message: str, head: str) -> PendingCommit | None:
        """What must be committed on `head`; None where nothing must."""
        back = {} if head == base else undone(self.client, self.name, base, head)
        back = {path: entry for path, entry in back.items() if path not in changes}
        todo: Changes = {**self._small_ones(back, base), **changes, **self._card(changes, head)}
        if head != base:
            gone = [path for path, content in todo.items() if content is None]
            todo = without_absent(todo, self.entries_at(gone, head)) if gone else todo
        restored = {path: base for path, entry in back.items() if entry and entry.large}
        return _draft(todo, message, last_note, restored) if todo or restored else None

    def _small_ones(self, back: Mapping[str, Entry | None], base: str) -> Changes:
        """What is to be deleted or sent again: small contents, which the Hub does not copy.

        The client would read them itself, each once only, amid the commit.
        """
        return {
            path: None if entry is None else self.read_at(path, base)
            for path, entry in back.items()
            if entry is None or not entry.large
        }

    def _card(self, changes: Changes, head: str) -> dict[str, bytes]:
        """The card, where it is to name a table that the changes bring the first rows of."""
        new = tables_written(changes)
        if new.keys() <= self._tables:
            return {}
        try:
            card = self.read_at(CARD, head)
        except NotFoundError:
            return {}
        there = tables_in(card)
        if there is None:  # `doctor` says so; a publication is not to wait for it.
            return {}
        self._tables = frozenset(there)
        return {} if new.keys() <= self._tables else {CARD: with_tables(card, {**there, **new})}

    def _committed(
        self, draft: PendingCommit, parent: str, wanted: Callable[[], object] = lambda: None
    ) -> str:
        try:
            with failing(f"send {draft.title!r}"):
                sha, told = self._sent(draft, parent, wanted)
        except ConflictError:
            self.forget_head()
            raise
        if told:
            self.keep(draft, parent, sha)
            self._see(sha, self._steady())
        else:
            self.forget_head()
        return sha

    def _sent(
        self, draft: PendingCommit, parent: str, wanted: Callable[[], object]
    ) -> tuple[str, bool]:
        """Make a commit on a parent, exactly once, whatever becomes of the answers.

        An attempt that failed may have happened, or may still happen. All attempts carry the same
        nonce and the same parent: the Hub takes one of them at most, and whether it took one is
        read from the history. Beside the commit, whether the Hub answered so; else it was found in
        the history, where others may have come after it, or it was squashed since.
        """
        todo = operations(draft.changes, draft.restored)
        self.client.upload(self.name, todo)
        wanted()  # An upload takes its time, and costs no commit.
        doubtful: TransientError | None = None
        paid = False
        for pause in (*self.client.pauses, None):
            try:
                if not paid:
                    self.client.budget.spend()
                return self._once(todo, draft, parent), True
            except VersionGoneError:
                raise  # what was to be put back is there no more
            except OvertakenError as error:
                found = self._overtaken_by(draft, parent) if doubtful else ""
                if found:
                    return found, False
                raise ConflictError(parent, "a later one") from error
            except (PlatformError, *REFUSALS, CommitsUsedUpError) as error:
                if doubtful is None:
                    raise
                raise self._unknown(draft, error) from error  # An earlier try may still land.
            except TransientError as error:
                last = error
            paid = not was_asked(last, _COMMIT)  # the client failed before it sent the commit
            if not paid:
                doubtful = last
                if found := self._looked_for(draft.nonce, parent):
                    return found, False
            if pause is not None:
                self.client.rest(pause, last)
        raise self._unknown(draft, last) if doubtful else last

    def _overtaken_by(self, draft: PendingCommit, parent: str) -> str:
        """Our own commit, if it is among those that came after the parent."""
        try:
            return self._landed(draft.nonce, parent)
        except TransientError as error:
            raise self._unknown(draft, error) from error

    def _unknown(self, draft: PendingCommit, last: Exception | None) -> TransientError:
        return TransientError(
            "commit_unknown",
            f"The Hub did not tell whether it took the commit {draft.title!r} to {self.name}; "
            f"at the last try: {last}",
            "Look before trying again: it may have been made.",
        )

    def _once(self, todo: Sequence[Operation], draft: PendingCommit, parent: str) -> str:
        text = describe(draft.nonce, {*draft.changes, *draft.restored}, draft.message)
        try:
            return self.client.commit(
                self.name, todo, parent=parent, title=draft.title, description=text
            )
        except TransientError as error:
            wanted = refused_for(error)
            if wanted is not None and error.code == "store_busy":
                self.client.budget.penalise(wanted)
            raise

    def _looked_for(self, nonce: str, parent: str) -> str:
        """As `_landed`; empty too where the Hub does not tell."""
        try:
            return self._landed(nonce, parent)
        except TransientError:
            return ""

    def _landed(self, nonce: str, parent: str) -> str:
        """The commit of this nonce in the history since the parent; empty where there is none."""
        for commit in islice(self.client.history(self.name), _SEARCHED):
            if nonce in commit.nonces:
                return commit.sha
            if commit.sha == parent:
                return ""
        return ""

    def _at_head(self, ask: Callable[[str], _T]) -> _T:
        """The answer at the current version; once more where a squash just removed that.

        Once more as well where the version last seen lacks a file: another repository may name
        what was committed here since.
        """
        seen = self._seen_head()
        try:
            return ask(seen or self.fresh_head())
        except VersionGoneError:
            self.forget_head()
        except NotFoundError:
            if seen is None or self.fresh_head() == seen:
                raise
        return ask(self.head())

    def _seen_head(self) -> str | None:
        """The version last seen, as long as it is fresh."""
        with self._lock:
            seen = self._seen
        fresh = seen is not None and self._steady() - seen[1] < self._fresh_for_s
        return seen[0] if seen is not None and fresh else None

    def _see(self, sha: str, at: float) -> None:
        with self._lock:
            if at >= (self._forgotten_at if self._seen is None else self._seen[1]):
                self._seen = sha, at


def without_absent(changes: Changes, found: Mapping[str, Entry]) -> Changes:
    """The changes without deletions of what was not found: the Hub refuses those."""
    return {
        path: content
        for path, content in changes.items()
        if content is not None or (path in found and found[path].is_file)
    }


def _draft(
    changes: Changes, message: str, control: Control, restored: Mapping[str, str] | None = None
) -> PendingCommit:
    nonce, title, said = new_nonce(), _title(message), message.strip()[:_MESSAGE_CHARS]
    whole = {**changes, **control(nonce)}
    return PendingCommit(whole, title, restored or {}, nonce, said if said != title else "")


def _check_readable(path: str) -> None:
    check_path(path)
    if not is_ours(path):
        raise NotFoundError(path)


def _title(message: str) -> str:
    line = next((line.strip() for line in message.splitlines() if line.strip()), "Changes")
    return line if len(line) <= 120 else f"{line[:119]}…"
