"""Submissions that are taken from a repository of the Hub, at a commit."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, Self

from benchmarks.errors import SubmitterError
from benchmarks.sources.client import limit_waiting
from evaluator.hub.faults import Messages, in_words

PREFIX = "hub:"
_NAMED = re.compile(
    r"hub:(?:(?P<kind>datasets|spaces)/)?(?P<repo>[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95})"
    r"(?:@(?P<revision>[\w./-]{1,120}))?"
)
_WITH_TOKEN = Messages("repository_missing", "or send an archive")
_WITHOUT_TOKEN = Messages("repository_missing", "or send an archive", token=False, own_disk=False)

Tell = Callable[[str, int, int], None]
"""Told of each file: its name, bytes that are here, bytes in all."""


@dataclass(frozen=True, slots=True)
class HubSource:
    """A repository that holds a submission."""

    repository: str  # `owner/name`
    revision: str = ""  # branch, tag or commit; empty: the newest
    kind: Literal["model", "dataset", "space"] = "model"  # of repository
    endpoint: str | None = None  # address of the Hub; None: that of the environment
    # whether the token of the environment is sent, for repositories of one's own; never where
    # somebody else asks
    token: bool = False

    @classmethod
    def parse(cls, text: str, *, token: bool = False, endpoint: str | None = None) -> Self:
        """Read `hub:owner/name@revision`, `hub:datasets/owner/name@revision` and the like."""
        named = _NAMED.fullmatch(text)
        if named is None:
            raise SubmitterError(
                "bad_source",
                f"{text[:120]!r} does not name a repository of the Hub.",
                "Write hub:owner/name@revision (hub:datasets/owner/name@revision for a dataset).",
            )
        kinds: dict[str | None, Literal["model", "dataset", "space"]] = {
            None: "model",
            "datasets": "dataset",
            "spaces": "space",
        }
        return cls(
            named["repo"], named["revision"] or "", kinds[named["kind"]], endpoint, token=token
        )


@dataclass(frozen=True, slots=True)
class Fetched:
    """A submission on this machine."""

    folder: Path  # with its files, as they were in the repository: nothing was checked yet
    source: str  # `hub:owner/name@commit`, for the record


@contextmanager
def fetched(
    source: HubSource,
    *,
    most_files: int,
    most_bytes: int,
    scratch: Path | None = None,
    tell: Tell = lambda *_: None,
) -> Iterator[Fetched]:
    """Fetch a repository to a folder that is removed afterwards."""
    wording = _WITH_TOKEN if source.token else _WITHOUT_TOKEN
    with tempfile.TemporaryDirectory(prefix="assay-hub-", dir=scratch) as place:
        folder = Path(place) / "module"
        with in_words(source.repository, source.revision or "main", wording):
            commit = _fetch(source, folder, most_files, most_bytes, tell)
        shutil.rmtree(folder / ".cache", ignore_errors=True)
        prefix = "" if source.kind == "model" else f"{source.kind}s/"
        yield Fetched(folder, f"{PREFIX}{prefix}{source.repository}@{commit}")


def _fetch(source: HubSource, folder: Path, most_files: int, most_bytes: int, tell: Tell) -> str:
    from huggingface_hub import HfApi, hf_hub_download  # noqa: PLC0415 (heavy, seldom needed)

    limit_waiting()
    token = None if source.token else False
    info = HfApi(endpoint=source.endpoint, token=token).repo_info(
        source.repository,
        repo_type=source.kind,
        revision=source.revision or None,
        files_metadata=True,
    )
    # One commit for all that follows: a branch may move meanwhile.
    commit = str(info.sha)
    listed = getattr(info, "siblings", None) or ()
    sizes = {file.rfilename: file.size or 0 for file in listed if not _of_git(file.rfilename)}
    _check(source, sizes, most_files, most_bytes)
    folder.mkdir()
    done, total = 0, sum(sizes.values())
    for name, size in sizes.items():
        tell(name, done, total)
        hf_hub_download(
            source.repository,
            name,
            repo_type=source.kind,
            revision=commit,
            local_dir=folder,
            endpoint=source.endpoint,
            token=token,
        )
        done += size
    tell("", done, total)
    return commit


def _check(source: HubSource, sizes: dict[str, int], most_files: int, most_bytes: int) -> None:
    if len(sizes) > most_files:
        raise SubmitterError(
            "too_many_files",
            f"{source.repository} holds {len(sizes)} files; a submission may have {most_files}.",
            "Keep the scorer in a repository of its own.",
        )
    if sum(sizes.values()) > most_bytes:
        raise SubmitterError(
            "too_large",
            f"{source.repository} holds {sum(sizes.values()) >> 20} MB; a submission may have "
            f"{most_bytes >> 20} MB.",
            "Name large public models under `models` in assay.toml instead of bundling them.",
        )
    for name in sizes:
        parts = PurePosixPath(name).parts
        if not parts or ".." in parts or name.startswith(("/", "~")) or "\\" in name:
            raise SubmitterError(
                "unsafe_name", f"The name {name[:300]!r} leads out of the repository.", "Rename it."
            )


def _of_git(name: str) -> bool:
    """What every repository of the Hub has and no submission needs."""
    return name in (".gitattributes", ".gitignore")
