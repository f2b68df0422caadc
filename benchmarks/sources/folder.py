"""Files of one benchmark in a folder of data: declared, found, read and checked."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Self

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, model_validator

from benchmarks.errors import SubmitterError
from benchmarks.parsing import parse_json
from benchmarks.sources.archives import ZipImages
from benchmarks.sources.parquet_images import ParquetImages
from benchmarks.sources.pins import Pin, Pins, sha256_of
from benchmarks.tables import read_table

Role = Literal["answers", "prompts", "images"]


class DataFile(BaseModel):
    """Declaration of a benchmark's file: its place, its origin and its hash.

    A file has one origin: a dataset repository on the Hub (`repo`), a web address (`url`), or the
    operator (`supplied`), where the authors do not publish it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    """Where it lies below the folder of data, e.g. `croc_hum/croc_hum_metadata.tsv`."""
    role: Role
    """`answers`: a protocol needs it. `prompts`: only the prompt set needs it. `images`: code can
    be run only with it."""
    also: tuple[str, ...] = ()
    """Other places below the folder of data where a copy is accepted."""
    repo: str = ""
    """Dataset repository on the Hub, e.g. `nllg/croc_hum`."""
    name: str = ""
    """Path in the repository; empty: the last part of `path`."""
    url: str = ""
    """Web address of a file at a fixed commit, where it is not on the Hub."""
    supplied: str = ""
    """How an operator gets the file, where it is not public."""
    revision: str = ""
    """Commit of the repository; empty where none is known: the first fetch pins one."""
    sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """Hash of the content; empty where none is known: the first fetch pins one."""
    size: int = 0
    """Bytes, for the check of disk space where the origin does not tell."""
    optional: bool = False
    """The benchmark works without it."""
    folder: bool = False
    """A folder of files instead of one file."""
    unpack: bool = False
    """A tar archive that is unpacked beside itself after the download."""
    beside: bool = False
    """It also lies beside the card, under the last part of `path`."""

    @property
    def name_in_repo(self) -> str:
        """Path in the repository."""
        return self.name or PurePosixPath(self.path).name

    @model_validator(mode="after")
    def _has_one_origin(self) -> Self:
        if sum(map(bool, (self.repo, self.url, self.supplied))) != 1:
            raise ValueError(f"{self.path} needs exactly one of repo, url and supplied")
        return self


def data_row(index: object) -> str:
    """Name of a row of `DataFolder.read_table` for messages: `data row 1` is the first.

    Rows after the header are counted, not lines of the file: blank lines are passed over, and a
    cell in quotes may hold line breaks.
    """
    return f"data row {int(str(index)) + 1}"


