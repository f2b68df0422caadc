"""Typed reader of `errata.toml`."""

from __future__ import annotations

import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.published import papers

FILE = Path(__file__).parent / "errata.toml"

Kind = Literal["recomputed", "inconsistent", "code"]
KINDS: dict[Kind, str] = {
    "recomputed": "the released data, or plain arithmetic, give another figure",
    "inconsistent": "two places of the paper contradict each other",
    "code": "paper and released code or files differ",
}


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ErratumCell(_Frozen):
    """One figure or phrase.

    Attributes:
        label: what it is, unique in its erratum.
        printed: as printed (or as the released code gives it).
        correct: what it should be, or what the other side says; empty where nobody can tell.
    """

    label: str = Field(min_length=1)
    printed: str = Field(min_length=1)
    correct: str = ""


class Erratum(_Frozen):
    """One place.

    Attributes:
        id: key for the command line and for links.
        paper: key of the paper in `benchmarks.published.papers`.
        where: table, figure, section or file.
        title: what is wrong, in one sentence.
        why: how one knows, and where known how it came about.
        kind: see `KINDS`.
        cells: what is printed, and what should be.
        recompute: whether a function of `benchmarks.errata` computes the correct figures.
        data: files below the folder of data that it reads; none where the printed tables or
            arithmetic suffice.
    """

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    paper: str
    where: str = Field(min_length=1)
    title: str = Field(min_length=1)
    why: str = Field(min_length=1)
    kind: Kind
    cells: tuple[ErratumCell, ...] = Field(min_length=1)
    recompute: bool = False
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


@cache
def errata() -> tuple[Erratum, ...]:
    """All errata, in the order of the file.

    Raises:
        PlatformError: `malformed_errata`; the file is part of the package.
    """
    with FILE.open("rb") as file:
        entries = tomllib.load(file)["errata"]
    try:
        found = tuple(Erratum.model_validate(entry) for entry in entries)
    except ValidationError as error:
        reason = "; ".join(fault["msg"] for fault in error.errors())
        raise PlatformError("malformed_errata", f"{FILE.name}: {reason}.") from error
    twice = [k for k, n in Counter(erratum.id for erratum in found).items() if n > 1]
    if twice:
        raise PlatformError("malformed_errata", f"{FILE.name}: the id {twice[0]!r} stands twice.")
    return found


def erratum(identifier: str) -> Erratum:
    """Look an erratum up.

    Raises:
        SubmitterError: `unknown_erratum`, listing the known ids.
    """
    for entry in errata():
        if entry.id == identifier:
            return entry
    raise SubmitterError(
        "unknown_erratum",
        f"There is no erratum {identifier!r}.",
        f"Known errata: {', '.join(entry.id for entry in errata())}.",
    )
