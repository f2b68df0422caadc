"""What the test Hub answers: to those who read a repository, change one, or run jobs."""

from __future__ import annotations

import base64
import fnmatch
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote

import yaml

from tests.kit.hub.accounts import Account, proposal_refusal, refusal, sender, write_refusal
from tests.kit.hub.clock import told
from tests.kit.hub.jobs import Job
from tests.kit.hub.messages import Reply, Request, error, json_reply, ranged
from tests.kit.hub.repositories import (
    GITATTRIBUTES,
    LARGE,
    Commit,
    Files,
    Repository,
    StoredFile,
    belongs_to_lfs,
)

if TYPE_CHECKING:
    from tests.kit.hub.server import HubServer


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
    ignored = files[".gitignore"].content.decode().split() if ".gitignore" in files else []
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
    """All changes of a request in one commit, or none; with `create_pr` on a branch of its own."""
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
        branch, number = revision, 0
        if request.asked("create_pr") == "1":
            number = 1 + sum(name.startswith("refs/pr/") for name in repository.branches)
            branch = f"refs/pr/{number}"
            repository.branches[branch] = head
        made = repository.change(
            changes,
            branch=branch,
            title=header.get("summary", ""),
            message=header.get("description", ""),
            author=account.name,
            date=now,
        )
        state.tally.note_commit(repository.name, now)
    address = f"{state.endpoint}/{repository.address}/commit/{made.sha}"
    told = {"success": True, "commitOid": made.sha, "commitUrl": address, "hookOutput": ""}
    if number:
        told["pullRequestUrl"] = f"{state.endpoint}/{repository.address}/discussions/{number}"
    return json_reply(told)


def _mode(each: dict[str, Any], files: Files, ignored: list[str]) -> dict[str, Any]:
    path = each["path"]
    there = files.get(path)
    return {
        "path": path,
        "uploadMode": "lfs" if belongs_to_lfs(path, each["size"]) else "regular",
        "shouldIgnore": any(fnmatch.fnmatchcase(path, pattern) for pattern in ignored),
        "oid": there.etag if there else None,
    }


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


_MEDIA = {"Content-Type": "application/vnd.git-lfs+json"}


def batch(state: HubServer, request: Request, repository: Repository) -> Reply:
    """Where to put each content; nothing to do for those that are there."""
    objects = [_object(state, repository, each) for each in request.json()["objects"]]
    return json_reply({"transfer": "basic", "objects": objects}, headers=_MEDIA)


def verify(request: Request, repository: Repository) -> Reply:
    """Whether a content arrived whole."""
    asked = request.json()
    there = repository.large.get(asked["oid"])
    if there is None or asked["oid"] not in repository.lfs:
        return error(404, "Object does not exist")
    if len(there.content) != asked["size"]:
        return error(422, "Size mismatch")
    return json_reply({}, headers=_MEDIA)


def content_network(state: HubServer, request: Request) -> Reply:
    """The second port: contents by hash, for whoever was sent here with a signature."""
    if request.header("Authorization"):
        return error(400, "Only one auth mechanism allowed")
    sha256 = request.path.rpartition("/")[2]
    if request.path.startswith("/upload/") and request.method == "PUT":
        return _put(state, request, sha256)
    if request.asked("signature") != state.sign(sha256):
        return error(403, "SignatureDoesNotMatch")
    there = state.large.get(sha256)
    return ranged(request, there.content, sha256) if there else Reply(403)


def _object(state: HubServer, repository: Repository, each: dict[str, Any]) -> dict[str, Any]:
    oid, size = each["oid"], each["size"]
    told: dict[str, Any] = {"oid": oid, "size": size}
    if oid in repository.lfs:
        return told
    place = f"{repository.kind}/{repository.name}"
    signature = state.sign(f"{place} {oid}")
    told["authenticated"] = True
    told["actions"] = {
        "upload": {"href": f"{state.network}/upload/{place}/{oid}?signature={signature}"},
        "verify": {"href": f"{state.endpoint}/{repository.address}.git/info/lfs/objects/verify"},
    }
    return told


def _put(state: HubServer, request: Request, sha256: str) -> Reply:
    place = request.path.removeprefix("/upload/").rpartition("/")[0]
    kind, _, name = place.partition("/")
    repository = state.find(kind, name)
    if repository is None or request.asked("signature") != state.sign(f"{place} {sha256}"):
        return error(403, "SignatureDoesNotMatch")
    if hashlib.sha256(request.body).hexdigest() != sha256:
        return error(400, "XAmzContentSHA256Mismatch")
    state.large.setdefault(sha256, StoredFile(request.body, lfs=True))
    repository.lfs.add(sha256)
    return Reply(200, {"ETag": f'"{hashlib.md5(request.body).hexdigest()}"'})


