"""A backup as a store that can be read: checked whole before anything of it is used."""

from __future__ import annotations

import hashlib
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import cast

from benchmarks.errors import PlatformError, SubmitterError
from leaderboard.store.backup.manifest import LARGEST, MEMBER, Manifest, read_manifest
from leaderboard.store.disk import failing
from leaderboard.store.interface import Changes, NotFoundError, Store
from leaderboard.store.live.interface import MemoryLive
from leaderboard.store.paths import check_path

_PIECE = 1 << 20


@dataclass(frozen=True)
class BackupRepository:
    """One side of a backup; never written to.

    Attributes:
        archive: open, and checked.
        members: path to the member that holds it.
        version: of the side, when the backup was made.
    """

    archive: tarfile.TarFile
    members: Mapping[str, tarfile.TarInfo]
    version: str

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
    """A backup whose every byte was compared with its manifest.

    Args:
        path: the file.

    Yields:
        What it says of itself, and a store that can be read.

    Raises:
        SubmitterError: `no_backup` where there is no such file, `bad_backup` where it is cut off,
            damaged or changed, or no backup.
    """
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
