"""Secrets in files of their own, as containers are given them: `HF_TOKEN_FILE=/run/secrets/token`."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from benchmarks.errors import SubmitterError

MOST_BYTES = 64 << 10


def read_secret(path: Path, named_by: str, *, may_be_empty: bool = False) -> str:
    """The secret in a file, without blanks and line ends around it.

    Args:
        path: of the file.
        named_by: the variable that names it, for messages.
        may_be_empty: whether there need be none.

    Raises:
        SubmitterError: `bad_secret_file`; never says what is in it.
    """
    try:
        # Not to wait for ever where the name is that of a pipe.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            plain = stat.S_ISREG(os.fstat(handle).st_mode)
            content = file.read(MOST_BYTES + 1) if plain else b""
    except OSError as error:
        raise _bad(named_by, path, f"cannot be read ({error.strerror})") from error
    if not plain:
        raise _bad(named_by, path, "is no file of bytes that can be read again")
    try:
        secret = content.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise _bad(named_by, path, "is no text") from None
    if not secret and not may_be_empty:
        raise _bad(named_by, path, "is empty")
    if len(content) > MOST_BYTES or not secret.isprintable():
        raise _bad(named_by, path, "holds more than one line of text")
    return secret


def _bad(named_by: str, path: Path, what: str) -> SubmitterError:
    return SubmitterError(
        "bad_secret_file",
        f"{named_by} names {path}, which {what}.",
        "Write the secret into that file, alone on one line, where this user can read it.",
    )
