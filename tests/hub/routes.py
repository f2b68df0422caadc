"""Which part of the test Hub answers which request, without any network."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from tests.hub import housekeeping, job_routes, reading, uploads, writing
from tests.hub.accounts import Account, refusal, sender, write_refusal
from tests.hub.messages import Reply, Request, error, json_reply, ranged
from tests.hub.repositories import Repository
from tests.hub.uploads import content_network

if TYPE_CHECKING:
    from tests.hub.server import HubServer

__all__ = ["Reply", "Request", "content_network", "hub"]

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
    refused = state.request_limit.take(state.clock.now())
    if refused:
        return refused
    reply = _routed(state, request, account)
    reply.headers.update(state.request_limit.told(state.clock.now()))
    return reply


def _routed(state: HubServer, request: Request, account: Account | None) -> Reply:
    if found := _LFS.fullmatch(request.path):
        return _lfs(state, request, found, account)
    if found := _RESOLVE.fullmatch(request.path):
        return _resolve(state, request, found, account)
    if found := _API.fullmatch(request.path):
        return _api(state, request, found, account)
    state.tally.note_request(request.method, "", request.path.removeprefix("/api/"))
    if request.path.startswith("/api/jobs"):
        return job_routes.answer(state, request, account)
    return _general(state, request, account)


def _general(state: HubServer, request: Request, account: Account | None) -> Reply:
    """What concerns no repository that is there already."""
    if request.path == "/api/whoami-v2":
        return json_reply(account.told()) if account else error(401, housekeeping.NOT_LOGGED_IN)
    if request.path == "/api/repos/create":
        return housekeeping.create(state, request, account)
    if request.path == "/api/validate-yaml":
        return housekeeping.validate_yaml(request)
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
    if what in _WRITES:
        refused = write_refusal(repository, account)
    else:
        refused = refusal(repository, account, gate=what not in {"revision", "refs"})
    if refused or repository is None:
        return refused or Reply(404)
    if what in _WRITES and account is not None:
        return _write(state, request, repository, what=what, where=rest[0], account=account)
    return reading.read(state, request, repository, what=what, rest=rest)


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
        return writing.preupload(request, repository, where)
    if what == "commit":
        return writing.commit(state, request, repository, revision=where, account=account)
    if what == "tag":
        return housekeeping.tag(request, repository, where)
    return housekeeping.squash(state, request, repository, name=where, account=account)


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
        return uploads.batch(state, request, repository)
    return uploads.verify(request, repository)


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
    return reading.resolve(state, request, repository, unquote(found["revision"]), path)
