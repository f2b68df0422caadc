"""What the Hub answers to each request of its client, without any network."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tests.hub.repositories import Commit, Repository, StoredFile, listing

if TYPE_CHECKING:
    from tests.hub.server import HubServer

_API = re.compile(r"/api/datasets/(?P<name>[^/]+/[^/]+)(?:/(?P<what>[^/]+)(?:/(?P<rest>.*))?)?")
_RESOLVE = re.compile(r"/datasets/(?P<name>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)")


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""

    def header(self, name: str) -> str:
        lower = {key.lower(): value for key, value in self.headers.items()}
        return lower.get(name.lower(), "")

    @property
    def token(self) -> str:
        return self.header("Authorization").removeprefix("Bearer ")

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.target).query)


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def hub(state: HubServer, request: Request) -> Reply:
    """The Hub itself: its API, and the addresses of files."""
    if request.path.startswith("/web/"):
        return _web(state, request)
    if found := _RESOLVE.fullmatch(request.path):
        return _resolve(state, request, *map(unquote, found.groups()))
    if found := _API.fullmatch(request.path):
        return _api(state, request, *(unquote(part or "") for part in found.groups()))
    return Reply(404)


def content_network(state: HubServer, request: Request) -> Reply:
    """The second port: contents by hash, for whoever was sent here."""
    wanted = request.path.rpartition("/")[2]
    for repository in state.repositories.values():
        for commit in repository.commits.values():
            for file in commit.files.values():
                if file.lfs and file.sha256 == wanted:
                    return ranged(request, file.content, file.sha256)
    return Reply(403)


def ranged(
    request: Request, content: bytes, etag: str, extra: dict[str, str] | None = None
) -> Reply:
    """A content, or the part of it that was asked for."""
    headers = {"ETag": f'"{etag}"', "Accept-Ranges": "bytes", **(extra or {})}
    asked = re.fullmatch(r"bytes=(\d+)-(\d*)", request.header("Range"))
    if request.method == "HEAD":
        return Reply(200, {**headers, "Content-Length": str(len(content))})
    if not asked:
        return Reply(200, headers, content)
    start, end = int(asked[1]), min(int(asked[2] or len(content)), len(content) - 1)
    if start >= len(content):
        return Reply(416, {**headers, "Content-Range": f"bytes */{len(content)}"})
    headers["Content-Range"] = f"bytes {start}-{end}/{len(content)}"
    return Reply(206, headers, content[start : end + 1])


def _web(state: HubServer, request: Request) -> Reply:
    content = state.web.get(unquote(request.path.removeprefix("/web/")))
    if content is None:
        return Reply(404)
    return ranged(request, content, hashlib.md5(content).hexdigest())


def _refusal(state: HubServer, request: Request, repository: Repository | None) -> Reply | None:
    known = request.token == state.token
    if repository is None or (repository.private and not known):
        return Reply(404 if known else 401, {"X-Error-Code": "RepoNotFound"})
    if repository.gated and not known:
        status = 403 if request.token else 401
        return Reply(status, {"X-Error-Code": "GatedRepo"})
    return None


def _api(state: HubServer, request: Request, name: str, what: str, rest: str) -> Reply:
    repository = state.repositories.get(name)
    refusal = _refusal(state, request, repository)
    if repository is None or (refusal and (what != "revision" or repository.private)):
        return refusal or Reply(404)  # a gated repository still tells its commit
    revision, _, path = rest.partition("/")
    commit = repository.at(unquote(revision) or "main")
    if commit is None:
        return Reply(404, {"X-Error-Code": "RevisionNotFound"})
    return _read(state, request, repository, commit, what=what, path=unquote(path))


def _read(
    state: HubServer,
    request: Request,
    repository: Repository,
    commit: Commit,
    *,
    what: str,
    path: str,
) -> Reply:
    if what in {"", "revision"}:
        return _json(_info(repository, commit))
    if what == "commits":
        return _json([_in_history(sha) for sha in reversed(repository.commits)])
    if what == "tree":
        return _tree(state, request, commit, path)
    if what == "paths-info":
        paths = parse_qs(request.body.decode()).get("paths", [])
        return _json([commit.files[p].in_tree(p) for p in paths if p in commit.files])
    return Reply(404)


def _info(repository: Repository, commit: Commit) -> dict[str, Any]:
    return {
        "id": repository.name,
        "sha": commit.sha,
        "private": repository.private,
        "siblings": [
            {"rfilename": path, "size": len(file.content), "blobId": file.oid}
            for path, file in commit.files.items()
        ],
    }


def _in_history(sha: str) -> dict[str, Any]:
    return {
        "id": sha,
        "title": "Files",
        "message": "",
        "date": "2025-01-01T00:00:00.000Z",
        "authors": [{"user": "authors"}],
    }


def _tree(state: HubServer, request: Request, commit: Commit, folder: str) -> Reply:
    recursive = request.query.get("recursive", ["false"])[0].lower() == "true"
    entries = listing(commit, folder, recursive=recursive)
    if folder and not entries:
        return Reply(404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit.sha})
    start = int(request.query.get("cursor", ["0"])[0])
    reply = _json(entries[start : start + state.page])
    if start + state.page < len(entries):
        more = f"recursive={recursive}&cursor={start + state.page}"
        reply.headers["Link"] = f'<{state.endpoint}{request.path}?{more}>; rel="next"'
    return reply


def _resolve(state: HubServer, request: Request, name: str, revision: str, path: str) -> Reply:
    repository = state.repositories.get(name)
    refusal = _refusal(state, request, repository)
    if repository is None or refusal:
        return refusal or Reply(404)
    commit = repository.at(revision)
    if commit is None:
        return Reply(404, {"X-Error-Code": "RevisionNotFound"})
    told = {"X-Repo-Commit": commit.sha}
    file = commit.files.get(path)
    if file is None:
        return Reply(404, {**told, "X-Error-Code": "EntryNotFound"})
    return (
        _redirect(state, file, told) if file.lfs else ranged(request, file.content, file.etag, told)
    )


def _redirect(state: HubServer, file: StoredFile, told: dict[str, str]) -> Reply:
    return Reply(
        302,
        {
            **told,
            "X-Linked-Etag": f'"{file.sha256}"',
            "X-Linked-Size": str(len(file.content)),
            "Location": f"{state.network}/content/{quote(file.sha256)}",
        },
    )


def _json(content: object) -> Reply:
    return Reply(200, {"Content-Type": "application/json"}, json.dumps(content).encode())
