"""Recomputing errata: the functions are found by the id of their erratum, none is registered.

Every module `recompute_*` of this package defines `RECOMPUTE`, a mapping from the id of an
erratum to a function that takes the folder of data and returns the findings by label.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

import benchmarks.errata as package
from benchmarks.errata.data import check_data
from benchmarks.errata.entries import Erratum
from benchmarks.errors import PlatformError, SubmitterError


@dataclass(frozen=True)
class Finding:
    """What the data give for one cell.

    Attributes:
        value: the correct figure, in the unit in which it was printed.
        mistake: what the mistaken computation gives, where it is known: the printed figure.
    """

    value: float
    mistake: float | None = None


Findings = Mapping[str, Finding]
Recompute = Callable[[Path], Findings]


@dataclass(frozen=True)
class RecomputedCell:
    """A cell of an erratum beside what the data give.

    Attributes:
        label: as in the erratum.
        printed: as in the erratum.
        correct: as in the erratum.
        recomputed: the figure from the data.
        mistake: what the mistaken computation gives, or None where it is not known.
    """

    label: str
    printed: str
    correct: str
    recomputed: float
    mistake: float | None

    @property
    def shown(self) -> str:
        """The recomputed figure with the digits of `correct`."""
        return f"{self.recomputed:.{_digits(self.correct)}f}"

    @property
    def confirmed(self) -> bool:
        """Whether the figure from the data is the one the erratum gives as correct."""
        return self.shown == self.correct

    @property
    def explained(self) -> bool | None:
        """Whether the mistaken computation gives what was printed; None where it is not known."""
        if self.mistake is None:
            return None
        half = 0.5 * 10.0 ** -_digits(self.printed)
        return abs(self.mistake - float(self.printed)) <= half + 1e-9


@cache
def functions() -> Mapping[str, Recompute]:
    """The function of each erratum that has one.

    Raises:
        PlatformError: `duplicate_recompute`, where two modules name one erratum.
    """
    found: dict[str, Recompute] = {}
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("recompute_"):
            continue
        named = importlib.import_module(f"{package.__name__}.{module.name}").RECOMPUTE
        for identifier, function in named.items():
            if identifier in found:
                raise PlatformError(
                    "duplicate_recompute", f"Two functions recompute the erratum {identifier!r}."
                )
            found[identifier] = function
    return MappingProxyType(found)


def recompute(entry: Erratum, data: Path | None) -> tuple[RecomputedCell, ...]:
    """Compute the figures of an erratum from public data.

    Args:
        entry: the erratum.
        data: folder of data; may be None where the erratum needs none.

    Returns:
        One cell for each of the erratum, in its order.

    Raises:
        SubmitterError: `not_recomputable`, or `data_missing` and `data_malformed` of
            `check_data`.
        PlatformError: `labels_differ`, where function and entry name different cells.
    """
    if not entry.recompute:
        raise SubmitterError(
            "not_recomputable",
            f"{entry.id!r} is not recomputed here: {entry.why}",
            "`python -m benchmarks.errata` lists which errata are recomputed.",
        )
    check_data(entry, data)
    findings = functions()[entry.id](Path() if data is None else data)
    labels = [cell.label for cell in entry.cells]
    if set(findings) != set(labels):
        differing = ", ".join(sorted(set(findings) ^ set(labels)))
        raise PlatformError("labels_differ", f"{entry.id}: only one side has {differing}.")
    return tuple(
        RecomputedCell(
            label=cell.label,
            printed=cell.printed,
            correct=cell.correct,
            recomputed=findings[cell.label].value,
            mistake=findings[cell.label].mistake,
        )
        for cell in entry.cells
    )


def _digits(figure: str) -> int:
    return len(figure.partition(".")[2])
