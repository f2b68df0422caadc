"""Built-in metric in a process of its own, with packages of an environment before ours.

What the environment's lock pins takes the place of our versions; what it does not pin is ours. The
row, the images and the scores travel by pickle over a socket that only this user can open: both
ends run our own code and packages that an operator locked, and neither is isolated from the other.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import wraps
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from benchmarks.errors import AssayError, PlatformError
from evaluator.scorers.device import in_one_line
from evaluator.scoring.asking import (
    ClientSource,
    Item,
    OutOfMemoryError,
    Ready,
    Reply,
    ScorerClient,
)
from evaluator.scoring.images import ImageError

STARTS_WITHIN_S = 120.0
"""Until the process listens; models are loaded after that, and take as long as they do."""
_LOOK_EVERY_S = 0.05
_SHOWN = 600
_OURS = (AssayError, ImageError, OutOfMemoryError)
_P = ParamSpec("_P")
_T = TypeVar("_T")
_COMMAND = (sys.executable, "-P", "-c", "from evaluator.scorers.apart import serve; serve()")
_ENDED_WITHIN_S = 2.0
"""Until a process whose connection broke is gone, too; one that is not has only passed on an error."""


class _RemoteImage:
    """An image that is ready in the other process, where it stays until this is forgotten."""

    def __init__(self, number: int) -> None:
        self.number = number


def _portable(method: Callable[_P, _T]) -> Callable[_P, _T]:
    """Errors of libraries become ours: the other process may not have their classes."""

    @wraps(method)
    def called(*given: _P.args, **named: _P.kwargs) -> _T:
        try:
            return method(*given, **named)
        except Exception as error:
            if isinstance(error, _OURS) or type(error).__module__ == "builtins":
                raise
            raise PlatformError(
                "scorer_failed", f"The metric fails: {in_one_line(error)}"
            ) from error

    return called


class Hosted:
    """The client, in the process with the environment; called through the manager."""

    def __init__(self) -> None:
        self._opened = ExitStack()
        self._held: dict[int, Any] = {}
        self._numbers, self._lock = 0, threading.Lock()

    @_portable
    def open(self, source: ClientSource) -> tuple[bool, dict[str, str]]:
        """Load the metric; gives whether it scores elements, and what it is run with."""
        self._client: ScorerClient = self._opened.enter_context(source.open())
        return self._client.asks_elements, self._client.environment

    @_portable
    def ready(self, data: bytes) -> tuple[int, Ready]:
        """Make an image ready, and keep it under a number."""
        made = self._client.ready(data)
        with self._lock:
            self._numbers += 1
            self._held[self._numbers] = made.content
            return self._numbers, replace(made, content=None)

    @_portable
    def ask(self, items: Sequence[Item], forgotten: Sequence[int]) -> tuple[Reply, int]:
        """Score a batch whose images are numbers; gives the most memory held so far, too."""
        for number in forgotten:
            del self._held[number]
        whole = [
            replace(item, image=replace(item.image, content=self._held[item.image.content]))
            for item in items
        ]
        return self._client.ask(whole), self._client.peak_memory_bytes

    def close(self) -> None:
        """Free what the metric holds, and keep its embeddings."""
        self._opened.close()


class _Manager(BaseManager):
    """Serves one `Hosted`; the standard library's own connections, proxies and threads."""


def serve() -> None:
    """Serve until the process that started this closes its end of the pipe."""
    place, key = pickle.load(sys.stdin.buffer)  # noqa: S301  # from the process that started this
    hosted = Hosted()
    _Manager.register("hosted", callable=lambda: hosted)
    server = _Manager(place, key).get_server()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    server.serve_forever()


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


_Manager.register("hosted", exposed=("open", "ready", "ask", "close"))


