"""Contents of large files: how they are uploaded (LFS) and fetched, on the second port."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from tests.hub.contents import StoredFile
from tests.hub.messages import Reply, Request, error, json_reply, ranged
from tests.hub.repositories import Repository

if TYPE_CHECKING:
    from tests.hub.server import HubServer

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
    state.large.keep(StoredFile(request.body, lfs=True))
    repository.lfs.add(sha256)
    return Reply(200, {"ETag": f'"{hashlib.md5(request.body).hexdigest()}"'})
