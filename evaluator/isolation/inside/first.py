"""The first process inside a container: reaps the others, and ends them with its supervisor.

Bubblewrap puts a first process of its own into a box; a container's would be the runner itself,
to which the kernel delivers no signal it does not handle, and which would have to reap what its
children leave behind. This one starts the runner, waits, and ends with its exit code. The end of
the first process is the end of all of them. It also ends when nobody holds the other end of its
input any more: then the supervisor was killed, and the engine is not told.

Standard library only: this file is also bound into the box.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import select
import signal
import sys
from collections.abc import Sequence

_PR_SET_DUMPABLE = 4
_SIGNALLED = 128
_ORPHANED = 70
RUNNER_KILLED = 209
"""Exit code where the runner was killed, or ended like it; of a container that is killed it is 137."""


def main(arguments: Sequence[str]) -> None:
    """Run a module of the bundle as a child."""
    module, *rest = [word for word in arguments if word not in {"--wait", "--pipes"}]
    if "--wait" in arguments and not os.read(0, 1):
        os._exit(_ORPHANED)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    child = os.fork()
    if child:
        _watch(child, woken)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.close(woken)
    os.close(wake)
    if "--pipes" in arguments:
        _take_over("requests", os.O_RDONLY, 0)
        _take_over("replies", os.O_WRONLY, 1)
    importlib.import_module(f"{__package__}.{module}").main(rest)


def _take_over(name: str, way: int, place: int) -> None:
    """Put a pipe that lies beside this file in the place of a descriptor."""
    opened = os.open(os.path.join(os.path.dirname(__file__), name), way)  # noqa: PTH118, PTH120
    os.dup2(opened, place)
    os.close(opened)


def _watch(child: int, woken: int) -> None:
    """Reap until the child has ended, then end alike; never returns."""
    # What runs beside this process as the same user may not look into it.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    poll = select.poll()
    poll.register(0, 0)  # tells only that the other end is gone
    poll.register(woken, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == 0:
                os._exit(_ORPHANED)
            os.read(woken, 4096)
        _reap(child)


def _reap(child: int) -> None:
    """All that have ended; where the child is among them, end with its exit code."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        if pid == child:
            sys.stderr.flush()
            code = os.waitstatus_to_exitcode(status)
            code = _SIGNALLED - code if code < 0 else code
            os._exit(RUNNER_KILLED if code == _SIGNALLED + signal.SIGKILL else code)
