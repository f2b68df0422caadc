"""The bundle of released results: its manifest, and its tables checked against their hashes."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import pandas as pd
import pyarrow as pa
from pydantic import Field, ValidationError

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.parquet import parquet_frame
from benchmarks.published import Paper, papers
from benchmarks.schema import Frozen
from benchmarks.sources.pins import bundled_bytes

FOLDER = Path(__file__).parent
MANIFEST = FOLDER / "released.toml"
_SHA256 = r"^[0-9a-f]{64}$"


class Original(Frozen):
    """An authors' file that a table was made from."""

    path: str
    """In their repository."""
    data: str
    """Below a folder of data."""
    also: str = ""
    """Another place below it where a copy is accepted; empty: none."""
    sha256: str = Field(pattern=_SHA256)


class ReleasedFile(Frozen):
    """A table of the bundle."""

    path: str
    """Below `benchmarks/released/`."""
    sha256: str = Field(pattern=_SHA256)
    holds: str
    """What a row is and what the columns are, in a sentence or two."""
    source: str
    """Web address of the repository."""
    commit: str
    licence: str
    """As the authors state it, and where."""
    originals: tuple[Original, ...]


class ReleasedScores(Frozen):
    """A scores file of the bundle, as it is published."""

    name: str
    """Of the submission."""
    version: str
    benchmark: str
    path: str
    """Of the scores file, below `benchmarks/released/`."""
    paper: str
    """Key in `benchmarks.published.papers()`."""
    authors: tuple[str, ...]
    description: str
    lower_is_better: tuple[str, ...] = ()

    @property
    def printed_in(self) -> Paper:
        """The paper whose authors released the scores."""
        return papers()[self.paper]

    @property
    def file(self) -> ReleasedFile:
        """The table it is."""
        return read_manifest().file(self.path)


class Manifest(Frozen):
    """`released.toml`: every table, and those of them that are published as scores files."""

    files: tuple[ReleasedFile, ...]
    scores: tuple[ReleasedScores, ...]

    def file(self, path: str) -> ReleasedFile:
        """The table at a path."""
        for file in self.files:
            if file.path == path:
                return file
        raise PlatformError("invalid_benchmark", f"{MANIFEST} names no table {path!r}.")


@cache
def read_manifest() -> Manifest:
    """The manifest of the bundle."""
    try:
        return Manifest.model_validate(tomllib.loads(MANIFEST.read_text("utf-8")))
    except (ValidationError, ValueError, OSError) as error:
        raise PlatformError("invalid_benchmark", f"{MANIFEST}: {error}") from error


def is_bundled(data: str) -> bool:
    """Whether the figures of an authors' file ship with Assay, by its place below a folder of data."""
    return any(one.data == data for file in read_manifest().files for one in file.originals)


def released_bytes(path: str) -> bytes:
    """The content of a table, checked."""
    sha256 = read_manifest().file(path).sha256
    return bundled_bytes(FOLDER / path, sha256, f"benchmarks/released/{path}")


def released_table(path: str) -> pd.DataFrame:
    """A table, checked; see `released_bytes`."""
    content = released_bytes(path)
    try:
        return parquet_frame(content)
    except pa.ArrowException as error:
        raise SubmitterError(
            "data_malformed",
            f"benchmarks/released/{path} is not Parquet: {error}.",
            "Make the bundle anew.",
        ) from error


def sources_of(*paths: str) -> dict[str, str]:
    """SHA-256 of the authors' files some tables were made from, by their place below a folder of data."""
    manifest = read_manifest()
    return {one.data: one.sha256 for path in paths for one in manifest.file(path).originals}
