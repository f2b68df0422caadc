"""Engines that carry batches to askers: this process, or the actors of a Ray cluster.

Batches are cut before an engine sees them, so every engine asks the same batches, and the same
batches give the same scores bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from evaluator.scoring.asking import Asked, AskerSource, Reply


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
