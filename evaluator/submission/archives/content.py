"""The files of a scoring module on disk, and the hash that names them.

The same files have the same hash and the same packed bytes, whether they came as a folder, a zip
or a tar. No file is ever held whole: hashing and packing go piece by piece.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.errors import PlatformError, SubmitterError
from evaluator.submission.archives.entries import PIECE, mb

_EPOCH = (1980, 1, 1, 0, 0, 0)
_UNIX = 3


@dataclass(frozen=True)
class FileFacts:
    """What is known of one file."""

    n_bytes: int  # its size
    sha256: str  # hash of its bytes alone


@dataclass(frozen=True)
class Content:
    """The files of a scoring module, in a folder of ours."""

    folder: Path  # where they are
    # relative POSIX path to what is known of the file; nothing else lies in the folder
    files: Mapping[str, FileFacts]

    @property
    def n_bytes(self) -> int:
        """Of all files together."""
        return sum(facts.n_bytes for facts in self.files.values())

    @cached_property
    def sha256(self) -> str:
        """Hash over all paths and contents."""
        sizes = {name: facts.n_bytes for name, facts in self.files.items()}
        return files_sha256({name: self.folder / name for name in self.files}, sizes)

    def read(self, name: str, most: int) -> bytes:
        """A small file as a whole."""
        n_bytes = self.files[name].n_bytes
        if n_bytes > most:
            raise SubmitterError(
                "too_large",
                f"{name!r} has {mb(n_bytes)}; a file of its kind may have {mb(most)}.",
                "Shorten it.",
            )
        return (self.folder / name).read_bytes()

    def head(self, name: str, most: int) -> bytes:
        """The beginning of a file, at most so many bytes of it."""
        with (self.folder / name).open("rb") as file:
            return file.read(most)

    def pack_to(self, path: Path) -> None:
        """Write a new zip whose bytes depend on the content alone.

        Nothing is compressed: weights hardly shrink, versions of zlib differ in their output, and
        so an archive of ours can never look like a bomb to its reader.
        """
        with path.open("xb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name in sorted(self.files):
                info = zipfile.ZipInfo(name, _EPOCH)
                info.create_system = _UNIX
                info.external_attr = 0o100644 << 16
                info.file_size = self.files[name].n_bytes
                with archive.open(info, "w") as member:
                    for piece in pieces_of(self.folder / name):
                        member.write(piece)


def pieces_of(path: Path) -> Iterator[bytes]:
    """The bytes of a file, a bounded number at a time."""
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def files_sha256(paths: Mapping[str, Path], sizes: Mapping[str, int]) -> str:
    """Hash over paths and contents: what names a submission."""
    digest = hashlib.sha256()
    for name in sorted(paths):
        digest.update(f"{len(name.encode())}:{name}:{sizes[name]}:".encode())
        n_bytes = 0
        for piece in pieces_of(paths[name]):
            digest.update(piece)
            n_bytes += len(piece)
        if n_bytes != sizes[name]:
            raise PlatformError(
                "content_changed",
                f"{name!r} has {n_bytes} bytes and had {sizes[name]} when it was taken in.",
                "Let nothing write in the folder meanwhile, and try again.",
            )
    return digest.hexdigest()
