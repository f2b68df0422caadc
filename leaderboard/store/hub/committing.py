"""Commit, made exactly once, whatever becomes of the answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from benchmarks.errors import PlatformError, TransientError
from leaderboard.store.hub.budget import CommitsUsedUpError
from leaderboard.store.hub.client import HubClient
from leaderboard.store.hub.description import describe, new_nonce
from leaderboard.store.hub.faults import (
    REFUSALS,
    OvertakenError,
    VersionGoneError,
    refused_for,
    was_asked,
)
from leaderboard.store.hub.uploads import Operation, operations
from leaderboard.store.interface import Changes, ConflictError

_COMMIT = "/commit/"
"""In the address of the request that makes a commit."""
_SEARCHED = 2000
"""Commits that are looked through for one of ours."""


@dataclass(frozen=True)
class Draft:
    """A commit that is to be made.

    Attributes:
        changes: path to content, control files included; what is deleted must be there.
        title: first line of its message.
        restored: path to the commit whose version of it is put back.
        nonce: its name; no other commit has it.
        message: all of it, where the title is not.
    """

    changes: Changes
    title: str
    restored: Mapping[str, str] = field(default_factory=dict)
    nonce: str = field(default_factory=new_nonce)
    message: str = ""


@dataclass(frozen=True, slots=True)
class Made:
    """A commit that was made.

    Attributes:
        sha: its id; where it was squashed since, that of what holds it.
        told: whether the Hub answered so; else it was found in the history, where others may have
            come after it.
    """

    sha: str
    told: bool


class Committer:
    """Makes commits in one repository.

    An attempt that failed may have happened, or may still happen. All attempts carry the same
    nonce and the same parent: the Hub takes one of them at most, and whether it took one is read
    from the history.

    Args:
        client: of the Hub.
        repo: the repository.
    """

    def __init__(self, client: HubClient, repo: str) -> None:
        self._client = client
        self._repo = repo

    def commit(self, draft: Draft, parent: str) -> Made:
        """Make a commit on a parent.

        Raises:
            ConflictError: the branch is not at the parent any more; nothing was changed.
            TransientError: the Hub failed; `commit_unknown` where it may have happened;
                `commits_used_up`.
            PlatformError: the Hub refuses.
        """
        todo = operations(draft.changes, draft.restored)
        self._client.upload(self._repo, todo)
        doubtful: TransientError | None = None
        paid = False
        for pause in (*self._client.pauses, None):
            try:
                if not paid:
                    self._client.spending.one()
                return Made(self._once(todo, draft, parent), told=True)
            except VersionGoneError:
                raise  # what was to be put back is there no more
            except OvertakenError as error:
                found = self._overtaken_by(draft, parent) if doubtful else ""
                if found:
                    return Made(found, told=False)
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
                    return Made(found, told=False)
            if pause is not None:
                self._client.rest(pause, last)
        raise self._unknown(draft, last) if doubtful else last

    def _overtaken_by(self, draft: Draft, parent: str) -> str:
        """Our own commit, if it is among those that came after the parent."""
        try:
            return self._landed(draft.nonce, parent)
        except TransientError as error:
            raise self._unknown(draft, error) from error

    def _unknown(self, draft: Draft, last: Exception | None) -> TransientError:
        return TransientError(
            "commit_unknown",
            f"The Hub did not tell whether it took the commit {draft.title!r} to {self._repo}; "
            f"at the last try: {last}",
            "Look before trying again: it may have been made.",
        )

    def _once(self, todo: list[Operation], draft: Draft, parent: str) -> str:
        text = describe(draft.nonce, {*draft.changes, *draft.restored}, draft.message)
        try:
            return self._client.commit(
                self._repo, todo, parent=parent, title=draft.title, description=text
            )
        except TransientError as error:
            wanted = refused_for(error)
            if wanted is not None and error.code == "store_busy":
                self._client.spending.penalise(wanted)
            raise

    def _looked_for(self, nonce: str, parent: str) -> str:
        """As `_landed`; empty too where the Hub does not tell."""
        try:
            return self._landed(nonce, parent)
        except TransientError:
            return ""

    def _landed(self, nonce: str, parent: str) -> str:
        """The commit of this nonce in the history since the parent; empty where there is none."""
        for commit in islice(self._client.history(self._repo), _SEARCHED):
            if nonce in commit.nonces:
                return commit.sha
            if commit.sha == parent:
                return ""
        return ""
