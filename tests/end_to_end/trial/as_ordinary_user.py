"""Runs a command as an ordinary user: `python -m ... UID FOLDER COMMAND...`.

UID 0 changes nobody: the command is run as whoever started this.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.evaluator.isolation.as_another_user import become

_PR_SET_PDEATHSIG = 1


def main(arguments: Sequence[str]) -> None:
    """Become the user, go to the folder, and be the command: the process keeps its id."""
    uid, folder, command = int(arguments[0]), Path(arguments[1]), arguments[2:]
    if uid:
        become(uid, folder)
    # A test that is killed leaves nobody behind.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.umask(0o022)
    os.chdir(folder)
    os.execv(command[0], list(command))


if __name__ == "__main__":
    main(sys.argv[1:])
