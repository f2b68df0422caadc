"""Description of a commit: its nonce, and what it changed."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_LONGEST = 8000
_NONCE = re.compile(r"[0-9a-f]{32}")


def new_nonce() -> str:
    """A name for one commit that no other has."""
    return uuid.uuid4().hex


@dataclass(frozen=True, slots=True)
class Described:
    """One commit of a history.

    Attributes:
        sha: its id.
        nonces: of the commits that it is, or that were squashed into it.
        paths: all that it changed; None where it does not say, or not all.
    """

    sha: str
    nonces: frozenset[str] = frozenset()
    paths: tuple[str, ...] | None = None


def describe(nonce: str, paths: Iterable[str], message: str = "") -> str:
    """The description of a commit.

    Args:
        nonce: its name.
        paths: all that it changes.
        message: what it is for, where the title does not say all of it.
    """
    said = f"{message}\n\n" if message else ""
    text = json.dumps({"nonce": nonce, "paths": sorted(paths)}, ensure_ascii=True)
    return said + (text if len(text) <= _LONGEST else json.dumps({"nonce": nonce}))


def describe_squashed(nonces: Sequence[str]) -> str:
    """What a squashed history says: whose answers may still be under way finds itself here."""
    return "History squashed\n\n" + json.dumps({"nonces": list(nonces)})


def described(sha: str, title: str, message: str) -> Described:
    """A commit as its title and message tell it; anybody's may hold anything."""
    for text in (message, title):
        at = text.rfind('{"nonce')
        try:
            told = json.loads(text[at:]) if at >= 0 else None
        except ValueError:
            continue
        if isinstance(told, dict):
            return Described(sha, _nonces(told), _paths(told))
    return Described(sha)


def _nonces(told: dict[str, object]) -> frozenset[str]:
    listed = told.get("nonces")
    found = [told.get("nonce"), *(listed if isinstance(listed, list) else [])]
    return frozenset(each for each in found if isinstance(each, str) and _NONCE.fullmatch(each))


def _paths(told: dict[str, object]) -> tuple[str, ...] | None:
    listed = told.get("paths")
    if not isinstance(listed, list) or not all(isinstance(path, str) for path in listed):
        return None
    return tuple(listed)
