"""A writer to a store in a folder that dies just before a change of a file; see `dying`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from leaderboard.store.folder import FolderRepository
from tests.leaderboard.store.dying import die

OLD = {"one": b"old", "two": b"old"}
NEW = {"one": b"new", "two": b"new"}
_CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir"}


def write(last: int, root: str) -> None:
    """Commit `NEW`, and die before change number `last` of a file or folder."""
    repository, changes = FolderRepository(Path(root)), 0

    def count(event: str, details: tuple[object, ...]) -> None:
        nonlocal changes
        flags = details[2] if event == "open" else 0
        written = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if event in _CHANGES or written:
            changes += 1
            if changes == last:
                die()

    sys.addaudithook(count)
    repository.commit(NEW, parent=repository.head(), message="dying")