NOT_LOGGED_IN = "Invalid username or password."


def create(state: HubServer, request: Request, account: Account | None) -> Reply:
    """A new repository with the Hub's own first commit."""
    if account is None:
        return error(401, NOT_LOGGED_IN)
    asked = request.json()
    name = f"{asked.get('organization') or account.name}/{asked['name']}"
    made = Repository(name, kind=f"{asked.get('type') or 'model'}s", large=state.large)
    key = state.key(made.kind, name)
    told = {"url": f"{state.endpoint}/{made.address}", "name": name}
    if not account.may_create(name):
        return error(403, f"You don't have the rights to create {name}.")
    with state.lock:
        if key in state.repositories:
            return json_reply({"error": "You already created this repo", **told}, 409)
        made.private = asked.get("visibility") == "private" or bool(asked.get("private"))
        made.change(
            {".gitattributes": StoredFile(GITATTRIBUTES, lfs=False)},
            title="initial commit",
            author=account.name,
            date=state.clock.now(),
        )
        state.repositories[key] = made
    return json_reply(told)


def tag(request: Request, repository: Repository, name: str) -> Reply:
    """A tag made at a revision (`name`), or the tag of that name deleted."""
    with repository.lock:
        if request.method == "DELETE":
            if repository.tags.pop(name, None) is None:
                return error(404, REVISION_NOT_FOUND, "RevisionNotFound")
            return json_reply({})
        at, tagged = repository.at(name), request.json()["tag"]
        if at is None:
            return error(404, REVISION_NOT_FOUND, "RevisionNotFound")
        if tagged in repository.tags:
            return error(409, f"Reference refs/tags/{tagged} already exists")
        repository.tags[tagged] = at.sha
    return json_reply({})


def squash(
    state: HubServer, request: Request, repository: Repository, *, name: str, account: Account
) -> Reply:
    """One commit in place of a branch's history."""
    with repository.lock:
        if name not in repository.branches:
            return error(404, REVISION_NOT_FOUND, "RevisionNotFound")
        now = state.clock.now()
        refused = state.commit_limit.take(now)
        if refused:
            return refused
        title = str(request.json().get("message", ""))
        repository.squash(name, title=title, author=account.name, date=now)
        state.tally.note_commit(repository.name, now)
    return json_reply({})


def validate_yaml(request: Request) -> Reply:
    """Whether the front matter of a card can be read."""
    content = str(request.json().get("content", ""))
    front = content.partition("---\n")[2].partition("\n---")[0] if content[:3] == "---" else ""
    try:
        metadata = yaml.safe_load(front)
    except yaml.YAMLError as fault:
        return json_reply({"errors": [{"message": str(fault)}], "warnings": []}, 400)
    if not isinstance(metadata, dict | None):
        return json_reply({"errors": [{"message": "not a mapping"}], "warnings": []}, 400)
    return json_reply({"errors": [], "warnings": []})


_JOBS = re.compile(r"/api/jobs/(?P<namespace>[^/]+)(?:/(?P<job>[^/]+)(?:/(?P<what>\w+))?)?")


def answer(state: HubServer, request: Request, account: Account | None) -> Reply:
    """A request about the jobs of a namespace."""
    found = _JOBS.fullmatch(request.path)
    if account is None:
        return error(401, "Invalid username or password.")
    if found is None:
        return Reply(404)
    namespace = found["namespace"]
    if not account.may_create(f"{namespace}/job"):
        return error(403, f"You don't have the rights to run jobs in {namespace}.")
    if found["job"] is None:
        return _of_namespace(state, request, namespace)
    job = state.jobs.all.get(found["job"])
    if job is None or job.namespace != namespace:
        return error(404, "Job not found")
    return _about(request, job, found["what"] or "")


def _of_namespace(state: HubServer, request: Request, namespace: str) -> Reply:
    if request.method == "POST":
        return json_reply(state.jobs.start(namespace, request.json()).told())
    return _listed(state, request, namespace)


def _listed(state: HubServer, request: Request, namespace: str) -> Reply:
    stages = request.query.get("stage", [])
    wanted = dict(each.split("=", 1) for each in request.query.get("label", []))
    found = [
        job
        for job in state.jobs.of(namespace)
        if (not stages or job.stage in stages) and wanted.items() <= job.labels.items()
    ]
    start = int(request.asked("cursor", "0"))
    reply = json_reply([job.told() for job in found[start : start + state.page]])
    if start + state.page < len(found):
        kept = [f"stage={stage}" for stage in stages]
        kept += [f"label={name}%3D{value}" for name, value in wanted.items()]
        query = "&".join([*kept, f"cursor={start + state.page}"])
        reply.headers["Link"] = f'<{state.endpoint}{request.path}?{query}>; rel="next"'
    return reply


