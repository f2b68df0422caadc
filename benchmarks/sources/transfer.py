"""One file over the network: continued after a cut or a kill, checked before it takes its place."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.errors import SubmitterError, TransientError
from benchmarks.sources.client import (
    TIMEOUT,
    get_session,
    hf_raise_for_status,
    httpx,
)
from benchmarks.sources.faults import disk_told_clearly, pause_asked_for, told_clearly
from benchmarks.sources.git_blobs import git_blob_digest
from benchmarks.sources.hashing import sha256_of
from benchmarks.sources.remote import PAUSES_S, Expected, Sleep, Source

_PROGRESS = 2**20
"""A try that brought this many bytes is none of those that failed in a row."""

_TAIL = len("01234567.part")

Advance = Callable[[int], None]


class StoppedError(Exception):
    """Another download failed, or the person gave up; what came so far is kept."""


class Transfer:
    """Downloads with resume; one object serves many files and threads.

    Args:
        sleep: how to wait between tries.
        stop: when set, every download ends with `StoppedError` at its next chunk.
    """

    def __init__(self, sleep: Sleep = time.sleep, stop: threading.Event | None = None) -> None:
        self._sleep = sleep
        self.stop = stop or threading.Event()

    def fetch(self, source: Source, target: Path, expected: Expected, advance: Advance) -> str:
        """Download a file into its place.

        What arrives is kept beside it in a hidden part file until it is complete and right.

        Args:
            source: where from.
            target: where to; replaced at the end, in one step.
            expected: what it must be.
            advance: called with bytes as they come; negative where some had to be given up.

        Returns:
            SHA-256 of the content.

        Raises:
            SubmitterError: refused, `disk_full`, or `download_wrong` (not what was expected).
            TransientError: five further tries brought nothing.
        """
        part = part_of(target, source)
        with disk_told_clearly(target):
            target.parent.mkdir(parents=True, exist_ok=True)
        if part.exists():
            advance(part.stat().st_size)
        self._complete(source, part, expected, advance)
        digest = _checked(source, part, expected)
        with disk_told_clearly(target):
            part.replace(target)
        return digest

    def _complete(self, source: Source, part: Path, expected: Expected, advance: Advance) -> None:
        pauses = iter(PAUSES_S)
        while True:
            start = _size(part)
            if expected.size is not None and start == expected.size and part.exists():
                return
            try:
                with told_clearly(source.shown, source.repo, source.commit):
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
        with disk_told_clearly(part), part.open("ab") as file:
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
    """Where a download lies until it is complete: hidden, and apart for each state of the source."""
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
