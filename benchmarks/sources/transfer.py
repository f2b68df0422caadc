"""Transfer of files: room on the disk, plan, progress, and downloads that go on after a cut."""

from __future__ import annotations

import hashlib
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from re import fullmatch
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from benchmarks.errors import SubmitterError, TransientError
from benchmarks.sources.archives import still_unpacked
from benchmarks.sources.client import TIMEOUT, get_session, hf_raise_for_status, httpx
from benchmarks.sources.folder import DataFile
from benchmarks.sources.pins import Pin, Pins, git_blob_digest, place_of, sha256_of
from benchmarks.sources.remote import (
    PAUSES_S,
    Expected,
    Hub,
    Sleep,
    Source,
    pause_asked_for,
    safe_name,
    translate_disk_errors,
    translate_errors,
    web_file,
)

UNPACKING = 1.1
"""Bytes that an unpacked archive takes, per byte of the archive: images hardly shrink in one, and
each unpacked file fills whole blocks of the disk."""
_RESERVE = 64 * 2**20


def check_room(folder: Path, needed: int) -> None:
    """Refuse with `disk_full` where the bytes still to be written do not fit."""
    if needed <= 0:
        return
    there = existing(folder)
    free = shutil.disk_usage(there).free
    if needed + _RESERVE > free:
        raise SubmitterError(
            "disk_full",
            f"This needs {as_bytes(needed)} in {folder}; the disk of {there} has "
            f"{as_bytes(free)} free, of which {as_bytes(_RESERVE)} stay in reserve.",
            "Make room, or name a folder on another disk with --data; `--answers-only` leaves the "
            "images out, `--subset 10` takes a few.",
        )


def existing(folder: Path) -> Path:
    """The folder itself, or its nearest parent that exists."""
    absolute = folder.absolute()
    return next(place for place in (absolute, *absolute.parents) if place.exists())


def as_bytes(size: float) -> str:
    """A size for people, in decimal units as providers of data print it: `10.7 GB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.2f} TB"


class Meter:
    """Progress of a fetch, not shown; methods may be called from several threads."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def plan(self, files: int, size: int | None) -> None:
        """Begin with so many files and bytes; None where nobody tells their size."""

    def advance(self, size: int) -> None:
        """Count bytes that came, or (negative) had to be given up."""

    def began(self, name: str) -> None:
        """Note that a file is being fetched."""

    def ended(self) -> None:
        """Note that a file is in its place."""

    def say(self, line: str) -> None:
        """Tell a person something."""


class Lines(Meter):
    """Progress as one line for each declared file, on a console that is no terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def say(self, line: str) -> None:
        """Print the line."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class Bar(Lines):
    """Progress bar with file n of m, bytes, rate and time left."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._progress = Progress(
            TextColumn("file {task.fields[at]} of {task.fields[files]}"),
            TextColumn("{task.fields[name]}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._task: TaskID | None = None
        self._at = self._files = 0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def plan(self, files: int, size: int | None) -> None:
        """Begin a bar."""
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._at, self._files = 0, files
        self._task = self._progress.add_task("", total=size, at=0, files=files, name="")

    def advance(self, size: int) -> None:
        """Move the bar."""
        if self._task is not None:
            self._progress.advance(self._task, size)

    def began(self, name: str) -> None:
        """Show the file's name."""
        if self._task is not None:
            self._progress.update(self._task, name=name[-40:])

    def ended(self) -> None:
        """Count the file."""
        if self._task is not None:
            self._at += 1
            self._progress.update(self._task, at=self._at)


def meter_for(console: Console) -> Meter:
    """A bar where someone looks, lines elsewhere."""
    return Bar(console) if console.is_terminal and sys.stderr.isatty() else Lines(console)


_CARD = "the benchmark's card"
_BRANCH = "main"


@dataclass(frozen=True)
class Item:
    """A file to be fetched or kept."""

    declared: DataFile  # the entry of the card it belongs to
    path: str  # where it goes, below the folder of data
    source: Source  # where it comes from
    expected: Expected  # what it must be

    def missing_bytes(self, data: Path) -> int:
        """Bytes still to come, as far as anybody tells."""
        part = part_of(data / self.path, self.source)
        begun = part.stat().st_size if part.exists() else 0
        size = self.expected.size
        return max((self.declared.size if size is None else size) - begun, 0)


