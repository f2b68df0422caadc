"""The scoring modules that are part of Assay, known by their content."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from evaluator.submission.archive import read_content

FOLDER = Path(__file__).parent / "demo" / "scorers"


def bundled_modules() -> tuple[Path, ...]:
    """Folders of the bundled scoring modules."""
    return tuple(sorted(p.parent for p in FOLDER.glob("*/assay.toml")))


@cache
def bundled_hashes() -> frozenset[str]:
    """Content hashes of the bundled modules: what has one of these is our own code."""
    return frozenset(read_content(folder).sha256 for folder in bundled_modules())