class DataFolder:
    """The declared files of one benchmark below a folder of data.

    Remembers which files were read, so that a result can name the hash of each.

    `root`: folder of data (`--data` / `ASSAY_DATA`); None where none was given. `home`: folder of
    the card; None where nothing lies beside it.
    """

    def __init__(
        self,
        root: Path | None,
        benchmark: str,
        files: Sequence[DataFile],
        counts: Mapping[str, int],
        home: Path | None = None,
    ) -> None:
        self._root = root
        self._home = home
        self._benchmark = benchmark
        self._files = {file.path: file for file in files}
        self._counts = counts
        self._read: dict[str, Path] = {}

    def has(self, path: str) -> bool:
        """Whether a declared file is there."""
        return self._locate(self._files[path]) is not None

    def path(self, path: str) -> Path:
        """Path of a declared file, which then counts as read."""
        file = self._files[path]
        found = self._locate(file)
        if found is None:
            raise self._missing(file)
        self._read[path] = found
        return found

    def beside(self, path: str) -> Path:
        """The folder in which a declared file lies, for what was unpacked there."""
        file = self._files[path]
        folders = [] if self._root is None else [(self._root / path).parent]
        if self._home is not None and file.beside:
            folders.append(self._home)
        if not folders:
            raise self._missing(file)
        return next(filter(Path.is_dir, folders), folders[0])

    def read_table(
        self, path: str, columns: Sequence[str], *, separator: str = ",", quotes: bool = True
    ) -> pd.DataFrame:
        """A table, all cells as text (empty cells are empty), in the file's order.

        `quotes`: whether cells may stand in quotes.
        """
        place = self.path(path)
        try:
            return read_table(place, columns, separator=separator, quotes=quotes)
        except SubmitterError as error:
            said = error.message.removeprefix(str(place)).rstrip(".")
            what = f"cannot be read{said}" if said.startswith(":") else said.strip()
            raise self.malformed(path, what) from error

    def read_json(self, path: str) -> Any:
        """The content of a declared JSON file."""
        try:
            return parse_json(self.path(path).read_bytes())
        except ValueError as error:
            raise self.malformed(path, f"is not JSON as expected: {_first_line(error)}") from error

    def check_cells(self, path: str, column: pd.Series, right: pd.Series, expected: str) -> None:
        """Refuse a column of a table as it was read, by its first cell that is not right."""
        wrong = column[~right.astype(bool)]
        if len(wrong):
            raise self.malformed(
                path,
                f"has {str(wrong.iloc[0])[:80]!r} in column {column.name} "
                f"({data_row(wrong.index[0])}; {len(wrong)} such cells); expected {expected}",
            )

    def expected(self, what: str) -> int | None:
        """A count of the card; None where it states none."""
        return self._counts.get(what)

    def check_count(self, path: str, what: str, found: int) -> None:
        """Compare a count with the card's; a card that states none is content."""
        expected = self._counts.get(what)
        if expected is not None and found != expected:
            raise self.malformed(path, f"holds {found} {what}; expected {expected}")

    def check_range(self, path: str, what: str, found: int) -> None:
        """Compare a count that is known roughly with the bounds of the card.

        The card states them as `<what>, at least` and `<what>, at most`; without them any count
        will do.
        """
        low, high = (self._counts.get(f"{what}, {end}") for end in ("at least", "at most"))
        if (low is not None and found < low) or (high is not None and found > high):
            bounds = " to ".join(str(bound) for bound in (low, high) if bound is not None)
            raise self.malformed(path, f"holds {found} {what}; expected about {bounds}")

    def verified(self) -> dict[str, str]:
        """SHA-256 of every file (not folder) read so far, each checked against its pin.

        By declared path; where a fetch recorded the commit a file came from, that stands beside
        it by the file's source, e.g. `nllg/croc_hum/croc_hum_metadata.tsv`.

        Call it last: an error that names a column or a row helps more than a hash.
        """
        found: dict[str, str] = {}
        for path, place in sorted(self._read.items()):
            if place.is_dir():
                continue
            digest, pinned = sha256_of(place), self._files[path].sha256
            if pinned and digest != pinned:
                raise self.malformed(
                    path, f"has sha256 {digest[:16]}…; the pinned release has {pinned[:16]}…"
                )
            fetched = self._record_of_fetch(path, place)
            if fetched and not pinned and digest != fetched.sha256:
                raise self.malformed(
                    path, f"has sha256 {digest[:16]}…; it was fetched with {fetched.sha256[:16]}…"
                )
            found[path] = digest
            if fetched and fetched.commit and digest == fetched.sha256:
                found[fetched.source] = fetched.commit
        return found

    def _record_of_fetch(self, path: str, place: Path) -> Pin | None:
        """Pin of this very file; None where no fetch recorded it."""
        if self._root is None or place != self._root / path:
            return None
        return Pins.of(self._root, path).file(path)

    def malformed(self, path: str, what: str) -> SubmitterError:
        """An error that says what is wrong with a declared file, e.g. `has 3 rows; expected 4`."""
        file = self._files[path]
        shown = self._read.get(path, path)
        return SubmitterError("data_malformed", f"{shown} {what}.", _origin(file))

    def signature(self) -> tuple[tuple[str, int, int], ...]:
        """Name, size and time of change of every declared file that is there: cheap."""
        places = [(file.path, self._locate(file)) for file in self._files.values()]
        return tuple(
            (path, place.stat().st_size, place.stat().st_mtime_ns)
            for path, place in places
            if place is not None
        )

    def _locate(self, file: DataFile) -> Path | None:
        there = Path.is_dir if file.folder else Path.is_file
        return next((place for place in self._places(file) if there(place)), None)

    def _places(self, file: DataFile) -> Iterable[Path]:
        if self._root is not None:
            yield from (self._root / name for name in (file.path, *file.also))
        beside = self._beside(file)
        if beside is not None and not self._leads_out(beside):
            yield beside

    def _beside(self, file: DataFile) -> Path | None:
        """Where a file lies beside the card; None where it does not."""
        if self._home is None or not file.beside:
            return None
        return self._home / PurePosixPath(file.path).name

    def _leads_out(self, place: Path) -> bool:
        """Whether a file beside the card is a link to somewhere else."""
        return not place.resolve().is_relative_to(place.parent.resolve())

    def _missing(self, file: DataFile) -> SubmitterError:
        beside = self._beside(file)
        if beside is not None and self._leads_out(beside):
            return SubmitterError(
                "data_malformed",
                f"{beside} is a link that leads out of the folder of the card.",
                "Put the file itself there.",
            )
        if self._root is None:
            return SubmitterError(
                "data_missing",
                f"{self._benchmark} needs {file.path} in a folder of data; none was given.",
                f"{self.remedy(file.path)} Name the folder with --data or ASSAY_DATA.",
            )
        return SubmitterError(
            "images_missing" if file.role == "images" else "data_missing",
            f"{self._benchmark} needs {self._root / file.path}, which does not exist.",
            self.remedy(file.path),
        )

    def remedy(self, path: str) -> str:
        """Instruction for getting a declared file: its supplier's, or `fetch`."""
        supplied = self._files[path].supplied
        return supplied or f"`python -m benchmarks fetch {self._benchmark}` downloads it."


