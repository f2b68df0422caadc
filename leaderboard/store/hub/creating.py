"""The repositories of a store made, with the right visibility and the first pins."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError

from benchmarks.errors import PlatformError
from leaderboard.store.hub.client import LAST
from leaderboard.store.hub.faults import Asked, VersionGoneError
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.layout import PAYLOAD, Part
from leaderboard.store.hub.pins import PINS, Pins
from leaderboard.store.hub.repository import Control, HubRepository, last_note
from leaderboard.store.interface import ConflictError, NotFoundError

CARD = "README.md"
_DATASET = "dataset"
_ROUNDS = 5


def create(parts: HubParts, *, private: bool = False) -> Iterator[str]:
    """Make what is missing of a store; what is there stays as it is.

    Args:
        parts: of the store.
        private: whether the public side is for members only as well.

    Yields:
        What was done to each repository, in one sentence.

    Raises:
        PlatformError: the token may not do it, `submissions_public`, or `pins_gone`.
    """
    for part in Part:
        hidden = private or part is Part.SUBMISSIONS
        yield _repository(parts, part, hidden=hidden)
    for part in (*PAYLOAD, Part.SUBMISSIONS):
        _begin(parts.repositories[part], last_note)
    decisive = parts.repositories[Part.REQUESTS]
    there = decisive.entries_at([PINS, LAST], decisive.fresh_head())
    if PINS not in there:
        _check_never_begun(decisive, there)
        pins = Pins(pins={part: parts.repositories[part].fresh_head() for part in PAYLOAD})
        _begin(decisive, lambda nonce: {**pins.note(nonce), **last_note(nonce)})
        yield f"{decisive.name}: the first version is written."
        return
    yield from _pinned_anew(parts)


def write_cards(parts: HubParts, cards: Mapping[Part, bytes]) -> Iterator[str]:
    """Write the card of each repository, where it is another than the one there.

    Args:
        parts: of the store.
        cards: part to the content of its README.md.

    Yields:
        What was done to each repository, in one sentence.

    Raises:
        PlatformError: the token may not do it, or the Hub finds a card wrong.
    """
    for part, card in cards.items():
        repository = parts.repositories[part]
        done = _card(parts, part, card)
        yield f"{repository.name}: the card {'is written' if done else 'was there already'}."


def _card(parts: HubParts, part: Part, card: bytes) -> bool:
    repository = parts.repositories[part]
    for _ in range(_ROUNDS):
        head = repository.fresh_head()
        if _has(repository, head, card):
            return False
        note = parts.public.version(head).pins.note if part is Part.REQUESTS else last_note
        try:
            repository.commit_with({}, _with_card(note, card), head, "The card")
        except ConflictError:
            continue
        return True
    raise ConflictError("", "a later one")


def _with_card(note: Control, card: bytes) -> Control:
    return lambda nonce: {**note(nonce), CARD: card}


def _has(repository: HubRepository, head: str, card: bytes) -> bool:
    try:
        return repository.read_at(CARD, head) == card
    except NotFoundError:
        return False


def _repository(parts: HubParts, part: Part, *, hidden: bool) -> str:
    name = parts.name.of(part)
    client = parts.client
    made = client.call(
        Asked("create the repository", name, writing=True),
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


def _pinned_anew(parts: HubParts) -> Iterator[str]:
    """Pin what was deleted and made anew, since nothing else brings the store back to work."""
    decisive = parts.repositories[Part.REQUESTS]
    for _ in range(_ROUNDS):
        version = parts.public.version(decisive.fresh_head())
        payload = {part: parts.repositories[part] for part in PAYLOAD}
        lost = [p for p, repository in payload.items() if not _knows(repository, version.of(p))]
        if not lost:
            return
        pins = version.pins.moved({part: payload[part].fresh_head() for part in lost})
        try:
            decisive.commit_with({}, pins.note, version.sha, "What was made anew is pinned")
        except ConflictError:
            continue
        for part in lost:
            yield (
                f"{payload[part].name}: was made anew, and what it held before is gone; run the "
                "submissions again whose results were in it (python -m evaluator rerun)."
            )
        return
    raise ConflictError("", "a later one")


def _knows(repository: HubRepository, sha: str) -> bool:
    try:
        repository.entries_at([LAST], sha)
    except VersionGoneError:
        return False
    return True


def _begin(repository: HubRepository, control: Control) -> None:
    """The control file of a repository, where it has none."""
    for _ in range(_ROUNDS):
        head = repository.fresh_head()
        if repository.entries_at(control(""), head):
            return
        try:
            repository.commit_with({}, control, head, "The store begins")
        except ConflictError:
            continue
        return
    raise ConflictError("", "a later one")
