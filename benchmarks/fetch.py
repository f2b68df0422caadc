"""Download of the files of a benchmark, or of a few of its images.

Room on the disk is asked first, then each file comes once, then archives are unpacked.
"""

from __future__ import annotations

import io
import re
import tarfile
import threading
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from filelock import FileLock, Timeout

from benchmarks.errors import SubmitterError
from benchmarks.schema import Benchmark
from benchmarks.sources.archives import CUT_SHORT, ConcatenatedFiles, cut_short, members, unpack
from benchmarks.sources.folder import DataFile
from benchmarks.sources.pins import NAME as PINS
from benchmarks.sources.pins import sha256_of
from benchmarks.sources.remote import Hub, Sleep, safe_name, translate_disk_errors, translate_errors
from benchmarks.sources.transfer import (
    Item,
    Meter,
    Planner,
    Transfer,
    as_bytes,
    check_room,
    drop_stale_parts,
    is_right,
    part_of,
)

FOLDER = "subset"
_BLOCK = 2**20
_ZIP = re.compile(r"(?P<whole>.+\.zip)(\.part-?\w+|\.\d{3})?", re.IGNORECASE)
_TAR = re.compile(r".+\.(tar|tar\.gz|tgz|tar\.bz2|tar\.xz)", re.IGNORECASE)


@dataclass(frozen=True)
class ImageChoice:
    """Choice of the images of a trial."""

    count: int  # how many
    # what their names are made of, from the ids of the first pairs; may be empty
    keys: frozenset[tuple[str, ...]]

    def choose(self, names: Sequence[str]) -> list[str]:
        """The names that pair ids point to; the first ones where none does."""
        named = [name for name in names if not self.keys.isdisjoint(_endings(name))]
        return named or list(names[: self.count])


class Trial:
    """Takes the images of the first prompts of a benchmark into `<folder>/subset/`.

    They lie there as they would below `<folder>` after a whole fetch.
    """

    def __init__(
        self, benchmark: Benchmark, data: Path, hub: Hub, planner: Planner, transfer: Transfer
    ) -> None:
        self._benchmark, self._data, self._hub = benchmark, data, hub
        self._planner, self._transfer = planner, transfer

    def take(
        self, files: Sequence[DataFile], prompts: int, left_out: dict[str, str]
    ) -> dict[str, int]:
        """Take the images of about so many prompts."""
        wanted = choose_images(self._benchmark, self._data, prompts)
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
        """Folder of a declared file's content in a trial."""
        parts = PurePosixPath(file.path).parts
        inside = parts[1:] if file.folder else parts[1:-1]
        return self._data.joinpath(*parts[:1], FOLDER, *inside)

    def _of_folder(self, file: DataFile, wanted: ImageChoice) -> int:
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

    def _of_zip(self, parts: Sequence[DataFile], wanted: ImageChoice) -> int:
        with ExitStack() as stack, translate_errors(parts[0].path, parts[0].repo):
            files, sizes = zip(*(self._opened(part, stack) for part in parts), strict=True)
            joined = io.BufferedReader(ConcatenatedFiles.over(files, sizes))
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

    def _of_tar(self, file: DataFile, wanted: ImageChoice) -> int:
        """The first images of the archive: its names are not known before all of it has come."""
        count = 0
        with (
            ExitStack() as stack,
            translate_errors(file.path, file.repo, self._planner.commit(file)),
        ):
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
        with translate_disk_errors(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)


def choose_images(benchmark: Benchmark, data: Path, prompts: int) -> ImageChoice:
    """The images of the first prompts, as far as the answers tell; else one image a prompt."""
    try:
        answers = benchmark.answers(data)
    except SubmitterError:
        return ImageChoice(prompts, frozenset())
    ids = list(dict.fromkeys(pair.partition("|")[0] for pair in answers.pair_ids))
    count = ceil(prompts * len(ids) / max(len(answers.clusters), 1))
    return ImageChoice(count, frozenset(_key(_parts(name)) for name in ids[:count]))


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


WORKERS = 4
"""Downloads at a time: folders hold thousands of small files, and waiting dominates there."""

_LOCK = ".fetch.lock"


