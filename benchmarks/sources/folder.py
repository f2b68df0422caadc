"""The files of one benchmark in a folder of data: found, read and checked, with clear errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.errors import SubmitterError
from benchmarks.sources.files import DataFile
from benchmarks.sources.hashing import sha256_of
from benchmarks.sources.pins import Pin, Pins
from benchmarks.sources.strict_json import parse_json


def data_row(index: object) -> str:
    """Where a row of `DataFolder.read_table` stands, for messages: `data row 1` is the first.

    Rows after the header are counted, not lines of the file: blank lines are passed over, and a
    cell in quotes may hold line breaks.

    Args:
        index: position of the row, or its label in the index of the table as it was read.
    """
    return f"data row {int(str(index)) + 1}"


class DataFolder:
    """The declared files of one benchmark below a folder of data.

    Remembers which files were read, so that a result can name the hash of each.

    Args:
        root: folder of data (`--data` / `ASSAY_DATA`); None where none was given.
        benchmark: registry name, for messages.
        files: what the benchmark's card declares.
        counts: what the card says it must find, by name.
    """

    def __init__(
        self,
        root: Path | None,
        benchmark: str,
        files: Sequence[DataFile],
        counts: Mapping[str, int],
    ) -> None:
        self._root = root
        self._benchmark = benchmark
        self._files = {file.path: file for file in files}
        self._counts = counts
        self._read: dict[str, Path] = {}

    def has(self, path: str) -> bool:
        """Whether a declared file is there."""
        return self._found(self._files[path]) is not None

    def path(self, path: str) -> Path:
        """Where a declared file lies; it then counts as read.

        Raises:
            SubmitterError: `data_missing`, with what to do.
        """
        file = self._files[path]
        found = self._found(file)
        if found is None:
            raise self._missing(file)
        self._read[path] = found
        return found

    def beside(self, path: str) -> Path:
        """The folder in which a declared file lies, for what was unpacked there.

        Raises:
            SubmitterError: `data_missing`, where no folder of data was given.
        """
        if self._root is None:
            raise self._missing(self._files[path])
        return (self._root / path).parent

    def read_table(
        self, path: str, columns: Sequence[str], *, separator: str = ","
    ) -> pd.DataFrame:
        """A table, all cells as text (empty cells are empty), in the file's order.

        Args:
            path: a declared CSV or TSV file.
            columns: columns that must be there; others are kept.
            separator: between cells.

        Raises:
            SubmitterError: `data_missing`, or `data_malformed` where it cannot be read or a
                column is missing.
        """
        try:
            table = pd.read_csv(self.path(path), sep=separator, dtype=str, keep_default_na=False)
        except ValueError as error:  # not CSV, not UTF-8, or empty
            raise self.malformed(path, f"cannot be read: {_first_line(error)}") from error
        missing = [name for name in columns if name not in table]
        if missing:
            raise self.malformed(
                path, f"has no column {', '.join(missing)}; expected {', '.join(columns)}"
            )
        return table

    def read_json(self, path: str) -> Any:
        """The content of a declared JSON file.

        Raises:
            SubmitterError: `data_missing`, or `data_malformed` for whatever `parse_json` refuses,
                e.g. a key that stands twice or a number that is not finite.
        """
        try:
            return parse_json(self.path(path).read_bytes())
        except ValueError as error:
            raise self.malformed(path, f"is not JSON as expected: {_first_line(error)}") from error

    def expected(self, what: str) -> int | None:
        """A count of the card; None where it states none."""
        return self._counts.get(what)

    def check_count(self, path: str, what: str, found: int) -> None:
        """Compare a count with the card's; a card that states none is content.

        Raises:
            SubmitterError: `data_malformed`, naming file, count and expectation.
        """
        expected = self._counts.get(what)
        if expected is not None and found != expected:
            raise self.malformed(path, f"holds {found} {what}; expected {expected}")

    def check_range(self, path: str, what: str, found: int) -> None:
        """Compare a count that is known roughly with the bounds of the card.

        The card states them as `<what>, at least` and `<what>, at most`; without them any count
        will do.

        Raises:
            SubmitterError: `data_malformed`, naming file, count and bounds.
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

        Raises:
            SubmitterError: `data_malformed`, where a hash differs from the pinned one.
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
        """What a fetch recorded of this very file; None where none did."""
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
        places = [(file.path, self._found(file)) for file in self._files.values()]
        return tuple(
            (path, place.stat().st_size, place.stat().st_mtime_ns)
            for path, place in places
            if place is not None
        )

    def _found(self, file: DataFile) -> Path | None:
        if self._root is None:
            return None
        there = Path.is_dir if file.folder else Path.is_file
        return next((p for p in self._places(self._root, file) if there(p)), None)

    @staticmethod
    def _places(root: Path, file: DataFile) -> Iterable[Path]:
        return (root / name for name in (file.path, *file.also))

    def _missing(self, file: DataFile) -> SubmitterError:
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
        """How to get a declared file: from the operator's source, or by `fetch`."""
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