class Planner:
    """Plan of a fetch: which files are there and which are to come; writes nothing until `save`.

    All files of one repository share one commit.
    """

    def __init__(self, hub: Hub, data: Path, files: Sequence[DataFile]) -> None:
        self._hub, self._data = hub, data
        self._revisions = {
            file.repo: file.revision for file in files if file.repo and file.revision
        }
        self._pins: dict[Path, Pins] = {}
        self.commits: dict[str, str] = {}

    def pins(self, path: str) -> Pins:
        """The record that covers a path."""
        place = place_of(self._data, path)
        if place not in self._pins:  # read once: a folder asks for each of its files
            self._pins[place] = Pins(place)
        return self._pins[place]

    def save(self) -> None:
        """Write every record that changed."""
        for pins in self._pins.values():
            pins.save()

    def is_there(self, file: DataFile) -> bool:
        """Whether a single file is there and right, by card or record, without asking anybody."""
        known = self._known(file)
        if file.folder or not known.sha256:
            return False
        return self._is_unpacked(file, known.sha256) or any(
            is_right(self._data / place, known) for place in (file.path, *file.also)
        )

    def needs_unpacking(self, file: DataFile) -> bool:
        """Whether an archive is to be unpacked, and was not or is no longer."""
        if not file.unpack:
            return False
        entry = self.pins(file.path).unpacked(file.path)
        return entry is None or not still_unpacked((self._data / file.path).parent, entry)

    def unpacked_bytes(self, file: DataFile, size: int) -> int:
        """Room for the content of an archive of this size, where it is still to be unpacked."""
        return round(size * UNPACKING) if self.needs_unpacking(file) else 0

    def items(self, file: DataFile, names: Sequence[str] = ()) -> list[Item]:
        """The files of a declared file or folder, whether there or not."""
        if file.repo:
            return [self._pinned(item) for item in self._of_repository(file)]
        if file.folder:
            return [
                self._pinned(
                    Item(
                        file,
                        f"{file.path}/{safe_name(name, file.path)}",
                        web_file(file.url, name),
                        Expected(),
                    )
                )
                for name in names
            ]
        return [self._pinned(Item(file, file.path, *self._hub.web(file.url)))]

    def commit(self, file: DataFile) -> str:
        """The commit all files of a repository come from.

        The card's, else the recorded one, else the newest, which is then recorded.
        """
        if file.repo not in self.commits:
            pins = self.pins(file.path)
            declared, recorded = self._revisions.get(file.repo, ""), pins.commit(file.repo)
            if recorded.startswith(declared):  # so nobody need be asked again
                declared = recorded
            revision = declared or _BRANCH
            full = fullmatch(r"[0-9a-f]{40}", revision)
            self.commits[file.repo] = revision if full else self._hub.commit(file.repo, revision)
        self.pins(file.path).pin_commit(file.repo, self.commits[file.repo])
        return self.commits[file.repo]

    def _of_repository(self, file: DataFile) -> list[Item]:
        commit = self.commit(file)
        if not file.folder:
            return [Item(file, file.path, *self._hub.file(file.repo, file.name_in_repo, commit))]
        return [
            Item(file, f"{file.path}/{name}", source, expected)
            for name, source, expected in self._hub.folder(file.repo, file.name_in_repo, commit)
        ]

    def _known(self, file: DataFile) -> Expected:
        """Size and hash of a single file by card or record."""
        if file.sha256:
            return Expected(sha256=file.sha256, said_by=_CARD)
        pins = self.pins(file.path)
        pin = pins.file(file.path)
        shown = f"{file.repo}/{file.name_in_repo}" if file.repo else file.url
        revision = self._revisions.get(file.repo) or pins.commit(file.repo) if file.repo else ""
        if pin is None or pin.source != shown or not pin.commit.startswith(revision):
            return Expected()
        return _recorded(pin, pins.place)

    def _pinned(self, item: Item) -> Item:
        """The item with card or record added to what the server says; they must agree."""
        pins, path = self.pins(item.path), item.path
        pin, source = pins.file(path), item.source
        if item.declared.sha256 and not item.declared.folder:
            pinned = Expected(sha256=item.declared.sha256, said_by=_CARD)
        elif pin and (pin.source, pin.commit) == (source.shown, source.commit):
            pinned = _recorded(pin, pins.place)
        else:
            return item
        offered = item.expected
        if offered.sha256 not in {"", pinned.sha256} or (
            None not in {offered.size, pinned.size} and offered.size != pinned.size
        ):
            raise SubmitterError(
                "download_wrong",
                f"{source.shown} now has {offered.size} bytes and sha256 {offered.sha256[:16] or 'unknown'}"
                f"…; {pinned.said_by} has {pinned.size or 'any'} bytes and {pinned.sha256[:16]}….",
                "Its authors replaced it; results on the new file are not comparable with the old ones.",
            )
        size = pinned.size if offered.size is None else offered.size
        return replace(item, expected=replace(pinned, size=size))

    def _is_unpacked(self, file: DataFile, sha256: str) -> bool:
        """Whether the archive may be gone, because its content is there."""
        entry = self.pins(file.path).unpacked(file.path) if file.unpack else None
        return (
            entry is not None
            and entry.sha256 == sha256
            and still_unpacked((self._data / file.path).parent, entry)
        )


def _recorded(pin: Pin, place: Path) -> Expected:
    return Expected(
        pin.size, sha256=pin.sha256, said_by=f"the record of an earlier fetch ({place})"
    )


def origin_of(file: DataFile) -> Mapping[str, str]:
    """Repository, address or supplier of a declared file."""
    if file.repo:
        return {"repo": file.repo, "name": file.name_in_repo}
    return {"url": file.url} if file.url else {"supplied": file.supplied}


_PROGRESS = 2**20
"""A try that brought this many bytes is none of those that failed in a row."""

_TAIL = len("01234567.part")

