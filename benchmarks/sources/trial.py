"""A few images of a benchmark, without the tens of gigabytes around them."""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from benchmarks.errors import SubmitterError
from benchmarks.schema import Benchmark
from benchmarks.sources.archives import JoinedFiles
from benchmarks.sources.disk import check_room
from benchmarks.sources.faults import disk_told_clearly, told_clearly
from benchmarks.sources.files import DataFile
from benchmarks.sources.plan import Planner
from benchmarks.sources.remote import Hub, safe_name
from benchmarks.sources.transfer import Transfer, is_right
from benchmarks.sources.unpack import CUT_SHORT, cut_short, members

FOLDER = "subset"
_BLOCK = 2**20
_ZIP = re.compile(r"(?P<whole>.+\.zip)(\.part-?\w+|\.\d{3})?", re.IGNORECASE)
_TAR = re.compile(r".+\.(tar|tar\.gz|tgz|tar\.bz2|tar\.xz)", re.IGNORECASE)


@dataclass(frozen=True)
class Wanted:
    """Which images a trial takes.

    Attributes:
        count: how many.
        keys: what their names are made of, from the ids of the first pairs; may be empty.
    """

    count: int
    keys: frozenset[tuple[str, ...]]

    def choose(self, names: Sequence[str]) -> list[str]:
        """The names that pair ids point to; the first ones where none does."""
        named = [name for name in names if not self.keys.isdisjoint(_endings(name))]
        return named or list(names[: self.count])


class Trial:
    """Takes the images of the first prompts of a benchmark into `<folder>/subset/`.

    They lie there as they would below `<folder>` after a whole fetch.

    Args:
        benchmark: whose answers name the first prompts.
        data: folder of data.
        hub: where the repositories are.
        planner: knows the commits.
        transfer: for files that lie there one by one.
    """

    def __init__(
        self, benchmark: Benchmark, data: Path, hub: Hub, planner: Planner, transfer: Transfer
    ) -> None:
        self._benchmark, self._data, self._hub = benchmark, data, hub
        self._planner, self._transfer = planner, transfer

    def take(
        self, files: Sequence[DataFile], prompts: int, left_out: dict[str, str]
    ) -> dict[str, int]:
        """Take the images of about so many prompts.

        Args:
            files: declared images.
            prompts: how many.
            left_out: gets declared path and reason of what cannot be taken in part.

        Returns:
            Number of images by folder.
        """
        wanted = wanted_images(self._benchmark, self._data, prompts)
        sources = list(_archives_and_folders(files))
        share = replace(wanted, count=ceil(wanted.count / max(len(sources), 1)))
        taken: dict[str, int] = {}
        for parts in sources:
            first = parts[0]
            if first.folder:
                count = self._of_folder(first, share)
            elif first.repo and _ZIP.fullmatch(first.path):
                count = self._of_zip(parts, share)
            elif first.repo and (first.unpack or _TAR.fullmatch(first.path)):
                count = self._of_tar(first, share)
            else:
                left_out[first.path] = "a trial cannot take a part of it"
                continue
            place = str(self._place(first))
            taken[place] = taken.get(place, 0) + count
        return taken

    def _place(self, file: DataFile) -> Path:
        """Where the content of a declared file or folder goes in a trial."""
        parts = PurePosixPath(file.path).parts
        inside = parts[1:] if file.folder else parts[1:-1]
        return self._data.joinpath(*parts[:1], FOLDER, *inside)

    def _of_folder(self, file: DataFile, wanted: Wanted) -> int:
        names = self._benchmark.remote_names(file.path, self._data) if file.url else ()
        items = {item.path: item for item in self._planner.items(file, names)}
        chosen = [items[path] for path in wanted.choose(sorted(items))]
        check_room(self._data, sum(item.expected.size or 0 for item in chosen))
        self._planner.save()
        for item in chosen:
            place = self._place(file) / item.path.removeprefix(f"{file.path}/")
            if not is_right(place, item.expected):
                self._transfer.fetch(item.source, place, item.expected, _ignore)
        return len(chosen)

    def _of_zip(self, parts: Sequence[DataFile], wanted: Wanted) -> int:
        with ExitStack() as stack, told_clearly(parts[0].path, parts[0].repo):
            files, sizes = zip(*(self._opened(part, stack) for part in parts), strict=True)
            joined = io.BufferedReader(JoinedFiles.over(files, sizes))
            try:
                archive = stack.enter_context(zipfile.ZipFile(joined))
                names = [info.filename for info in archive.infolist() if not info.is_dir()]
                chosen = wanted.choose(names)
                check_room(self._data, sum(archive.getinfo(name).file_size for name in chosen))
                for name in chosen:
                    self._write(parts[0], name, archive.read(name))
            except (zipfile.BadZipFile, zlib.error) as error:
                raise SubmitterError(
                    "data_malformed",
                    f"{parts[0].path} with {len(parts)} parts is no zip archive: {error}.",
                    "A part is missing from the card, or is not what it was.",
                ) from error
        return len(chosen)

    def _of_tar(self, file: DataFile, wanted: Wanted) -> int:
        """The first images of the archive: its names are not known before all of it has come."""
        count = 0
        with ExitStack() as stack, told_clearly(file.path, file.repo, self._planner.commit(file)):
            stream, _ = self._opened(file, stack, block_size=0)
            try:
                with tarfile.open(fileobj=stream, mode="r|*") as tar:
                    for member in members(tar, file.path):
                        content = tar.extractfile(member)
                        if content is not None and not _is_table(member.name):
                            self._write(file, member.name, content.read())
                            count += 1
                        if count == wanted.count:
                            break
            except CUT_SHORT as error:
                raise cut_short(file.path, error) from error
        return count

    def _opened(
        self, file: DataFile, stack: ExitStack, block_size: int = _BLOCK
    ) -> tuple[BinaryIO, int]:
        """A remote file for reading, and its size in bytes."""
        commit = self._planner.commit(file)
        _, expected = self._hub.file(file.repo, file.name_in_repo, commit)
        path = f"datasets/{file.repo}@{commit}/{file.name_in_repo}"
        opened = stack.enter_context(self._hub.files().open(path, "rb", block_size=block_size))
        return cast(BinaryIO, opened), expected.size or 0

    def _write(self, file: DataFile, name: str, content: bytes) -> None:
        place = self._place(file) / safe_name(name, file.path)
        with disk_told_clearly(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)


