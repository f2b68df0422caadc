"""Unpacks a stranger's archive by our own hand, and names it by its content.

Only regular files and folders leave an archive; sizes are counted while inflating, since headers
lie. The result is a list of files in memory or on disk with one hash over all of them, so the
same content has the same name whether it came as a folder, a zip or a tar.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import stat
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from benchmarks.errors import SubmitterError

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
_CHUNK = 1 << 20
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
    limits = limits or ArchiveLimits()
    if not path.exists():
        raise SubmitterError("file_missing", f"There is no file {path}.", "Check the path.")
    files: dict[str, bytes] = {}
    folded: dict[str, str] = {}
    total = 0
    try:
        for name, stream in _members(path, limits):
            clash = folded.setdefault(name.casefold(), name)
            if name in files or clash != name:
                raise SubmitterError(
                    "duplicate_name",
                    f"{path.name} holds {clash!r} and {name!r}, which are one file on some disks.",
                    "Give every file a name of its own.",
                )
            files[name] = _inflate(stream, name, limits, total)
            total += len(files[name])
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, gzip.BadGzipFile, EOFError) as error:
        raise SubmitterError(
            "damaged_archive",
            f"{path.name} is damaged: {error or type(error).__name__}.",
            "Pack it again and upload it whole.",
        ) from error
    if not files:
        raise SubmitterError("empty_archive", f"{path.name} holds no file.", "Pack the folder.")
    return Content(_without_wrapper(files))


def _members(path: Path, limits: ArchiveLimits) -> Iterator[tuple[str, IO[bytes]]]:
    if path.is_dir():
        yield from _folder_members(path, limits)
    elif zipfile.is_zipfile(path):
        yield from _zip_members(path, limits)
    elif tarfile.is_tarfile(path):
        yield from _tar_members(path, limits)
    else:
        raise SubmitterError(
            "not_an_archive",
            f"{path.name} is neither a zip nor a tar archive.",
            f"Send one of {', '.join(SUFFIXES)}.",
        )


def _folder_members(path: Path, limits: ArchiveLimits) -> Iterator[tuple[str, IO[bytes]]]:
    found = sorted(p for p in path.rglob("*") if p.is_symlink() or not p.is_dir())
    for number, file in enumerate(found):
        name = file.relative_to(path).as_posix()
        if _is_junk(name):
            continue
        _count(number, limits, path.name)
        _check_name(name, limits)
        if file.is_symlink() or not file.is_file():
            raise _not_a_file(name)
        with file.open("rb") as stream:
            yield name, stream


def _zip_members(path: Path, limits: ArchiveLimits) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        _count(len(infos) - 1, limits, path.name)
        for info in infos:
            if info.is_dir() or _is_junk(info.filename):
                continue
            _check_name(info.filename, limits)
            mode = stat.S_IFMT(info.external_attr >> 16)
            if mode not in (0, stat.S_IFREG):
                raise _not_a_file(info.filename)
            if info.flag_bits & 0x1:
                raise SubmitterError(
                    "not_a_file", f"{info.filename!r} is encrypted.", "Pack without a password."
                )
            with archive.open(info) as stream:
                yield info.filename, stream


def _tar_members(path: Path, limits: ArchiveLimits) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(path, mode="r:*") as archive:
        for number, info in enumerate(archive):
            _count(number, limits, path.name)
            name = info.name.removeprefix("./")
            if info.isdir() or _is_junk(name):
                continue
            _check_name(name, limits)
            stream = archive.extractfile(info) if info.isreg() else None
            if stream is None:
                raise _not_a_file(name)
            with stream:
                yield name, stream


def _inflate(stream: IO[bytes], name: str, limits: ArchiveLimits, before: int) -> bytes:
    """Read a member in pieces, stopping as soon as it grows over a limit."""
    pieces: list[bytes] = []
    size = 0
    while piece := stream.read(_CHUNK):
        size += len(piece)
        if size > limits.file_bytes or before + size > limits.total_bytes:
            raise SubmitterError(
                "too_large",
                f"{name!r} grows over the limit while unpacking.",
                f"A file may have {limits.file_bytes >> 20} MB, all together "
                f"{limits.total_bytes >> 20} MB.",
            )
        pieces.append(piece)
    return b"".join(pieces)


def _check_name(name: str, limits: ArchiveLimits) -> None:
    parts = PurePosixPath(name).parts
    problem = ""
    if name.startswith(("/", "~")) or ".." in parts or "\\" in name or ":" in name:
        problem = "leads out of the archive"
    elif any(unicodedata.category(c)[0] == "C" for c in name) or not unicodedata.is_normalized(
        "NFC", name
    ):
        problem = "holds control, invisible or unnormalised characters"
    elif len(name.encode()) > limits.name_bytes or len(parts) > limits.depth:
        problem = "is too long or too deep"
    if problem:
        raise SubmitterError("unsafe_name", f"The name {name!r} {problem}.", "Rename that file.")
    if parts[-1] in _REFUSED_NAMES or name.lower().endswith(_REFUSED_SUFFIXES):
        raise SubmitterError(
            "refused_file",
            f"{name!r} is a kind of file that is not taken: it can hold code that runs unseen.",
            "Send Python sources, text, and weights as .safetensors.",
        )


def _count(number: int, limits: ArchiveLimits, name: str) -> None:
    if number >= limits.entries:
        raise SubmitterError(
            "too_many_files",
            f"{name} holds more than {limits.entries} files.",
            "Leave out what the scorer does not need.",
        )


def _is_junk(name: str) -> bool:
    """What tools leave behind and nobody means to send."""
    parts = PurePosixPath(name).parts
    return bool(_JUNK_FOLDERS.intersection(parts)) or (bool(parts) and parts[-1] == ".DS_Store")


def _not_a_file(name: str) -> SubmitterError:
    return SubmitterError(
        "not_a_file",
        f"{name!r} is a link or a device.",
        "Put regular files only into the archive.",
    )


def _without_wrapper(files: dict[str, bytes]) -> dict[str, bytes]:
    tops = {name.partition("/")[0] for name in files}
    if len(tops) != 1 or any("/" not in name for name in files):
        return files
    return {name.partition("/")[2]: data for name, data in files.items()}
