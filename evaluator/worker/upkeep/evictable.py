"""Evictable content of a worker's disk, in the order in which it is given up.

The outbox is none of it: what lies there was finished and is not published yet.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from evaluator.hub import shelf_room
from evaluator.hub.shelf_room import bytes_below
from evaluator.in_use import unused

UNPACKED, SHARDS, OUTBOX = "unpacked", "shards", "outbox"
"""Folders of the scratch."""
JUST_MADE_S = 600.0
"""What is younger may be about to be used."""


@dataclass(frozen=True)
class Evictable:
    """Something that can be removed.

    Attributes:
        what: it is, for the log.
        place: where it is.
        remove: removes it unless it is in use after all; the number of bytes this freed.
    """

    what: str
    place: Path
    remove: Callable[[], int]


@dataclass(frozen=True)
class DiskPlaces:
    """Where a worker keeps what can be had again.

    Attributes:
        scratch: of the worker, or of several that share it.
        models: the shelf of models.
        embeddings: kept for later runs; None: nowhere.
    """

    scratch: Path
    models: Path
    embeddings: Path | None = None

    @property
    def all(self) -> tuple[Path, ...]:
        """The folders that must not fill up."""
        return (self.scratch, self.models)

    def evictable(
        self, now_s: float, finished: Callable[[], Collection[str]]
    ) -> Iterator[Evictable]:
        """What may be removed, first what is missed least.

        Args:
            now_s: this machine's time, which its file system keeps.
            finished: ids of the submissions on which nobody works any more.
        """
        yield from self._unpacked(now_s)
        yield from self._shards(finished)
        yield from self._models(now_s)
        yield from self._embeddings()

    def _unpacked(self, now_s: float) -> Iterator[Evictable]:
        for place in _by_age(self.scratch / UNPACKED):
            if _changed_at(place) < now_s - JUST_MADE_S:
                yield Evictable("an unpacked module", place, partial(_drop, place))

    def _shards(self, finished: Callable[[], Collection[str]]) -> Iterator[Evictable]:
        kept = _by_age(self.scratch / SHARDS)
        # Asked only where there is something: it reads the store.
        over = frozenset(finished()) if kept else frozenset()
        for place in kept:
            if place.name in over and not (self.scratch / OUTBOX / place.name).exists():
                yield Evictable("finished shards", place, partial(_drop, place))

    def _models(self, now_s: float) -> Iterator[Evictable]:
        left = next(self.models.glob("*.gone"), None)
        if left is not None:
            yield Evictable("removed models", left, partial(shelf_room.sweep, self.models))
        for one in shelf_room.shelved(self.models):
            if not one.in_use and one.last_used < now_s - JUST_MADE_S:
                yield Evictable(
                    f"the model {one.model}", one.place, partial(shelf_room.taken_away, one)
                )

    def _embeddings(self) -> Iterator[Evictable]:
        if self.embeddings is None:
            return
        for place in _by_age(self.embeddings):
            yield Evictable("embeddings", place, partial(_drop, place))


def _by_age(folder: Path) -> list[Path]:
    """The folders in a folder, the one that was changed longest ago first."""
    return sorted((p for p in folder.glob("*") if p.is_dir() and not p.is_symlink()), key=_aged)


def _aged(place: Path) -> tuple[float, str]:
    return _changed_at(place), place.name


def _changed_at(place: Path) -> float:
    """When a folder, or anything directly in it, was changed last; 0 where it is gone."""
    try:
        return max(p.lstat().st_mtime for p in (place, *place.iterdir()))
    except FileNotFoundError:
        return 0.0


def _drop(place: Path) -> int:
    try:
        with unused(place) as free:
            if not free:
                return 0
            freed = bytes_below(place)
            shutil.rmtree(place, ignore_errors=True)
    except (FileNotFoundError, NotADirectoryError):
        return 0
    return 0 if place.exists() else freed
