"""The folder of a run: what is in it, and that it can be trusted after any cut."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from PIL import Image

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import IMAGES
from evaluator.generation.manifest import (
    GenerationsManifest,
    manifest_text,
    parse_generations,
)
from evaluator.generation.plan import Job
from evaluator.generation.rows import TABLE, ImageRow, encoded, read_rows
from evaluator.generation.settings import differences
from evaluator.manifest import FILE

CONTACT_SHEET = "contact_sheet.png"
_LOCK = ".lock"
_STREAMS = ".streams"
_PART = ".part"


@dataclass(frozen=True)
class RunFolder:
    """A folder that `generate` writes."""

    path: Path

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Make the folder and keep every other run out of it.

        Raises:
            SubmitterError: `cannot_write`, `folder_not_empty` (it holds something else),
                `folder_busy`.
        """
        self._check_ours()
        try:
            (self.path / IMAGES).mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path / _LOCK, timeout=0)
            lock.acquire()
        except Timeout as error:
            raise SubmitterError(
                "folder_busy", f"Another run writes to {self.path}.", "Wait for it, or stop it."
            ) from error
        except OSError as error:
            raise SubmitterError(
                "cannot_write", f"{self.path} cannot be written: {error}.", "Choose another folder."
            ) from error
        try:
            for left in [*self.path.glob(f"*{_PART}"), *(self.path / IMAGES).glob(f"*{_PART}")]:
                left.unlink()
            yield
        finally:
            lock.release()

    def _check_ours(self) -> None:
        if not self.path.exists() or (self.path / FILE).exists():
            return
        if not self.path.is_dir():
            raise SubmitterError("cannot_write", f"{self.path} is no folder.", "Name a folder.")
        others = {path.name for path in self.path.iterdir()} - {_LOCK, IMAGES}
        if others or any((self.path / IMAGES).glob("*")):
            raise SubmitterError(
                "folder_not_empty",
                f"{self.path} holds other files, and no {FILE} of an earlier run.",
                "Name a new folder.",
            )

    def manifest(self) -> GenerationsManifest | None:
        """The manifest of an earlier run.

        Raises:
            SubmitterError: `bad_manifest`.
        """
        path = self.path / FILE
        return parse_generations(path.read_bytes()) if path.is_file() else None

    def write_manifest(self, manifest: GenerationsManifest) -> None:
        """Write `assay.toml`, whole."""
        write_atomically(self.path / FILE, manifest_text(manifest))

    def rows(self) -> list[ImageRow]:
        """What the table says, the latest of each image.

        Raises:
            SubmitterError: `table_malformed`.
        """
        return read_rows(self.path)

    def write_rows(self, rows: Iterable[ImageRow]) -> None:
        """Write the table anew, whole."""
        write_atomically(self.path / TABLE, encoded(rows))

    def is_whole(self, row: ImageRow) -> bool:
        """Whether the file of a row is as it was written; a withheld image has none."""
        if row.file is None:
            return row.problem is not None
        path = self.path / row.file
        if not path.is_file() or row.sha256 is None:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == row.sha256

    def write_image(self, file: str, image: Image.Image) -> str:
        """Write a PNG without metadata, whole; returns the SHA-256 of its bytes."""
        buffer = io.BytesIO()
        image.save(buffer, format="PNG")
        data = buffer.getvalue()
        write_atomically(self.path / file, data)
        return hashlib.sha256(data).hexdigest()

    def remove_image(self, file: str) -> None:
        """Remove an image that is withheld now and was not before."""
        (self.path / file).unlink(missing_ok=True)

    def keep_noise(self, seed: int, position: int, state: bytes) -> None:
        """Keep the noise from which the image at a position goes on."""
        folder = self.path / _STREAMS
        folder.mkdir(exist_ok=True)
        value = {"position": position, "state": base64.b64encode(state).decode()}
        write_atomically(folder / f"{seed}.json", json.dumps(value).encode())

    def kept_noise(self, seeds: Iterable[int]) -> dict[int, tuple[int, bytes]]:
        """Seed to position and state."""
        found = {}
        for seed in seeds:
            path = self.path / _STREAMS / f"{seed}.json"
            if not path.is_file():
                continue
            try:
                value = json.loads(path.read_bytes())
                found[seed] = int(value["position"]), base64.b64decode(value["state"])
            except (ValueError, KeyError, TypeError):
                # Damaged: this stream begins anew, which costs time and changes no image.
                continue
        return found


def check_same_run(
    manifest: GenerationsManifest,
    before: GenerationsManifest,
    rows: Iterable[ImageRow],
    jobs: Mapping[tuple[str, int], Job],
) -> None:
    """Refuse to mix images of different settings in a folder.

    More prompts or seeds may be added; what is there must have been made as it would be now.

    Raises:
        SubmitterError: `other_settings`, naming each difference.
    """
    if before.settings is None or manifest.settings is None:
        raise SubmitterError(
            "other_settings",
            f"The {FILE} there does not say how its images were made.",
            "Name a new folder.",
        )
    found = list(differences(before.settings, manifest.settings))
    if (before.benchmark, before.benchmark_revision) != (
        manifest.benchmark,
        manifest.benchmark_revision,
    ):
        there = f"{before.benchmark or 'a file'} {before.benchmark_revision}".strip()
        now = f"{manifest.benchmark or 'a file'} {manifest.benchmark_revision}".strip()
        found.append(f"prompts: of {there} there, of {now} now")
    for row in rows:
        job = jobs.get(row.key)
        if job is not None and row.prompt != job.prompt.text:
            found.append(f"the prompt of {row.prompt_id!r} was another")
        elif job is not None and row.position is not None and row.position != job.position:
            found.append(f"{row.prompt_id!r} was at another place in the stream of noise")
    if found:
        more = f"; and {len(found) - 8} more" if len(found) > 8 else ""
        raise SubmitterError(
            "other_settings",
            f"The folder holds images made otherwise: {'; '.join(found[:8])}{more}.",
            "Name a new folder, or give the settings of the old one.",
        )


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file that is there whole or not at all, also after a loss of power."""
    part = path.with_name(path.name + _PART)
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
