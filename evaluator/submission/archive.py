"""Unpacks a stranger's archive by our own hand, and names it by its content.

Only regular files and folders leave an archive; sizes are counted while inflating, since headers
lie: those of the files, and of a tar all that its compression gives out. The result is a list of
files in memory with one hash over all of them, so the same content has the same name whether it
came as a folder, a zip or a tar.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import stat
import struct
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Self

from benchmarks.errors import SubmitterError

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
_CHUNK = 1 << 20
_JUNK_FACTOR = 20
"""Members of an archive, with what is left out of it, for each file it may hold."""
_TAR_HEADER_BYTES = 8 * 1024
"""Of one extended header, which tarfile reads whole; real ones have some hundred bytes."""
_EXTENDED_HEADERS = frozenset(
    {
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
    }
)
_DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    # What the readers of the standard library let through of a crafted file: odd numbers and
    # texts, methods they do not know, headers nested too deep.
    ValueError,
    IndexError,
    OverflowError,
    RuntimeError,
)
_REFUSED_NAMES = frozenset({"sitecustomize.py", "usercustomize.py"})
_REFUSED_SUFFIXES = (".pyc", ".pyo", ".pth", ".so", ".pkl", ".pickle", ".pt", ".bin", ".ckpt")
_JUNK_FOLDERS = frozenset({"__pycache__", "__MACOSX", ".git"})


@dataclass(frozen=True)
class ArchiveLimits:
    """How much an archive may hold."""

    entries: int = 2000
    file_bytes: int = 1 << 30
    total_bytes: int = 1 << 30
    depth: int = 16
    name_bytes: int = 240

    @property
    def members(self) -> int:
        """Folders, headers and what tools left behind count here, not in `entries`."""
        return self.entries * _JUNK_FACTOR


@dataclass(frozen=True)
class Content:
    """The files of a scoring module: relative POSIX path to bytes."""

    files: Mapping[str, bytes]

    @property
    def sha256(self) -> str:
        """Hash over all paths and contents; the same for a folder and any archive of it."""
        digest = hashlib.sha256()
        for name in sorted(self.files):
            data = self.files[name]
            digest.update(f"{len(name.encode())}:{name}:{len(data)}:".encode())
            digest.update(data)
        return digest.hexdigest()

    def pack(self) -> bytes:
        """As a zip whose bytes depend on the content alone."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in sorted(self.files):
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), self.files[name])
        return buffer.getvalue()

    def unpack_to(self, folder: Path) -> None:
        """Write all files below a new folder, readable by everyone, writable by none else."""
        for name, data in self.files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            target.chmod(0o644)


def read_content(path: Path, limits: ArchiveLimits | None = None) -> Content:
    """Read a scoring module from a folder or an archive.

    A single folder around everything, as archives of a folder have it, is taken off.

    Raises:
        SubmitterError: `file_missing`, `not_an_archive`, `damaged_archive`, `unsafe_name`,
            `not_a_file`, `duplicate_name`, `refused_file`, `too_many_files`, `too_large`,
            `empty_archive`; the message names the file inside the archive.
    """
    if not path.exists():
        raise SubmitterError("file_missing", f"There is no file {path}.", "Check the path.")
    files: dict[str, bytes] = {}
    folded: dict[str, str] = {}
    for name, data in _files(path, _Budget(limits or ArchiveLimits(), path.name)):
        clash = folded.setdefault(name.casefold(), name)
        if name in files or clash != name:
            raise _one_file(clash, name)
        files[name] = data
    _check_folders(folded)
    if not files:
        raise SubmitterError("empty_archive", f"{path.name} holds no file.", "Pack the folder.")
    return Content(_without_wrapper(files))


class _Budget:
    """What may still come out of one archive."""

    def __init__(self, limits: ArchiveLimits, archive: str) -> None:
        self.limits = limits
        self.archive = archive
        self._members = self._entries = self._bytes = 0

    def count_member(self) -> None:
        """Count whatever stands in the archive, wanted or not."""
        self._members += 1
        if self._members > self.limits.members:
            raise self._too_many(self.limits.members, "members, with folders and hidden files")

    def take(self, name: str, stream: IO[bytes]) -> bytes:
        """Read a file in pieces, stopping as soon as it grows over a limit."""
        self._entries += 1
        if self._entries > self.limits.entries:
            raise self._too_many(self.limits.entries, "files")
        pieces: list[bytes] = []
        size = 0
        while piece := stream.read(_CHUNK):
            size += len(piece)
            self._bytes += len(piece)
            if size > self.limits.file_bytes or self._bytes > self.limits.total_bytes:
                raise _too_large(repr(name), self.limits)
            pieces.append(piece)
        return b"".join(pieces)

    def _too_many(self, most: int, what: str) -> SubmitterError:
        return SubmitterError(
            "too_many_files",
            f"{self.archive} holds more than {most} {what}.",
            "Leave out what the scorer does not need.",
        )


