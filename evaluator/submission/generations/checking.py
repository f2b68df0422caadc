"""The one check of generations: of `check`, of the page, of the intake and of `generate`.

Each image is read, decoded and looked at once, in several threads; what comes out is the same for
any number of them. What is held of an image are some hundred bytes, never its pixels.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import image_file
from evaluator.generation.check import Findings, GenerationsReport, Problem
from evaluator.generation.manifest import TABLE, ImageRow
from evaluator.scoring.progress import Listener, Tracker
from evaluator.submission.generations.images import SUFFIXES, ImageInspection, look
from evaluator.submission.generations.sources import (
    Fault,
    FolderSource,
    GenerationsLimits,
    ImageSource,
    Source,
    TableLine,
)

T = TypeVar("T")
R = TypeVar("R")

_AHEAD = 2


def usable_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0))


def in_order(work: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """What `work` makes of each item, in the order of the items."""
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="look") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > _AHEAD * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for left in waiting:
                left.cancel()


Key = tuple[str, int]
MOST_SEEDS = 1000
"""Images of one prompt are compared with all that others gave of it."""


class PromptLike(Protocol):
    """A prompt of whatever set."""

    @property
    def prompt_id(self) -> str:
        """Stable and public."""

    @property
    def text(self) -> str:
        """What is drawn."""


@dataclass(frozen=True)
class RequestedImages:
    """What is asked for. An image's place is its number, prompt by prompt, seed by seed."""

    # prompt id to text, in the order of the set; None where the text is not known
    texts: Mapping[str, str | None]
    seeds: tuple[int, ...]  # each once
    least_side: int = 1  # of an image, in pixels
    most_side: int | None = None  # likewise; None: any

    @classmethod
    def of(
        cls,
        prompts: Iterable[PromptLike],
        seeds: Sequence[int],
        least_side: int = 1,
        most_side: int | None = None,
    ) -> RequestedImages:
        """Prompts of a set, with seeds."""
        texts = {one.prompt_id: one.text for one in prompts}
        return cls(texts, tuple(dict.fromkeys(seeds)), least_side, most_side)

    def check_number(self, most: int) -> None:
        """Whether so many images can be asked for."""
        if len(self.seeds) > MOST_SEEDS:
            raise SubmitterError(
                "too_many_images",
                f"{len(self.seeds):,} seeds are named; {MOST_SEEDS:,} are taken.",
                "Name fewer seeds.",
            )
        if self.n_images > most:
            raise SubmitterError(
                "too_many_images",
                f"{len(self.seeds):,} seeds of {len(self.texts):,} prompts are "
                f"{self.n_images:,} images; {most:,} are taken.",
                "Name fewer seeds.",
            )

    @property
    def n_images(self) -> int:
        """How many images that are."""
        return len(self.texts) * len(self.seeds)

    @cached_property
    def _ids(self) -> tuple[str, ...]:
        return tuple(self.texts)

    @cached_property
    def _prompt_at(self) -> dict[str, int]:
        return {prompt_id: at for at, prompt_id in enumerate(self.texts)}

    @cached_property
    def _seed_at(self) -> dict[int, int]:
        return {seed: at for at, seed in enumerate(self.seeds)}

    def place(self, key: Key) -> int | None:
        """An image's place; None where nobody asked for it."""
        prompt, seed = self._prompt_at.get(key[0]), self._seed_at.get(key[1])
        return None if prompt is None or seed is None else prompt * len(self.seeds) + seed

    def key(self, place: int) -> Key:
        """The inverse of `place`."""
        prompt, seed = divmod(place, len(self.seeds))
        return self._ids[prompt], self.seeds[seed]

    def why_not(self, key: Key) -> str:
        """Why nobody asked for an image."""
        if key[0] not in self.texts:
            return "there is no such prompt in the set"
        return f"seed {key[1]} is none of those that the manifest names"


def named(key: Key) -> str:
    """An image, for messages."""
    return f"{key[0][:80]}, seed {key[1]}"


BAD_ROWS, IMAGES, EXTRA_ROWS, EXTRA_FILES = range(4)
"""The order in which problems are listed."""
NOT_WANTED = -1
_REASON = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,39}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LINES_FOR_EACH = 4
_MOST_NAMED = 200_000


@dataclass(slots=True)
class RowFacts:
    """What the row of an image says that is checked once its bytes are here."""

    file: str
    sha256: bytes | None
    size: tuple[int | None, int | None]
    right: bool
    """Whether nothing is wrong with the row itself."""


@dataclass
class TableRead:
    """What the table says."""

    rows: dict[int, RowFacts] = field(default_factory=dict)  # place of an image to its row
    # path to the place of the image; `NOT_WANTED` for files of rows nobody asked for
    files: dict[str, int] = field(default_factory=dict)
    # place of an image to why its maker withholds it
    withheld: dict[int, str] = field(default_factory=dict)

    @property
    def reasons(self) -> dict[str, int]:
        """Reason to the number of images withheld for it."""
        return dict(Counter(self.withheld.values()))


def read_table(
    lines: Iterable[TableLine], wanted: RequestedImages, findings: Findings
) -> TableRead:
    """Read the table."""
    reading = _Reading(wanted, findings)
    most = _LINES_FOR_EACH * wanted.n_images + 10_000
    for number, line in enumerate(lines, start=1):
        if number > most:
            reading.note(
                BAD_ROWS, "bad_row", line.where, f"it and what follows are beyond {most} lines"
            )
            break
        reading.take(line)
    for place in range(wanted.n_images):
        if place not in reading.known:
            reading.note(
                IMAGES, "missing", named(wanted.key(place)), "the table has no row of it", place
            )
    return reading.table


