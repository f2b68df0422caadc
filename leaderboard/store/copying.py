"""A store copied into another, whatever the two are, and compared file by file afterwards."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from leaderboard.store.interface import Changes, Repository, Store

_FILES = 200
_BYTES = 64 << 20
Fetch = Callable[[str, Path], object]


def copy_store(source: Store, target: Store, scratch: Path, *, anew: bool = True) -> Iterator[str]:
    """Copy what a store holds into another that is empty, or that an earlier copy began."""
    sides = (("public", source.public, target.public), ("private", source.private, target.private))
    for side, here, there in sides:
        _check_extra(side, here.list(), there)
        if not anew:
            _check_same(side, here, there, scratch)
    for side, here, there in sides:
        version = here.head()
        paths = sorted(here.list(), key=lambda path: ("/" not in path, path))
        _check_extra(side, paths, there)
        todo = _differing(paths, here, there, scratch)
        for batch in batches(todo, here.fetch, scratch, _FILES):
            changes: Changes = batch
            there.commit(changes, parent=there.head(), message=f"Copy {len(batch)} files")
            yield f"{side}: {len(batch)} files copied."
            for file in batch.values():
                file.unlink()
        if here.head() != version:
            raise TransientError(
                "source_changed",
                f"The {side} side of the store was written to while it was copied.",
                "Stop its workers and its app, then run the same command again.",
            )
        wrong = _differing(todo, here, there, scratch)
        if wrong:
            raise PlatformError("copy_differs", f"The copy of {wrong[0]!r} is not what was sent.")
        yield f"{side}: all {len(paths)} files are the same in both."


def _check_extra(side: str, paths: Sequence[str], there: Repository) -> None:
    extra = sorted(set(there.list()).difference(paths))
    if extra:
        raise SubmitterError(
            "target_not_empty",
            f"The {side} side of the other store holds files that this one has not, "
            f"{extra[0]!r} for example.",
            "Name a store that is empty.",
        )


def _check_same(side: str, here: Repository, there: Repository, scratch: Path) -> None:
    changed = _differing(sorted(set(here.list()).intersection(there.list())), here, there, scratch)
    if changed:
        raise SubmitterError(
            "target_not_empty",
            f"The {side} side of the other store holds another {changed[0]!r}, which would be "
            f"replaced, and {len(changed) - 1} more.",
            "Name a store that is empty; `store copy --over` replaces them, where that is wanted.",
        )


def _differing(
    paths: Sequence[str], here: Repository, there: Repository, scratch: Path
) -> list[str]:
    """The paths that the other has not, or with another content."""
    known = set(there.list())
    return [
        path
        for path in paths
        if path not in known or _digest(path, here, scratch) != _digest(path, there, scratch)
    ]


def _digest(path: str, repository: Repository, scratch: Path) -> str:
    file = _fetched(path, repository.fetch, scratch)
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    finally:
        file.unlink()


def batches(
    paths: Sequence[str], fetch: Fetch, scratch: Path, files: int
) -> Iterator[dict[str, Path]]:
    """Files fetched into the scratch, as many as go into one commit: so many, or 64 MiB."""
    batch: dict[str, Path] = {}
    n_bytes = 0
    for path in paths:
        batch[path] = _fetched(path, fetch, scratch)
        n_bytes += batch[path].stat().st_size
        if len(batch) == files or n_bytes >= _BYTES:
            yield batch
            batch, n_bytes = {}, 0
    if batch:
        yield batch


def _fetched(path: str, fetch: Fetch, scratch: Path) -> Path:
    file = scratch / uuid.uuid4().hex
    fetch(path, file)
    return file
