"""Diagnostics of a store on the Hub: the token, the four repositories, the pins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from benchmarks.errors import AssayError
from evaluator.doctoring.rows import Row

if TYPE_CHECKING:
    from leaderboard.store.hub.hub_store import HubParts
    from leaderboard.store.hub.layout import Part
    from leaderboard.store.hub.repository import HubRepository

MOST_SKEW_S = 30.0
_WRITERS = frozenset({"admin", "write"})
_WRITE = "repo.write"


def hub_rows(parts: HubParts) -> Iterator[Row]:
    """Everything, as far as it can be reached.

    Args:
        parts: of the store.
    """
    # Only here: the command line starts without the Hub's client.
    from leaderboard.store.hub.layout import Part  # noqa: PLC0415

    row, told = _token(parts)
    yield row
    for part in Part:
        yield _repository(parts, part, told)
    yield from _clock(parts)
    yield from _pins(parts)


def may_write(told: Mapping[str, Any], repositories: tuple[str, ...]) -> bool | None:
    """Whether a token may write repositories of one owner, by what the Hub tells of it.

    Args:
        told: of the token and its user.
        repositories: their names.

    Returns:
        None where the Hub does not say enough.
    """
    owner = repositories[0].partition("/")[0]
    token = told.get("auth", {}).get("accessToken", {})
    role = token.get("role")
    if role == "fineGrained":
        return _scoped(token.get("fineGrained", {}).get("scoped"), owner, repositories)
    if role != "write":
        return False if role == "read" else None
    if told.get("name") == owner:
        return True
    orgs = {org.get("name"): org.get("roleInOrg") for org in told.get("orgs", ())}
    return orgs[owner] in _WRITERS if owner in orgs else None


def _scoped(scopes: object, owner: str, repositories: tuple[str, ...]) -> bool | None:
    if not isinstance(scopes, list):
        return None
    open_to = {
        str(scope.get("entity", {}).get("name")).removeprefix("datasets/")
        for scope in scopes
        if isinstance(scope, dict) and _WRITE in scope.get("permissions", ())
    }
    return owner in open_to or set(repositories) <= open_to


def _token(parts: HubParts) -> tuple[Row, Mapping[str, Any]]:
    """The token, and what the Hub tells of it."""
    from leaderboard.store.hub.faults import Asked  # noqa: PLC0415
    from leaderboard.store.hub.layout import Part  # noqa: PLC0415

    names = tuple(parts.name.of(part) for part in Part)
    try:
        asked = Asked("ask whose token this is", names[0])
        told = parts.client.call(asked, lambda api: api.whoami(), again=False)
    except AssayError as error:
        row = Row(
            "token",
            error.message,
            "set HF_TOKEN to a token that may write the store's repositories",
            broken=True,
        )
        return row, {}
    role = told.get("auth", {}).get("accessToken", {}).get("role", "no role is told")
    who = f"of {told.get('name')}, {role}"
    writes = may_write(told, names)
    if writes is False:
        wrong = f"{who}: it may not write"
        return Row("token", wrong, "give it the right to write", broken=True), told
    return Row("token", who if writes else f"{who}: whether it may write is not told"), told


def _repository(parts: HubParts, part: Part, told: Mapping[str, Any]) -> Row:
    """One repository: that it is answered for shows that the token may read it."""
    from leaderboard.store.hub.faults import Asked  # noqa: PLC0415
    from leaderboard.store.hub.layout import Part  # noqa: PLC0415

    name = parts.name.of(part)
    try:
        info = parts.client.call(
            Asked("read the settings", name), lambda api: api.dataset_info(name)
        )
    except AssayError as error:
        return Row(f"  {name}", error.message, error.hint, broken=True)
    if part is Part.SUBMISSIONS and not info.private:
        return Row(
            f"  {name}",
            "open to everyone, though it holds what was uploaded",
            "make it private in its settings",
            broken=True,
        )
    seen = "private" if info.private else "open"
    may = {True: "; may be read and written", False: "; may be read, not written", None: ""}
    right = may[may_write(told, (name,))] if told else ""
    return Row(f"  {name}", f"{seen}, at {str(info.sha)[:12]}{right}")


def _clock(parts: HubParts) -> Iterator[Row]:
    """This machine's clock against the Hub's, as far as its answers have told."""
    try:
        ahead = (datetime.now(UTC) - parts.client.clock()).total_seconds()
    except AssayError:
        return  # It is told of the repositories already that they cannot be reached.
    wrong = abs(ahead) > MOST_SKEW_S
    words = f"{abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} the Hub's"
    advice = "set it (NTP): leases go by the Hub's, logs and signed links by this one"
    yield Row("  clock", words if wrong else "as the Hub's", advice if wrong else "")


def _pin(repository: HubRepository, part: Part, pin: str) -> Row:
    from leaderboard.store.hub.client import LAST  # noqa: PLC0415
    from leaderboard.store.hub.faults import VersionGoneError  # noqa: PLC0415

    try:
        repository.entries_at([LAST], pin)
    except VersionGoneError:
        return Row(
            f"  pin of {part}",
            f"{pin[:12]} is gone: {repository.name} was deleted and made again, or its history "
            "rewritten by hand",
            "put the repository back; without that commit its files cannot be read",
            broken=True,
        )
    main = repository.fresh_head()
    moved = "" if main == pin else f"; its branch is at {main[:12]}, which nobody reads"
    return Row(f"  pin of {part}", f"{pin[:12]}{moved}")


def _pins(parts: HubParts) -> Iterator[Row]:
    from leaderboard.store.hub.layout import PAYLOAD  # noqa: PLC0415

    try:
        version = parts.public.version(parts.public.fresh_head())
        for part in PAYLOAD:
            yield _pin(parts.repositories[part], part, version.of(part))
    except AssayError as error:
        yield Row("  pins", error.message, error.hint, broken=True)
        return
    if version.pins.frozen_until is not None:
        yield Row("  squash", f"under way, until {version.pins.frozen_until:%H:%M:%S} UTC at most")
