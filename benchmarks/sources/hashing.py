"""Hashes of data files."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's content; computed once per process and state of the file."""
    state = path.stat()
    return _sha256(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=1024)
def _sha256(path: Path, size: int, changed: int) -> str:
    del size, changed  # they make the key of another state of the file
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
