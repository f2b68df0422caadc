"""Writers in another process that are killed just before one of their steps.

Run as a program, it forks a writer for each line of its input (a JSON list: module, last step,
arguments) and prints how the writer ended. Each module is imported once, before the first fork, and
the process has no threads.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from tests.kit.processes import running
from tests.kit.tiers import nightly

ROOT = Path(__file__).resolve().parents[3]
KILLED, DONE = -signal.SIGKILL, 0


class Dying:
    """Starts writers and says how each ended: `KILLED`, or `DONE` before its last step came."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __call__(self, module: str, last: int, *arguments: object) -> int:
        """Call `write(last, *arguments)` of a module of this folder in a process of its own."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([module, last, *arguments], default=str) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextmanager
def dying_writers() -> Iterator[Dying]:
    """The process that forks them."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", __name__]
    with running(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        yield Dying(process)


def kill_points(seed: int) -> Iterator[int]:
    """Steps to die before, in order: about one of three by the seed; all in a nightly run."""
    every, choice, step = 1 if nightly() else 3, random.Random(seed), 0
    while True:
        step += choice.randint(1, 2 * every - 1)
        yield step


def die() -> NoReturn:
    """End this process as a crash does."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("it lives")


def serve() -> None:
    """Make writers until the input ends."""
    for line in sys.stdin:
        name, last, *arguments = json.loads(line)
        module = import_module(f".{name}", __package__)
        child = os.fork()
        if child == 0:
            try:
                module.write(last, *arguments)
                os._exit(DONE)
            except BaseException:  # noqa: BLE001 (a fork must never go on as its parent)
                traceback.print_exc()
                os._exit(1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
