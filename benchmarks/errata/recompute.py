"""Recomputation of errata beside what was printed, from files that are checked first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.errata.entries import Erratum, data_folder, files
from benchmarks.errata.figures import RECOMPUTE
from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.sources.folder import DataFile

_HUB = "https://huggingface.co/datasets"


def check_data(entry: Erratum, data: Path | None) -> None:
    """Make sure that every file an erratum reads is there and is the released one."""
    folder = data_folder(data)
    missing = [files()[path] for path in entry.data if not folder.has(path)]
    if missing:
        raise _missing(entry, missing, data)
    for path in entry.data:
        folder.path(path)  # it then counts as read, and its hash is compared
    folder.verified()


def address(file: DataFile) -> str:
    """The address of a file for download; empty for one that has none."""
    if not file.repo:
        return file.url
    return f"{_HUB}/{file.repo}/resolve/{file.revision or 'main'}/{file.name_in_repo}"


def _missing(entry: Erratum, missing: list[DataFile], data: Path | None) -> SubmitterError:
    names = ", ".join(file.path for file in missing)
    if data is None:
        where, remedy = "no folder of data was given", "Name it with --data or ASSAY_DATA. "
    else:
        where, remedy = f"{data} does not have all of it", ""
    ways = [
        file.supplied
        or f"Download {address(file)} and put it at {file.path} in the folder of data."
        for file in missing
    ]
    return SubmitterError(
        "data_missing", f"{entry.id} is recomputed from {names}; {where}.", remedy + " ".join(ways)
    )


@dataclass(frozen=True)
class RecomputedCell:
    """A cell of an erratum beside what the data give."""

    label: str  # as in the erratum
    printed: str  # as in the erratum
    correct: str  # as in the erratum
    recomputed: float  # the figure from the data
    mistake: float | None  # what the mistaken computation gives, or None where it is not known

    @property
    def rounded(self) -> str:
        """The recomputed figure with the digits of `correct`."""
        return f"{self.recomputed:.{_digits(self.correct)}f}"

    @property
    def confirmed(self) -> bool:
        """True where the recomputed figure is the correct one of the erratum."""
        return self.rounded == self.correct

    @property
    def explained(self) -> bool | None:
        """True where the mistaken computation gives the printed figure; None where unknown."""
        if self.mistake is None:
            return None
        half = 0.5 * 10.0 ** -_digits(self.printed)
        return abs(self.mistake - float(self.printed)) <= half + 1e-9


def recompute(entry: Erratum, data: Path | None) -> tuple[RecomputedCell, ...]:
    """Compute the figures of an erratum from public data.

    `data`: folder of data; may be None where the erratum needs none.
    Returns: One cell for each of the erratum, in its order.
    """
    if not entry.recompute:
        raise SubmitterError(
            "not_recomputable",
            f"{entry.id!r} is not recomputed here: {entry.why}",
            "`python -m benchmarks.errata` lists which errata are recomputed.",
        )
    check_data(entry, data)
    findings = RECOMPUTE[entry.id](Path() if data is None else data)
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