def wanted_images(benchmark: Benchmark, data: Path, prompts: int) -> Wanted:
    """The images of the first prompts, as far as the answers tell; else one image a prompt."""
    try:
        answers = benchmark.answers(data)
    except SubmitterError:
        return Wanted(prompts, frozenset())
    ids = list(dict.fromkeys(pair.partition("|")[0] for pair in answers.pair_ids))
    count = ceil(prompts * len(ids) / max(len(answers.clusters), 1))
    return Wanted(count, frozenset(_key(_parts(name)) for name in ids[:count]))


def _archives_and_folders(files: Iterable[DataFile]) -> Iterator[list[DataFile]]:
    """Declared files, with the parts of one archive together and in order."""
    groups: dict[str, list[DataFile]] = {}
    for file in files:
        found = _ZIP.fullmatch(file.path)
        groups.setdefault(found["whole"] if found else file.path, []).append(file)
    for parts in groups.values():
        yield sorted(parts, key=lambda part: part.path)


def _parts(name: str) -> tuple[str, ...]:
    """The parts of a path, without the ending of an image: `SDXL/00001.png` is SDXL, 00001."""
    return PurePosixPath(re.sub(r"\.(png|jpe?g|webp)$", "", name, flags=re.IGNORECASE)).parts


def _key(parts: Iterable[str]) -> tuple[str, ...]:
    """Parts in any order: pair `00001/SDXL` is image `SDXL/00001.jpeg`."""
    return tuple(sorted(parts))


def _endings(name: str) -> set[tuple[str, ...]]:
    parts = _parts(name)
    return {_key(parts[start:]) for start in range(len(parts))}


def _is_table(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in {".tsv", ".csv", ".json", ".md", ".txt"}


def _ignore(size: int) -> None:
    del size
