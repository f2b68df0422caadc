"""Entry of an archive: the readers of folders, zips and tars give one after the other."""

from __future__ import annotations

import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from benchmarks.errors import SubmitterError, TransientError

T = TypeVar("T")

_DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    # What the readers of the standard library let through of a crafted file: odd numbers and
    # texts, methods they do not know, headers nested too deep.
    ValueError,
    LookupError,
    OverflowError,
    RuntimeError,
)


@dataclass(frozen=True)
class Entry:
    """One thing that stands in a submission.

    Attributes:
        name: as it is written there.
        pieces: reads its bytes, a bounded number at a time; valid until the next entry.
        is_folder: it is a folder and has no bytes.
        fault: why it is no plain file, as the end of a sentence that begins with its name; empty
            where it is one.
    """

    name: str
    pieces: Callable[[], Iterator[bytes]] = lambda: iter(())
    is_folder: bool = False
    fault: str = ""


def reading(items: Iterator[T], archive: str) -> Iterator[T]:
    """The same items; whatever a damaged or crafted file makes its reader say is told in our words.

    Args:
        items: come from the reader.
        archive: name of the file, for the message.

    Raises:
        SubmitterError: `damaged_archive`, `unreadable`.
        TransientError: `disk_failed`.
    """
    while True:
        try:
            item = next(items)
        except StopIteration:
            return
        except _DAMAGE as error:
            raise _said(error, archive) from error
        yield item


def crafted(archive: str, fault: str) -> SubmitterError:
    """An archive of which two readers would see different things."""
    return SubmitterError(
        "crafted_archive",
        f"{archive} {fault}.",
        "Pack the folder again with an ordinary tool (zip -r, tar czf).",
    )


def bomb(archive: str, ratio: int) -> SubmitterError:
    """An archive that grows beyond measure."""
    return SubmitterError(
        "bomb",
        f"{archive} grows to more than {ratio} times its size while unpacking.",
        "Leave out what is empty or repeated; weights hardly shrink.",
    )


def _said(error: Exception, archive: str) -> SubmitterError | TransientError:
    if isinstance(error, OSError) and error.errno is not None:
        if isinstance(error, PermissionError):
            return SubmitterError(
                "unreadable",
                f"{archive} cannot be read: {error.strerror}.",
                "Let this user read it and all that is in it.",
            )
        return TransientError(
            "disk_failed", f"{archive} could not be read: {error.strerror}.", "Try again."
        )
    return SubmitterError(
        "damaged_archive",
        f"{archive} is damaged: {str(error)[:200] or type(error).__name__}.",
        "Pack it again and upload it whole.",
    )
