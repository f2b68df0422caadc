"""Makes a backup of a store that may be in use."""

from __future__ import annotations

import hashlib
import io
import tarfile
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from leaderboard.store.backup.manifest import MEMBER, Kept, Manifest, Side
from leaderboard.store.copying import copy_store
from leaderboard.store.disk import failing
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import Repository, Store

MOST_PASSES = 8
_DRAFT = ".part"


def back_up(store: Store, name: str, target: Path) -> Iterator[str]:
    """Write a store into one file, which nobody else may read: it holds what is private.

    The files are copied beside the target until a whole pass saw no change, so the store may be in
    use; twice the room of the store is needed meanwhile.

    Args:
        store: is only read.
        name: of it, for the manifest.
        target: a file that does not exist yet.

    Yields:
        What was done, in sentences.

    Raises:
        SubmitterError: `file_exists`.
        TransientError: `store_busy`, where every pass saw a change; nothing is left.
        PlatformError: where the disk does not take it; nothing is left.
    """
    with failing(f"write the backup {target}"):
        if target.exists():
            raise SubmitterError(
                "file_exists", f"{target} is there already.", "Name a file that is not."
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".assay-backup-", dir=target.parent) as folder:
            yield from _written(store, name, target, Path(folder))


def _written(store: Store, name: str, target: Path, folder: Path) -> Iterator[str]:
    still, scratch = folder_store(folder / "store"), folder / "scratch"
    scratch.mkdir()
    versions = yield from _copied(store, still, scratch)
    manifest = Manifest(
        store=name,
        made_at=store.clock(),
        public=_side(still.public, versions[0], scratch),
        private=_side(still.private, versions[1], scratch),
    )
    draft = folder / _DRAFT
    with draft.open("xb") as file:
        draft.chmod(0o600)
        _pack(manifest, still, file, scratch)
    draft.rename(target)
    size = target.stat().st_size / 1e6
    yield f"{target}: {len(manifest.members())} files, {size:.1f} MB. It holds private uploads."


def _copied(store: Store, still: Store, scratch: Path) -> Generator[str, None, tuple[str, str]]:
    """Copy until a pass saw no change.

    Returns:
        The versions of both sides that were copied.
    """
    for number in range(1, MOST_PASSES + 1):
        store.look_anew()
        before = (store.public.head(), store.private.head())
        _leave_out_what_is_gone(store, still)
        try:
            for _ in copy_store(store, still, scratch):
                pass
        except (TransientError, PlatformError, SubmitterError) as error:
            # A file that was read is gone, or another came: only what changes meanwhile does that.
            if error.code not in {"source_changed", "not_found", "target_not_empty"}:
                raise
        store.look_anew()
        if (store.public.head(), store.private.head()) == before:
            return before
        yield f"Pass {number}: the store was written to meanwhile; once more for what changed."
    raise TransientError(
        "store_busy",
        f"The store was written to in each of {MOST_PASSES} passes.",
        "Try again at a quieter time, or stop its workers for the time of the backup.",
    )


def _leave_out_what_is_gone(store: Store, still: Store) -> None:
    for here, there in ((store.public, still.public), (store.private, still.private)):
        gone = sorted(set(there.list()).difference(here.list()))
        if gone:
            there.commit(dict.fromkeys(gone), parent=there.head(), message="Gone meanwhile")


def _side(repository: Repository, version: str, scratch: Path) -> Side:
    files = {}
    for path in repository.list():
        fetched = scratch / "one"
        repository.fetch(path, fetched)
        with fetched.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        files[path] = Kept(sha256=digest, n_bytes=fetched.stat().st_size)
        fetched.unlink()
    return Side(version=version, files=files)


def _pack(manifest: Manifest, still: Store, file: io.BufferedIOBase, scratch: Path) -> None:
    """Write the archive: the manifest first, then the files by name; nothing but names and bytes."""
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        told = manifest.model_dump_json().encode()
        at = int(manifest.made_at.timestamp())
        archive.addfile(_header(MEMBER, len(told), at), io.BytesIO(told))
        for side, repository in (("public", still.public), ("private", still.private)):
            for path in repository.list():
                fetched = scratch / "one"
                repository.fetch(path, fetched)
                with fetched.open("rb") as content:
                    size = fetched.stat().st_size
                    archive.addfile(_header(f"{side}/{path}", size, at), content)
                fetched.unlink()


def _header(name: str, n_bytes: int, at: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.size, header.mtime, header.mode = n_bytes, at, 0o600
    return header
