"""A folder of embeddings kept within a bound."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from evaluator.scoring.embeddings.packs import SUFFIX


def trim(folder: Path, most_bytes: int) -> int:
    """Remove the packs that were used longest ago, until all together are within a bound.

    A run that has one open reads on: its file goes when it is closed.

    Args:
        folder: of the caches of all scorers.
        most_bytes: that all packs may take.

    Returns:
        The number of bytes that this freed.
    """
    found: list[tuple[float, int, Path]] = []
    for path in folder.glob(f"*/*/*{SUFFIX}"):
        with suppress(FileNotFoundError):
            told = path.stat()
            found.append((told.st_mtime, told.st_size, path))
    over, freed = sum(size for _, size, _ in found) - most_bytes, 0
    for _, size, path in sorted(found):
        if freed >= over:
            break
        with suppress(OSError):
            path.unlink()
            freed += size
    return freed
