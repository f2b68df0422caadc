"""A whole store in one file: made while the store is in use, checked, and put back."""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile
import tempfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from io import BufferedReader
from pathlib import Path
from typing import Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from leaderboard.store.copying import copy_store
from leaderboard.store.disk import failing
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import Changes, NotFoundError, Repository, Store, check_path
from leaderboard.store.live.interface import MemoryLive

MEMBER = "backup.json"
LARGEST = 256 << 20  # Bytes of the manifest: about a million files


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Kept(_Frozen):
    """One file.

    Attributes:
        sha256: of its content, 64 hexadecimal digits.
        n_bytes: of it.
    """

    sha256: str = Field(pattern=r"[0-9a-f]{64}")
    n_bytes: int = Field(ge=0)


class Side(_Frozen):
    """One repository of the store.

    Attributes:
        version: of it, when the backup was made.
        files: path to what is kept of each.
    """

    version: str
    files: dict[str, Kept]


class Manifest(_Frozen):
    """A backup.

    Attributes:
        store: the name of the store, as it was given.
        made_at: by the clock of the store.
        public: what everybody may read.
        private: what was uploaded, and what is withheld.
    """

    schema_version: Literal[1] = 1
    store: str
    made_at: datetime
    public: Side
    private: Side

    def members(self) -> dict[str, Kept]:
        """Every file by its name in the backup: `public/...` and `private/...`."""
        sides = (("public", self.public), ("private", self.private))
        return {f"{name}/{path}": kept for name, side in sides for path, kept in side.files.items()}


def read_manifest(content: bytes, where: str) -> Manifest:
    """The manifest of a backup."""
    try:
        return Manifest.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise SubmitterError(
            "bad_backup",
            f"{where} is no backup that this Assay reads: {MEMBER}, {place}: {first['msg']}.",
            "Take another backup, or the Assay that made this one.",
        ) from error


MOST_PASSES = 8
_DRAFT = ".part"


def back_up(store: Store, name: str, target: Path) -> Iterator[str]:
    """Write a store into one file, which nobody else may read: it holds what is private.

    The files are copied beside the target until a whole pass saw no change, so the store may be in
    use; twice the room of the store is needed meanwhile.
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
    """Copy until a pass saw no change."""
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


_PIECE = 1 << 20


@dataclass(frozen=True)
class BackupRepository:
    """One side of a backup; never written to."""

    archive: tarfile.TarFile  # open, and checked
    members: Mapping[str, tarfile.TarInfo]  # path to the member that holds it
    version: str  # of the side, when the backup was made

    def head(self) -> str:
        """The version that was kept."""
        return self.version

    def read(self, path: str) -> bytes:
        """The content of a file."""
        with self._opened(path) as content:
            return content.read()

    def fetch(self, path: str, target: Path) -> None:
        """Copy a file to a new file of this machine."""
        with (
            failing(f"copy {path!r} out of a backup into {target.parent}"),
            self._opened(path) as content,
            target.open("xb") as file,
        ):
            shutil.copyfileobj(content, file, _PIECE)

    def has(self, path: str) -> bool:
        """Whether there is a file of that path."""
        return path in self.members

    def list(self, prefix: str = "") -> tuple[str, ...]:
        """Paths that begin with `prefix`, sorted."""
        return tuple(sorted(path for path in self.members if path.startswith(prefix)))

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        """Refused: a backup is what it is."""
        raise PlatformError(
            "read_only", f"A backup takes no {len(changes)} changes ({message}) after {parent!r}."
        )

    def _opened(self, path: str) -> BufferedReader:
        if path not in self.members:
            raise NotFoundError(path)
        content = self.archive.extractfile(self.members[path])
        if content is None:
            raise NotFoundError(path)
        return cast(BufferedReader, content)


@contextmanager
def opened_backup(path: Path) -> Iterator[tuple[Manifest, Store]]:
    """A backup whose every byte was compared with its manifest."""
    try:
        with _archive(path) as archive:
            try:
                manifest, members = _checked(archive, path)
            except ValueError as error:  # Numbers of a header that are none.
                raise tarfile.ReadError(str(error)) from error
            yield manifest, _store(archive, manifest, members)
    except (tarfile.TarError, EOFError) as error:
        raise _bad(path, f"it cannot be read as an archive ({error})") from error


def _archive(path: Path) -> tarfile.TarFile:
    try:
        if path.is_file():
            return tarfile.open(path, mode="r:")
    except OSError as error:
        raise SubmitterError(
            "no_backup",
            f"The file {path} cannot be read ({error.strerror}).",
            "Name a backup that this user may read.",
        ) from error
    except ValueError as error:
        raise tarfile.ReadError(str(error)) from error
    raise SubmitterError("no_backup", f"There is no file {path}.", "Name a backup.")


def _checked(
    archive: tarfile.TarFile, path: Path
) -> tuple[Manifest, Mapping[str, tarfile.TarInfo]]:
    first = archive.next()
    if first is None or first.name != MEMBER or not first.isreg() or first.size > LARGEST:
        raise _bad(path, f"it does not begin with {MEMBER}")
    manifest = read_manifest(_content(archive, first, path).read(), str(path))
    wanted = manifest.members()
    found: dict[str, tarfile.TarInfo] = {}
    while (member := archive.next()) is not None:
        kept = wanted.get(member.name)
        if kept is None or member.name in found or not member.isreg() or member.issparse():
            raise _bad(path, f"its manifest does not tell of {member.name[:120]!r}")
        if member.size != kept.n_bytes:
            raise _bad(path, f"{member.name[:120]!r} is not what was kept")
        with _content(archive, member, path) as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        if digest != kept.sha256:
            raise _bad(path, f"{member.name[:120]!r} is not what was kept")
        _check_name(member.name, path)
        found[member.name] = member
    missing = sorted(wanted.keys() - found.keys())
    if missing:
        raise _bad(path, f"it lacks {len(missing)} files, {missing[0]!r} for example")
    return manifest, found


def _check_name(name: str, path: Path) -> None:
    try:
        check_path(name.partition("/")[2])
    except PlatformError as error:
        raise _bad(path, error.message.rstrip(".")) from error


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> BufferedReader:
    content = archive.extractfile(member)
    if content is None:
        raise _bad(path, f"{member.name[:120]!r} is no file")
    return cast(BufferedReader, content)  # Of an archive that is a file it is nothing else.


def _store(
    archive: tarfile.TarFile, manifest: Manifest, members: Mapping[str, tarfile.TarInfo]
) -> Store:
    def side(name: str, version: str) -> BackupRepository:
        start = f"{name}/"
        own = {n.removeprefix(start): m for n, m in members.items() if n.startswith(start)}
        return BackupRepository(archive, own, version)

    public, private = manifest.public.version, manifest.private.version
    return Store(side("public", public), side("private", private), MemoryLive())


def _bad(path: Path, why: str) -> SubmitterError:
    return SubmitterError(
        "bad_backup", f"{path} cannot be used: {why}.", "Nothing was changed. Take another backup."
    )