def _about(request: Request, job: Job, what: str) -> Reply:
    if what == "logs":
        return _logs(request, job)
    if what == "cancel" and request.method == "POST":
        job.end("CANCELED")
    elif what:
        return Reply(404)
    return json_reply(job.told())


def _logs(request: Request, job: Job) -> Reply:
    lines = list(job.lines)
    tail = int(request.asked("tail", "0"))
    events = [
        "data: " + json.dumps({"timestamp": told(when), "data": line})
        for when, line in (lines[-tail:] if tail else lines)
    ]
    body = "".join(f"{event}\n\n" for event in events).encode()
    return Reply(200, {"Content-Type": "text/event-stream"}, body)


_NAME = r"(?P<name>[^/]+/[^/]+)"
_API = re.compile(
    rf"/api/(?P<kind>models|datasets|spaces)/{_NAME}(?:/(?P<what>[^/]+)(?:/(?P<rest>.*))?)?"
)
_RESOLVE = re.compile(
    rf"/(?:(?P<kind>datasets|spaces)/)?{_NAME}/resolve/(?P<revision>[^/]+)/(?P<path>.+)"
)
_LFS = re.compile(
    rf"/(?:(?P<kind>datasets|spaces)/)?{_NAME}\.git/info/lfs/objects/(?P<what>batch|verify)"
)
_WRITES = {"preupload", "commit", "tag", "super-squash"}


def hub(state: HubServer, request: Request) -> Reply:
    """The Hub itself: its API, and the addresses of files."""
    if request.path.startswith("/web/"):
        return _web(state, request)
    account = sender(state.accounts, request)
    if isinstance(account, Reply):
        return account
    for pattern, about in ((_LFS, _lfs), (_RESOLVE, _resolve), (_API, _api)):
        if found := pattern.fullmatch(request.path):
            return about(state, request, found, account)
    state.tally.note_request(request.method, "", request.path.removeprefix("/api/"))
    if request.path.startswith("/api/jobs"):
        return answer(state, request, account)
    return _general(state, request, account)


def _general(state: HubServer, request: Request, account: Account | None) -> Reply:
    """What concerns no repository that is there already."""
    if request.path == "/api/whoami-v2":
        return json_reply(account.told()) if account else error(401, NOT_LOGGED_IN)
    if request.path == "/api/repos/create":
        return create(state, request, account)
    if request.path == "/api/validate-yaml":
        return validate_yaml(request)
    return Reply(404)


def _web(state: HubServer, request: Request) -> Reply:
    content = state.web.get(unquote(request.path.removeprefix("/web/")))
    if content is None:
        return Reply(404)
    return ranged(request, content, hashlib.md5(content).hexdigest())


def _api(
    state: HubServer, request: Request, found: re.Match[str], account: Account | None
) -> Reply:
    name, what = unquote(found["name"]), unquote(found["what"] or "")
    rest = [unquote(part) for part in (found["rest"] or "").split("/")]
    state.tally.note_request(request.method, name, what or "info")
    repository = state.find(found["kind"], name)
    if what in {"preupload", "commit"} and request.asked("create_pr") == "1":
        refused = proposal_refusal(repository, account)
    elif what in _WRITES:
        refused = write_refusal(repository, account)
    else:
        refused = refusal(repository, account, gate=what not in {"revision", "refs"})
    if refused or repository is None:
        return refused or Reply(404)
    if what in _WRITES and account is not None:
        return _write(state, request, repository, what=what, where=rest[0], account=account)
    return read(state, request, repository, what=what, rest=rest)


def _write(
    state: HubServer,
    request: Request,
    repository: Repository,
    *,
    what: str,
    where: str,
    account: Account,
) -> Reply:
    if what == "preupload":
        return preupload(request, repository, where)
    if what == "commit":
        return commit(state, request, repository, revision=where, account=account)
    if what == "tag":
        return tag(request, repository, where)
    return squash(state, request, repository, name=where, account=account)


def _lfs(
    state: HubServer, request: Request, found: re.Match[str], account: Account | None
) -> Reply:
    name = unquote(found["name"])
    state.tally.note_request(request.method, name, f"lfs-{found['what']}")
    repository = state.find(found["kind"] or "models", name)
    refused = write_refusal(repository, account)
    if refused or repository is None:
        return refused or Reply(404)
    if found["what"] == "batch":
        return batch(state, request, repository)
    return verify(request, repository)


def _resolve(
    state: HubServer, request: Request, found: re.Match[str], account: Account | None
) -> Reply:
    name = unquote(found["name"])
    state.tally.note_request(request.method, name, "resolve")
    repository = state.find(found["kind"] or "models", name)
    refused = refusal(repository, account)
    if refused or repository is None:
        return refused or Reply(404)
    path = unquote(found["path"])
    return resolve(state, request, repository, unquote(found["revision"]), path)
