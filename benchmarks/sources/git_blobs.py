"""Ids of contents as git has them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import _Hash


def git_blob_digest(size: int) -> _Hash:
    """What a content of so many bytes is fed to; its hexdigest is then the id of the git blob.

    Args:
        size: of the whole content: the id is the SHA-1 of `blob <size>`, a zero byte, the content.
    """
    return hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
