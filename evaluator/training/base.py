"""Base model of a recipe: a repository on the Hub at a commit, or a folder of one's own."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from benchmarks.sources.pins import sha256_of
from evaluator.manifest import FILE, read_manifest
from evaluator.scorers.registry import Checkpoint, ScorerRow, load_rows
from evaluator.submission.manifest import Manifest

if TYPE_CHECKING:
    from evaluator.scorers.checkpoints import Source


def base_row(family: str, base: str, revision: str) -> ScorerRow:
    """The base as a row of a family, so that it is found and loaded as built-in metrics are."""
    return ScorerRow(
        name="training-base",
        family=family,
        title="Base model",
        summary="What training starts from.",
        formula="-",
        source="-",
        checkpoints={"model": Checkpoint(id=base, revision=revision)},
    )


def content_of(source: Source) -> str:
    """The commit of a base on the Hub; of a folder a SHA-256 of its files."""
    if source.revision:
        return source.revision
    digest = hashlib.sha256()
    for file in sorted(one for one in source.place.rglob("*") if one.is_file()):
        told = f"{file.relative_to(source.place).as_posix()}:{sha256_of(file)}"
        digest.update(f"{told}\n".encode())
    return digest.hexdigest()


def benchmarks_of(source: Source) -> tuple[str, ...]:
    """Benchmarks that a base was trained on.

    Of a folder, as the `assay.toml` in it or above it says; of a repository, as the built-in metrics
    say that read it.

    Raises:
        SubmitterError: `bad_manifest`.
    """
    if source.revision:
        rows = (row for row in load_rows().values() if "model" in row.checkpoints)
        its = [row.trained_on for row in rows if row.checkpoints["model"].id == source.name]
        return tuple(dict.fromkeys(name for names in its for name in names))
    files = (folder / FILE for folder in (source.place, source.place.parent))
    file = next((one for one in files if one.is_file()), None)
    return read_manifest(file.read_bytes(), Manifest).trained_on if file else ()