def _files(path: Path, budget: _Budget) -> Iterator[tuple[str, bytes]]:
    if path.is_dir():
        yield from _folder_files(path, budget)
        return
    try:
        yield from (
            _zip_files(path, budget) if zipfile.is_zipfile(path) else _tar_files(path, budget)
        )
    except _DAMAGE as error:
        raise SubmitterError(
            "damaged_archive",
            f"{path.name} is damaged: {str(error)[:200] or type(error).__name__}.",
            "Pack it again and upload it whole.",
        ) from error


def _folder_files(path: Path, budget: _Budget) -> Iterator[tuple[str, bytes]]:
    for file in sorted(p for p in path.rglob("*") if p.is_symlink() or not p.is_dir()):
        name = file.relative_to(path).as_posix()
        if _is_junk(name):
            continue
        _check_name(name, budget.limits)
        if file.is_symlink() or not file.is_file():
            raise _not_a_file(name)
        with file.open("rb") as stream:
            yield name, budget.take(name, stream)


def _zip_files(path: Path, budget: _Budget) -> Iterator[tuple[str, bytes]]:
    with _ZipFileObject.of(path, budget.limits) as file, zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            budget.count_member()
            name = info.filename.removeprefix("./")
            if info.filename.endswith("/") or _is_junk(name):
                continue
            _check_name(name, budget.limits)
            mode = stat.S_IFMT(info.external_attr >> 16)
            if mode not in (0, stat.S_IFREG):
                raise _not_a_file(name)
            if info.flag_bits & 0x1:
                raise SubmitterError(
                    "not_a_file", f"{name!r} is encrypted.", "Pack without a password."
                )
            with archive.open(info) as stream:
                yield name, budget.take(name, stream)


def _tar_files(path: Path, budget: _Budget) -> Iterator[tuple[str, bytes]]:
    with _decompressed(path) as raw, _opened_tar(path, raw, budget) as archive:
        for info in archive:
            name = info.name.removeprefix("./")
            if info.isdir() or _is_junk(name):
                continue
            _check_name(name, budget.limits)
            # A sparse file's map may send the reader round and round in it.
            stream = archive.extractfile(info) if info.isreg() and not info.issparse() else None
            if stream is None:
                raise _not_a_file(name)
            with stream:
                yield name, budget.take(name, stream)


class _ZipFileObject(io.BufferedReader):
    """A zip on disk. Its list of members is asked for in one piece, which may not be too long."""

    most = 0

    @classmethod
    def of(cls, path: Path, limits: ArchiveLimits) -> Self:
        """Open a zip; a member's line in the list has 46 bytes, its name and some extras."""
        file = cls(io.FileIO(path))
        file.most = 2 * _CHUNK + limits.members * 64
        return file

    def read(self, size: int | None = -1, /) -> bytes:
        """Read, unless more is asked for than any honest zip needs at once."""
        if size is not None and size > self.most:
            raise SubmitterError(
                "too_many_files",
                f"The zip's list of its members alone has {size >> 10} kB.",
                "Leave out what the scorer does not need.",
            )
        return super().read(size)


def _decompressed(path: Path) -> io.BufferedIOBase:
    with path.open("rb") as file:
        magic = file.read(6)
    if magic.startswith(b"\x1f\x8b"):
        return gzip.open(path)
    if magic.startswith(b"BZh"):
        return bz2.open(path)
    return lzma.open(path) if magic == b"\xfd7zXZ\0" else path.open("rb")


def _opened_tar(path: Path, raw: io.BufferedIOBase, budget: _Budget) -> tarfile.TarFile:
    # As a stream, since seeking in a compressed file inflates what nobody counts.
    try:
        return tarfile.open(
            fileobj=_Bounded(raw, budget.limits), mode="r|", tarinfo=_tar_member(budget)
        )
    except tarfile.ReadError as error:
        raise SubmitterError(
            "not_an_archive",
            f"{path.name} is neither a zip nor a tar archive.",
            f"Send one of {', '.join(SUFFIXES)}.",
        ) from error


