"""Migration of a store of release 0.1.0, whose scores lie in a repository of their own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

from benchmarks.errors import PlatformError, TransientError
from leaderboard.store.copying import batches
from leaderboard.store.hub.client import Entry
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.layout import is_ours
from leaderboard.store.hub.maintenance import in_rounds
from leaderboard.store.hub.multi_repository import Pins, Version
from leaderboard.store.hub.repository import HubRepository
from leaderboard.store.interface import ConflictError

FROZEN_FOR = timedelta(hours=1)
"""For so long writers of release 0.1.0 stay away; each batch that is copied renews it."""
_FILES = 100
_Tree = dict[str, Entry]


def migrate(parts: HubParts, scratch: Path) -> Iterator[str]:
    """Copy what the repository of scores holds into that of results, then switch in one commit.

    The copies lie beyond the pin, where nobody reads, until the commit that switches. Stopped
    anywhere it goes on where it was, and once it is done it does nothing.
    """
    public, old = parts.public, parts.public.old_scores
    version = in_rounds(partial(_frozen, parts))
    if version.pins.scores is None:
        yield f"hub:{parts.name.text}: its scores and results are one repository already."
        return
    wanted = _tree(old, version.pins.scores)
    pinned = _tree(public.results, version.pins.results)
    head, there = _begun(public.results, version.pins, pinned, wanted)
    todo = [path for path in sorted(wanted) if there.get(path) != wanted[path]]
    done = len(wanted) - len(todo)
    yield f"{old.name}: {len(wanted)} files to copy, {done} of them copied before."
    scores = version.pins.scores
    for batch in batches(todo, lambda path, to: old.fetch_at(path, scores, to), scratch, _FILES):
        head = public.results.commit_onto(head, batch, f"{len(batch)} files of {old.name}")
        for file in batch.values():
            file.unlink()
        done += len(batch)
        yield f"{public.results.name}: {done} of {len(wanted)} files copied."
        version = _renewed(parts, version)
    if _tree(public.results, head).keys() != {*pinned, *wanted}:
        raise PlatformError(
            "copy_differs", f"{public.results.name} has other files than were sent."
        )
    pins = Pins(results=head)
    try:
        public.decisive.commit_with({}, pins.note, version.sha, "Scores and results are one")
    except ConflictError as error:
        raise _overtaken() from error
    yield (
        f"hub:{parts.name.text}: scores and results are one repository now. {old.name} is as it "
        "was, and read by nobody any more: it may be deleted."
    )


def _frozen(parts: HubParts) -> Version:
    """Keep writers of release 0.1.0 away, where the store is one of theirs."""
    version = parts.public.version(parts.public.fresh_head())
    if version.pins.scores is None:
        return version
    until = parts.client.clock() + FROZEN_FOR
    pins = version.pins.model_copy(update={"frozen_until": until})
    sha = parts.public.decisive.commit_with({}, pins.note, version.sha, "Migration is at work")
    return Version(sha, pins)


def _renewed(parts: HubParts, version: Version) -> Version:
    """The version, frozen for longer where it soon is not any more."""
    until = version.pins.frozen_until
    if until is not None and parts.client.clock() < until - FROZEN_FOR / 2:
        return version
    new = in_rounds(partial(_frozen, parts))
    if (new.pins.scores, new.pins.results) != (version.pins.scores, version.pins.results):
        raise _overtaken()
    return new


def _begun(results: HubRepository, pins: Pins, pinned: _Tree, wanted: _Tree) -> tuple[str, _Tree]:
    """From where to go on: what was copied before stays, what else lies beyond the pin goes."""
    head = results.fresh_head()
    there = _tree(results, head)
    beyond = {path for path in {*there, *pinned} if there.get(path) != pinned.get(path)}
    if all(there.get(path) == wanted.get(path) for path in beyond):
        return head, there
    return results.commit_onto(pins.results, {}, "Back to the pinned files"), pinned


def _tree(repository: HubRepository, sha: str) -> _Tree:
    tree = repository.client.tree(repository.name, "", sha)
    return {entry.path: entry for entry in tree if is_ours(entry.path)}


def _overtaken() -> TransientError:
    return TransientError(
        "migration_overtaken",
        "The store was written to while it was migrated, by a worker or a site of release 0.1.0, "
        "or another migration was done first.",
        "Stop them, then run the same command again: what was copied stays.",
    )