Advance = Callable[[int], None]


class StoppedError(Exception):
    """Another download failed, or the person gave up; what came so far is kept."""


class Transfer:
    """Downloads with resume; one object serves many files and threads.

    The Hub client's own download keeps no part of a file after a failure or a kill, and checks no
    hash; so its session is used here, for web addresses as well.
    """

    def __init__(self, sleep: Sleep = time.sleep, stop: threading.Event | None = None) -> None:
        self._sleep = sleep
        self.stop = stop or threading.Event()

    def fetch(self, source: Source, target: Path, expected: Expected, advance: Advance) -> str:
        """Download a file into its place.

        What arrives is kept beside it in a hidden part file until it is complete and right.
        """
        part = part_of(target, source)
        with translate_disk_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
        if part.exists():
            advance(part.stat().st_size)
        self._complete(source, part, expected, advance)
        digest = _checked(source, part, expected)
        with translate_disk_errors(target):
            part.replace(target)
        return digest

    def _complete(self, source: Source, part: Path, expected: Expected, advance: Advance) -> None:
        pauses = iter(PAUSES_S)
        while True:
            start = _size(part)
            if expected.size is not None and start == expected.size and part.exists():
                return
            try:
                with translate_errors(source.shown, source.repo, source.commit):
                    self._stream(source, part, expected, advance)
                    return
            except TransientError as error:
                if _size(part) - start >= _PROGRESS:
                    pauses = iter(PAUSES_S)
                pause = next(pauses, None)
                if pause is None:
                    raise
                self._sleep(max(pause, pause_asked_for(error)))

    def _stream(self, source: Source, part: Path, expected: Expected, advance: Advance) -> None:
        if not source.state:  # nobody can say whether the rest belongs to what came
            self._restart(part, advance)
        at = _size(part)
        headers = {**source.headers, "Accept-Encoding": "identity"}
        if at:
            headers["Range"] = f"bytes={at}-"
            if source.state.startswith('"'):  # an ETag of the server's own
                headers["If-Range"] = source.state
        with get_session().stream("GET", source.url, headers=headers, timeout=TIMEOUT) as reply:
            if at and reply.status_code == 416:  # more is here than there: begin anew
                self._restart(part, advance)
                raise TransientError("cut_short", f"{source.shown} is shorter than its part here.")
            hf_raise_for_status(reply)
            if at and reply.status_code != 206:  # the server sends all of it again
                self._restart(part, advance)
            self._append(reply, part, advance)
        found = _size(part)
        if expected.size is not None and found < expected.size:
            raise TransientError(
                "cut_short", f"{source.shown} ended after {found} of {expected.size} bytes."
            )

    def _append(self, reply: httpx.Response, part: Path, advance: Advance) -> None:
        with translate_disk_errors(part), part.open("ab") as file:
            for chunk in reply.iter_bytes():  # as it comes: a kill loses nothing held back
                if self.stop.is_set():
                    raise StoppedError
                file.write(chunk)
                advance(len(chunk))

    @staticmethod
    def _restart(part: Path, advance: Advance) -> None:
        advance(-_size(part))
        part.unlink(missing_ok=True)


def part_of(target: Path, source: Source) -> Path:
    """Hidden path of an incomplete download, another one for each state of its source."""
    state = hashlib.sha256(f"{source.url}\n{source.state}".encode()).hexdigest()[:8]
    return target.with_name(f".{target.name}.{state}.part")


def drop_stale_parts(wanted: Iterable[Path]) -> None:
    """Remove part files of older states of the same targets, beside the wanted ones."""
    parts = set(wanted)
    for folder in {part.parent for part in parts if part.parent.is_dir()}:
        targets = {part.name[:-_TAIL] for part in parts if part.parent == folder}
        for place in folder.glob(".*.part"):
            if place not in parts and place.name[:-_TAIL] in targets:
                place.unlink(missing_ok=True)


def is_right(place: Path, expected: Expected) -> bool:
    """Whether a file is there and is what is expected, as far as anything is."""
    if not place.is_file() or (expected.size is not None and place.stat().st_size != expected.size):
        return False
    if expected.sha256:
        return sha256_of(place) == expected.sha256
    return not expected.git_oid or git_oid(place) == expected.git_oid


def git_oid(place: Path) -> str:
    """Id of a file's content as a git blob."""
    digest = git_blob_digest(place.stat().st_size)
    with place.open("rb") as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()


def _checked(source: Source, part: Path, expected: Expected) -> str:
    """The SHA-256 of a complete part, if it is what is expected; else the part is removed."""
    if not is_right(part, expected):
        size, digest = part.stat().st_size, sha256_of(part)
        part.unlink()
        wanted = expected.sha256 or expected.git_oid
        raise SubmitterError(
            "download_wrong",
            f"{source.shown} has {size} bytes and sha256 {digest[:16]}…; {expected.said_by} has "
            f"{'any' if expected.size is None else expected.size} bytes and {wanted[:16] or 'any'}"
            "…; it was not kept.",
            "The file upstream has changed, or something between here and there alters it.",
        )
    return sha256_of(part)


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0
