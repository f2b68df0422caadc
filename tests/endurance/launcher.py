"""A program that imports everything once and then forks a worker for each line of its input.

It has one thread and no connection of its own, so that what it forks is as good as a new process.
A line is a JSON object: `start` (what the worker is to be) or `ended` (who has ended since?).
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
import traceback
from tempfile import TemporaryDirectory
from typing import Any

from tests.endurance.worker_process import Given, made, run, store_of
from tests.kit.worker import stock

_DIE_WITH_PARENT = 1  # `PR_SET_PDEATHSIG`: a test run that is cut off leaves no worker behind


def warm_up() -> None:
    """Run one submission, so that everything is imported that is only imported when it is used."""
    with TemporaryDirectory() as folder:
        given = Given("warm", folder, f"{folder}/store", f"{folder}/scratch", delay_s=0.0)
        store = store_of(given)
        stock(store, ["hub:ada"])
        made(given, store).run_all()
    assert threading.active_count() == 1, "a fork would lose threads"


def serve() -> None:
    """Answer every line with one line, until the input ends."""
    alive: set[int] = set()
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        if "start" in asked:
            pid = _forked(asked["start"])
            alive.add(pid)
            answer: Any = pid
        else:
            answer = _ended(alive)
        print(json.dumps(answer), flush=True)


def _forked(given: dict[str, Any]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        sys.stdin.close()
        run(given)
        os._exit(0)
    except BaseException:  # noqa: BLE001 (a fork must never go on as its parent)
        traceback.print_exc()
        os._exit(1)


def _ended(alive: set[int]) -> dict[int, int]:
    """Exit codes of those that ended since this was asked last."""
    found: dict[int, int] = {}
    for pid in sorted(alive):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            found[pid] = os.waitstatus_to_exitcode(status)
            alive.discard(pid)
    return found


if __name__ == "__main__":
    warm_up()
    # It reaches whoever is told to stop only when that one listens.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    print(json.dumps("ready"), flush=True)
    serve()
