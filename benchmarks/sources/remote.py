"""Sources of data files: dataset repositories on the Hub, and web addresses."""

from __future__ import annotations

import errno
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from re import fullmatch
from typing import TypeVar
from urllib.parse import quote

from huggingface_hub import HfApi, HfFileSystem, hf_hub_url
from huggingface_hub.errors import (
    DisabledRepoError,
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoFile

from benchmarks.errors import AssayError, SubmitterError, TransientError
from benchmarks.sources.client import (
    TIMEOUT,
    build_hf_headers,
    get_session,
    httpx,
    limit_waiting,
    parse_ratelimit_headers,
)

TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
_SIGNED = re.compile(r"(https?://[^\s?'\"]+)\?[^\s'\"]*")
"""An address with a query: where large files lie, that opens them to anybody."""
_LONGEST_PAUSE_S = 300.0
_AGAIN = "Run the same command again; what was fetched so far is kept."
_WITH_ACCESS = "set HF_TOKEN to a token of an account that has access"


@contextmanager
def translate_errors(what: str, repo: str = "", commit: str = "") -> Iterator[None]:
    """Turn any error of the client inside the block into one of the project's."""
    try:
        yield
    except AssayError:
        raise
    except (HfHubHTTPError, httpx.HTTPError, OfflineModeIsEnabled, EntryNotFoundError) as error:
        raise _translated(error, what, repo, commit) from error


def _translated(error: Exception, what: str, repo: str, commit: str) -> AssayError:
    known = _by_class(error, what, repo, commit)
    if known is not None:
        return known
    if isinstance(error, httpx.HTTPStatusError | HfHubHTTPError):
        page = f"https://huggingface.co/datasets/{repo}" if repo else ""
        return _by_status(error.response.status_code, what, page)
    if isinstance(error, httpx.TimeoutException):
        return TransientError("no_answer", f"No answer in time while fetching {what}.", _AGAIN)
    return TransientError(
        "no_network", f"The connection failed while fetching {what} ({in_short(error)}).", _AGAIN
    )


def _by_class(error: Exception, what: str, repo: str, commit: str) -> SubmitterError | None:
    """The error for what the client has a class of its own for; None for the rest.

    A gated repository comes first, because the client counts it among the unknown ones.
    """
    page = f"https://huggingface.co/datasets/{repo}"
    texts: dict[type[Exception], tuple[str, str, str]] = {
        OfflineModeIsEnabled: (
            "offline",
            f"{what} cannot be fetched: HF_HUB_OFFLINE is set.",
            "Unset it.",
        ),
        GatedRepoError: (
            "gated_repository",
            f"{repo} is open only to those who accepted its terms.",
            f"Accept them at {page}, then {_WITH_ACCESS}.",
        ),
        RepositoryNotFoundError: (
            "unknown_repository",
            f"The Hub knows no dataset {repo}, or shows it to its members only.",
            f"If {page} exists, {_WITH_ACCESS}.",
        ),
        DisabledRepoError: ("disabled_repository", f"The Hub has closed {repo}.", f"See {page}."),
        RevisionNotFoundError: (
            "unknown_revision",
            f"{repo} has no revision {commit!r}.",
            "If it had, its authors rewrote it: compare the card and pins.json with their history.",
        ),
        EntryNotFoundError: (
            "not_in_repository",
            f"{what} does not exist at revision {commit or 'main'}.",
            "Its authors may have renamed it; the benchmark's card names the expected file.",
        ),
    }
    return next(
        (SubmitterError(*text) for kind, text in texts.items() if isinstance(error, kind)), None
    )


def _by_status(status: int, what: str, page: str) -> AssayError:
    if status in TRANSIENT_STATUS:
        return TransientError(
            "server_unavailable", f"The server answered {status} for {what}.", _AGAIN
        )
    if status in {401, 403} and page:
        return SubmitterError(
            "no_access",
            f"The Hub refuses access to {what} ({status}).",
            f"Accept the terms at {page}, if there are any, and {_WITH_ACCESS}.",
        )
    return SubmitterError(
        "download_refused",
        f"The server answered {status} for {what}.",
        "The address may have moved; the benchmark's card names it.",
    )


@contextmanager
def translate_disk_errors(where: object) -> Iterator[None]:
    """Turn an error of the file system inside the block into one sentence."""
    try:
        yield
    except OSError as error:
        if isinstance(error, HfHubHTTPError | OfflineModeIsEnabled):
            raise
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise SubmitterError(
                "disk_full",
                f"The disk ran full while writing {where}.",
                "Make room and run the same command again; it continues where it stopped.",
            ) from error
        raise SubmitterError(
            "data_not_writable",
            f"{where} cannot be written ({error.strerror or error}).",
            "Name another folder with --data.",
        ) from error


def pause_asked_for(error: TransientError) -> float:
    """Seconds for which a busy server wants to be left alone, five minutes at most."""
    reply = getattr(error.__cause__, "response", None)
    if not isinstance(reply, httpx.Response) or reply.status_code not in TRANSIENT_STATUS:
        return 0.0
    limit = parse_ratelimit_headers(reply.headers)
    if reply.status_code == 429 and limit is not None and limit.remaining == 0:
        return min(limit.reset_in_seconds + 1.0, _LONGEST_PAUSE_S)
    asked = reply.headers.get("Retry-After", "")
    return min(float(asked), _LONGEST_PAUSE_S) if asked.isdecimal() else 0.0


def in_short(error: BaseException, told: str = "") -> str:
    """First line of an error's text, without the queries of signed addresses."""
    lines = (line for line in (told or str(error)).splitlines() if line.strip())
    return _SIGNED.sub(r"\1", next(lines, type(error).__name__))


PAUSES_S = (1.0, 2.0, 4.0, 8.0, 8.0)
"""Seconds before each further try of what failed for now."""

Sleep = Callable[[float], object]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Expected:
    """Size and hashes a file must have, as far as card, server or an earlier fetch tell."""

    size: int | None = None  # bytes; None where nobody tells
    sha256: str = ""  # of the content; empty where nobody tells
    git_oid: str = ""  # id of the content as a git blob; empty where nobody tells
    said_by: str = "the server"  # who tells, for messages


@dataclass(frozen=True)
class Source:
    """A remote file."""

    url: str  # where a GET finds it
    shown: str  # its name for people, e.g. `nllg/croc_hum/croc_hum.tar.gz`.
    # changes when the content does, so that parts of two states are never joined; empty where the
    # server tells none, and then a cut download begins anew
    state: str = ""
    # to send with every request; the client drops the token on a change of host
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    repo: str = ""  # repository on the Hub, or empty
    commit: str = ""  # of the repository
    name: str = ""  # path in the repository


class Hub:
    """Dataset repositories on one Hub, read only; every call has a timeout and bounded retries."""

    def __init__(
        self, endpoint: str | None = None, token: str | None = None, sleep: Sleep = time.sleep
    ) -> None:
        limit_waiting()
        self._api = HfApi(endpoint=endpoint, token=token)
        self._sleep = sleep

    def commit(self, repo: str, revision: str) -> str:
        """The full commit id of a revision: a branch, a tag, a commit or the beginning of one."""
        if fullmatch(r"[0-9a-f]{7,39}", revision):  # the Hub knows full ids only
            return self._completed(repo, revision)
        ask = partial(self._api.dataset_info, repo, revision=revision, timeout=30.0)
        found = self._retry(lambda: ask(expand=["sha"]), repo, repo, revision).sha
        if not found:
            raise TransientError("server_unavailable", f"The Hub names no commit for {repo}.")
        return found

    def _completed(self, repo: str, start: str) -> str:
        """The one commit whose id begins so, from the history of the repository."""
        ask = partial(self._api.list_repo_commits, repo, repo_type="dataset")
        history = self._retry(ask, repo, repo, start)
        found = [each.commit_id for each in history if each.commit_id.startswith(start)]
        if len(found) != 1:
            raise SubmitterError(
                "unknown_revision",
                f"{repo} has {len(found)} commits that begin with {start!r}, in {len(history)}.",
                "If it had one, its authors rewrote it; the benchmark's card names the commit.",
            )
        return found[0]

    def file(self, repo: str, name: str, commit: str) -> tuple[Source, Expected]:
        """A file of a repository."""
        ask = partial(self._api.get_paths_info, repo, [name], repo_type="dataset", revision=commit)
        found = self._retry(ask, f"{repo}/{name}", repo, commit)
        files = [entry for entry in found if isinstance(entry, RepoFile)]
        if not files:
            raise _absent(f"{repo}/{name}", commit)
        return self._described(repo, commit, files[0])

    def folder(self, repo: str, name: str, commit: str) -> list[tuple[str, Source, Expected]]:
        """Every file below a folder of a repository (`.`: the whole), with its path below it."""
        inside = "" if name == "." else name.strip("/")

        def ask() -> list[RepoFile]:
            tree = self._api.list_repo_tree(
                repo, inside or None, recursive=True, revision=commit, repo_type="dataset"
            )
            return [entry for entry in tree if isinstance(entry, RepoFile)]

        found = self._retry(ask, f"{repo}/{inside}", repo, commit)
        if not found:
            raise _absent(f"{repo}/{inside}", commit)
        return [
            (
                safe_name(PurePosixPath(entry.path).relative_to(inside).as_posix(), repo),
                *self._described(repo, commit, entry),
            )
            for entry in sorted(found, key=lambda entry: entry.path)
        ]

    def keep(self, repo: str, name: str, commit: str, folder: Path, most: int) -> Path:
        """A file of at most so many bytes in a folder of this machine; the Hub is asked once.

        `commit`: the whole id, so that what is kept never changes.
        """
        kept = folder / safe_name(name, repo)
        if not kept.is_file():
            _, expected = self.file(repo, name, commit)
            if (expected.size or 0) > most:
                raise SubmitterError(
                    "too_large", f"{repo}/{name} has {expected.size:,} bytes, more than {most:,}."
                )
        ask = partial(self._api.hf_hub_download, repo, name, repo_type="dataset", local_dir=folder)
        return Path(self._retry(lambda: ask(revision=commit), f"{repo}/{name}", repo, commit))

    def files(self) -> HfFileSystem:
        """The repositories as a file system, for reading parts of files."""
        return HfFileSystem(endpoint=self._api.endpoint, token=self._api.token)

    def web(self, url: str) -> tuple[Source, Expected]:
        """A file at a web address, with size and state as far as the server tells."""

        def ask() -> httpx.Response:
            # A GET of one byte: some servers refuse HEAD, or tell no length there.
            headers = {"Accept-Encoding": "identity", "Range": "bytes=0-0"}
            with get_session().stream("GET", url, headers=headers, timeout=TIMEOUT) as reply:
                if reply.status_code != 416:  # an empty file has no first byte
                    reply.raise_for_status()
                return reply

        reply = self._retry(ask, url)
        state = reply.headers.get("ETag") or reply.headers.get("Last-Modified") or ""
        return Source(url, url, state), Expected(_total(reply))

    def _described(self, repo: str, commit: str, entry: RepoFile) -> tuple[Source, Expected]:
        url = hf_hub_url(
            repo, entry.path, repo_type="dataset", revision=commit, endpoint=self._api.endpoint
        )
        source = Source(
            url=url,
            shown=f"{repo}/{entry.path}",
            state=entry.lfs.sha256 if entry.lfs else entry.blob_id,
            headers=build_hf_headers(token=self._api.token),
            repo=repo,
            commit=commit,
            name=entry.path,
        )
        if entry.lfs:
            return source, Expected(entry.size, sha256=entry.lfs.sha256)
        return source, Expected(entry.size, git_oid=entry.blob_id)

    def _retry(self, ask: Callable[[], _T], what: str, repo: str = "", commit: str = "") -> _T:
        for pause in PAUSES_S:
            try:
                with translate_errors(what, repo, commit):
                    return ask()
            except TransientError as error:
                self._sleep(max(pause, pause_asked_for(error)))
        with translate_errors(what, repo, commit):
            return ask()


LARGEST_IMAGE = 64 << 20
"""Bytes of an encoded image."""


def web_file(prefix: str, name: str) -> Source:
    """A file of a folder at a web address; nothing is known of it before it is fetched."""
    url = f"{prefix.rstrip('/')}/{quote(name)}"
    return Source(url, url)


def safe_name(name: str, where: str) -> str:
    """A path below a folder, as a server names it, if it stays below that folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or not path.parts:
        raise SubmitterError(
            "data_malformed", f"{where} names a file outside its folder: {name!r}."
        )
    return name


def _absent(what: str, commit: str) -> SubmitterError:
    return SubmitterError(
        "not_in_repository",
        f"{what} does not exist at revision {commit}.",
        "Its authors may have renamed it; the benchmark's card names the expected file.",
    )


def _total(reply: httpx.Response) -> int | None:
    total = reply.headers.get("Content-Range", "").rpartition("/")[2]
    if total.isdecimal():
        return int(total)
    length = reply.headers.get("Content-Length", "")
    return int(length) if reply.status_code == 200 and length.isdecimal() else None
