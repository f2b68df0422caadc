"""What the Hub answers to those who read a repository."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from tests.hub.clock import told
from tests.hub.contents import StoredFile
from tests.hub.messages import Reply, Request, error, json_reply, ranged
from tests.hub.repositories import Commit, Repository

if TYPE_CHECKING:
    from tests.hub.server import HubServer

REVISION_NOT_FOUND = "Invalid rev id"


def read(
    state: HubServer, request: Request, repository: Repository, *, what: str, rest: list[str]
) -> Reply:
    """A question of the API; `rest` are the parts of the path after it, unquoted."""
    if what == "refs":
        return json_reply(_refs(repository))
    commit = repository.at(rest[0] if rest and rest[0] else "main")
    if commit is None:
        return error(404, REVISION_NOT_FOUND, "RevisionNotFound")
    if what == "tree":
        return _tree(state, request, repository, commit, "/".join(rest[1:]))
    if what == "commits":
        return _commits(state, request, repository, commit)
    tell = {"": _info, "revision": _info, "paths-info": _paths_info}.get(what)
    return json_reply(tell(request, repository, commit)) if tell else Reply(404)


def resolve(
    state: HubServer, request: Request, repository: Repository, revision: str, path: str
) -> Reply:
    """A file: itself, or where its content lies."""
    commit = repository.at(revision)
    if commit is None:
        return error(404, REVISION_NOT_FOUND, "RevisionNotFound")
    at = {"X-Repo-Commit": commit.sha}
    file = repository.files(commit.sha).get(path)
    if file is None:
        return error(404, "Entry not found", "EntryNotFound", **at)
    if file.lfs:
        return _redirect(state, file, at)
    return ranged(request, file.content, file.etag, at)


def _refs(repository: Repository) -> dict[str, Any]:
    def listed(kind: str, heads: dict[str, str]) -> list[dict[str, str]]:
        return [
            {"name": name, "ref": f"refs/{kind}/{name}", "targetCommit": sha}
            for name, sha in heads.items()
        ]

    return {
        "branches": listed("heads", repository.branches),
        "tags": listed("tags", repository.tags),
        "converts": [],
        "pullRequests": [],
    }


def _info(request: Request, repository: Repository, commit: Commit) -> object:
    facts: dict[str, Any] = {
        "sha": commit.sha,
        "private": repository.private,
        "gated": "auto" if repository.gated else False,
        "lastModified": told(commit.date),
    }
    wanted = request.query.get("expand", []) + request.query.get("expand[]", [])
    if not wanted or "siblings" in wanted:
        blobs = request.asked("blobs").lower() == "true"
        facts["siblings"] = [
            _sibling(path, file, blobs=blobs) for path, file in repository.files(commit.sha).items()
        ]
    if wanted:
        facts = {name: value for name, value in facts.items() if name in wanted}
    return {"_id": "0" * 24, "id": repository.name, **facts}


def _sibling(path: str, file: StoredFile, *, blobs: bool) -> dict[str, Any]:
    if not blobs:
        return {"rfilename": path}
    entry = file.in_tree(path)
    sibling = {"rfilename": path, "size": entry["size"], "blobId": entry["oid"]}
    if file.lfs:
        sibling["lfs"] = {
            "sha256": file.sha256,
            "size": entry["size"],
            "pointerSize": entry["lfs"]["pointerSize"],
        }
    return sibling


def _commits(state: HubServer, request: Request, repository: Repository, commit: Commit) -> Reply:
    page, size = int(request.asked("p", "0")), state.commits_page
    found = list(islice(repository.history(commit.sha), page * size, (page + 1) * size + 1))
    reply = json_reply([_in_history(each) for each in found[:size]])
    if len(found) > size:
        _next(state, request, reply, f"p={page + 1}")
    return reply


def _in_history(commit: Commit) -> dict[str, Any]:
    return {
        "id": commit.sha,
        "title": commit.title,
        "message": commit.message,
        "date": told(commit.date),
        "authors": [{"user": commit.author}],
    }


def _tree(
    state: HubServer, request: Request, repository: Repository, commit: Commit, folder: str
) -> Reply:
    recursive = request.asked("recursive").lower() == "true"
    entries = repository.listing(commit.sha, folder, recursive=recursive)
    if folder and not entries:
        at = {"X-Repo-Commit": commit.sha}
        return error(404, f"{folder} does not exist", "EntryNotFound", **at)
    expand = request.asked("expand").lower() == "true"
    size = min(state.page, 50) if expand else state.page
    start = int(request.asked("cursor", "0"))
    reply = json_reply(entries[start : start + size])
    if start + size < len(entries):
        more = f"recursive={recursive}&expand={expand}&cursor={start + size}"
        _next(state, request, reply, more)
    return reply


def _paths_info(request: Request, repository: Repository, commit: Commit) -> object:
    files = repository.files(commit.sha)
    found: list[dict[str, Any]] = []
    for path in parse_qs(request.body.decode()).get("paths", []):
        name = path.strip("/")
        if name in files:
            found.append(files[name].in_tree(name))
        elif any(each.startswith(f"{name}/") for each in files):
            found.append({"type": "directory", "path": name, "size": 0, "oid": "0" * 40})
    return found


def _next(state: HubServer, request: Request, reply: Reply, query: str) -> None:
    reply.headers["Link"] = f'<{state.endpoint}{request.path}?{query}>; rel="next"'


def _redirect(state: HubServer, file: StoredFile, at: dict[str, str]) -> Reply:
    return Reply(
        302,
        {
            **at,
            "X-Linked-Etag": f'"{file.sha256}"',
            "X-Linked-Size": str(len(file.content)),
            "Location": f"{state.network}/content/{file.sha256}?signature={state.sign(file.sha256)}",
        },
    )
