"""Repositories made; tags, squashes, cards that are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from tests.hub.accounts import Account
from tests.hub.contents import GITATTRIBUTES, StoredFile
from tests.hub.messages import Reply, Request, error, json_reply
from tests.hub.reading import REVISION_NOT_FOUND
from tests.hub.repositories import Repository

if TYPE_CHECKING:
    from tests.hub.server import HubServer

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
    content = str(request.json().get("content", "")).replace("\r\n", "\n")
    warnings: list[dict[str, Any]] = []
    if not content.startswith("---\n"):
        warnings.append({"message": "empty or missing yaml metadata in repo card"})
        return json_reply({"errors": [], "warnings": warnings})
    front = content.removeprefix("---\n").partition("\n---")[0]
    try:
        found = yaml.safe_load(front)
    except yaml.YAMLError as fault:
        return json_reply({"errors": [{"message": str(fault)}], "warnings": []}, 400)
    if found is not None and not isinstance(found, dict):
        return json_reply({"errors": [{"message": "not a mapping"}], "warnings": []}, 400)
    return json_reply({"errors": [], "warnings": warnings})
