"""Scorer clients and engines: what is asked of a scorer, and what comes back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.schema import Element
from evaluator.scoring.contract import Verdict

ItemKind = Literal["image", "text", "pair"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about one item that a reader of the result must know.

    Attributes:
        code: stable, in snake_case: `image_unreadable`, `image_animated`, `text_truncated`,
            `text_empty`, `no_score`, `out_of_memory`, ...
        item: what kind of thing it is about.
        item_id: its id in the benchmark.
        message: one sentence that names what was found and what was done.
        scored: whether there is a score all the same.
    """

    code: str
    item: ItemKind
    item_id: str
    message: str
    scored: bool


@dataclass(frozen=True, slots=True)
class Ready:
    """An image as the asker wants it.

    Attributes:
        content: what `ask` needs: bytes, tensors, or vectors that were kept from an earlier run.
        n_bytes: about how much memory it holds.
        pixels: width x height of the image; 0 where it did not have to be decoded.
        remarks: (code, message) of what was done to it: only the first frame is used, ...
    """

    content: Any
    n_bytes: int
    pixels: int = 0
    remarks: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
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
    asked: tuple[Asked, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """What a batch cost.

    Attributes:
        calls: calls of the scorer's own methods.
        images_decoded: images that were decoded.
        images_encoded: rows that went through the image encoder.
        texts_encoded: rows that went through the text encoder.
        seconds: time spent in the scorer.
    """

    calls: int = 0
    images_decoded: int = 0
    images_encoded: int = 0
    texts_encoded: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Reply:
    """What came back for a batch.

    Attributes:
        verdicts: per item, one per prompt.
        elements: per item and prompt, one score per element; None where elements are not asked.
        findings: about the items of this batch.
        work: what it cost.
    """

    verdicts: tuple[tuple[Verdict, ...], ...]
    elements: tuple[tuple[NDArray[np.float64], ...], ...] | None = None
    findings: tuple[Finding, ...] = ()
    work: Work = field(default_factory=Work)


class OutOfMemoryError(Exception):
    """The batch was too large for the device; a smaller one may do."""


class Asker(Protocol):
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
        """Make an encoded image ready; called by several threads at once.

        Raises:
            ImageError: the bytes are not an image that can be scored.
        """

    def ask(self, items: Sequence[Item]) -> Reply:
        """Score a batch; called by one thread at a time.

        Raises:
            OutOfMemoryError: a smaller batch may do.
            SubmitterError: the scorer failed for good.
        """


class AskerSource(Protocol):
    """Opens askers: in this process, or, sent there with pickle, in an actor's."""

    @property
    def fingerprint(self) -> str:
        """What must be equal for two askers to give the same scores: code, checkpoint, options."""

    def open(self) -> AbstractContextManager[Asker]:
        """Start one; everything it started has ended when the context is left."""


@dataclass(frozen=True, slots=True)
class RawItem:
    """One image as the benchmark keeps it, with everything that is asked about it."""

    image_id: str
    data: bytes
    asked: tuple[Asked, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """What is asked at once, numbered from 0 in the order of the plan."""

    number: int
    items: tuple[RawItem, ...]


@dataclass(frozen=True)
class Answered:
    """A batch that is done.

    Attributes:
        batch: its number.
        reply: for its items, in their order.
        peak_memory_bytes: of the asker, so far.
        environment: of the asker.
    """

    batch: int
    reply: Reply
    peak_memory_bytes: int
    environment: dict[str, str]


class Engine(Protocol):
    """Runs batches; none of them is lost, and none is answered twice."""

    @property
    def name(self) -> str:
        """`local` or `ray`, for the record."""

    def run(self, batches: Iterable[Batch], source: AskerSource) -> Iterator[Answered]:
        """Answer every batch, in any order; batches are drawn as they are needed, not all at once.

        Raises:
            SubmitterError, PlatformError: as the asker raised it; what was yielded before is good.
            TransientError: `workers_lost`, no worker is left that could go on.
        """
