"""Entry at a path of a repository."""

from __future__ import annotations

from dataclasses import dataclass

from huggingface_hub.hf_api import RepoFile, RepoFolder


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or a folder of a repository.

    Attributes:
        path: its path.
        is_file: whether it is a file.
        oid: id of the content: SHA-256 of a large file, else that of the git blob.
        large: whether the content lies in the Hub's store of large files.
    """

    path: str
    is_file: bool
    oid: str
    large: bool = False


def entry_of(found: RepoFile | RepoFolder) -> Entry:
    """As the client of the Hub tells it."""
    if not isinstance(found, RepoFile):
        return Entry(found.path, False, "")
    if found.lfs:
        return Entry(found.path, True, found.lfs.sha256, large=True)
    return Entry(found.path, True, found.blob_id)
