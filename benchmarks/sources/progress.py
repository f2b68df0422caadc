"""How far a fetch is: a moving bar for a person, single lines for a log."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from types import TracebackType
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


class Meter(ABC):
    """What a fetch reports while it runs; calls may come from several threads."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop showing."""
        return

    @abstractmethod
    def plan(self, files: int, size: int | None) -> None:
        """How many files come, and how many bytes; None where nobody tells."""

    @abstractmethod
    def advance(self, size: int) -> None:
        """Bytes came, or (negative) had to be given up."""

    @abstractmethod
    def began(self, name: str) -> None:
        """A file is being fetched."""

    @abstractmethod
    def ended(self) -> None:
        """A file is in its place."""

    @abstractmethod
    def say(self, line: str) -> None:
        """Something a person should know."""


class Silent(Meter):
    """Reports nothing."""

    def plan(self, files: int, size: int | None) -> None:
        """Nothing."""

    def advance(self, size: int) -> None:
        """Nothing."""

    def began(self, name: str) -> None:
        """Nothing."""

    def ended(self) -> None:
        """Nothing."""

    def say(self, line: str) -> None:
        """Nothing."""


class Lines(Silent):
    """One line for each declared file, to a console that is no terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def say(self, line: str) -> None:
        """Print the line."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class Bar(Lines):
    """A bar with file n of m, bytes, rate and time left."""

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bar away."""
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
