"""The boxes of one run on this machine: one for the trust checks, and another for everything else.

In one and the same box a scorer would know which pairs it was tried on, and could be honest about
those alone. Nothing passes from the one to the other, so the run cannot know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Protocol

from evaluator.isolation.supervising.session import ScorerSession
from evaluator.scoring.sandbox import SandboxClient, SandboxSource

Start = Callable[[], ScorerSession]


class Printing(Protocol):
    """What holds the output of a scorer."""

    @property
    def log(self) -> str:
        """What the scorer printed so far."""


class RunBoxes:
    """Starts boxes when they are needed, and remembers the last.

    Args:
        start: a box in which nothing of the scorer has run yet.
        fingerprint: of the submission's content.
        until: the box of the run lives until this is left.
    """

    def __init__(self, start: Start, fingerprint: str, until: ExitStack) -> None:
        self._start = start
        self._fingerprint = fingerprint
        self._until = until
        self._last: ScorerSession | None = None

    @property
    def log(self) -> str:
        """What the scorer printed in the box that was started last."""
        return self._last.log if self._last else ""

    @property
    def for_trial(self) -> TrialBox:
        """Of the trust checks."""
        return TrialBox(self._fingerprint, self.start)

    @property
    def for_run(self) -> RunBox:
        """Of the run."""
        return RunBox(self._fingerprint, self.start, self._until)

    def start(self) -> ScorerSession:
        """Another box."""
        self._last = self._start()
        return self._last


@dataclass(frozen=True)
class TrialBox:
    """Opens a box of its own each time; see `ClientSource`.

    Attributes:
        fingerprint: of the submission's content.
        start: a box.
    """

    fingerprint: str
    start: Start

    @contextmanager
    def open(self) -> Iterator[SandboxClient]:
        """See `ClientSource`.

        Raises:
            SubmitterError: `import_failed`, `init_failed`, `timeout`, `out_of_memory`, ...
        """
        with SandboxSource(self.start(), self.fingerprint).open() as asker:
            yield asker


class RunBox:
    """Opens one box, for all benchmarks; see `ClientSource`."""

    def __init__(self, fingerprint: str, start: Start, until: ExitStack) -> None:
        self.fingerprint = fingerprint
        self._start = start
        self._until = until
        self._source: SandboxSource | None = None

    def open(self) -> AbstractContextManager[SandboxClient]:
        """See `ClientSource`.

        Raises:
            SubmitterError: `import_failed`, `init_failed`, `timeout`, `out_of_memory`, ...
        """
        if self._source is None:
            self._source = SandboxSource(self._start(), self.fingerprint, until=self._until)
        return self._source.open()
