"""Requests to a scorer: their plan, what is asked and comes back, its clients, and engines.

Each image is asked once, and nothing tells a label.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.errors import PlatformError
from benchmarks.schema import Element, Pair, Questions
from evaluator.scoring.contract import Verdict

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


ItemKind = Literal["image", "text", "pair"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about one item that a reader of the result must know."""

    # stable, in snake_case: `image_unreadable`, `image_animated`, `text_truncated`, `text_empty`,
    # `no_score`, `out_of_memory`, ...
    code: str
    item: ItemKind  # what kind of thing it is about
    item_id: str  # its id in the benchmark
    message: str  # one sentence that names what was found and what was done
    scored: bool  # whether there is a score all the same


@dataclass(frozen=True, slots=True)
class Ready:
    """An image as the client wants it."""

    content: Any  # what `ask` needs: bytes, tensors, or vectors that were kept from an earlier run
    n_bytes: int  # about how much memory it holds
    pixels: int = 0  # width x height of the image; 0 where it did not have to be decoded
    # (code, message) of what was done to it: only the first frame is used, ...
    remarks: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PairRequest:
    """One prompt put to an image."""

    pair_id: str
    text_id: str
    prompt: str
    elements: tuple[Element, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """One image with everything that is asked about it."""

    image_id: str
    image: Ready
    asked: tuple[PairRequest, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """What a batch cost."""

    calls: int = 0  # calls of the scorer's own methods
    images_decoded: int = 0  # images that were decoded
    images_encoded: int = 0  # rows that went through the image encoder
    texts_encoded: int = 0  # rows that went through the text encoder
    seconds: float = 0.0  # time spent in the scorer
    usd: float = 0.0  # price of its replies, of a scorer that is paid for


def summed(works: Iterable[Work]) -> Work:
    """What several requests cost together."""
    many = [astuple(work) for work in works]
    return Work(*map(sum, zip(*many, strict=True)))


@dataclass(frozen=True)
class Reply:
    """What came back for a batch."""

    verdicts: tuple[tuple[Verdict, ...], ...]  # per item, one per prompt
    # per item and prompt, one score per element; None where elements are not asked
    elements: tuple[tuple[NDArray[np.float64], ...], ...] | None = None
    findings: tuple[Finding, ...] = ()  # about the items of this batch
    work: Work = field(default_factory=Work)  # what it cost


class OutOfMemoryError(Exception):
    """The batch was too large for the device; a smaller one may do."""


class ScorerClient(Protocol):
    """Something that gives scores, open and ready."""

    @property
    def asks_elements(self) -> bool:
        """Whether it can score elements."""

    @property
    def peak_memory_bytes(self) -> int:
        """The most memory held so far, on the device where it has its own, else of the process."""

    @property
    def environment(self) -> dict[str, str]:
        """Device, precision, checkpoint revision and versions, for the result's record."""

    def ready(self, data: bytes) -> Ready:
        """Make an encoded image ready; called by several threads at once."""

    def ask(self, items: Sequence[Item]) -> Reply:
        """Score a batch; called by one thread at a time."""


class ClientSource(Protocol):
    """Opens clients: in this process, or, sent there with pickle, in an actor's."""

    @property
    def fingerprint(self) -> str:
        """What must be equal for two clients to give the same scores: code, checkpoint, options."""

    def open(self) -> AbstractContextManager[ScorerClient]:
        """Start one; everything it started has ended when the context is left."""


@dataclass(frozen=True, slots=True)
class RawItem:
    """One image as the benchmark keeps it, with everything that is asked about it."""

    image_id: str
    data: bytes
    asked: tuple[PairRequest, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """What is asked at once, numbered from 0 in the order of the plan."""

    number: int
    items: tuple[RawItem, ...]


@dataclass(frozen=True)
class Answered:
    """A batch that is done."""

    batch: int  # its number
    reply: Reply  # for its items, in their order
    peak_memory_bytes: int  # of the client, so far
    environment: dict[str, str]  # of the client


class Engine(Protocol):
    """Runs batches; none of them is lost, and none is answered twice."""

    @property
    def name(self) -> str:
        """`local` or `ray`, for the record."""

    def run(self, batches: Iterable[Batch], source: ClientSource) -> Iterator[Answered]:
        """Answer every batch, in any order; batches are drawn as they are needed, not all at once."""