class _Bounded(io.RawIOBase):
    """A decompressed tar that ends in an error when more comes out of it than it may hold."""

    def __init__(self, stream: io.BufferedIOBase, limits: ArchiveLimits) -> None:
        self._stream = stream
        self._limits = limits
        # Every file has a header, perhaps an extended one, and is filled up to whole blocks.
        self._left = limits.total_bytes + limits.entries * 4096 + _CHUNK

    def read(self, size: int = -1, /) -> bytes:
        """Read and count."""
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise _too_large("The archive, with all that is left out of it,", self._limits)
        return data


def _tar_member(budget: _Budget) -> type[tarfile.TarInfo]:
    """Headers of one tar, counted and measured before tarfile reads what belongs to them."""
    left = budget.limits.entries * 1024 + _TAR_HEADER_BYTES

    class Member(tarfile.TarInfo):
        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
            nonlocal left
            try:
                info = super().frombuf(buf, encoding, errors)
            except tarfile.HeaderError as error:
                # tarfile would take a broken header for the end and lose what follows.
                if any(buf):
                    raise tarfile.ReadError(str(error)) from error
                raise
            budget.count_member()
            if info.size < 0:
                raise tarfile.ReadError("a file has less than no bytes")
            if info.type in _EXTENDED_HEADERS:
                left -= info.size
                if info.size > _TAR_HEADER_BYTES or left < 0:
                    raise SubmitterError(
                        "too_large",
                        f"{budget.archive} has an extended header of {info.size} bytes.",
                        "Pack the folder without extended attributes.",
                    )
            return info

    return Member


def _check_name(name: str, limits: ArchiveLimits) -> None:
    parts = PurePosixPath(name).parts
    problem = ""
    if not parts or PurePosixPath(name).as_posix() != name:
        problem = "is not the plain path of a file"
    elif name.startswith(("/", "~")) or ".." in parts or "\\" in name or ":" in name:
        problem = "leads out of the archive"
    elif any(unicodedata.category(c)[0] == "C" for c in name) or not unicodedata.is_normalized(
        "NFC", name
    ):
        problem = "holds control, invisible or unnormalised characters"
    elif len(name.encode()) > limits.name_bytes or len(parts) > limits.depth:
        problem = "is too long or too deep"
    if problem:
        raise SubmitterError(
            "unsafe_name", f"The name {name[:300]!r} {problem}.", "Rename that file."
        )
    if parts[-1] in _REFUSED_NAMES or name.lower().endswith(_REFUSED_SUFFIXES):
        raise SubmitterError(
            "refused_file",
            f"{name!r} is a kind of file that is not taken: it can hold code that runs unseen.",
            "Send Python sources, text, and weights as .safetensors.",
        )


def _check_folders(folded: Mapping[str, str]) -> None:
    """Refuse a file whose name is a folder of another's."""
    for name in folded.values():
        for parent in _parents(name):
            if parent.casefold() in folded:
                raise _one_file(folded[parent.casefold()], name)


def _parents(name: str) -> Iterable[str]:
    return (parent.as_posix() for parent in PurePosixPath(name).parents if parent.parts)


def _one_file(first: str, second: str) -> SubmitterError:
    return SubmitterError(
        "duplicate_name",
        f"The archive holds {first!r} and {second!r}, which are one file on some disks.",
        "Give every file a name of its own.",
    )


def _too_large(what: str, limits: ArchiveLimits) -> SubmitterError:
    return SubmitterError(
        "too_large",
        f"{what} grows over the limit while unpacking.",
        f"A file may have {limits.file_bytes >> 20} MB, all together "
        f"{limits.total_bytes >> 20} MB.",
    )


def _is_junk(name: str) -> bool:
    """What tools leave behind and nobody means to send."""
    parts = PurePosixPath(name).parts
    return bool(_JUNK_FOLDERS.intersection(parts)) or (bool(parts) and parts[-1] == ".DS_Store")


def _not_a_file(name: str) -> SubmitterError:
    return SubmitterError(
        "not_a_file",
        f"{name!r} is a link, a device or a sparse file.",
        "Put regular files only into the archive.",
    )


def _without_wrapper(files: dict[str, bytes]) -> dict[str, bytes]:
    tops = {name.partition("/")[0] for name in files}
    if len(tops) != 1 or any("/" not in name for name in files):
        return files
    return {name.partition("/")[2]: data for name, data in files.items()}
