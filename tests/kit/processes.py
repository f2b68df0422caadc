"""Processes that a test starts: each has a session of its own, and none outlives its block."""

from __future__ import annotations

import itertools
import os
import random
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

GRACE_S = 20.0
"""How long a process may take to end when it is asked; then it is killed."""
PATIENCE_S = 240.0
"""How long a server may take to give its first answer, on a machine that has other work."""
_PORTS = range(20_000, 32_000)
"""Above the ports of Ray's workers, 10002 to 19999, and below those that the kernel hands out itself:
nobody is given one by chance meanwhile."""
_NEXT_PORT = itertools.cycle(random.SystemRandom().sample(_PORTS, len(_PORTS)))


@contextmanager
def running(
    command: Sequence[object], *, grace_s: float = GRACE_S, **options: Any
) -> Iterator[subprocess.Popen[Any]]:
    """A process for as long as the block runs; what it started ends with it, whatever happens.

    Args:
        command: a program and its words.
        grace_s: how long its group may take to end by SIGTERM before it is killed; 0: killed at once.
        options: further ones of `subprocess.Popen`.
    """
    words = [str(word) for word in command]
    with subprocess.Popen(words, start_new_session=True, **options) as process:
        try:
            yield process
        finally:
            end(process, grace_s)


def end(process: subprocess.Popen[Any], grace_s: float = GRACE_S) -> None:
    """End a process of `running` and its whole group: by SIGTERM, then by SIGKILL."""
    if grace_s and not _gone(process, 0.0):
        _tell(process, signal.SIGTERM)
        # Whoever is stopped hears of it when it goes on.
        _tell(process, signal.SIGCONT)
    if not _gone(process, grace_s):
        _tell(process, signal.SIGKILL)
        assert _gone(process, GRACE_S), f"still running: {_living(process.pid)}"


def finished(
    command: Sequence[object], *, within_s: float = PATIENCE_S, **options: Any
) -> subprocess.CompletedProcess[str]:
    """A program that ran to its end, and what it printed; it fails the test where it takes longer."""
    pipe = subprocess.PIPE
    with running(command, stdout=pipe, stderr=pipe, text=True, **options) as process:
        out, errors = process.communicate(timeout=within_s)
    return subprocess.CompletedProcess(process.args, process.returncode, out, errors)


def free_port() -> int:
    """A port that nobody listens at, for a server that must be told its own."""
    for port in itertools.islice(_NEXT_PORT, 1000):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError("no port is free")


def answers(address: str) -> bool:
    """Whether a page is served."""
    try:
        with urllib.request.urlopen(address, timeout=10) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def await_answer(
    address: str, process: subprocess.Popen[Any], log: Path, within_s: float = PATIENCE_S
) -> None:
    """Wait until a server gives its first answer; what it printed is told where it does not."""
    until = time.monotonic() + within_s
    while not answers(address):
        assert process.poll() is None, log.read_text(errors="replace")
        assert time.monotonic() < until, log.read_text(errors="replace")
        time.sleep(0.2)


def _tell(process: subprocess.Popen[Any], what: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, what)


def _gone(process: subprocess.Popen[Any], within_s: float) -> bool:
    until = time.monotonic() + within_s
    while process.poll() is None or _living(process.pid):
        if time.monotonic() >= until:
            return False
        time.sleep(0.02)
    return True


def _living(group: int) -> list[int]:
    """Processes of a group that run; where nobody collects the dead, those stay listed."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, of = stat.read_text().rpartition(")")[2].split()[:3]
            if int(of) == group and state not in "ZX":
                found.append(int(stat.parent.name))
    return found


def open_files() -> set[tuple[str, str]]:
    """Descriptors of this process, each with what it leads to.

    What a test leaves open is what it has more than before: others may be closed meanwhile, when
    what held them is collected.
    """
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the descriptor that reads this folder
            found.add((descriptor.name, str(descriptor.readlink())))
    return found
