"""A Ray cluster of several machines on one: each has a raylet, ports and processes of its own."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.processes import free_port

_OWN_PORTS = ("dashboard-agent-grpc-port", "dashboard-agent-listen-port", "metrics-export-port")
_PATIENCE_S = 120.0
_TRIES = 8
_TOLD = re.compile(r"--address='?([\d.]+:\d+)")


@dataclass
class Machines:
    """What is running.

    Attributes:
        folder: for what Ray writes; short, since sockets lie below it.
        first: command that starts the first of them.
        further: command that starts each other.
        address: of the cluster, once its first machine is there.
        started: one `ray start --block` each.
    """

    folder: Path
    first: str
    further: str
    address: str = ""
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def add(self) -> None:
        """One more machine with one core; waits until it is part of the cluster.

        Ray gives its parts a quarter of a minute to start, which on a busy machine is not enough.
        """
        for _ in range(_TRIES):
            log = self.folder / f"machine-{len(self.started)}.log"
            self.started.append(self._start(log))
            if self._there(self.started[-1], log):
                break
            _end(self.started.pop())
        else:
            raise AssertionError(log.read_text()[-4000:])
        if not self.address:
            found = _TOLD.search(log.read_text())
            assert found is not None, log.read_text()
            self.address = found[1]

    def lose(self, number: int) -> None:
        """A machine is gone from one moment to the next, with all that ran on it."""
        _end(self.started[number])

    def _start(self, log: Path) -> subprocess.Popen[bytes]:
        command = self.further.replace("HEAD:6379", self.address)
        if not self.address:
            command = self.first.replace("6379", str(free_port()))
        words = shlex.split(command)
        words[0] = str(Path(sys.executable).with_name("ray"))
        # Two on one machine: each needs ports of its own, and neither may take all of it.
        words += [f"--{name}={free_port()}" for name in _OWN_PORTS]
        words += ["--num-cpus=1", "--object-store-memory=100000000", "--block"]
        words += [] if self.address else [f"--temp-dir={self.folder / 'ray'}"]
        with log.open("wb") as output:
            return subprocess.Popen(
                words, env=_environment(), stdout=output, stderr=output, start_new_session=True
            )

    def _there(self, process: subprocess.Popen[bytes], log: Path) -> bool:
        until = time.monotonic() + _PATIENCE_S
        while "--block" not in log.read_text():
            if process.poll() is not None or time.monotonic() > until:
                return False
            time.sleep(0.2)
        return True


@contextmanager
def machines(number: int, first: str, further: str) -> Iterator[Machines]:
    """A cluster of so many; nothing of it is left afterwards."""
    found = Machines(Path(tempfile.mkdtemp(prefix="assay-ray-", dir="/tmp")), first, further)
    try:
        for _ in range(number):
            found.add()
        yield found
    finally:
        for place in range(len(found.started)):
            found.lose(place)
        shutil.rmtree(found.folder, ignore_errors=True)


def _environment() -> dict[str, str]:
    return {**os.environ, "RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill it with all that belongs to its session, whether or not it lives itself."""
    # All are stopped before the first is killed, or those left would tell the others.
    for how in (signal.SIGSTOP, signal.SIGKILL):
        for pid in _of_session(process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, how)
    process.wait()


def _of_session(leader: int) -> Iterator[int]:
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader:
                yield int(place.name)
