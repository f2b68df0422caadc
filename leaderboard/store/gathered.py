"""Several transactions that go into one commit: what they write, and what each of them sees."""

from __future__ import annotations

import math
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from leaderboard.store.interface import Changes, Repository
from leaderboard.store.overlay import Overlay
from leaderboard.store.paths import entangled
from leaderboard.store.turns import Member

FILES = 100
"""As many files as the Hub wants in a commit at most."""
N_BYTES = 64 << 20


class Gathered:
    """What transactions write, one after the other, as one set of changes.

    Args:
        files: the most files of several of them.
        n_bytes: the most bytes of several of them.
    """

    def __init__(self, files: int = FILES, n_bytes: int = N_BYTES) -> None:
        self._files = files
        self._n_bytes = n_bytes
        self.changes: dict[str, bytes | Path | None] = {}

    def takes(self, changes: Changes) -> bool:
        """Whether further changes can go into the same commit; the first always can.

        Those that a commit could not tell from one that never happened go into the next: where a
        file is taken away that is not there yet, or one becomes a folder.
        """
        if not self.changes or not changes:
            return True
        merged = {**self.changes, **changes}
        undone = any(
            content is None and self.changes.get(path) is not None
            for path, content in changes.items()
        )
        return (
            len(merged) <= self._files
            and sum(_size(content) for content in merged.values()) <= self._n_bytes
            and not undone
            and not entangled(self.changes, changes)
        )

    def add(self, changes: Changes) -> None:
        """Put in further changes, which replace earlier ones of the same files."""
        self.changes |= changes


@dataclass
class Group:
    """Who was asked for one commit."""

    parent: str
    gathered: Gathered
    nonce: str = field(default_factory=lambda: uuid.uuid4().hex)
    asked: list[Member] = field(default_factory=list)
    writers: list[Member] = field(default_factory=list)
    others: list[tuple[Member, Exception | None]] = field(default_factory=list)
    """Who wants nothing written, or was refused, on the ground of what is not committed yet."""

    @property
    def head(self) -> str:
        """Of no version, and another after every step."""
        return f"{self.parent}+{self.nonce}.{len(self.asked)}"

    @property
    def message(self) -> str:
        """Names all that is written; the first line is short."""
        first, *more = [member.message for member in self.writers]
        return "\n".join((f"{first}, and {len(more)} more", "", first, *more)) if more else first


class View(Overlay):
    """What a member of a group sees: the repository with what those before it want written.

    Args:
        under: the repository.
        group: as it is now.
    """

    def __init__(self, under: Repository, group: Group) -> None:
        super().__init__(under, dict(group.gathered.changes), group.head)
        self.parent = group.parent


def _size(content: bytes | Path | None) -> float:
    if content is None:
        return 0.0
    if isinstance(content, bytes):
        return len(content)
    try:
        return content.stat().st_size
    except OSError:
        return math.inf  # The commit says what is wrong with it, and to nobody else.
