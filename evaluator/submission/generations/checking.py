"""The one check of generations: of `check`, of the page, of the desk and of `generate`.

Each image is read, decoded and looked at once, in several threads; what comes out is the same for
any number of them. What is held of an image are some hundred bytes, never its pixels.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.prompt_sets.prompt_set import image_file
from evaluator.generation.check import Findings, GenerationsReport, Problem
from evaluator.generation.rows import TABLE, ImageRow
from evaluator.scoring.progress import Listener, Tracker
from evaluator.submission.generations.in_folder import FolderSource
from evaluator.submission.generations.limits import GenerationsLimits
from evaluator.submission.generations.looking import SUFFIXES, Look, look
from evaluator.submission.generations.parallel import in_order, usable_cores
from evaluator.submission.generations.rows_read import (
    EXTRA_FILES,
    IMAGES,
    RowFacts,
    TableRead,
    read_table,
)
from evaluator.submission.generations.sources import Fault, Found, Source
from evaluator.submission.generations.wanted import PromptLike, Wanted, named

_NOT_SEEN = "no such file is there"
_WRONG_BYTES = Fault("corrupt", "its bytes are not those that the table names")


@dataclass(frozen=True)
class Hashes:
    """What is kept of the images to know them again.

    Attributes:
        places: of the images, ascending.
        alike: hash of each (`perceptual`).
        pixels: of each, the same for equal pixels.
    """

    places: np.ndarray[tuple[int], np.dtype[np.int64]]
    alike: np.ndarray[tuple[int], np.dtype[np.uint64]]
    pixels: np.ndarray[tuple[int], np.dtype[np.uint64]]


@dataclass(frozen=True, slots=True)
class _Seen:
    found: Found
    data: bytes
    look: Look | Fault


class Check:
    """One check; `stream` does it, what was found stands in the rest afterwards.

    Args:
        source: of the images.
        wanted: what must be there.
        threads: that decode; None: as many as there are cores.
        listener: told how far it is.
    """

    def __init__(
        self,
        source: Source,
        wanted: Wanted,
        *,
        threads: int | None = None,
        listener: Listener | None = None,
    ) -> None:
        self._source = source
        self.wanted = wanted
        self._threads = threads or usable_cores()
        self._listener = listener
        self._findings = Findings()
        self._table = TableRead()
        self._usable = 0
        self._by_pixels: dict[int, int] = {}
        n = wanted.n_images
        self._right = np.zeros(n, bool)
        self._sha256 = np.zeros((n, 32), np.uint8)
        self._alike = np.zeros(n, np.uint64)
        self._pixels = np.zeros(n, np.uint64)
        self.sizes: Counter[str] = Counter()
        """`512x512` to the number of images of that size."""
        self.n_bytes = 0
        """Of all images that are right."""

    def stream(self, table: str) -> Iterator[tuple[ImageRow, bytes | None]]:
        """Look at every image.

        Args:
            table: its path, as the manifest says.

        Yields:
            Each image that is right, as it is kept, then those withheld; none any more once
            something is wrong.

        Raises:
            SubmitterError: the source cannot be read to its end, or has no table.
        """
        lines = self._source.table(table)
        if isinstance(lines, str):
            self._findings.add(Problem("missing", table, lines), IMAGES)
            return
        self._table = read_table(lines, self.wanted, self._findings)
        tracker = Tracker(len(self._table.rows), self._listener, stage="checking")
        for seen in in_order(self._look, self._files(), self._threads):
            row = self._take(seen)
            tracker.advance(1)
            if row is not None and not self._findings.any:
                yield row, seen.data
        for row_left in self._table.rows.values():
            place = self._table.files[row_left.file]
            self._add("missing", row_left.file, f"{_NOT_SEEN}{self._for(place)}", place)
        if not self._findings.any:
            yield from ((self._withheld_row(place), None) for place in sorted(self._table.withheld))

    def run(self, table: str) -> GenerationsReport:
        """Look at every image, and keep none."""
        for _ in self.stream(table):
            pass
        return self.report()

    def report(self) -> GenerationsReport:
        """What is wrong, and how much is right."""
        return self._findings.report(self.wanted.n_images, self._usable, self._table.reasons)

    def hashes(self) -> Hashes:
        """Of the images that are right."""
        places = np.flatnonzero(self._right)
        return Hashes(places, self._alike[places], self._pixels[places])

    def content_sha256(self, manifest: bytes) -> str:
        """Hash over the manifest, and over key and bytes of every image: however it was packed."""
        digest = hashlib.sha256(f"{len(manifest)}:".encode() + manifest)
        places = range(self.wanted.n_images)
        for key, place in sorted((self.wanted.key(place), place) for place in places):
            if self._right[place]:
                said = self._sha256[place].tobytes().hex()
            else:
                said = self._table.withheld.get(place, "")
            digest.update(json.dumps([*key, bool(self._right[place]), said]).encode() + b"\n")
        return digest.hexdigest()

    def _files(self) -> Iterator[Found]:
        for found in self._source.images(self._table.files):
            if isinstance(found, Problem):
                self._findings.add(found, EXTRA_FILES)
            elif found.place in self._table.rows:
                yield found

    def _look(self, found: Found) -> _Seen:
        data = found.read()
        if isinstance(data, Fault):
            return _Seen(found, b"", data)
        wanted = self._table.rows[found.place].sha256
        if wanted is not None and hashlib.sha256(data).digest() != wanted:
            return _Seen(found, b"", _WRONG_BYTES)
        return _Seen(found, data, look(data))

    def _take(self, seen: _Seen) -> ImageRow | None:
        """Note what is wrong with an image; its row where nothing is."""
        place, found = seen.found.place, seen.look
        facts = self._table.rows.pop(place)
        if isinstance(found, Fault):
            self._add(found.kind, facts.file, f"{found.message}{self._for(place)}", place)
            return None
        faults = [*self._faults(facts, found), *self._sameness(found, place)]
        for fault in faults:
            self._add(fault.kind, facts.file, f"{fault.message}{self._for(place)}", place)
        if faults or not facts.right:
            return None
        self._keep(found, place, len(seen.data))
        prompt_id, seed = self.wanted.key(place)
        file = image_file(prompt_id, seed).removesuffix(".png") + SUFFIXES[found.form]
        width, height = found.size
        return ImageRow(
            prompt_id=prompt_id,
            seed=seed,
            file=file,
            sha256=found.sha256.hex(),
            width=width,
            height=height,
        )

    def _faults(self, facts: RowFacts, found: Look) -> Iterator[Fault]:
        width, height = found.size
        if (facts.size[0] or width, facts.size[1] or height) != found.size:
            said = f"{facts.size[0]} x {facts.size[1]}"
            yield Fault("wrong_size", f"{width} x {height} pixels, and the table says {said}")
        least, most = self.wanted.least_side, self.wanted.most_side
        if min(found.size) < least or (most is not None and max(found.size) > most):
            bounds = f"{least} to {most}" if most is not None else f"at least {least}"
            yield Fault("wrong_size", f"{width} x {height} pixels; a side has {bounds}")
        if found.blank:
            yield Fault("blank", "it is of one colour")

    def _sameness(self, found: Look, place: int) -> Iterator[Fault]:
        if found.blank:
            return
        other = self._by_pixels.setdefault(found.pixels, place)
        if other != place:
            yield Fault("duplicate", f"it is the picture of {named(self.wanted.key(other))}")

    def _keep(self, found: Look, place: int, n_bytes: int) -> None:
        self._usable += 1
        self.n_bytes += n_bytes
        self.sizes[f"{found.size[0]}x{found.size[1]}"] += 1
        self._right[place] = True
        self._sha256[place] = np.frombuffer(found.sha256, np.uint8)
        self._alike[place] = found.hash
        self._pixels[place] = found.pixels

    def _add(self, kind: str, where: str, message: str, place: int) -> None:
        self._findings.add(Problem(kind, where, message), IMAGES, place)  # type: ignore[arg-type]

    def _for(self, place: int) -> str:
        return f" (for {named(self.wanted.key(place))})"

    def _withheld_row(self, place: int) -> ImageRow:
        prompt_id, seed = self.wanted.key(place)
        return ImageRow(
            prompt_id=prompt_id, seed=seed, file=None, problem=self._table.withheld[place]
        )


def check_folder(
    folder: Path, prompts: Iterable[PromptLike], seeds: Sequence[int], table: str = TABLE
) -> GenerationsReport:
    """Check a folder of generations against what is wanted, of whatever size the images are.

    Args:
        folder: with the table and the images.
        prompts: every prompt that must have been drawn.
        seeds: every seed it must have been drawn with.
        table: the table's path inside the folder.
    """
    source = FolderSource(folder, GenerationsLimits())
    return Check(source, Wanted.of(prompts, seeds)).run(table)
