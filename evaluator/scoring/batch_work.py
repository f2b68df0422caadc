"""Batch, from encoded images to verdicts: whatever an item does, the others are scored.

Every engine works through its batches with this module, beside the client: that of this process, and
an actor of Ray.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from evaluator.scoring.asking import (
    Answered,
    Batch,
    ClientSource,
    Finding,
    Item,
    OutOfMemoryError,
    PairRequest,
    RawItem,
    Ready,
    Reply,
    ScorerClient,
    Work,
    summed,
)
from evaluator.scoring.contract import Verdict
from evaluator.scoring.images import ImageError

_GROWS_AFTER = 16
"""Requests that fitted one after the other before more is tried: one large image is no rule."""


@dataclass(slots=True)
class Room:
    """One client's limits; they change while it works."""

    pairs: int | None = None  # of a request with several images; None: no limit is known
    prompts: int | None = None  # of a request with a single image; None: no limit is known
    _fitted: int = 0

    def cut(self, items: Sequence[Item]) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
        """What is to be asked now, at least one prompt of it, and what is left for later."""
        first, *others = items
        if self.prompts is not None and len(first.asked) > self.prompts:
            now = replace(first, asked=first.asked[: self.prompts])
            later = replace(first, asked=first.asked[self.prompts :])
            return (now,), (later, *others)
        taken, pairs = 1, len(first.asked)
        for item in others:
            pairs += len(item.asked)
            if _beyond(pairs, self.pairs) or _beyond(len(item.asked), self.prompts):
                break
            taken += 1
        return tuple(items[:taken]), tuple(items[taken:])

    def shrink(self, items: Sequence[Item]) -> bool:
        """This was too much: ask for half of it next time; False if nothing can be halved."""
        self._fitted = 0
        pairs = sum(len(item.asked) for item in items)
        if len(items) > 1:
            self.pairs = max(1, pairs // 2)
            return True
        if pairs > 1:
            self.prompts = max(1, pairs // 2)
            return True
        return False

    def fitted(self) -> None:
        """A request was answered; after some of them, more is tried again."""
        self._fitted += 1
        if self._fitted < _GROWS_AFTER:
            return
        self._fitted = 0
        self.pairs = None if self.pairs is None else 2 * self.pairs
        self.prompts = None if self.prompts is None else 2 * self.prompts


def _beyond(n: int, limit: int | None) -> bool:
    return limit is not None and n > limit


_NO_ROOM = "one image with one prompt does not fit into the memory that there is"


@dataclass(frozen=True, slots=True)
class ReadyBatch:
    """The images of a batch, ready or still being made ready, in the order of its items."""

    images: tuple[Future[Ready], ...]

    def cancel(self) -> None:
        """Do not begin with what has not begun."""
        for image in self.images:
            image.cancel()


def answered(
    client: ScorerClient, batch: Batch, pool: Executor | None = None, room: Room | None = None
) -> Answered:
    """Make a batch ready and ask; see `made_ready` and `ask_ready`."""
    return ask_ready(client, batch, made_ready(client, batch, pool), room)


def made_ready(client: ScorerClient, batch: Batch, pool: Executor | None = None) -> ReadyBatch:
    """Begin to make the images of a batch ready: in the pool, or without one here and now."""
    if pool is None:
        return ReadyBatch(tuple(_done(client, item.data) for item in batch.items))
    return ReadyBatch(tuple(pool.submit(client.ready, item.data) for item in batch.items))


def ask_ready(
    client: ScorerClient, batch: Batch, ready: ReadyBatch, room: Room | None = None
) -> Answered:
    """Ask a batch once it is ready.

    An image that cannot be read, a pair that does not fit into memory and a score that is no
    number become findings; every other pair of the batch keeps its score.
    """
    found = _KnownScores()
    items = list(_readable(batch, ready, found))
    _ask_all(client, items, Room() if room is None else room, found)
    found.findings += _without_number(batch, found)
    return Answered(
        batch=batch.number,
        reply=_reply(batch, found, with_elements=client.asks_elements),
        peak_memory_bytes=client.peak_memory_bytes,
        environment=client.environment,
    )


@dataclass
class _KnownScores:
    """What is known so far, by pair."""

    verdicts: dict[str, Verdict] = field(default_factory=dict)
    elements: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    explained: set[str] = field(default_factory=set)
    """Pairs without a score whose reason is among the findings already."""
    works: list[Work] = field(default_factory=list)

    def no_score(self, pairs: Sequence[PairRequest], problem: str) -> None:
        for pair in pairs:
            self.verdicts[pair.pair_id] = Verdict(math.nan, problem)
            self.explained.add(pair.pair_id)

    def add(self, items: Sequence[Item], reply: Reply) -> None:
        for n, (item, verdicts) in enumerate(zip(items, reply.verdicts, strict=True)):
            for k, (pair, verdict) in enumerate(zip(item.asked, verdicts, strict=True)):
                self.verdicts[pair.pair_id] = _finite(verdict)
                if reply.elements is not None:
                    self.elements[pair.pair_id] = reply.elements[n][k]
        self.findings += reply.findings
        self.explained |= {f.item_id for f in reply.findings if f.item == "pair" and not f.scored}
        self.works.append(reply.work)


def _done(client: ScorerClient, data: bytes) -> Future[Ready]:
    future: Future[Ready] = Future()
    try:
        future.set_result(client.ready(data))
    except ImageError as error:
        future.set_exception(error)
    return future


def _readable(batch: Batch, ready: ReadyBatch, found: _KnownScores) -> Iterator[Item]:
    for raw, future in zip(batch.items, ready.images, strict=True):
        try:
            image = future.result()
        except ImageError as error:
            found.findings.append(unreadable(raw.image_id, str(error)))
            found.no_score(raw.asked, f"image {raw.image_id!r} cannot be read: {error}")
            continue
        found.findings += _remarks(raw, image)
        yield Item(raw.image_id, image, raw.asked)


def unreadable(image_id: str, why: str) -> Finding:
    """What is said of an image that gives none of its pairs a score."""
    return Finding(
        "image_unreadable",
        "image",
        image_id,
        f"The image cannot be read: {why}; its pairs have no score.",
        scored=False,
    )


def _remarks(raw: RawItem, image: Ready) -> Iterator[Finding]:
    for code, message in image.remarks:
        yield Finding(code, "image", raw.image_id, message, scored=True)


def _ask_all(client: ScorerClient, items: Sequence[Item], room: Room, found: _KnownScores) -> None:
    left = tuple(items)
    while left:
        now, later = room.cut(left)
        try:
            reply = client.ask(now)
        except OutOfMemoryError:
            if room.shrink(now):
                continue
            _note_no_room(now[0].asked[0], found)
        else:
            room.fitted()
            found.add(now, reply)
        left = later


def _note_no_room(pair: PairRequest, found: _KnownScores) -> None:
    found.findings.append(
        Finding("out_of_memory", "pair", pair.pair_id, f"No score: {_NO_ROOM}.", scored=False)
    )
    found.no_score([pair], _NO_ROOM)


def _finite(verdict: Verdict) -> Verdict:
    """Scores are numbers or NaN with a reason; infinities rank nothing."""
    if math.isinf(verdict.score):
        return Verdict(math.nan, f"the scorer gave {verdict.score}", verdict.answers)
    if math.isnan(verdict.score) and not verdict.problem:
        return Verdict(math.nan, "the scorer gave no number", verdict.answers)
    return verdict


def _without_number(batch: Batch, found: _KnownScores) -> Iterator[Finding]:
    for item in batch.items:
        for pair in item.asked:
            verdict = found.verdicts[pair.pair_id]
            if math.isnan(verdict.score) and pair.pair_id not in found.explained:
                message = f"No score: {verdict.problem.rstrip('.')}."
                yield Finding("no_score", "pair", pair.pair_id, message, scored=False)


def _reply(batch: Batch, found: _KnownScores, *, with_elements: bool) -> Reply:
    verdicts = tuple(tuple(found.verdicts[p.pair_id] for p in item.asked) for item in batch.items)
    elements = None
    if with_elements:
        elements = tuple(tuple(_elements(p, found) for p in item.asked) for item in batch.items)
    return Reply(verdicts, elements, tuple(found.findings), summed(found.works))


def _elements(pair: PairRequest, found: _KnownScores) -> NDArray[np.float64]:
    values = found.elements.get(pair.pair_id)
    return np.full(len(pair.elements), np.nan) if values is None else values


_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Asks in the order of the plan; nothing is opened where nothing is to be asked."""

    name: ClassVar[str] = "local"
    threads: int = 2  # that make images ready
    ahead_batches: int = 4  # batches that wait, ready or in work, for the client
    ahead_bytes: int = 512 * _MIB  # about how much they may hold; one batch waits in any case

    def run(self, batches: Iterable[Batch], source: ClientSource) -> Iterator[Answered]:
        """See `Engine`."""
        drawn = iter(batches)
        first = next(drawn, None)
        if first is None:
            return
        with (
            source.open() as client,
            ThreadPoolExecutor(self.threads, thread_name_prefix="ready") as pool,
        ):
            queue = _Ahead(self, client, pool, chain([first], drawn))
            room = Room()
            try:
                while (waiting := queue.next()) is not None:
                    batch, ready = waiting
                    yield ask_ready(client, batch, ready, room)
            finally:
                queue.cancel()


class _Ahead:
    """Batches that are being made ready, first in, first out."""

    def __init__(
        self, engine: LocalEngine, client: ScorerClient, pool: Executor, batches: Iterator[Batch]
    ) -> None:
        self._engine = engine
        self._client = client
        self._pool = pool
        self._batches = batches
        self._waiting: deque[tuple[Batch, ReadyBatch]] = deque()
        self._drained = False

    def next(self) -> tuple[Batch, ReadyBatch] | None:
        """The batch that is due, with the next ones begun; None when there are no more."""
        self._fill(at_least=1)
        if not self._waiting:
            return None
        due = self._waiting.popleft()
        self._fill(at_least=1)
        return due

    def cancel(self) -> None:
        """Begin with nothing more."""
        for _, ready in self._waiting:
            ready.cancel()

    def _fill(self, *, at_least: int) -> None:
        while not self._drained and (
            len(self._waiting) < at_least
            or (
                len(self._waiting) < self._engine.ahead_batches
                and self._bytes_ahead() < self._engine.ahead_bytes
            )
        ):
            batch = next(self._batches, None)
            if batch is None:
                self._drained = True
                return
            self._waiting.append((batch, made_ready(self._client, batch, self._pool)))

    def _bytes_ahead(self) -> int:
        return sum(batch_bytes(batch, ready) for batch, ready in self._waiting)


def batch_bytes(batch: Batch, ready: ReadyBatch) -> int:
    """About how much memory a batch holds; what is not ready yet counts as what is."""
    raw = sum(len(item.data) for item in batch.items)
    made = [
        future.result().n_bytes
        for future in ready.images
        if future.done() and not future.cancelled() and future.exception() is None
    ]
    if not made:
        return 2 * raw
    return raw + sum(made) * len(ready.images) // len(made)


class ClientHost:
    """Takes calls from several threads at once.

    One thread opens, asks and closes the client: what it starts may belong to the thread that
    started it. While it asks for one batch, the images of the next are made ready by others.
    """

    def __init__(self, threads: int, ready_threads: int) -> None:
        self._threads = threads
        self._asking = ThreadPoolExecutor(1, thread_name_prefix="asking")
        self._pool = ThreadPoolExecutor(ready_threads, thread_name_prefix="ready")
        self._opened = ExitStack()
        self._room = Room()
        self._closing = False

    def open(self, source: ClientSource) -> None:
        """Start the client."""
        self._client: ScorerClient = self._asking.submit(self._open, source).result()

    def answer(self, batch: Batch) -> Answered:
        """Make a batch ready, and ask when it is its turn."""
        ready = made_ready(self._client, batch, self._pool)
        return self._asking.submit(self._answer, batch, ready).result()

    def close(self) -> None:
        """End the client, after what is asked just now; batches that wait are dropped."""
        self._closing = True
        self._asking.submit(self._opened.close).result()

    def _open(self, source: ClientSource) -> ScorerClient:
        client = self._opened.enter_context(source.open())
        # Only if the client uses it; loading it takes seconds.
        if torch := sys.modules.get("torch"):
            torch.set_num_threads(self._threads)
        return client

    def _answer(self, batch: Batch, ready: ReadyBatch) -> Answered:
        if self._closing:
            ready.cancel()
            raise CancelledError
        return ask_ready(self._client, batch, ready, self._room)
