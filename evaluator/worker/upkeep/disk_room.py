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


def is_full(error: BaseException | None) -> bool:
    """Whether an error, or what it was raised from, says that a disk can take no more."""
    while error is not None:
        if isinstance(error, TransientError) and error.code in _CODES:
            return True
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        error = error.__cause__
    return False
