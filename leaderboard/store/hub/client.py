"""The Hub over HTTP, as a store uses it: bounded in time, repeated where that is safe, in our words.

What the client of the Hub offers is used where it does the same; heads, listings and contents are
asked for with its session, because it repeats, caches or follows them in ways a store must not.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote, urljoin

from huggingface_hub import CommitOperationAdd, HfApi, hf_hub_url
from huggingface_hub.errors import EntryNotFoundError
from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]
from pydantic import TypeAdapter, ValidationError

from benchmarks.errors import AssayError, PlatformError, TransientError
from benchmarks.sources.client import (
    TIMEOUT,
    at_home,
    build_hf_headers,
    get_session,
    hf_raise_for_status,
    httpx,
    limit_waiting,
)
from leaderboard.store.hub.budget import CommitBudget
from leaderboard.store.hub.faults import (
    FATAL,
    HubRequest,
    NoStoreError,
    StoreGoneError,
    TokenRefusedError,
    misshapen,
    refused_for,
    refused_with,
    renew_token,
    translate_errors,
)
from leaderboard.store.hub.uploads import Described, Operation, described, hush, in_rounds
from leaderboard.store.interface import NotFoundError


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or a folder of a repository."""

    path: str  # its path
    is_file: bool  # whether it is a file
    oid: str  # id of the content: SHA-256 of a large file, else that of the git blob
    large: bool = False  # whether the content lies in the Hub's store of large files


@dataclass(frozen=True, slots=True)
class _LargeFile:
    oid: str


@dataclass(frozen=True, slots=True)
class _ListedEntry:
    """A file or a folder, with the fields of the Hub's listings that are read."""

    type: str
    path: str
    oid: str
    lfs: _LargeFile | None = None

    @property
    def entry(self) -> Entry:
        """The same in our words."""
        if self.type != "file":
            return Entry(self.path, False, "")
        return Entry(self.path, True, (self.lfs or self).oid, large=self.lfs is not None)


@dataclass(frozen=True, slots=True)
class _ListedCommit:
    """A commit, likewise."""

    id: str
    title: str | None = None
    message: str | None = None


_ENTRIES = TypeAdapter(list[_ListedEntry])
_COMMITS = TypeAdapter(list[_ListedCommit])


_GOOD_FOR_S = 600.0
_OLDEST_COPY_S = 86_400.0
"""A reply that says to be older tells no time."""
_JITTER = timedelta(seconds=2)
"""Two replies may differ by so much (a second's rounding, the way here); time stands still then."""