class _Reading:
    def __init__(self, wanted: RequestedImages, findings: Findings) -> None:
        self.table = TableRead()
        self.known: set[int] = set()
        self._wanted = wanted
        self._findings = findings

    def note(self, phase: int, kind: str, where: str, message: str, place: int = 0) -> None:
        self._findings.add(Problem(kind, where, message), phase, place)  # type: ignore[arg-type]

    def take(self, line: TableLine) -> None:
        row = line.row
        if isinstance(row, str):
            self.note(BAD_ROWS, "bad_row", line.where, row)
            return
        where, place = named(row.key), self._wanted.place(row.key)
        if place is None:
            if row.file is not None:
                self.table.files.setdefault(row.file, NOT_WANTED)
            self.note(EXTRA_ROWS, "extra", where, self._wanted.why_not(row.key))
        elif place in self.known:
            self.note(BAD_ROWS, "bad_row", where, "there are two rows of it")
        else:
            self.known.add(place)
            self._take_image(row, place, where)

    def _take_image(self, row: ImageRow, place: int, where: str) -> None:
        if row.problem:
            if row.file is not None:
                self.table.files.setdefault(row.file, NOT_WANTED)
            if _REASON.fullmatch(row.problem):
                self.table.withheld[place] = row.problem
            else:
                self.note(
                    BAD_ROWS, "bad_row", where, "its `problem` is not a word or two, as nsfw is"
                )
            return
        if row.file is None:
            self.note(IMAGES, "missing", where, "its row names no file and no reason", place)
            return
        if self.table.files.setdefault(row.file, place) != place:
            self.note(BAD_ROWS, "bad_row", where, f"{row.file[:200]} is another row's too")
            return
        text = self._wanted.texts[row.prompt_id]
        right = row.prompt is None or text is None or row.prompt == text
        if not right:
            drawn = f"it was drawn for {(row.prompt or '')[:80]!r}"
            self.note(IMAGES, "wrong_prompt", where, drawn, place)
        sha256 = None
        if row.sha256 is not None:
            if _SHA256.fullmatch(row.sha256):
                sha256 = bytes.fromhex(row.sha256)
            else:
                self.note(BAD_ROWS, "bad_row", where, "its sha256 is none")
                right = False
        self.table.rows[place] = RowFacts(row.file, sha256, (row.width, row.height), right)


def wanted_by_table(source: Source, table: str) -> tuple[dict[str, str | None], tuple[int, ...]]:
    """The prompts and seeds that the table itself names, each once, in the order of its lines."""
    texts: dict[str, str | None] = {}
    seeds: dict[int, None] = {}
    lines = source.table(table)
    for line in () if isinstance(lines, str) else lines:
        if not isinstance(line.row, str):
            if texts.get(line.row.prompt_id) is None:
                texts[line.row.prompt_id] = line.row.prompt
            seeds.setdefault(line.row.seed)
            if len(texts) > _MOST_NAMED or len(seeds) > _MOST_NAMED:
                raise SubmitterError(
                    "too_many_images", f"The table names more than {_MOST_NAMED} prompts or seeds."
                )
    return texts, tuple(seeds)


_NOT_SEEN = "no such file is there"
_WRONG_BYTES = Fault("corrupt", "its bytes are not those that the table names")


@dataclass(frozen=True)
class Hashes:
    """What is kept of the images to know them again."""

    places: np.ndarray[tuple[int], np.dtype[np.int64]]  # of the images, ascending
    alike: np.ndarray[tuple[int], np.dtype[np.uint64]]  # hash of each (`perceptual`)
    pixels: np.ndarray[tuple[int], np.dtype[np.uint64]]  # of each, the same for equal pixels


@dataclass(frozen=True, slots=True)
class _Seen:
    found: ImageSource
    data: bytes
    look: ImageInspection | Fault


class Check:
    """One check; `stream` does it, what was found stands in the rest afterwards."""

    def __init__(
        self,
        source: Source,
        wanted: RequestedImages,
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
        """Look at every image."""
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

    def _files(self) -> Iterator[ImageSource]:
        for found in self._source.images(self._table.files):
            if isinstance(found, Problem):
                self._findings.add(found, EXTRA_FILES)
            elif found.place in self._table.rows:
                yield found

    def _look(self, found: ImageSource) -> _Seen:
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
        faults = [*self._faults(facts, found), *self._duplicates(found, place)]
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

    def _faults(self, facts: RowFacts, found: ImageInspection) -> Iterator[Fault]:
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

    def _duplicates(self, found: ImageInspection, place: int) -> Iterator[Fault]:
        if found.blank:
            return
        other = self._by_pixels.setdefault(found.pixels, place)
        if other != place:
            yield Fault("duplicate", f"it is the picture of {named(self.wanted.key(other))}")

    def _keep(self, found: ImageInspection, place: int, n_bytes: int) -> None:
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
    folder: Path, prompts: Iterable[PromptLike], seeds: Sequence[int]
) -> GenerationsReport:
    """Check a folder of generations against what is wanted, of whatever size the images are."""
    source = FolderSource(folder, GenerationsLimits())
    return Check(source, RequestedImages.of(prompts, seeds)).run(TABLE)
