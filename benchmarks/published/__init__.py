"""Printed tables of the papers, cell by cell, for comparison with what is computed here.

A file per paper has a line per printed cell, and `papers.toml` says where each was printed; no
figure here is computed. The columns are the fields of `PublishedCell`, and names of measures,
splits, skills, variants and facets are those of the rows of the benchmark a cell belongs to, so
that a board can look up what was printed for one of its cells. Measures that no protocol computes
(`model_score`, `krippendorff_alpha`, `unsure_share`, ...) are explained in the title of their table.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Self

from pydantic import Field, ValidationError, field_validator, model_validator

from benchmarks.errors import PlatformError
from benchmarks.schema import Frozen

FOLDER = Path(__file__).parent
RELATIONS: Mapping[str, Decimal] = MappingProxyType(
    {"<": Decimal(-1), "=": Decimal(0), ">": Decimal(1)}
)
"""Printed relation of two models to its value."""


class Paper(Frozen):
    """A paper and its tables."""

    name: str = Field(min_length=1)  # short name it goes by
    title: str = Field(min_length=1)  # title of the paper
    citation: str = Field(min_length=1)  # authors, title, venue and year
    url: str = Field(pattern=r"^https://")  # page of the paper
    note: str = ""  # what holds for every cell of the paper; empty as a rule
    tables: dict[str, str]  # name of each table, as in the cells, to what it shows, in our words


class PublishedCell(Frozen):
    """A printed figure; unused fields are None."""

    paper: str = Field(min_length=1)  # key of the paper in `papers()`
    table: str = Field(min_length=1)  # name of the table in that paper
    benchmark: str | None  # registry name, where the cell is of a benchmark that is evaluated here
    metric: str = Field(min_length=1)  # metric (or `human`) that the figure is about
    measure: str = Field(min_length=1)  # what was measured, e.g. `srcc`.
    split: str | None  # part of the benchmark, as in a `Row`
    skill: str | None  # skill, as in a `Row`; None means all
    variant: str | None  # `paper` where the figure is one a protocol here repeats
    facet: str | None  # direction, template or seed, as in a `Row`
    model: str | None  # text-to-image model or pair of models, where the figure is of one
    value: float  # the figure in the unit of our rows: 67.9 % is 0.679
    # the figure as printed, with its digits and without a percent sign
    printed: str = Field(min_length=1)

    @field_validator("benchmark", "split", "skill", "variant", "facet", "model", mode="before")
    @classmethod
    def _empty_is_none(cls, value: object) -> object:
        return None if value == "" else value

    @model_validator(mode="after")
    def _value_is_what_is_printed(self) -> Self:
        figure = printed_figure(self.printed)
        if self.value not in (float(figure), float(figure / 100)):
            raise ValueError(f"value {self.value} is neither {self.printed} nor {self.printed} %")
        return self

    @property
    def in_percent(self) -> bool:
        """Whether the paper prints one hundred times the value."""
        return self.value != float(printed_figure(self.printed))

    @property
    def source(self) -> str:
        """Short reference for a tooltip, e.g. `gecko, Table 4`."""
        return f"{self.paper}, {self.table}"

    def matches(
        self,
        measure: str,
        split: str | None = None,
        skill: str | None = None,
        variant: str | None = None,
        facet: str | None = None,
    ) -> bool:
        """Whether the cell is the printed counterpart of rows with these fields.

        A figure about one text-to-image model has no counterpart among the rows of metrics.
        """
        own = (self.measure, self.split, self.skill, self.variant, self.facet)
        return self.model is None and own == (measure, split, skill, variant, facet)

    def agrees_with(self, value: float) -> bool:
        """Whether a computed value rounds to the printed digits, halves either way."""
        computed = 100.0 * value if self.in_percent else value
        half = 0.5 * 10.0 ** -printed_digits(self.printed)
        return abs(computed - float(printed_figure(self.printed))) <= half + 1e-9


def printed_figure(printed: str) -> Decimal:
    """The number a cell shows; a relation `<`, `=`, `>` is -1, 0, 1."""
    if printed in RELATIONS:
        return RELATIONS[printed]
    try:
        return Decimal(printed)
    except InvalidOperation:
        raise ValueError(f"{printed!r} is no printed figure") from None


def printed_digits(printed: str) -> int:
    """Number of digits after the point."""
    return len(printed.partition(".")[2])


def published(benchmark: str | None = None) -> tuple[PublishedCell, ...]:
    """All printed cells, or those of one benchmark, in the order of the papers' tables.

    `benchmark`: registry name, e.g. `croc_syn`; None for all cells, those of no benchmark too.
    """
    return _all_cells() if benchmark is None else _by_benchmark().get(benchmark, ())


@cache
def papers() -> Mapping[str, Paper]:
    """The papers by key, in alphabetical order of the keys."""
    with (FOLDER / "papers.toml").open("rb") as file:
        found = {key: Paper.model_validate(entry) for key, entry in tomllib.load(file).items()}
    return MappingProxyType(dict(sorted(found.items())))


def read_cells(path: Path, known: Mapping[str, Paper]) -> Iterator[PublishedCell]:
    """Read one file of cells."""
    with path.open(encoding="utf-8", newline="") as file:
        for number, line in enumerate(csv.DictReader(file), start=2):
            try:
                cell = PublishedCell.model_validate(line)
            except ValidationError as error:
                reason = "; ".join(fault["msg"] for fault in error.errors())
                raise _malformed(path, number, reason) from error
            if cell.paper not in known or cell.table not in known[cell.paper].tables:
                raise _malformed(path, number, f"papers.toml has no {cell.source!r}")
            yield cell


@cache
def _all_cells() -> tuple[PublishedCell, ...]:
    known = papers()
    return tuple(cell for key in known for cell in read_cells(FOLDER / f"{key}.csv", known))


@cache
def _by_benchmark() -> Mapping[str, tuple[PublishedCell, ...]]:
    found: dict[str, list[PublishedCell]] = {}
    for cell in _all_cells():
        if cell.benchmark is not None:
            found.setdefault(cell.benchmark, []).append(cell)
    return MappingProxyType({name: tuple(cells) for name, cells in found.items()})


def _malformed(path: Path, line: int, reason: str) -> PlatformError:
    return PlatformError(
        "malformed_published", f"{path.name}, line {line}: {reason}.", "Correct the file."
    )
