"""Scorer clients and engines: what is asked of a scorer, and what comes back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.schema import Element
from evaluator.scoring.contract import Verdict

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
