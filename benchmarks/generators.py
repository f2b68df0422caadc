"""Generators: the text-to-image models that made a benchmark's images, and when they were released."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

FILE = Path(__file__).with_name("generators.toml")
DAYS_PER_YEAR = 365.25


class Generator(BaseModel):
    """A text-to-image model and the month of its release."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    released: date
    """First day of the month of the first public weights, service or paper."""
    source: str = Field(min_length=1)
    """Where the month stands."""
    verified: bool
    """Whether somebody found the month there."""
    aliases: tuple[str, ...] = ()
    """Names that benchmarks use."""
    simulated: bool = False
    """Whether it is a painter of the demo, whose date is made up."""

    @property
    def year(self) -> float:
        """The date in years, e.g. 2023.5."""
        return year_of(self.released)


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    generator: tuple[Generator, ...]


def year_of(day: date) -> float:
    """A date in years of 365.25 days; its whole part is the calendar year."""
    return day.year + (day - date(day.year, 1, 1)).days / DAYS_PER_YEAR


@cache
def generators() -> tuple[Generator, ...]:
    """All generators with a date, in the order of the file."""
    return _File.model_validate(tomllib.loads(FILE.read_text("utf-8"))).generator


def find_generator(name: str) -> Generator | None:
    """The generator that a benchmark calls by this name; None where no date is known.

    Capitals and signs do not matter: `SDXL_Base` is `sdxl-base`.
    """
    return _by_name().get(_key(name))


@cache
def _by_name() -> Mapping[str, Generator]:
    found: dict[str, Generator] = {}
    for one in generators():
        for name in dict.fromkeys(map(_key, (one.name, *one.aliases))):
            if name in found:
                raise ValueError(f"{FILE.name}: {name!r} names {found[name].name} and {one.name}")
            found[name] = one
    return found


def _key(name: str) -> str:
    return "".join(sign for sign in name.casefold() if sign.isalnum())
