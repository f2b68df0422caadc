"""Ray actor; it loads nothing before it is told how many threads it has."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from benchmarks.errors import AssayError, PlatformError, SubmitterError, TransientError

if TYPE_CHECKING:
    from evaluator.scoring.asking import Answered, Batch, ClientSource


_BY_FAULT = {kind.fault: kind for kind in (SubmitterError, TransientError, PlatformError)}


@dataclass(frozen=True, slots=True)
class Failure:
    """An `AssayError` on its way out of an actor: Ray would wrap it, and lose all but its text."""

    fault: str
    code: str
    message: str
    hint: str

    @classmethod
    def of(cls, error: AssayError) -> Failure:
        """What an error says."""
        return cls(error.fault, error.code, error.message, error.hint)

    def error(self) -> AssayError:
        """The error again."""
        return _BY_FAULT[self.fault](self.code, self.message, self.hint)


class ClientActor:
    """Holds one client; Ray calls it from a few threads at once."""

    def __init__(self, threads: int, ready_threads: int) -> None:
        # Libraries of linear algebra read this once, when they are loaded, and sums in another
        # number of threads may differ in their last bits. So nothing is loaded before.
        os.environ["OMP_NUM_THREADS"] = str(threads)
        module = import_module("evaluator.scoring.ray_host")
        self._host: Any = module.ClientHost(threads, ready_threads)

    def place(self) -> str:
        """Where this is."""
        return f"{socket.gethostname()} as {os.getpid()}"

    def open(self, source: ClientSource) -> Failure | None:
        """Start the client; None when it is open."""
        try:
            self._host.open(source)
        except AssayError as error:
            return Failure.of(error)
        return None

    def answer(self, batch: Batch) -> Answered | Failure:
        """Make a batch ready, and ask when it is its turn."""
        try:
            answered: Answered = self._host.answer(batch)
        except AssayError as error:
            return Failure.of(error)
        return answered

    def close(self) -> None:
        """End the client, after what is asked just now; batches that wait are dropped."""
        self._host.close()