def _origin(file: DataFile) -> str:
    if file.supplied:
        return file.supplied
    source = f"{file.repo}/{file.name_in_repo}" if file.repo else file.url
    at = f" at revision {file.revision}" if file.revision else ""
    return f"The expected file is {source}{at}; another release may differ."


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


Reader = Callable[[], bytes]
_NAMED = 5  # Missing images


def folder_images(
    benchmark: str, folder: Path, names: Mapping[str, str], *, remedy: str = ""
) -> dict[str, Reader]:
    """Readers of images in a folder.

    `remedy`: how to get images that are missing; empty where `fetch` downloads them.
    """
    # One walk instead of one question per image.
    there = frozenset(
        (Path(base) / file).relative_to(folder).as_posix()
        for base, _, files in os.walk(folder)
        for file in files
    )
    _check_complete(benchmark, folder, names, there, remedy)
    return {image: (folder / name).read_bytes for image, name in names.items()}


def packed_images(
    benchmark: str, archive: ZipImages | ParquetImages, names: Mapping[str, str]
) -> dict[str, Reader]:
    """Readers of images inside a zip archive or Parquet files; like `folder_images`."""
    _check_complete(benchmark, archive, names, archive.names, "")
    return {image: partial(archive.read, name) for image, name in names.items()}


def _check_complete(
    benchmark: str, where: object, names: Mapping[str, str], there: frozenset[str], remedy: str
) -> None:
    missing = [name for name in names.values() if name not in there]
    if missing:
        raise SubmitterError(
            "images_missing",
            f"{where} lacks {len(missing)} of the {len(names)} images of {benchmark}: "
            f"{', '.join(map(repr, missing[:_NAMED]))}{', …' if len(missing) > _NAMED else ''}.",
            remedy or f"`python -m benchmarks fetch {benchmark}` downloads what is missing.",
        )
