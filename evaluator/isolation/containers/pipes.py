"""Two pipes into a container, past its engine, which would copy every byte three times.

They are named pipes, bound into the container as files. Nothing of them is ever on a disk, and
their names are gone once both sides have them open. gVisor lets no pipe of this machine in; there
the attached client carries the protocol.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from evaluator.isolation.layout import RUNNER, Bind

NAMES = ("requests", "replies")
_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Pipes:
    """This side of two pipes.

    Attributes:
        requests: descriptor that is written to.
        replies: descriptor that is read from.
        binds: the pipes, as the container sees them.
    """

    requests: int
    replies: int
    binds: tuple[Bind, ...]

    def settle(self) -> None:
        """Once the other side reads: hold nothing but the end that is written to.

        Until then this side holds both, so that neither waits for the other to open its end; from
        now on it is told when nobody reads any more.
        """
        writing = os.open(f"/proc/self/fd/{self.requests}", os.O_WRONLY | os.O_NONBLOCK)
        os.dup2(writing, self.requests, inheritable=False)
        os.close(writing)

    def close(self) -> None:
        """Let go of both."""
        os.close(self.requests)
        os.close(self.replies)


def named_pipes(folder: Path) -> Pipes:
    """Pipes with names in a folder, to be removed once a box has them open.

    Args:
        folder: that nobody else may enter.
    """
    paths = [folder / each for each in NAMES]
    with ExitStack() as undo:
        opened = []
        for path, way in zip(paths, (os.O_RDWR, os.O_RDONLY), strict=True):
            os.mkfifo(path)
            path.chmod(0o666)  # for the user of the box; the folder is for this one alone
            opened.append(os.open(path, way | os.O_NONBLOCK | os.O_CLOEXEC))
            undo.callback(os.close, opened[-1])
            with suppress(PermissionError):  # where this user has many large pipes already
                fcntl.fcntl(opened[-1], fcntl.F_SETPIPE_SZ, _BYTES)
        undo.pop_all()
    targets = (f"{RUNNER}/{each}" for each in NAMES)
    return Pipes(opened[0], opened[1], tuple(map(Bind, paths, targets)))