@dataclass
class FetchReport:
    """Report of a fetch."""

    benchmark: str
    data: str
    # declared path to bytes that were missing there
    downloaded: dict[str, int] = field(default_factory=dict)
    there: list[str] = field(default_factory=list)  # declared paths that were complete before
    unpacked: list[str] = field(default_factory=list)  # archives that were unpacked now
    # declared path to how an operator gets it, of files that are not public and not there
    supplied: dict[str, str] = field(default_factory=dict)
    # declared path to why, of files nobody could fetch and the benchmark can lack
    left_out: dict[str, str] = field(default_factory=dict)
    # repository to the commit everything came from
    commits: dict[str, str] = field(default_factory=dict)
    # folders with a few images each, with their number; the benchmark cannot use them
    trial: dict[str, int] = field(default_factory=dict)


def fetch(
    benchmark: Benchmark,
    data: Path,
    hub: Hub,
    *,
    answers_only: bool = False,
    subset: int | None = None,
    meter: Meter | None = None,
    sleep: Sleep | None = None,
) -> FetchReport:
    """Bring the files of a benchmark into a folder of data.

    What is there and right is kept; what was begun is continued. The commit of a repository that
    the card does not pin is pinned by the first fetch, in `pins.json` beside the files.

    `sleep`: how to wait between tries; None: until then or until another download fails.
    """
    return _Fetch(benchmark, data, hub, meter or Meter(), sleep).run(answers_only, subset)