@dataclass(slots=True)
class Process:
    """A Python that finds the packages of a folder before all others."""

    running: subprocess.Popen[bytes]
    log: Path  # what it prints
    hosted: Any = None  # proxy of its `Hosted`, once it listens

    def call(self, method: str, *arguments: Any) -> Any:
        """Have it done there; what is raised there is raised here."""
        try:
            return getattr(self.hosted, method)(*arguments)
        except (EOFError, ConnectionError) as error:
            with suppress(subprocess.TimeoutExpired):
                self.running.wait(_ENDED_WITHIN_S)
                raise self.lost() from error
            raise

    def lost(self) -> PlatformError:
        """Why it answers no more."""
        said = " ".join(self.log.read_text(errors="replace").split())[-_SHOWN:]
        return PlatformError(
            "scorer_process_ended",
            "The process with the metric's environment ended with code "
            f"{self.running.returncode}: {said or 'it said nothing'}",
            "If it ran out of memory, use a machine with more; else look at the environment's lock.",
        )


class ApartClient:
    """See `ScorerClient`; all the work is the other process's."""

    def __init__(self, process: Process, source: ClientSource, environment: str) -> None:
        self._process = process
        self.asks_elements, told = process.call("open", source)
        self.environment: dict[str, str] = {**told, "environment": environment}
        self.peak_memory_bytes = 0
        self._forgotten: list[int] = []

    def ready(self, data: bytes) -> Ready:
        """See `ScorerClient`."""
        number: int
        made: Ready
        number, made = self._process.call("ready", data)
        held = _RemoteImage(number)
        weakref.finalize(held, self._forgotten.append, number).atexit = False
        return replace(made, content=held)

    def ask(self, items: Sequence[Item]) -> Reply:
        """See `ScorerClient`."""
        count = len(self._forgotten)
        forgotten, self._forgotten[:count] = self._forgotten[:count], []
        numbered = [
            replace(item, image=replace(item.image, content=item.image.content.number))
            for item in items
        ]
        reply: Reply
        reply, self.peak_memory_bytes = self._process.call("ask", numbered, forgotten)
        return reply


@contextmanager
def opened_apart(source: ClientSource, packages: Path, environment: str) -> Iterator[ApartClient]:
    """A client in a process with other packages.

    Args:
        source: opens the client there.
        packages: folder of a built environment.
        environment: what is recorded of it.

    Raises:
        PlatformError: `scorer_process_ended`.
        AssayError: whatever `source` raises there.
    """
    with (
        tempfile.TemporaryDirectory(prefix="assay-") as folder,
        _started(packages, Path(folder)) as process,
    ):
        try:
            yield ApartClient(process, source, environment)
        finally:  # What it keeps is kept, however this ends.
            if process.running.poll() is None:
                process.call("close")


@contextmanager
def _started(packages: Path, folder: Path) -> Iterator[Process]:
    """A process that listens at a socket in a folder of its own; killed afterwards."""
    path = os.pathsep.join([str(packages), *filter(None, map(os.path.abspath, sys.path))])
    place, key, log = folder / "socket", os.urandom(32), folder / "log"
    with log.open("wb") as printed:
        running = subprocess.Popen(  # noqa: S603  # our own Python
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=printed,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONPATH": path},
        )
    try:
        process = Process(running, log)
        with suppress(BrokenPipeError):  # It ended at once, which is found next.
            _tell(running, pickle.dumps((str(place), key)))
        manager = _Manager(str(place), key)
        _connect(manager, process)
        process.hosted = manager.hosted()  # type: ignore[attr-defined]  # registered above
        yield process
    finally:
        running.kill()
        running.communicate()


def _tell(running: subprocess.Popen[bytes], what: bytes) -> None:
    assert running.stdin is not None
    running.stdin.write(what)
    running.stdin.flush()


def _connect(manager: _Manager, process: Process) -> None:
    until = time.monotonic() + STARTS_WITHIN_S
    while True:
        with suppress(FileNotFoundError, ConnectionRefusedError):  # It does not listen yet.
            return manager.connect()
        if time.monotonic() > until:
            process.running.kill()
            process.running.wait()
        if process.running.poll() is not None:
            raise process.lost()
        time.sleep(_LOOK_EVERY_S)
