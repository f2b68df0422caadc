"""Dataset repositories in memory: files in commits, commits on branches, as the Hub tells them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any


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


@dataclass(frozen=True)
class Commit:
    sha: str
    files: Mapping[str, StoredFile]


@dataclass
class Repository:
    """A dataset repository.

    Attributes:
        name: e.g. `authors/data`.
        gated: only holders of the token get files, and are told to accept the terms.
        private: only holders of the token learn that it exists.
        commits: by id.
        branches: name to commit id.
    """

    name: str
    gated: bool = False
    private: bool = False
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)

    def commit(
        self, files: Mapping[str, bytes], *, branch: str = "main", lfs_from: int = 1000
    ) -> str:
        """Replace what a branch holds; files of `lfs_from` bytes and more go to LFS."""
        stored = {
            path: StoredFile(content, len(content) >= lfs_from) for path, content in files.items()
        }
        told = [self.name, *self.commits, *(f"{path} {file.oid}" for path, file in stored.items())]
        sha = hashlib.sha1("\n".join(told).encode()).hexdigest()
        self.commits[sha] = Commit(sha, stored)
        self.branches[branch] = sha
        return sha

    def forget(self, sha: str) -> None:
        """Rewrite history: a commit is gone."""
        del self.commits[sha]

    def at(self, revision: str) -> Commit | None:
        """The commit of a branch or of a full id; like the Hub, no beginnings of ids."""
        return self.commits.get(self.branches.get(revision, revision))


def listing(commit: Commit, folder: str, *, recursive: bool) -> list[dict[str, Any]]:
    """Entries below a folder (empty: the root), in the order of their paths."""
    inside = f"{folder.strip('/')}/" if folder else ""
    entries: dict[str, dict[str, Any]] = {}
    for path, file in commit.files.items():
        if not path.startswith(inside):
            continue
        parts = path[len(inside) :].split("/")
        for depth in range(1, len(parts) if recursive else min(len(parts), 2)):
            name = inside + "/".join(parts[:depth])
            entries[name] = {"type": "directory", "path": name, "size": 0, "oid": "0" * 40}
        if recursive or len(parts) == 1:
            entries[path] = file.in_tree(path)
    return [entries[path] for path in sorted(entries)]
