"""The table of images, line by line: which file is which image, and what is wrong with the rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from benchmarks.errors import SubmitterError
from evaluator.generation.check import Findings, Problem
from evaluator.generation.rows import ImageRow
from evaluator.submission.generations.sources import Source, TableLine
from evaluator.submission.generations.wanted import Wanted, named

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
    """What the table says.

    Attributes:
        rows: place of an image to its row.
        files: path to the place of the image; `NOT_WANTED` for files of rows nobody asked for.
        withheld: place of an image to why its maker withholds it.
    """

    rows: dict[int, RowFacts] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    withheld: dict[int, str] = field(default_factory=dict)

    @property
    def reasons(self) -> dict[str, int]:
        """Reason to the number of images withheld for it."""
        return dict(Counter(self.withheld.values()))


def read_table(lines: Iterable[TableLine], wanted: Wanted, findings: Findings) -> TableRead:
    """Read the table.

    Args:
        lines: of it.
        wanted: what is asked for.
        findings: what is wrong goes there; that an image is missing too.
    """
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
    def __init__(self, wanted: Wanted, findings: Findings) -> None:
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
    """The prompts and seeds that the table itself names, each once, in the order of its lines.

    Raises:
        SubmitterError: the source cannot be read.
    """
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
