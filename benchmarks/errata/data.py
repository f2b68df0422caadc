"""The files that errata are recomputed from: found and checked, or where to get them."""

from __future__ import annotations

from pathlib import Path

from benchmarks.errata.entries import Erratum, files
from benchmarks.errors import SubmitterError
from benchmarks.sources.files import DataFile
from benchmarks.sources.folder import DataFolder

_HUB = "https://huggingface.co/datasets"


def data_folder(data: Path | None) -> DataFolder:
    """The declared files of all errata below a folder of data."""
    return DataFolder(data, "errata", tuple(files().values()), {})


def check_data(entry: Erratum, data: Path | None) -> None:
    """Make sure that every file an erratum reads is there and is the released one.

    Args:
        entry: the erratum.
        data: folder of data; may be None where the erratum needs none.

    Raises:
        SubmitterError: `data_missing`, with the address of each missing file, or
            `data_malformed`, where the hash of a file is not that of the released one.
    """
    folder = data_folder(data)
    missing = [files()[path] for path in entry.data if not folder.has(path)]
    if missing:
        raise _missing(entry, missing, data)
    for path in entry.data:
        folder.path(path)  # it then counts as read, and its hash is compared
    folder.verified()


def address(file: DataFile) -> str:
    """Where a file can be downloaded; empty for one that has no address of its own."""
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
