"""The list of known defects that is kept here, and the exceptions from it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from evaluator.environments.lock import Pin

ADVISORIES = Path(__file__).with_name("advisories.toml")


class AdvisoryError(ValueError):
    """The list of advisories cannot be used."""


def _specifier(given: str) -> str:
    try:
        SpecifierSet(given)
    except InvalidSpecifier as error:
        raise ValueError(f"{given!r} is no range of versions") from error
    return given


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(
        pattern=r"^(CVE-\d{4}-\d{4,}|GHSA(-[23456789cfghjmpqrvwx]{4}){3}|PYSEC-\d+-\d+)$"
    )
    package: Annotated[str, AfterValidator(canonicalize_name)]


class Advisory(_Entry):
    """A defect of some versions of a package."""

    versions: Annotated[str, AfterValidator(_specifier)]
    severity: Literal["critical", "high"]
    about: str = Field(min_length=10)
    source: str = Field(pattern="^https://")

    def touches(self, pin: Pin) -> bool:
        """Whether what is pinned has this defect."""
        return pin.name == self.package and all(
            # A pre-release of the version that mends it, which `<` leaves out, may not be mended.
            pin.version < Version(each.version)
            if each.operator == "<"
            else each.contains(pin.version, prereleases=True)
            for each in SpecifierSet(self.versions)
        )


class Exemption(_Entry):
    """A defect that is known and accepted until a day, for a reason."""

    reason: str = Field(min_length=20)
    until: date


class Kept(BaseModel):
    """The list and its exceptions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    advisory: tuple[Advisory, ...]
    exception: tuple[Exemption, ...] = ()

    def excepted(self, ids: Iterable[str], package: str, today: date) -> Exemption | None:
        """The exception that still holds for any of these names of one defect."""
        known = set(ids)
        found = (e for e in self.exception if e.id in known and e.package == package)
        return next((each for each in found if today <= each.until), None)


@dataclass(frozen=True, slots=True)
class Finding:
    """A defect of a pinned package.

    Attributes:
        pin: what is pinned.
        ids: all names of the defect, ours first.
        about: what it is, in a sentence.
        exception: why it is accepted for now; None where it is not.
    """

    pin: Pin
    ids: tuple[str, ...]
    about: str
    exception: Exemption | None = None


def read_advisories(path: Path = ADVISORIES) -> Kept:
    """The list as it lies there.

    Raises:
        AdvisoryError: it is malformed.
        OSError: it cannot be read.
    """
    try:
        return Kept.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise AdvisoryError(f"{path}: {error}") from error


def known_findings(pins: Sequence[Pin], kept: Kept, today: date) -> tuple[Finding, ...]:
    """What of the list is in a lock.

    Args:
        pins: of the lock.
        kept: the list.
        today: exceptions that ended before do not hold.
    """
    return tuple(
        Finding(pin, (each.id,), each.about, kept.excepted([each.id], pin.name, today))
        for pin in pins
        for each in kept.advisory
        if each.touches(pin)
    )
