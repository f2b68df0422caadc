"""A checkout in processes of its own: its commands, and its site on a free port of this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

START_LIMIT_S = 300.0
ANSWER_LIMIT_S = 600.0
STOP_LIMIT_S = 20.0
LOG_LINES = 20
_SETTINGS = ("ASSAY_", "GRADIO_", "SPACE_", "OAUTH_", "HF_", "PYTHONPATH", "PYTHONHOME", "PORT")
"""Variables that change what a checkout does; both sides run without those of the caller."""


class SideError(Exception):
    """A checkout did not run."""

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message)
        self.log = "\n".join(log.rstrip().splitlines()[-LOG_LINES:])


@dataclass(frozen=True)
class Side:
    """A checkout to run."""

    name: str  # `A` or `B`
    checkout: Path  # its folder
    python: Path  # the interpreter
    folder: Path  # for its store and logs; there already
    scratch: Path  # for the temporary files of its processes; there already

    def environment(self, **more: str) -> dict[str, str]:
        """Variables of its processes: the caller's without settings, and no settings file."""
        empty = self.folder / "settings.toml"
        empty.touch()
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_SETTINGS)}
        own = {"ASSAY_SETTINGS": str(empty), "TMPDIR": str(self.scratch), "PYTHONUNBUFFERED": "1"}
        return {**kept, **own, **more}

    def evaluator(self, *words: str, log: str) -> str:
        """What `python -m evaluator ...` prints; its messages go to a log."""
        file = self.folder / f"{log}.log"
        command = [str(self.python), "-m", "evaluator", *words]
        try:
            with file.open("wb") as messages:
                done = subprocess.run(
                    command,
                    cwd=self.checkout,
                    env=self.environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=messages,
                    check=False,
                )
        except OSError as error:
            raise SideError(f"{self.name}: {self.python} does not start: {error}.") from error
        said = done.stdout.decode(errors="replace")
        if done.returncode:
            raise SideError(
                f"{self.name}: evaluator {' '.join(words)} ended with {done.returncode}.",
                said + file.read_text(errors="replace"),
            )
        return said


@contextmanager
def served(side: Side, store: Path) -> Iterator[httpx.Client]:
    """The site of a checkout, on a free port of this machine alone."""
    port = _free_port()
    address = f"http://127.0.0.1:{port}"
    log = side.folder / "app.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(side.python), "app.py"],
            cwd=side.checkout,
            env=side.environment(ASSAY_STORE=str(store), PORT=str(port)),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        # Loopback is asked directly, whatever proxy the environment names.
        with httpx.Client(base_url=address, timeout=ANSWER_LIMIT_S, trust_env=False) as client:
            _wait_for(client, process, side, log)
            try:
                yield client
            except httpx.HTTPError as error:
                raise SideError(f"{side.name}: the site: {error!r}", _text(log)) from error
    finally:
        process.terminate()
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(
    client: httpx.Client, process: subprocess.Popen[bytes], side: Side, log: Path
) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        if process.poll() is not None:
            raise SideError(f"{side.name}: app.py ended with {process.returncode}.", _text(log))
        try:
            client.get("/health", timeout=5.0)
        except httpx.HTTPError:
            if time.monotonic() > deadline:
                message = f"{side.name}: app.py did not answer for {START_LIMIT_S:.0f} s."
                raise SideError(message, _text(log)) from None
            time.sleep(0.2)
        else:
            return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _text(log: Path) -> str:
    return log.read_text(errors="replace")