class _Fetch:
    def __init__(
        self, benchmark: Benchmark, data: Path, hub: Hub, meter: Meter, sleep: Sleep | None
    ) -> None:
        self._benchmark, self._data, self._hub, self._meter = benchmark, data, hub, meter
        self._files = benchmark.card.files
        self._planner = Planner(hub, data, self._files)
        stop = threading.Event()
        self._transfer = Transfer(sleep or stop.wait, stop)
        self._report = FetchReport(benchmark.name, str(data))

    def run(self, answers_only: bool, subset: int | None) -> FetchReport:
        public = self._public()
        first = [file for file in public if file.role != "images"]
        images = [file for file in public if file.role == "images"]
        if answers_only:
            images = []
        if subset is None:
            self._fetch([file for file in first + images if not _needs_names(file)])
            self._fetch([file for file in first + images if _needs_names(file)])
        else:
            self._fetch(first)
            self._try_out(images, subset)
        self._report.commits = dict(self._planner.commits)
        return self._report

    def _public(self) -> list[DataFile]:
        """The files that can be fetched; the others are reported."""
        folder = self._benchmark.folder(self._data)
        for file in self._files:
            if file.supplied:
                if folder.has(file.path):
                    self._report.there.append(file.path)
                else:
                    self._report.supplied[file.path] = file.supplied
        public = [file for file in self._files if not file.supplied]
        if not public and self._report.supplied and not self._report.there:
            path, how = next(iter(self._report.supplied.items()))
            raise SubmitterError(
                "supplied_only",
                f"Nothing of {self._benchmark.name} can be fetched; it needs {self._data / path}.",
                how,
            )
        return public

    def _fetch(self, files: Sequence[DataFile]) -> None:
        wanted: list[Item] = []
        for file in files:
            wanted += self._missing(file)
        archives = [
            file for file in files if file.unpack and file.path not in self._report.left_out
        ]
        self._check_room(wanted, archives)
        with self._alone():
            self._planner.save()
            drop_stale_parts(part_of(self._data / item.path, item.source) for item in wanted)
            self._download(wanted)
            for file in archives:
                self._unpack(file)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the folder of data: two fetches must not write into one part file."""
        with translate_disk_errors(self._data):
            self._data.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self._data / _LOCK, timeout=0)
            try:
                lock.acquire()
            except Timeout as error:
                raise SubmitterError(
                    "fetch_running",
                    f"Another fetch is writing into {self._data}.",
                    "Wait until it has ended, then run the same command again.",
                ) from error
        try:
            yield
        finally:
            lock.release()

    def _missing(self, file: DataFile) -> list[Item]:
        """The missing files of a declared file or folder."""
        if self._planner.is_there(file):
            self._is_there(file)
            return []
        try:
            names = (
                self._benchmark.remote_names(file.path, self._data) if _needs_names(file) else ()
            )
            items = self._planner.items(file, names)
        except SubmitterError as error:
            if not file.optional:
                raise
            self._report.left_out[file.path] = str(error)
            self._meter.say(f"{file.path}: left out, the benchmark works without it. {error}")
            return []
        missing = [item for item in items if not self._adopt(item)]
        if not missing:
            self._is_there(file)
        return missing

    def _adopt(self, item: Item) -> bool:
        """Whether a file is there and right; it is then recorded as if it had been fetched."""
        places = [item.path] if item.declared.folder else [item.path, *item.declared.also]
        right = next((p for p in places if is_right(self._data / p, item.expected)), None)
        if right == item.path and self._planner.pins(item.path).file(item.path) is None:
            self._pin(item, sha256_of(self._data / item.path))
        return right is not None

    def _is_there(self, file: DataFile) -> None:
        self._report.there.append(file.path)
        self._meter.say(f"{file.path}: there")

    def _check_room(self, wanted: list[Item], archives: list[DataFile]) -> None:
        sizes = {item.path: item.expected.size or item.declared.size for item in wanted}
        needed = sum(item.missing_bytes(self._data) for item in wanted)
        for file in archives:
            place = self._data / file.path
            size = sizes.get(file.path) or (place.stat().st_size if place.exists() else 0)
            needed += self._planner.unpacked_bytes(file, size)
        check_room(self._data, needed)

    def _download(self, items: list[Item]) -> None:
        if not items:
            return
        sizes = [item.expected.size for item in items]
        known = [size for size in sizes if size is not None]
        self._meter.plan(len(items), sum(known) if len(known) == len(sizes) else None)
        open_files = Counter(item.declared.path for item in items)
        counts = dict(open_files)
        try:
            with ThreadPoolExecutor(WORKERS) as pool:
                running = {pool.submit(self._one, item): item for item in items}
                try:
                    for done in as_completed(running):
                        path = running[done].declared.path
                        size = done.result()
                        self._report.downloaded[path] = self._report.downloaded.get(path, 0) + size
                        open_files[path] -= 1
                        if not open_files[path]:
                            self._say_fetched(path, counts[path])
                except BaseException:  # an error or a person's Ctrl-C: the others stop too
                    self._transfer.stop.set()
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
        finally:
            self._planner.save()

    def _say_fetched(self, path: str, count: int) -> None:
        files = f"{count} files, " if count > 1 else ""
        self._meter.say(f"{path}: fetched, {files}{as_bytes(self._report.downloaded[path])}")

    def _one(self, item: Item) -> int:
        self._meter.began(item.path)
        target = self._data / item.path
        digest = self._transfer.fetch(item.source, target, item.expected, self._meter.advance)
        self._pin(item, digest)
        self._meter.ended()
        return target.stat().st_size

    def _pin(self, item: Item, digest: str) -> None:
        self._planner.pins(item.path).add_file(
            item.path,
            size=(self._data / item.path).stat().st_size,
            sha256=digest,
            source=item.source.shown,
            commit=item.source.commit,
        )

    def _unpack(self, file: DataFile) -> None:
        place = next(
            (p for name in (file.path, *file.also) if (p := self._data / name).is_file()), None
        )
        if place is None or not self._planner.needs_unpacking(file):
            return
        self._meter.say(f"{file.path}: unpacking")
        beside = {PurePosixPath(other.path).name for other in self._files if _beside(other, file)}
        entry = unpack(place, {*beside, PINS, "subset"})
        self._planner.pins(file.path).add_unpacked(file.path, entry)
        self._report.unpacked.append(file.path)

    def _try_out(self, images: list[DataFile], prompts: int) -> None:
        trial = Trial(self._benchmark, self._data, self._hub, self._planner, self._transfer)
        with self._alone():
            taken = trial.take(images, prompts, self._report.left_out)
            self._planner.save()
        for folder, count in taken.items():
            self._report.trial[folder] = count
            self._meter.say(f"{folder}: {count} images to try out")


def _needs_names(file: DataFile) -> bool:
    return file.folder and bool(file.url)


def _beside(other: DataFile, archive: DataFile) -> bool:
    same = PurePosixPath(other.path).parent == PurePosixPath(archive.path).parent
    return same and not other.folder  # a declared folder may be what the archive brings
