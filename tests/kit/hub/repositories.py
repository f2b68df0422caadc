"""Repositories in memory: files in commits, commits on branches, as the Hub tells them."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
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


Files = Mapping[str, StoredFile]
_KEPT_LISTINGS = 16


@dataclass(frozen=True)
class Commit:
    """One step of history."""

    sha: str  # its id
    parent: str  # the commit before; empty for the first
    files: Files  # all of them, by path
    title: str = "Files"  # first line of the message
    message: str = ""  # the rest of it
    author: str = "authors"  # who made it
    date: datetime = datetime(2025, 1, 1, tzinfo=UTC)  # when, by the server's clock


@dataclass
class Repository:
    """A repository."""

    name: str  # e.g. `authors/data`.
    kind: str = "datasets"  # `datasets`, `models` or `spaces`
    # only accounts that were let in get files, and are told to accept the terms
    gated: bool = False
    private: bool = False  # only its namespace learns that it exists
    # contents of LFS, by SHA-256; of the whole server
    large: dict[str, StoredFile] = field(default_factory=dict)
    commits: dict[str, Commit] = field(default_factory=dict)  # by id
    branches: dict[str, str] = field(default_factory=dict)  # name to commit id
    tags: dict[str, str] = field(default_factory=dict)  # name to commit id
    # SHA-256 of each content that was uploaded to this repository
    lfs: set[str] = field(default_factory=set)
    lock: threading.RLock = field(default_factory=threading.RLock)  # held while a branch moves
    _made: int = 0
    _listings: OrderedDict[tuple[str, str, bool], list[dict[str, Any]]] = field(
        default_factory=OrderedDict
    )

    @property
    def address(self) -> str:
        """Its place on the Hub, as pages and files are addressed."""
        return self.name if self.kind == "models" else f"{self.kind}/{self.name}"

    def commit(
        self, files: Mapping[str, bytes], *, branch: str = "main", lfs_from: int = 1000
    ) -> str:
        """Replace what a branch holds; files of `lfs_from` bytes and more go to LFS."""
        with self.lock:
            changes: dict[str, StoredFile | None] = {
                path: StoredFile(content, len(content) >= lfs_from)
                for path, content in files.items()
            }
            head = self.branches.get(branch, "")
            gone = dict.fromkeys(path for path in self.files(head) if path not in files)
            return self.change({**gone, **changes}, branch=branch).sha

    def change(
        self, changes: Mapping[str, StoredFile | None], *, branch: str = "main", **told: Any
    ) -> Commit:
        """Move a branch on by one commit; `told` are its title, message, author and date."""
        with self.lock:
            for file in changes.values():
                if file is not None and file.lfs:
                    self.large.setdefault(file.sha256, file)
                    self.lfs.add(file.sha256)
            head = self.branches.get(branch, "")
            merged = {**self.files(head), **changes}
            files = {path: file for path, file in merged.items() if file is not None}
            made = self._add(head, files, **told)
            self.branches[branch] = made.sha
            return made

    def squash(self, branch: str, **told: Any) -> Commit:
        """Make one commit of a branch's history; what nothing else reaches is gone."""
        with self.lock:
            made = self._add("", self.files(self.branches[branch]), **told)
            self.branches[branch] = made.sha
            kept = {
                commit.sha
                for head in {*self.branches.values(), *self.tags.values()}
                for commit in self.history(head)
            }
            for sha in [sha for sha in self.commits if sha not in kept]:
                del self.commits[sha]
            return made

    def forget(self, sha: str) -> None:
        """Rewrite history: a commit is gone, those after it stay."""
        with self.lock:
            for child in [each for each in self.commits.values() if each.parent == sha]:
                self.commits[child.sha] = replace(child, parent="")
            del self.commits[sha]

    def copy(self, large: dict[str, StoredFile]) -> Repository:
        """The same repository on another server, where it goes its own way."""
        with self.lock:
            large |= {sha256: self.large[sha256] for sha256 in self.lfs}
            return replace(
                self,
                large=large,
                commits=dict(self.commits),
                branches=dict(self.branches),
                tags=dict(self.tags),
                lfs=set(self.lfs),
                lock=threading.RLock(),
                _listings=OrderedDict(),
            )

    def at(self, revision: str) -> Commit | None:
        """The commit of a branch, a tag or a full id; like the Hub, no beginnings of ids."""
        sha = self.branches.get(revision) or self.tags.get(revision) or revision
        return self.commits.get(sha)

    def history(self, sha: str) -> Iterator[Commit]:
        """The commits that led to one, newest first."""
        commit = self.commits.get(sha)
        while commit is not None:
            yield commit
            commit = self.commits.get(commit.parent)

    def files(self, sha: str) -> Files:
        """All files at a commit; nothing for an empty id."""
        commit = self.commits.get(sha)
        return commit.files if commit else {}

    def listing(self, sha: str, folder: str, *, recursive: bool) -> list[dict[str, Any]]:
        """Entries below a folder (empty: the root), in the order of their paths."""
        with self.lock:
            key = (sha, folder, recursive)
            if key not in self._listings:
                self._listings[key] = _listing(self.files(sha), folder, recursive=recursive)
            self._listings.move_to_end(key)
            while len(self._listings) > _KEPT_LISTINGS:
                self._listings.popitem(last=False)
            return self._listings[key]

    def _add(self, parent: str, files: Files, **told: Any) -> Commit:
        self._made += 1
        facts = [self.name, parent, str(self._made), str(told.get("title", ""))]
        facts += [f"{path} {file.oid}" for path, file in files.items()]
        sha = hashlib.sha1("\n".join(facts).encode()).hexdigest()
        made = self.commits[sha] = Commit(sha, parent, files, **told)
        return made


def _listing(files: Files, folder: str, *, recursive: bool) -> list[dict[str, Any]]:
    inside = f"{folder.strip('/')}/" if folder else ""
    entries: dict[str, dict[str, Any]] = {}
    for path, file in files.items():
        if not path.startswith(inside):
            continue
        parts = path[len(inside) :].split("/")
        for depth in range(1, len(parts) if recursive else min(len(parts), 2)):
            name = inside + "/".join(parts[:depth])
            entries[name] = {"type": "directory", "path": name, "size": 0, "oid": "0" * 40}
        if recursive or len(parts) == 1:
            entries[path] = file.in_tree(path)
    return [entries[path] for path in sorted(entries)]
