"""The one form in which generations are kept: a zip with the manifest, a table and the images.

    assay.toml      the manifest, as `evaluator.generation.manifest` writes it
    images.jsonl    one line for each image, as `evaluator.generation.manifest` reads it: prompt id,
                    seed, file, SHA-256 of the file, width, height, or why it is withheld
    images/...      the images, as they were sent, not compressed again

Whatever was sent (a folder, an archive, Parquet, a repository) becomes this.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import PlatformError
from evaluator.generation.manifest import (
    TABLE,
    GenerationsManifest,
    ImageRow,
    manifest_text,
    parse_generations,
    parse_rows,
)
from evaluator.manifest import FILE

SUFFIX = ".zip"
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class GenerationsArchive:
    """An opened archive of generations; images are read one by one, by any thread."""

    manifest: GenerationsManifest  # of the submission
    # of every image and of every withheld one, each (prompt id, seed) once
    rows: tuple[ImageRow, ...]
    _zip: zipfile.ZipFile
    _lock: threading.Lock

    @property
    def images(self) -> tuple[ImageRow, ...]:
        """The rows that have an image."""
        return tuple(row for row in self.rows if row.file is not None)

    def read(self, row: ImageRow) -> bytes:
        """The bytes of an image."""
        assert row.file is not None
        try:
            with self._lock:
                return self._zip.read(row.file)
        except (KeyError, OSError, zipfile.BadZipFile) as error:
            raise PlatformError(
                "upload_changed", f"{row.file} cannot be read from the stored images: {error}"
            ) from error


@contextmanager
def opened(path: Path) -> Iterator[GenerationsArchive]:
    """Open an archive that `write` wrote."""
    try:
        with zipfile.ZipFile(path) as file:
            manifest = parse_generations(file.read(FILE))
            rows, broken = parse_rows(file.read(TABLE))
            if broken:
                raise PlatformError("upload_changed", f"{TABLE}: {broken[0].reason}")
            yield GenerationsArchive(manifest, tuple(rows), file, threading.Lock())
    except (KeyError, zipfile.BadZipFile) as error:
        raise PlatformError(
            "upload_changed", f"The stored images are not what was submitted: {error}"
        ) from error


def write(
    target: Path, manifest: GenerationsManifest, images: Iterable[tuple[ImageRow, bytes | None]]
) -> None:
    """Write an archive; the same content gives the same bytes."""
    with (
        tempfile.TemporaryFile() as table,
        zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as file,
    ):
        for row, content in images:
            table.write(row.model_dump_json(exclude_defaults=True).encode() + b"\n")
            if content is not None and row.file is not None:
                file.writestr(zipfile.ZipInfo(row.file, _EPOCH), content)
        file.writestr(zipfile.ZipInfo(FILE, _EPOCH), manifest_text(manifest))
        table.seek(0)
        with file.open(zipfile.ZipInfo(TABLE, _EPOCH), "w") as member:
            shutil.copyfileobj(table, member)
