"""Limits of a submission of generations: images are many, and each is small."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.submission.archives.limits import ArchiveLimits

TABLE_BYTES = 256 << 20
"""Of the table of images, however it is packed."""
LINE_BYTES = 1 << 20
"""Of one line of it."""
GROUP_BYTES = 2 << 30
"""Of the images of one row group of a Parquet file, decompressed."""
_FOLDERS = 10_000


@dataclass(frozen=True)
class GenerationsLimits(ArchiveLimits):
    """See `ArchiveLimits`; one file is one image."""

    entries: int = 200_000
    file_bytes: int = 64 << 20
    total_bytes: int = 100 << 30

    @property
    def members(self) -> int:
        """What is listed at the end of a zip is held while it is read: no multiple of `entries`."""
        return self.entries + _FOLDERS
