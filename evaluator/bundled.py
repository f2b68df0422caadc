"""The scoring modules that are part of Assay, known by their content."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from evaluator.submission.archives.archive import content_hash

FOLDER = Path(__file__).parent / "demo" / "scorers"


def bundled_modules() -> tuple[Path, ...]:
    """Folders of the bundled scoring modules."""
    return tuple(sorted(p.parent for p in FOLDER.glob("*/assay.toml")))


@cache
def bundled_hashes() -> frozenset[str]:
    """Content hashes of the bundled modules: what has one of these is our own code."""
    return frozenset(content_hash(folder) for folder in bundled_modules())
