"""Histories made short: one commit in place of thousands, while nobody loses what is pinned.

A history that grows makes a repository slow. A squash gives its head a new id and drops every
other commit, the pinned ones too. So commits are stopped first by a mark beside the pins, which
runs out by itself; every pinned commit is held by a tag until the pins name the new heads.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice

from benchmarks.errors import TransientError
from leaderboard.store.hub.description import describe_squashed
from leaderboard.store.hub.faults import Asked
from leaderboard.store.hub.going_back import undone
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.joined import Version
from leaderboard.store.hub.layout import PAYLOAD, Part
from leaderboard.store.hub.pins import Pins
from leaderboard.store.hub.repository import HubRepository
from leaderboard.store.interface import ConflictError

FROZEN_FOR = timedelta(minutes=15)
_ENOUGH = timedelta(minutes=3)
"""What must be left of it for a squash to begin: the Hub may finish one after a minute."""
_TAG = "assay-pinned-"
_NONCES = 100
_ROUNDS = 20
_LOOKS = (2.0, 4.0, 8.0, 15.0, 30.0, 30.0)


def squash(parts: HubParts, *, take_over: bool = False) -> Iterator[str]:
    """Squash the histories of all repositories of a store.

    Safe to run again after it was stopped anywhere.

    Args:
        parts: of the store.
        take_over: whether to go on although another squash has not run out yet.

    Yields:
        What was done, in sentences.

    Raises:
        TransientError: `store_squashing`: another squash is at work; or the Hub fails.
    """
    version = _frozen(parts, take_over=take_over)
    new: dict[Part, str] = {}
    for part in PAYLOAD:
        repository = parts.repositories[part]
        new[part], before = _payload_squashed(parts, repository, version.pins, part)
        yield f"{repository.name}: {before} commits became 1."
    version = _thawed(parts, version.pins, new)
    for part in PAYLOAD:
        _drop_tags(parts.repositories[part], version.pins[part])
    for part in (Part.REQUESTS, Part.SUBMISSIONS):
        repository = parts.repositories[part]
        before = _squashed(repository)
        yield f"{repository.name}: {before} commits became 1."


def _frozen(parts: HubParts, *, take_over: bool) -> Version:
    """Stop all commits of this store for a while."""
    decisive = parts.repositories[Part.REQUESTS]
    for _ in range(_ROUNDS):
        version = parts.public.version(decisive.fresh_head())
        now = parts.client.clock()
        until = version.pins.frozen_until
        if until is not None and now < until and not take_over:
            raise TransientError(
                "store_squashing",
                f"Another squash of this store is at work, until {until:%H:%M:%S} UTC at the "
                "latest.",
                "Wait for it; if it was stopped, add --force.",
            )
        pins = version.pins.model_copy(update={"frozen_until": now + FROZEN_FOR})
        try:
            sha = decisive.commit_with({}, pins.note, version.sha, "Commits stop for a squash")
        except ConflictError:
            continue
        return Version(sha, pins)
    raise ConflictError("", "a later one")


def _thawed(parts: HubParts, frozen: Pins, new: dict[Part, str]) -> Version:
    """Pin the new commits and let commits go on, in one commit."""
    decisive = parts.repositories[Part.REQUESTS]
    for _ in range(_ROUNDS):
        version = parts.public.version(decisive.fresh_head())
        if dict(version.pins.pins) != dict(frozen.pins):
            raise TransientError(
                "squash_overtaken", "The squash took too long; others committed.", "Run it again."
            )
        pins = version.pins.moved(new).model_copy(update={"frozen_until": None})
        try:
            sha = decisive.commit_with({}, pins.note, version.sha, "Histories squashed")
        except ConflictError:
            continue
        return Version(sha, pins)
    raise ConflictError("", "a later one")


def _payload_squashed(
    parts: HubParts, repository: HubRepository, pins: Pins, part: Part
) -> tuple[str, int]:
    """Squash a payload repository; returns a commit with the files of its pin, and how many were."""
    pin = pins[part]
    repository.commit_onto(pin, {}, "Back to the pinned files")
    _tag(repository, pin)
    if pins.frozen_until is None or parts.client.clock() > pins.frozen_until - _ENOUGH:
        raise TransientError("squash_overtaken", "The squash took too long.", "Run it again.")
    before = _squashed(repository)
    head = repository.fresh_head()
    # A commit that was under way may have come in just before; nobody ever saw it.
    if undone(repository.client, repository.name, pin, head):
        head = repository.commit_onto(pin, {}, "Back to the pinned files")
    _tag(repository, head)
    return head, before


def _squashed(repository: HubRepository) -> int:
    """Squash one repository; returns how many commits there were."""
    client, name = repository.client, repository.name
    old = list(client.history(name))
    if len(old) == 1:
        return 1
    nonces = [nonce for commit in islice(old, _NONCES) for nonce in sorted(commit.nonces)]
    message = describe_squashed(nonces[:_NONCES])
    asked = Asked("squash the history", name, writing=True)
    client.spending.one()
    try:
        client.call(
            asked,
            lambda api: api.super_squash_history(name, commit_message=message, repo_type="dataset"),
            again=False,
        )
    except TransientError:
        # It may still happen; a second one after the pins were renewed would drop them.
        _wait_for_squash(repository, len(old))
    repository.forget_head()
    return len(old)


def _wait_for_squash(repository: HubRepository, before: int) -> None:
    for pause in _LOOKS:
        if sum(1 for _ in repository.client.history(repository.name)) < before:
            return
        repository.client.rest(pause, ConflictError("", ""))
    raise TransientError(
        "store_unreachable",
        f"The Hub did not squash {repository.name}.",
        "Run it again with --force; nothing was lost.",
    )


def _tag(repository: HubRepository, sha: str) -> None:
    asked = Asked("hold a commit by a tag", repository.name, writing=True)
    repository.client.call(
        asked,
        lambda api: api.create_tag(
            repository.name, tag=_TAG + sha, revision=sha, repo_type="dataset", exist_ok=True
        ),
    )


def _drop_tags(repository: HubRepository, kept: str) -> None:
    """Let go of what is pinned no more; what cannot be dropped now is dropped by the next squash."""
    name, client = repository.name, repository.client
    asked = Asked("drop a tag", name, writing=True)
    refs = client.call(asked, lambda api: api.list_repo_refs(name, repo_type="dataset"))
    for tag in (each.name for each in refs.tags):
        if tag.startswith(_TAG) and tag != _TAG + kept:
            _drop_tag(repository, asked, tag)


def _drop_tag(repository: HubRepository, asked: Asked, tag: str) -> None:
    repository.client.call(
        asked,
        lambda api: api.delete_tag(repository.name, tag=tag, repo_type="dataset"),
    )
