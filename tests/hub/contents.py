"""Contents of files and their ids, as git and LFS compute them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

LARGE = 10 * 1024 * 1024
_LFS_ENDINGS = (
    ".parquet", ".safetensors", ".zip", ".bin", ".npz", ".npy", ".pt", ".arrow", ".tar", ".gz",
    ".png", ".jpg", ".jpeg", ".webp",
)  # fmt: skip
GITATTRIBUTES = "".join(
    f"*{ending} filter=lfs diff=lfs merge=lfs -text\n" for ending in _LFS_ENDINGS
).encode()


def belongs_to_lfs(path: str, size: int) -> bool:
    """Whether the Hub keeps a file apart from git: by its ending, or where it is large."""
    return size > LARGE or (size > 0 and path.lower().endswith(_LFS_ENDINGS))


@dataclass(frozen=True)
class StoredFile:
    """One version of a file; `lfs` says whether it is kept apart from git, as large ones are."""

    content: bytes
    lfs: bool

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @cached_property
    def oid(self) -> str:
        """Id of what git keeps: the content, or for LFS the pointer to it."""
        kept = self.content
        if self.lfs:
            kept = (
                "version https://git-lfs.github.com/spec/v1\n"
                f"oid sha256:{self.sha256}\nsize {len(self.content)}\n"
            ).encode()
        return hashlib.sha1(f"blob {len(kept)}\0".encode() + kept).hexdigest()

    @property
    def etag(self) -> str:
        return self.sha256 if self.lfs else self.oid

    def in_tree(self, path: str) -> dict[str, Any]:
        """An entry of a listing."""
        entry: dict[str, Any] = {
            "type": "file",
            "path": path,
            "size": len(self.content),
            "oid": self.oid,
        }
        if self.lfs:
            entry["lfs"] = {"oid": self.sha256, "size": len(self.content), "pointerSize": 130}
        return entry


class LargeFiles:
    """The contents kept apart from git, by SHA-256, once for the whole server."""

    def __init__(self) -> None:
        self._contents: dict[str, StoredFile] = {}

    def keep(self, file: StoredFile) -> StoredFile:
        return self._contents.setdefault(file.sha256, file)

    def get(self, sha256: str) -> StoredFile | None:
        return self._contents.get(sha256)
