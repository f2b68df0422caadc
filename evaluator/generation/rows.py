"""The table of images: one line of JSON each, appended as images are finished."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import MAX_SEED

TABLE = "images.jsonl"
SeedMode = Literal["per_image", "stream"]


class ImageRow(BaseModel):
    """One image, or why there is none. Only the ids and the file are needed in a submission."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    prompt_id: str
    seed: int = Field(ge=0, le=MAX_SEED)
    file: str | None  # Path inside the folder; None where the image is withheld
    prompt: str | None = None
    sha256: str | None = None  # Of the file's bytes
    width: int | None = Field(default=None, ge=1)  # In pixels
    height: int | None = Field(default=None, ge=1)
    problem: str | None = None  # Why it is withheld: `nsfw` or `black`
    nsfw: bool | None = None  # The safety checker's verdict; None where none ran
    truncated: bool | None = None
    """Whether a text encoder left out the end of the prompt; None where that is not known."""
    cut_by: tuple[str, ...] = ()  # Which ones did, with what they read: `tokenizer (77 tokens)`
    model: str = ""
    revision: str = ""
    pipeline: str = ""
    scheduler: str = ""
    steps: int | None = None
    guidance: float | None = None
    seed_mode: SeedMode | None = None
    position: int | None = None  # In a stream of noise, how many images of this seed came before
    dtype: str = ""
    device: str = ""
    versions: dict[str, str] = Field(default_factory=dict)
    seconds: float | None = None  # Its share of the time of the batch it was drawn in

    @property
    def key(self) -> tuple[str, int]:
        """What makes a row unique."""
        return self.prompt_id, self.seed


class BrokenRow(BaseModel):
    """A line that is not a row."""

    model_config = ConfigDict(frozen=True)

    line: int
    reason: str


def parse_rows(content: bytes) -> tuple[list[ImageRow], list[BrokenRow]]:
    """Rows in the order of their lines, and what is wrong with the other lines."""
    rows: list[ImageRow] = []
    broken: list[BrokenRow] = []
    for found in stream_rows(content.splitlines()):
        if isinstance(found, ImageRow):
            rows.append(found)
        else:
            broken.append(found)
    return rows, broken


def stream_rows(lines: Iterable[bytes]) -> Iterator[ImageRow | BrokenRow]:
    """What each line holds that is not empty, one line at a time."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield ImageRow.model_validate_json(line)
        except ValidationError as error:
            yield BrokenRow(line=number, reason=row_fault(error))


def row_fault(error: ValidationError) -> str:
    """The first thing that is wrong with a row, in words."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where} {first['msg']}".strip()[:200]


def read_rows(folder: Path) -> list[ImageRow]:
    """The rows of a run that may have been cut off; a later row replaces an earlier one.

    Only the last line may be broken, by the cut: its image is made again.
    """
    path = folder / TABLE
    if not path.exists():
        return []
    content = path.read_bytes()
    rows, broken = parse_rows(content)
    if broken and not (len(broken) == 1 and broken[0].line == len(content.splitlines())):
        raise SubmitterError(
            "table_malformed",
            f"{path}, line {broken[0].line}: {broken[0].reason}.",
            "Mend or remove that line; its image is made again.",
        )
    return list({row.key: row for row in rows}.values())


def encoded(rows: Iterable[ImageRow]) -> bytes:
    """The rows as lines."""
    return b"".join(_line(row) for row in rows)


class RowWriter:
    """Appends rows; each survives a loss of power when `append` returns."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / TABLE

    def append(self, rows: Iterable[ImageRow]) -> None:
        """Add rows at the end of the table."""
        with self._path.open("ab") as file:
            file.write(encoded(rows))
            file.flush()
            os.fsync(file.fileno())


def in_order(rows: Iterable[ImageRow], keys: Iterable[tuple[str, int]]) -> Iterator[ImageRow]:
    """Rows in the order of the keys, then those that are not among them."""
    by_key = {row.key: row for row in rows}
    for key in dict.fromkeys([*keys, *by_key]):
        if key in by_key:
            yield by_key[key]


def _line(row: ImageRow) -> bytes:
    return json.dumps(row.model_dump(mode="json"), ensure_ascii=False).encode() + b"\n"
