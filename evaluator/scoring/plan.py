"""Plan of requests to a scorer: each image once, nothing that tells a label."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from benchmarks.errors import PlatformError
from benchmarks.schema import Pair, Questions

PLAN_VERSION = 2
"""Raised when the same module could get other inputs for the same pair; old shards then lapse."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One image with everything that is asked about it."""

    image_id: str
    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class ScoringPlan:
    """Units in the order in which they are asked.

    The order is that of a keyed hash, so it tells nothing without the key, and leaving out what
    is done already does not change the order of the rest.
    """

    units: tuple[Unit, ...]

    @classmethod
    def of(cls, questions: Questions, seed: bytes) -> Self:
        """The plan of a run."""
        _check(questions)
        by_image: dict[str, list[Pair]] = {}
        for pair in questions.pairs:
            by_image.setdefault(pair.image_id, []).append(pair)
        units = [
            Unit(image, tuple(sorted(pairs, key=lambda pair: _place(seed, b"p", pair.pair_id))))
            for image, pairs in by_image.items()
        ]
        return cls(tuple(sorted(units, key=lambda unit: _place(seed, b"i", unit.image_id))))

    @property
    def n_images(self) -> int:
        """Images to be sent, each once."""
        return len(self.units)

    @cached_property
    def n_pairs(self) -> int:
        """Scores that are wanted."""
        return sum(len(unit.pairs) for unit in self.units)

    def without(self, pair_ids: Collection[str]) -> ScoringPlan:
        """What is left when these pairs are done."""
        kept = (
            Unit(unit.image_id, tuple(p for p in unit.pairs if p.pair_id not in pair_ids))
            for unit in self.units
        )
        return ScoringPlan(tuple(unit for unit in kept if unit.pairs))


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything a benchmark asks: each range the least and the most."""

    images: tuple[int, int]  # distinct ones
    texts: tuple[int, int]  # distinct ones
    pairs: tuple[int, int]  # scores that are wanted
    elements: bool  # whether parts of prompts are asked about as well
    small: bool  # whether its pictures are as small as the demo's
    from_card: bool  # the data are not here: these are the counts that its card names


def _place(seed: bytes, kind: bytes, name: str) -> bytes:
    return hashlib.blake2b(name.encode(), key=seed, person=kind, digest_size=16).digest()


def _check(questions: Questions) -> None:
    seen: set[str] = set()
    for pair in questions.pairs:
        if pair.pair_id in seen:
            raise _inconsistent(f"pair {pair.pair_id!r} is there twice")
        if pair.image_id not in questions.images or pair.text_id not in questions.texts:
            raise _inconsistent(f"pair {pair.pair_id!r} names an image or text that is not there")
        for what, name, text in (
            ("pair id", pair.pair_id, pair.pair_id),
            ("text", pair.text_id, questions.texts[pair.text_id]),
        ):
            if not _is_unicode(text):
                raise _inconsistent(f"{what} {name!r} holds half a character (a lone surrogate)")
        seen.add(pair.pair_id)


def _is_unicode(text: str) -> bool:
    """Whether it can be written as UTF-8; no scorer could be sent it otherwise."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _inconsistent(what: str) -> PlatformError:
    return PlatformError("questions_inconsistent", f"The benchmark's questions do not fit: {what}.")
