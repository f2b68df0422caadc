"""Limits of a submitted archive: every bound of the intake in one place."""

from __future__ import annotations

from dataclasses import dataclass

PIECE = 1 << 20
"""Most that is held of one file at a time, in bytes."""

_JUNK_FACTOR = 20
_MEMBER_OVERHEAD = 4096


@dataclass(frozen=True)
class ArchiveLimits:
    """How much an archive may hold.

    Attributes:
        entries: files that are kept.
        file_bytes: of one file.
        total_bytes: of all files together.
        depth: parts of a path, the file's own name included.
        name_bytes: of a path, in UTF-8.
        ratio: bytes that may come out of one byte of the archive.
        ratio_from: bytes from which on the ratio counts; small files of zeros are honest.
        problems: that are told one by one; the rest are counted.
        weights_header_bytes: of the header of a safetensors file.
    """

    entries: int = 2000
    file_bytes: int = 1 << 30
    total_bytes: int = 1 << 30
    depth: int = 16
    name_bytes: int = 240
    ratio: int = 200
    ratio_from: int = 64 << 20
    problems: int = 100
    weights_header_bytes: int = 2 << 20

    @property
    def members(self) -> int:
        """Folders, headers and what tools left behind count here, not in `entries`."""
        return self.entries * _JUNK_FACTOR

    @property
    def archive_bytes(self) -> int:
        """Of the archive itself, and of all that comes out of it, with headers and leftovers."""
        return self.total_bytes + self.entries * _MEMBER_OVERHEAD + PIECE

    @property
    def sizes(self) -> str:
        """What is allowed, in a sentence."""
        return (
            f"One file may have {mb(self.file_bytes)}, all together {mb(self.total_bytes)}, "
            f"and there may be {self.entries} files."
        )


def mb(n_bytes: int) -> str:
    """A number of bytes as people say it."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{n_bytes} bytes"
