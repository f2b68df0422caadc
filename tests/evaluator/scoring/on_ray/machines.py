"""A Ray cluster of several machines on one: each has a raylet, ports and processes of its own."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

_OWN_PORTS = ("dashboard-agent-grpc-port", "dashboard-agent-listen-port", "metrics-export-port")
_PATIENCE_S = 240.0
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
        """One more machine with one core; waits until it is part of the cluster."""
        command = self.further.replace("HEAD:6379", self.address) if self.address else self.first
        command = command.replace("6379", str(_free_port())) if not self.address else command
        words = shlex.split(command)
        # Two on one machine: each needs ports of its own, and neither may take all of it.
        words += [f"--{name}={_free_port()}" for name in _OWN_PORTS]
        words += ["--num-cpus=1", "--object-store-memory=100000000", "--block"]
        words += [] if self.address else [f"--temp-dir={self.folder / 'ray'}"]
        log = self.folder / f"machine-{len(self.started)}.log"
        words[0] = str(Path(sys.executable).with_name("ray"))
        with log.open("wb") as output:
            self.started.append(
                subprocess.Popen(words, env=_environment(), stdout=output, stderr=output)
            )
        self._wait(log)

    def lose(self, number: int) -> None:
        """A machine is gone from one moment to the next, with all that ran on it."""
        process = self.started[number]
        lost = [process.pid, *_below(process.pid)]
        # All are stopped before the first is killed, or those left would tell the others.
        for how in (signal.SIGSTOP, signal.SIGKILL):
            for pid in lost:
                with suppress(ProcessLookupError):
                    os.kill(pid, how)
        process.wait()

    def _wait(self, log: Path) -> None:
        until = time.monotonic() + _PATIENCE_S
        while "--block" not in log.read_text():
            assert self.started[-1].poll() is None, log.read_text()[-4000:]
            assert time.monotonic() < until, log.read_text()[-4000:]
            time.sleep(0.2)
        if not self.address:
            found = _TOLD.search(log.read_text())
            assert found is not None, log.read_text()
            self.address = found[1]


@contextmanager
def machines(number: int, first: str, further: str) -> Iterator[Machines]:
    """A cluster of so many; nothing of it is left afterwards."""
    found = Machines(Path(tempfile.mkdtemp(prefix="assay-ray-", dir="/tmp")), first, further)
    try:
        for _ in range(number):
            found.add()
        yield found
    finally:
        for place, process in enumerate(found.started):
            if process.poll() is None:
                found.lose(place)
        shutil.rmtree(found.folder, ignore_errors=True)


def _environment() -> dict[str, str]:
    # A busy machine takes its time; Ray gives a raylet half a minute otherwise.
    patient = {"RAY_raylet_start_wait_time_s": "200", "RAY_agent_register_timeout_ms": "200000"}
    return {**os.environ, "RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0", **patient}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _below(pid: int) -> Iterator[int]:
    """All processes that a process started, directly or not."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                yield child
                yield from _below(child)
