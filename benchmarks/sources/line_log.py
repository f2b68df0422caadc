"""Log of lines in a file to which lines are added and none is ever changed."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from filelock import FileLock
from pydantic import BaseModel, ValidationError

from benchmarks.errors import SubmitterError
from benchmarks.sources.output import append_lines

Line = TypeVar("Line", bound=BaseModel)


class LineLog(ABC, Generic[Line]):
    """Lines of JSON that several processes and threads may add to at once.

    A line is on disk when `add` returns. A last line that a crash cut short never counted, and is told
    in `unread`, as any other line that is none. A file that was cut, replaced or removed is read anew.
    """

    def __init__(self, path: Path, model: type[Line]) -> None:
        self.path = path
        self.unread: list[int] = []  # numbers of lines
        self._model = model
        self._read, self._lines = 0, 0
        self._file: tuple[int, int] | None = None  # device and inode
        self._here = threading.RLock()
        self._everywhere = FileLock(f"{path}.lock")
        self.refresh()

    @abstractmethod
    def take(self, line: Line) -> None:
        """Let a line count."""

    @abstractmethod
    def clear(self) -> None:
        """Forget every line."""

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep others from adding anything, once all that they added is read.

        Raises:
            SubmitterError: `cannot_write`: no lock can be made, as on a full disk.
        """
        with self._here:
            try:
                self._everywhere.acquire()
            except OSError as error:
                raise SubmitterError(
                    "cannot_write",
                    f"{self._everywhere.lock_file} cannot be written: {error.strerror or error}.",
                ) from error
            try:
                self.refresh()
                yield
            finally:
                self._everywhere.release()

    def add(self, line: Line) -> None:
        """Write a line, and let it count.

        Raises:
            SubmitterError: `cannot_write`.
        """
        with self.alone():
            content = self._unread_content()
            cut = content and not content.endswith(b"\n")
            append_lines(
                self.path, (b"\n" if cut else b"") + line.model_dump_json().encode() + b"\n"
            )
            self.refresh()

    def refresh(self) -> None:
        """Read what was added since, also by others."""
        with self._here:
            content = self._unread_content()
            whole = content[: content.rfind(b"\n") + 1]
            self._read += len(whole)
            for text in whole.splitlines():
                self._lines += 1
                if text.strip():
                    self._parse(text)

    def _parse(self, text: bytes) -> None:
        try:
            line = self._model.model_validate_json(text)
        except ValidationError:
            self.unread.append(self._lines)
        else:
            self.take(line)

    def _unread_content(self) -> bytes:
        try:
            with self.path.open("rb") as file:
                found = os.fstat(file.fileno())
                place = (found.st_dev, found.st_ino)
                if place != self._file or found.st_size < self._read:
                    self._forget(place)
                file.seek(self._read)
                return file.read()
        except FileNotFoundError:
            self._forget(None)
            return b""

    def _forget(self, place: tuple[int, int] | None) -> None:
        self.clear()
        self.unread.clear()
        self._read, self._lines, self._file = 0, 0, place