def steady() -> float:
    """Seconds that only go forward, also while a machine sleeps where the system can tell."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


class ServerClock:
    """The time of the last reply, and what went by since on the steady clock of this machine.

    The machine's own idea of the time of day is never used: it may be wrong by hours.
    """

    def __init__(self, elapsed: Callable[[], float] = steady) -> None:
        self._elapsed = elapsed
        self._ask: Callable[[], object] | None = None
        self._lock = threading.Lock()
        self._heard: tuple[datetime, float] | None = None
        self._last = datetime.min.replace(tzinfo=UTC)

    def asks(self, ask: Callable[[], object]) -> None:
        """Name what makes the server reply, for when it has been silent for long."""
        self._ask = ask

    def heard(self, headers: Mapping[str, str]) -> None:
        """Take the time from a reply; one without a date tells nothing."""
        try:
            date = parsedate_to_datetime(headers.get("Date", ""))
        except ValueError:
            return
        if date.tzinfo is None:
            return
        told = headers.get("Age", "0")  # of a copy that something on the way had kept
        age = float(told) if told.isascii() and told.isdecimal() else 0.0
        if age > _OLDEST_COPY_S:
            return
        with self._lock:
            self._heard = date.astimezone(UTC) + timedelta(seconds=age), self._elapsed()

    def __call__(self) -> datetime:
        """The time of the Hub."""
        if self._ask is not None and self._silent_for() > _GOOD_FOR_S:
            try:
                self._ask()
            except AssayError:
                # Time goes on whatever became of the store.
                if self._heard is None:
                    raise
        with self._lock:
            if self._heard is None:
                raise TransientError("no_clock", "The Hub has not told the time yet.", "Try again.")
            date, at = self._heard
            now = date + timedelta(seconds=self._elapsed() - at)
            if timedelta(0) < self._last - now < _JITTER:
                now = self._last
            self._last = now
            return now

    def _silent_for(self) -> float:
        with self._lock:
            return float("inf") if self._heard is None else self._elapsed() - self._heard[1]


BRANCH = "main"
LAST = ".commits/last.json"
"""A file every repository of a store has; each commit to it changes this or the pins."""
PAUSES_S = (0.5, 1.0, 2.0, 4.0)  # Seconds before each further try of what failed for now
LONGEST_PAUSE_S = 60.0  # Where the Hub wants to be left alone for longer, whoever asked is told so

_PATHS_AT_ONCE = 500
_HEAD_TIMEOUT = httpx.Timeout(10.0)
_DATASET = "dataset"
_HOPS = 6
_T = TypeVar("_T")


class HubClient:
    """Dataset repositories of one Hub."""

    def __init__(
        self,
        endpoint: str | None = None,
        token: str | None = None,  # None for that of the environment (`HF_TOKEN`) or of a login
        *,
        budget: CommitBudget | None = None,  # of commits; None for no bound of ours
        sleep: Callable[[float], object] = time.sleep,
        pauses: Sequence[float] = PAUSES_S,  # seconds before each further try
        renew: Callable[[], object] = renew_token,
    ) -> None:
        limit_waiting()
        hush()
        self._api = HfApi(endpoint=endpoint, token=token, library_name="assay")
        self._sleep = sleep
        self.budget = budget or CommitBudget(None)
        self.pauses = tuple(pauses)
        self.clock = ServerClock()
        self._met: set[str] = set()
        self._wrote = False
        self._renew = renew

    def head(self, repo: str) -> str:
        """The commit a repository is at; one small request, never answered from a cache."""
        asked = HubRequest("read the version", repo)
        url = self._address(repo, LAST, BRANCH)
        sha = self.tried(asked, lambda: self._head(url))
        self._met.add(repo)
        return sha

    def entries(self, repo: str, paths: Sequence[str], sha: str) -> dict[str, Entry]:
        """What is at these paths; those at which nothing is are left out."""
        found: dict[str, Entry] = {}
        for start in range(0, len(paths), _PATHS_AT_ONCE):
            part = list(paths[start : start + _PATHS_AT_ONCE])
            asked = HubRequest(f"look for {part[0]!r}", repo, part[0])
            url, form = f"{self._of(repo)}/paths-info/{sha}", {"paths": part, "expand": False}
            page = partial(self._page, asked, _ENTRIES, "POST", url, data=form)
            found |= {each.path: each.entry for each in self.tried(asked, page)[0]}
        return found

    def tree(
        self, repo: str, folder: str, sha: str, *, recursive: bool = True
    ) -> Collection[Entry]:
        """What is below a folder (empty: the repository), a thousand for each request."""
        asked = HubRequest(f"list {folder!r}", repo, folder)
        url = f"{self._of(repo)}/tree/{sha}" + (f"/{quote(folder, safe='')}" if folder else "")
        params = {"recursive": "true" if recursive else "false", "expand": "false"}
        try:
            found = {each.path: each.entry for each in self._pages(asked, _ENTRIES, url, params)}
        except NotFoundError:
            return ()
        return [each for each in found.values() if each.is_file or not recursive]

    def is_private(self, repo: str) -> bool:
        """Whether only members see a repository."""
        asked = HubRequest("read the settings", repo)
        return bool(self.call(asked, lambda api: api.dataset_info(repo, timeout=30.0)).private)

    def history(self, repo: str) -> Iterator[Described]:
        """The commits of the branch, newest first; asked for as they are taken."""
        asked = HubRequest("read the history", repo)
        for each in self._pages(asked, _COMMITS, f"{self._of(repo)}/commits/{BRANCH}"):
            yield described(each.id, each.title or "", each.message or "")

    @contextmanager
    def stream(
        self,
        repo: str,
        path: str,
        sha: str,
        headers: Mapping[str, str],
        enough: Callable[[httpx.Response], bool],
    ) -> Iterator[httpx.Response]:
        """A request for a content; nothing is repeated or translated."""
        session = get_session()
        given = {**self._headers(), "Accept-Encoding": "identity", **headers}
        request = session.build_request(
            "GET", self._address(repo, path, sha), headers=given, timeout=TIMEOUT
        )
        for _ in range(_HOPS):
            reply = session.send(request, stream=True, follow_redirects=False)
            try:
                # The client builds the request that follows, without the token for another host.
                if enough(reply) or reply.next_request is None:
                    yield reply
                    return
                request = reply.next_request
            finally:
                reply.close()
        raise TransientError("store_unreachable", "The Hub sends round in circles.", "Try again.")

    def upload(self, repo: str, operations: Sequence[Operation]) -> None:
        """Send large contents ahead of a commit; the client repeats what fails."""
        additions = [each for each in operations if isinstance(each, CommitOperationAdd)]
        asked = HubRequest("upload files", repo, writing=True)
        with disable_progress_bars():
            for part in in_rounds(additions):
                ask = partial(
                    HfApi.preupload_lfs_files,
                    repo_id=repo,
                    additions=part,
                    repo_type=_DATASET,
                    revision=BRANCH,
                    free_memory=False,
                )
                # Once more, for a connection that another thread closed; the rest it repeats itself.
                self.call(asked, ask, self.pauses[:1])
        ignored = [each.path_in_repo for each in additions if each._should_ignore]
        if ignored:
            raise PlatformError(
                "ignored_by_hub",
                f"A .gitignore in {repo} keeps {ignored[0]!r} out of it.",
                "Remove that file from the repository.",
            )

    def commit(
        self,
        repo: str,
        operations: Sequence[Operation],
        *,
        parent: str,
        title: str,
        description: str,
    ) -> str:
        """Commit, once; what fails may have happened."""
        commit = partial(
            HfApi.create_commit,
            repo_id=repo,
            operations=operations,
            commit_message=title,
            commit_description=description,
            repo_type=_DATASET,
            revision=BRANCH,
            parent_commit=parent,
        )
        asked = HubRequest(f"commit {title!r}", repo, writing=True)
        made = self.call(asked, commit, ())
        self._wrote = True
        if not isinstance(made.oid, str):
            raise misshapen(asked)
        return made.oid

    def call(
        self, asked: HubRequest, ask: Callable[[HfApi], _T], pauses: Sequence[float] | None = None
    ) -> _T:
        """What the Hub's own client answers; see `tried`."""

        def answered() -> _T:
            try:
                return ask(self._api)
            except (KeyError, TypeError, AttributeError) as error:
                # The client takes the fields of an answer without a look at them.
                raise misshapen(asked) from error

        return self.tried(asked, answered, pauses)

    def tried(
        self, asked: HubRequest, ask: Callable[[], _T], pauses: Sequence[float] | None = None
    ) -> _T:
        """The answer of a question that may be asked again, as often as there are pauses."""
        for pause in self.pauses if pauses is None else pauses:
            try:
                return self._once(asked, ask)
            except FATAL:
                raise
            except TransientError as error:
                self.rest(pause, error)
        return self._once(asked, ask)

    def rest(self, pause: float, error: AssayError) -> None:
        """Wait before another try: as long as the Hub asks for, else about `pause`."""
        wanted = refused_for(error)
        if wanted is not None and wanted > LONGEST_PAUSE_S:
            raise error
        if self._sleep(max(wanted or 0.0, pause * random.uniform(0.5, 1.5))):  # noqa: S311 (jitter)
            raise error

    def _once(self, asked: HubRequest, ask: Callable[[], _T]) -> _T:
        """What is answered; asked once more where the token was refused and there is another."""
        try:
            with translate_errors(asked, self._met, wrote=self._wrote):
                return ask()
        except (NoStoreError, StoreGoneError, TokenRefusedError) as error:
            # Nothing was done: it was refused before anything of it was looked at.
            sent = refused_with(error)
            if sent is None or sent == self._another():
                raise
        with translate_errors(asked, self._met, wrote=self._wrote):
            return ask()

    def _another(self) -> str | None:
        """What would be sent as a token now; another thread may have found a new one already."""
        self._renew()
        return self._headers().get("authorization")

    def _head(self, url: str) -> str:
        reply = get_session().head(url, headers=self._headers(), timeout=_HEAD_TIMEOUT)
        self.clock.heard(reply.headers)
        told_by = (each.headers.get("X-Repo-Commit") for each in (*reply.history, reply))
        sha = next((found for found in told_by if found), "")
        try:
            hf_raise_for_status(reply)
        except EntryNotFoundError:
            if not sha:  # a repository that is no store yet has a version all the same
                raise
        if not sha:
            raise TransientError("store_unreachable", "The Hub named no version.", "Try again.")
        return sha

    def _pages(
        self,
        asked: HubRequest,
        shape: TypeAdapter[list[_T]],
        url: str,
        params: dict[str, str] | None = None,
    ) -> Iterator[_T]:
        after: str | None = url
        while after is not None:
            given = params if after == url else None
            page = partial(self._page, asked, shape, "GET", after, params=given)
            found, after = self.tried(asked, page)
            yield from found

    def _page(
        self,
        asked: HubRequest,
        shape: TypeAdapter[list[_T]],
        method: str,
        url: str,
        **given: Any,
    ) -> tuple[list[_T], str | None]:
        """Part of a listing, and the address of the next one; all of it is of the shape, or none."""
        reply = get_session().request(
            method, url, headers=self._headers(), timeout=TIMEOUT, **given
        )
        hf_raise_for_status(reply)
        after = reply.links.get("next", {}).get("url")
        if after:
            after = at_home(urljoin(str(reply.url), after), self._api.endpoint)
        try:
            return shape.validate_json(reply.content), after or None
        except ValidationError as error:
            raise misshapen(asked) from error

    def _headers(self) -> dict[str, str]:
        return build_hf_headers(token=self._api.token, library_name="assay")

    def _of(self, repo: str) -> str:
        return f"{self._api.endpoint}/api/datasets/{repo}"

    def _address(self, repo: str, path: str, revision: str) -> str:
        return hf_hub_url(
            repo, path, repo_type=_DATASET, revision=revision, endpoint=self._api.endpoint
        )
