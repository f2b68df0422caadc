"""The demo's app and worker, served as a person serves them."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.end_to_end.commands import REPOSITORY, environment

PATIENCE_S = 180
"""For the first answer: metrics are run again where their code is not the one that was published."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=2) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


@contextmanager
def served(store: Path, log: Path) -> Iterator[str]:
    """The app and its worker, as `make demo` starts them a second time."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "evaluator", "demo", "--serve", "--store", str(store)],
            cwd=REPOSITORY,
            env=environment(PORT=port),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            deadline = time.monotonic() + PATIENCE_S
            while not answers(address):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.2)
            yield address
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=40)
