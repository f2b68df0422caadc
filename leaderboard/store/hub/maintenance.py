"""Maintenance of the repositories of a store: creation, status, squashing of histories."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import TypeVar

import pyarrow as pa
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError

from benchmarks.errors import PlatformError, TransientError
from benchmarks.schema import Card
from leaderboard.store.hub.cards import card_of
from leaderboard.store.hub.client import LAST
from leaderboard.store.hub.configurations import WHOLE, columns_files, tables_in, tables_of
from leaderboard.store.hub.faults import HubRequest, VersionGoneError
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.layout import CARD, Part
from leaderboard.store.hub.multi_repository import PINS, Pins, Version
from leaderboard.store.hub.repository import Control, HubRepository, last_note, undone
from leaderboard.store.hub.uploads import describe_squashed
from leaderboard.store.interface import ConflictError, NotFoundError

_DATASET = "dataset"
_ROUNDS = 20  # Races that a commit may lose before it gives up
_T = TypeVar("_T")


def create(parts: HubParts, *, private: bool = False) -> Iterator[str]:
    """Make what is missing of a store; what is there stays as it is."""
    for part in Part:
        hidden = private or part is Part.SUBMISSIONS
        yield _repository(parts, part, hidden=hidden)
    results = parts.repositories[Part.RESULTS]
    for repository in (results, parts.private):
        in_rounds(partial(_begin, repository, last_note))
    decisive = parts.repositories[Part.REQUESTS]
    there = decisive.entries_at([PINS, LAST], decisive.fresh_head())
    if PINS not in there:
        _check_never_begun(decisive, there)
        pins = Pins(results=results.fresh_head())
        in_rounds(partial(_begin, decisive, lambda nonce: {**pins.note(nonce), **last_note(nonce)}))
        yield f"{decisive.name}: the first version is written."
        return
    parts.public.check_migrated()
    if in_rounds(partial(_pinned_anew, parts)):
        yield (
            f"{results.name}: was made anew, and what it held before is gone; run "
            "the submissions again whose results were in it (python -m evaluator rerun)."
        )


Schemas = Mapping[str, pa.Schema]  # Columns of the tables of a store, by their names


def write_cards(parts: HubParts, cards: Mapping[str, Card], schemas: Schemas) -> Iterator[str]:
    """Write the card of each repository and the columns of its tables, where they are others."""
    for part in Part:
        done = in_rounds(partial(_card_written, parts, part, cards, schemas))
        name = parts.repositories[part].name
        yield f"{name}: the card {'is written' if done else 'was there already'}."


def stale_cards(parts: HubParts, cards: Mapping[str, Card], schemas: Schemas) -> list[str]:
    """The repositories whose card or columns are not what benchmarks and tables make them."""
    version = parts.public.version(parts.public.fresh_head())
    return [
        parts.repositories[part].name
        for part in Part
        if _new_card(parts, part, cards, schemas, version)[1]
    ]


def in_rounds(step: Callable[[], _T]) -> _T:
    """What a step that reads and commits comes to, again where somebody else committed first."""
    for _ in range(_ROUNDS - 1):
        with suppress(ConflictError):
            return step()
    return step()


def _card_written(parts: HubParts, part: Part, cards: Mapping[str, Card], schemas: Schemas) -> bool:
    """Whether the card is written now, and was not there already."""
    repository = parts.repositories[part]
    version = parts.public.version(parts.public.fresh_head())
    head, card = _new_card(parts, part, cards, schemas, version)
    note = version.pins.note if part is Part.REQUESTS else last_note
    if card:
        repository.commit_with({}, lambda nonce: {**note(nonce), **card}, head, "The card")
    return bool(card)


def _new_card(
    parts: HubParts,
    part: Part,
    cards: Mapping[str, Card],
    schemas: Schemas,
    version: Version,
) -> tuple[str, dict[str, bytes]]:
    """A head, and what of the card and the files of columns is not there as it is to be."""
    repository = parts.repositories[part]
    head = version.sha if part is Part.REQUESTS else repository.fresh_head()
    pinned = version.pins.results if part is Part.RESULTS else head
    there = None
    with suppress(NotFoundError):
        there = repository.read_at(CARD, head)
    # A table that was named stays so when its last rows go.
    named = (tables_in(there) if there else None) or {}
    tables = {**named, **WHOLE[part], **_tables(repository, part, pinned)}
    card = card_of(part, parts.name.text, cards, tables)
    columns = columns_files(part, schemas)
    known = repository.entries_at(columns, head) if columns else {}
    new = {path: content for path, content in columns.items() if path not in known}
    return head, new if there == card else {CARD: card, **new}


def _tables(repository: HubRepository, part: Part, sha: str) -> dict[str, str]:
    """The tables of single benchmarks that have rows."""
    paths = repository.list_at("", sha) if part is Part.RESULTS else ()
    return {name: files for path in paths for name, files in tables_of(path).items()}


def _repository(parts: HubParts, part: Part, *, hidden: bool) -> str:
    name = parts.name.of(part)
    client = parts.client
    made = client.call(
        HubRequest("create the repository", name, writing=True),
        lambda api: _made(api, name, hidden=hidden),
    )
    if made:
        return f"{name}: created, {'private' if hidden else 'open to everyone'}."
    is_private = client.is_private(name)
    if part is Part.SUBMISSIONS and not is_private:
        raise PlatformError(
            "submissions_public",
            f"{name} is open to everyone, and it is to hold what submitters upload.",
            f"Make it private in its settings (https://huggingface.co/datasets/{name}/settings).",
        )
    return f"{name}: was there already, {'private' if is_private else 'open to everyone'}."


def _made(api: HfApi, name: str, *, hidden: bool) -> bool:
    """Whether it was made now, and not there before."""
    try:
        api.create_repo(name, repo_type=_DATASET, visibility="private" if hidden else "public")
    except HfHubHTTPError as error:
        if error.response.status_code == 409:
            return False
        raise
    return True


def _check_never_begun(decisive: HubRepository, there: Container[str]) -> None:
    """Refuse to pin what the branches hold now, where other pins were: it may be half a commit."""
    if LAST in there:
        raise PlatformError(
            "pins_gone",
            f"{decisive.name} is a store, but somebody removed its {PINS}.",
            "Put back the latest version of that file from the repository's history.",
        )


def _pinned_anew(parts: HubParts) -> bool:
    """Pin results that were deleted and made anew, if so: nothing else brings the store back."""
    decisive, results = parts.repositories[Part.REQUESTS], parts.repositories[Part.RESULTS]
    version = parts.public.version(decisive.fresh_head())
    if _knows(results, version.pins.results):
        return False
    pins = version.pins.model_copy(update={"results": results.fresh_head()})
    decisive.commit_with({}, pins.note, version.sha, "What was made anew is pinned")
    return True


def _knows(repository: HubRepository, sha: str) -> bool:
    try:
        repository.entries_at([LAST], sha)
    except VersionGoneError:
        return False
    return True


def _begin(repository: HubRepository, control: Control) -> None:
    """The control file of a repository, where it has none."""
    head = repository.fresh_head()
    if not repository.entries_at(control(""), head):
        repository.commit_with({}, control, head, "The store begins")


_COUNTED = 5000


@dataclass(frozen=True, slots=True)
class RepositoryStatus:
    """One repository."""

    name: str  # of it
    private: bool  # whether only members see it
    commits: int  # how many its history has
    head: str  # the commit it is at
    pinned: str  # the commit it is read at


@dataclass(frozen=True, slots=True)
class ShownStore:
    """A store on the Hub."""

    version: str  # of it
    frozen_until: datetime | None  # until when a squash stops all commits; None where none does
    repositories: tuple[RepositoryStatus, ...]  # all of them


def store_status(parts: HubParts) -> ShownStore:
    """Look at all repositories of a store."""
    version = parts.public.version(parts.public.fresh_head())
    found = []
    for part in Part:
        repository = parts.repositories[part]
        name, head = repository.name, repository.fresh_head()
        commits = sum(1 for _ in islice(parts.client.history(name), _COUNTED))
        pinned = version.pins.results if part is Part.RESULTS else head
        found.append(RepositoryStatus(name, parts.client.is_private(name), commits, head, pinned))
    now = parts.client.clock()
    until = version.pins.frozen_until
    frozen = until if until is not None and now < until else None
    return ShownStore(version.sha, frozen, tuple(found))


FROZEN_FOR = timedelta(minutes=15)
_ENOUGH = timedelta(minutes=3)
"""What must be left of it for a squash to begin: the Hub may finish one after a minute."""
_TAG = "assay-pinned-"
_NONCES = 100
_LOOKS = (2.0, 4.0, 8.0, 15.0, 30.0, 30.0)


def squash(parts: HubParts, *, take_over: bool = False) -> Iterator[str]:
    """Squash the histories of all repositories of a store.

    Safe to run again after it was stopped anywhere.
    """
    version = in_rounds(partial(_frozen, parts, take_over=take_over))
    results = parts.repositories[Part.RESULTS]
    new, before = _results_squashed(parts, results, version.pins)
    yield f"{results.name}: {before} commits became 1."
    in_rounds(partial(_thawed, parts, version.pins, new))
    _drop_tags(results, new)
    for repository in (parts.repositories[Part.REQUESTS], parts.private):
        before = _squashed(repository)
        yield f"{repository.name}: {before} commits became 1."


def _frozen(parts: HubParts, *, take_over: bool) -> Version:
    """Stop all commits of this store for a while."""
    parts.public.check_migrated()
    decisive = parts.repositories[Part.REQUESTS]
    version = parts.public.version(decisive.fresh_head())
    now = parts.client.clock()
    until = version.pins.frozen_until
    if until is not None and now < until and not take_over:
        raise TransientError(
            "store_squashing",
            f"Another squash of this store is at work, until {until:%H:%M:%S} UTC at the latest.",
            "Wait for it; if it was stopped, add --force.",
        )
    pins = version.pins.model_copy(update={"frozen_until": now + FROZEN_FOR})
    sha = decisive.commit_with({}, pins.note, version.sha, "Commits stop for a squash")
    return Version(sha, pins)


def _thawed(parts: HubParts, frozen: Pins, new: str) -> None:
    """Pin the new commit and let commits go on, in one commit."""
    decisive = parts.repositories[Part.REQUESTS]
    version = parts.public.version(decisive.fresh_head())
    if version.pins.results != frozen.results:
        raise TransientError(
            "squash_overtaken", "The squash took too long; others committed.", "Run it again."
        )
    pins = version.pins.model_copy(update={"results": new, "frozen_until": None})
    decisive.commit_with({}, pins.note, version.sha, "Histories squashed")


def _results_squashed(parts: HubParts, results: HubRepository, pins: Pins) -> tuple[str, int]:
    """Squash the results; returns a commit with the files of their pin, and how many there were."""
    results.commit_onto(pins.results, {}, "Back to the pinned files")
    _tag(results, pins.results)
    if pins.frozen_until is None or parts.client.clock() > pins.frozen_until - _ENOUGH:
        raise TransientError("squash_overtaken", "The squash took too long.", "Run it again.")
    before = _squashed(results)
    head = results.fresh_head()
    # A commit that was under way may have come in just before; nobody ever saw it.
    if undone(results.client, results.name, pins.results, head):
        head = results.commit_onto(pins.results, {}, "Back to the pinned files")
    _tag(results, head)
    return head, before


def _squashed(repository: HubRepository) -> int:
    """Squash one repository; returns how many commits there were."""
    client, name = repository.client, repository.name
    old = list(client.history(name))
    if len(old) == 1:
        return 1
    nonces = [nonce for commit in islice(old, _NONCES) for nonce in sorted(commit.nonces)]
    message = describe_squashed(nonces[:_NONCES])
    asked = HubRequest("squash the history", name, writing=True)
    client.budget.spend()
    try:
        client.call(
            asked,
            lambda api: api.super_squash_history(name, commit_message=message, repo_type="dataset"),
            (),
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
    asked = HubRequest("hold a commit by a tag", repository.name, writing=True)
    repository.client.call(
        asked,
        lambda api: api.create_tag(
            repository.name, tag=_TAG + sha, revision=sha, repo_type="dataset", exist_ok=True
        ),
    )


def _drop_tags(repository: HubRepository, kept: str) -> None:
    """Let go of what is pinned no more; what cannot be dropped now is dropped by the next squash."""
    name, client = repository.name, repository.client
    asked = HubRequest("drop a tag", name, writing=True)
    refs = client.call(asked, lambda api: api.list_repo_refs(name, repo_type="dataset"))
    for tag in (each.name for each in refs.tags):
        if tag.startswith(_TAG) and tag != _TAG + kept:
            _drop_tag(repository, asked, tag)


def _drop_tag(repository: HubRepository, asked: HubRequest, tag: str) -> None:
    repository.client.call(
        asked,
        lambda api: api.delete_tag(repository.name, tag=tag, repo_type="dataset"),
    )
