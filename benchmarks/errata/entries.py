"""Errata: typed entries of `errata.toml`, and the figures they are recomputed to."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.published import papers
from benchmarks.schema import Frozen
from benchmarks.sources.folder import DataFile, DataFolder

FILE = Path(__file__).parent / "errata.toml"

Kind = Literal["recomputed", "inconsistent", "code"]
KINDS: dict[Kind, str] = {
    "recomputed": "the released data, or plain arithmetic, give another figure",
    "inconsistent": "two places of the paper contradict each other",
    "code": "paper and released code or files differ",
}


class ErratumCell(Frozen):
    """Printed figure or phrase, with its correction."""

    label: str = Field(min_length=1)  # what it is, unique in its erratum
    printed: str = Field(min_length=1)  # as printed (or as the released code gives it)
    correct: str = ""  # what it should be, or what the other side says; empty where nobody can tell


class Erratum(Frozen):
    """Erratum of one place in a paper."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")  # key for the command line and for links
    paper: str  # key of the paper in `benchmarks.published.papers`
    where: str = Field(min_length=1)  # table, figure, section or file
    title: str = Field(min_length=1)  # what is wrong, in one sentence
    why: str = Field(min_length=1)  # how one knows, and where known how it came about
    kind: Kind  # see `KINDS`
    cells: tuple[ErratumCell, ...] = Field(min_length=1)  # what is printed, and what should be
    # whether a function of `benchmarks.errata` computes the correct figures
    recompute: bool = False
    # paths of the files that it reads, see `files`; none where the printed tables or arithmetic
    # suffice
    data: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.paper not in papers():
            raise ValueError(f"{self.id}: papers.toml has no {self.paper!r}")
        twice = [k for k, n in Counter(cell.label for cell in self.cells).items() if n > 1]
        if twice:
            raise ValueError(f"{self.id}: the label {twice[0]!r} stands twice")
        if self.data and not self.recompute:
            raise ValueError(f"{self.id}: names data, but is not recomputed")
        return self

    @property
    def command(self) -> str:
        """The command that recomputes it; empty where there is none."""
        if not self.recompute:
            return ""
        return f"python -m benchmarks.errata {self.id}" + (" --data DATA" if self.data else "")


class ErrataFile(Frozen):
    """The whole of `errata.toml`."""

    files: tuple[DataFile, ...]  # every file that an erratum is recomputed from
    errata: tuple[Erratum, ...]  # the entries

    @model_validator(mode="after")
    def _names_each_thing_once(self) -> Self:
        paths = [file.path for file in self.files]
        for what, names in (("id", [entry.id for entry in self.errata]), ("file", paths)):
            twice = [name for name, n in Counter(names).items() if n > 1]
            if twice:
                raise ValueError(f"the {what} {twice[0]!r} stands twice")
        for entry in self.errata:
            unknown = [path for path in entry.data if path not in paths]
            if unknown:
                raise ValueError(f"{entry.id}: {unknown[0]!r} is not among the files")
        return self


def errata() -> tuple[Erratum, ...]:
    """All errata, in the order of the file."""
    return _list().errata


@cache
def files() -> Mapping[str, DataFile]:
    """Every file that an erratum is recomputed from, by its path below the folder of data."""
    return MappingProxyType({file.path: file for file in _list().files})


@cache
def _list() -> ErrataFile:
    with FILE.open("rb") as file:
        content = tomllib.load(file)
    try:
        return ErrataFile.model_validate(content)
    except ValidationError as error:
        reason = "; ".join(fault["msg"] for fault in error.errors())
        raise PlatformError("malformed_errata", f"{FILE.name}: {reason}.") from error


def erratum(identifier: str) -> Erratum:
    """Look an erratum up."""
    for entry in errata():
        if entry.id == identifier:
            return entry
    raise SubmitterError(
        "unknown_erratum",
        f"There is no erratum {identifier!r}.",
        f"Known errata: {', '.join(entry.id for entry in errata())}.",
    )


def data_folder(data: Path | None) -> DataFolder:
    """The declared files of all errata below a folder of data."""
    return DataFolder(data, "errata", tuple(files().values()), {})


@dataclass(frozen=True)
class Finding:
    """Recomputed value of one cell."""

    value: float  # the correct figure, in the unit in which it was printed
    # what the mistaken computation gives, where it is known: the printed figure
    mistake: float | None = None


Findings = Mapping[str, Finding]
Recompute = Callable[[Path], Findings]
