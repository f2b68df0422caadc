"""Room on the worker's disk: who looks after it, and what tells that there is none."""

from __future__ import annotations

import errno
from typing import Protocol

from benchmarks.errors import TransientError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_CODES = frozenset({"disk_low", "disk_failed"})


class DiskWatch(Protocol):
    """Looks after the room on a disk."""

    def check(self) -> None:
        """Make room where little is left.

        Raises:
            TransientError: `disk_low`, that was not enough.
        """


def is_full(error: BaseException) -> bool:
    """Whether an error says that a disk of this machine can take no more."""
    if isinstance(error, TransientError):
        return error.code in _CODES
    return isinstance(error, OSError) and error.errno in _FULL
