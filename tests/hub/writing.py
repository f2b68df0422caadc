"""What the Hub answers to those who change a repository: preupload and commit."""

from __future__ import annotations

import base64
import fnmatch
import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tests.hub.accounts import Account
from tests.hub.contents import LARGE, StoredFile, belongs_to_lfs
from tests.hub.messages import Reply, Request, error, json_reply
from tests.hub.reading import REVISION_NOT_FOUND
from tests.hub.repositories import Files, Repository

if TYPE_CHECKING:
    from tests.hub.server import HubServer

CONFLICT = "A commit has happened since. Please refresh and try again."
MISSING = "A file with this name doesn't exist"
Changes = dict[str, StoredFile | None]


class RefusedError(Exception):
    """A commit that cannot be made; carries the reply."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


def preupload(request: Request, repository: Repository, revision: str) -> Reply:
    """How each file is to be uploaded, and what is there of that name."""
    commit = repository.at(revision)
    if commit is None:
        return error(404, REVISION_NOT_FOUND, "RevisionNotFound")
    files = repository.files(commit.sha)
    asked = request.json()
    ignored = _ignore_lines(asked, files)
    told = [_mode(each, files, ignored) for each in asked["files"]]
    return json_reply({"files": told, "commitOid": commit.sha})


def commit(
    state: HubServer,
    request: Request,
    repository: Repository,
    *,
    revision: str,
    account: Account,
) -> Reply:
    """All changes of a request in one commit, or none."""
    if revision not in repository.branches:
        return error(404, REVISION_NOT_FOUND, "RevisionNotFound")
    lines = [json.loads(line) for line in request.body.splitlines() if line.strip()]
    header = next(line["value"] for line in lines if line["key"] == "header")
    with repository.lock:
        head = repository.branches[revision]
        if header.get("parentCommit") not in {None, head}:
            return error(412, CONFLICT)
        now = state.clock.now()
        refused = state.commit_limit.take(now)
        if refused:
            return refused
        try:
            changes = _changes(lines, repository, repository.files(head))
        except RefusedError as refusal:
            state.commit_limit.give_back(now)
            return refusal.reply
        made = repository.change(
            changes,
            branch=revision,
            title=header.get("summary", ""),
            message=header.get("description", ""),
            author=account.name,
            date=now,
        )
        state.tally.note_commit(repository.name, now)
    address = f"{state.endpoint}/{repository.address}/commit/{made.sha}"
    return json_reply(
        {"success": True, "commitOid": made.sha, "commitUrl": address, "hookOutput": ""}
    )


def _ignore_lines(asked: dict[str, Any], files: Files) -> list[str]:
    told = asked.get("gitIgnore")
    if told is None:
        told = files[".gitignore"].content.decode() if ".gitignore" in files else ""
    lines = [line.strip() for line in told.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def _mode(each: dict[str, Any], files: Files, ignored: list[str]) -> dict[str, Any]:
    path = each["path"]
    there = files.get(path)
    return {
        "path": path,
        "uploadMode": "lfs" if belongs_to_lfs(path, each["size"]) else "regular",
        "shouldIgnore": any(_ignores(line, path) for line in ignored),
        "oid": there.etag if there else None,
    }


def _ignores(line: str, path: str) -> bool:
    """The plain part of gitignore: names and patterns, of a path or of any of its folders."""
    pattern = line.strip("/")
    parts = path.split("/")
    heads = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
    return any(fnmatch.fnmatchcase(each, pattern) for each in (*heads, *parts))


def _changes(
    lines: list[dict[str, Any]], repository: Repository, files: Files
) -> Mapping[str, StoredFile | None]:
    changes: Changes = {}
    for line in lines:
        found = _KEYS.get(line["key"])
        if found is not None:
            changes.update(found(line["value"], repository, files))
        elif line["key"] != "header":
            raise RefusedError(error(400, f"Unknown operation {line['key']}"))
    _refuse_clashes(changes, files)
    return changes


def _file(value: dict[str, Any], repository: Repository, files: Files) -> Changes:
    if value.get("encoding") == "base64":
        content = base64.b64decode(value["content"])
    else:
        content = value["content"].encode()
    if len(content) > LARGE:
        raise RefusedError(error(400, "Your file is over 10 MiB: it must be uploaded by LFS."))
    return {_inside(value["path"]): StoredFile(content, lfs=False)}


def _lfs_file(value: dict[str, Any], repository: Repository, files: Files) -> Changes:
    there = repository.large.get(value["oid"])
    if there is None or value["oid"] not in repository.lfs:
        told = f"LFS pointer pointed to a file that does not exist: {value['oid']}"
        raise RefusedError(error(400, told))
    return {_inside(value["path"]): there}


def _deleted_file(value: dict[str, Any], repository: Repository, files: Files) -> Changes:
    if value["path"] not in files:
        raise RefusedError(error(404, MISSING, "EntryNotFound"))
    return {value["path"]: None}


_KEYS: dict[str, Callable[[dict[str, Any], Repository, Files], Changes]] = {
    "file": _file,
    "lfsFile": _lfs_file,
    "deletedFile": _deleted_file,
}


def _inside(path: str) -> str:
    parts = path.split("/")
    if not path or any(part in {"", ".", "..", ".git"} for part in parts):
        raise RefusedError(error(400, f"Invalid path {path!r}"))
    return path


def _refuse_clashes(changes: Mapping[str, StoredFile | None], files: Files) -> None:
    """Git has no place for a file and a folder of the same name."""
    new = [path for path, file in changes.items() if file is not None and path not in files]
    if not new:
        return
    after = {path for path in files if changes.get(path, files[path]) is not None} | set(new)
    folders = tuple(f"{path}/" for path in new)
    below = any(path.startswith(folders) for path in after)
    if below or any(parent in after for path in new for parent in _parents(path)):
        raise RefusedError(error(400, "A file or a folder of this name already exists"))


def _parents(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts)))
