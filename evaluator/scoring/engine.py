"""Running a plan: images read ahead, batches asked, parts kept, one column at the end.

From encoded images to verdicts, whatever an item of a batch does, the others are scored. Every
engine works through its batches so, beside the client: that of this process, and an actor of Ray.
"""

from __future__ import annotations

import io
import math
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from math import nan
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.schema import Questions
from evaluator.scoring.asking import (
    Answered,
    Batch,
    ClientSource,
    Engine,
    Finding,
    Item,
    OutOfMemoryError,
    PairRequest,
    RawItem,
    Ready,
    Reply,
    ScorerClient,
    ScoringPlan,
    Unit,
    Work,
    summed,
)
from evaluator.scoring.column import (
    Keeper,
    Part,
    RunVerdict,
    ScoreColumn,
    ShardFolder,
    column_of,
    merged_parts,
    part_of,
)
from evaluator.scoring.contract import NO_NUMBER, Verdict
from evaluator.scoring.images import ImageError
from evaluator.scoring.progress import Listener, Tracker

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
            found.no_score(raw.asked, f"The image cannot be read: {error}")
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
    infinite = next(filter(math.isinf, verdict.outputs), None)
    if infinite is not None:
        first, *others = (math.nan if math.isinf(one) else one for one in verdict.outputs)
        return Verdict(first, f"the scorer gave {infinite}", verdict.answers, tuple(others))
    if any(map(math.isnan, verdict.outputs)) and not verdict.problem:
        return replace(verdict, problem=NO_NUMBER)
    return verdict


def _without_number(batch: Batch, found: _KnownScores) -> Iterator[Finding]:
    for item in batch.items:
        for pair in item.asked:
            verdict = found.verdicts[pair.pair_id]
            none = any(map(math.isnan, verdict.outputs))
            if none and pair.pair_id not in found.explained:
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


@dataclass(frozen=True, slots=True)
class Fetched:
    """A unit with its image at hand."""

    unit: Unit  # what is asked about the image
    data: bytes  # the image as it is kept
    # width and height as the header tells them; (0, 0) where they were not looked for, or cannot be
    # told
    size: tuple[int, int] = (0, 0)
    problem: str = ""  # why there is no data; empty where there is


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads units' images."""

    # the bytes of an image; `OSError`, or `SubmitterError` about the benchmark's files, where it
    # cannot be read
    read: Callable[[str], bytes]
    threads: int  # that read
    ahead: int  # images that wait at most
    ahead_bytes: int  # about how much they may hold
    measure: bool  # whether the size of an image is told as well

    def all(self, units: Iterable[Unit]) -> Generator[Fetched, None, None]:
        """The images in the order of the units."""
        held = _BytesInFlight()
        with ThreadPoolExecutor(self.threads, thread_name_prefix="images") as pool:
            waiting: deque[Future[Fetched]] = deque()
            try:
                for unit in units:
                    waiting.append(pool.submit(self._one, unit, held))
                    while waiting and (
                        len(waiting) > self.ahead or held.expected(len(waiting)) > self.ahead_bytes
                    ):
                        yield held.take(waiting.popleft().result())
                while waiting:
                    yield held.take(waiting.popleft().result())
            finally:
                for future in waiting:
                    future.cancel()

    def _one(self, unit: Unit, held: _BytesInFlight) -> Fetched:
        try:
            data = self.read(unit.image_id)
        except (OSError, SubmitterError) as error:
            return Fetched(unit, b"", problem=str(error) or type(error).__name__)
        held.add(len(data))
        return Fetched(unit, data, header_size(data) if self.measure else (0, 0))


class _BytesInFlight:
    """Counts the bytes of what was read and not given away yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bytes = self._read = self._read_bytes = self._given = 0

    def add(self, n_bytes: int) -> None:
        with self._lock:
            self._bytes += n_bytes
            self._read += 1
            self._read_bytes += n_bytes

    def take(self, fetched: Fetched) -> Fetched:
        with self._lock:
            self._bytes -= len(fetched.data)
            self._given += 1
        return fetched

    def expected(self, waiting: int) -> int:
        """What so many images will hold, those that are still to be read as large as the others."""
        with self._lock:
            unread = max(0, waiting - (self._read - self._given))
            mean = self._read_bytes // self._read if self._read else 0
            return self._bytes + unread * mean


def header_size(data: bytes) -> tuple[int, int]:
    """Width and height of an encoded image without decoding it; (0, 0) where that cannot be told."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            return image.size
    except Exception:  # noqa: BLE001 - damaged bytes raise anything; whoever decodes them says what
        return 0, 0


def in_windows(
    fetched: Iterable[Fetched], texts: Callable[[Unit], int], *, images: int, max_bytes: int
) -> Iterator[Fetched]:
    """The same images, within short stretches ordered by size and by their longest text.

    The order depends on the images and texts of the stretch alone, and on the order of the plan
    where these are equal. Batches of like items are filled up with less padding.
    """
    window: list[Fetched] = []
    n_bytes = 0
    for one in fetched:
        window.append(one)
        n_bytes += len(one.data)
        if len(window) >= images or n_bytes >= max_bytes:
            yield from _ordered(window, texts)
            window, n_bytes = [], 0
    yield from _ordered(window, texts)


def batches(
    fetched: Iterable[Fetched], questions: Questions, *, max_pairs: int, max_bytes: int
) -> Iterator[Batch]:
    """Cut at image boundaries; only a single image may pass a limit, for it is sent but once."""
    batch: list[RawItem] = []
    number = pairs = size = 0
    for one in fetched:
        n, n_bytes = len(one.unit.pairs), len(one.data)
        if batch and (pairs + n > max_pairs or size + n_bytes > max_bytes):
            yield Batch(number, tuple(batch))
            number, pairs, size, batch = number + 1, 0, 0, []
        batch.append(RawItem(one.unit.image_id, one.data, asked_of(one.unit, questions)))
        pairs, size = pairs + n, size + n_bytes
    if batch:
        yield Batch(number, tuple(batch))


def asked_of(unit: Unit, questions: Questions) -> tuple[PairRequest, ...]:
    """What is asked about an image, prompts and elements spelled out."""
    return tuple(
        PairRequest(
            pair.pair_id,
            pair.text_id,
            questions.texts[pair.text_id],
            questions.elements.get(pair.text_id, ()),
        )
        for pair in unit.pairs
    )


def _ordered(window: Sequence[Fetched], texts: Callable[[Unit], int]) -> list[Fetched]:
    if len(window) < 2:
        return list(window)
    return sorted(window, key=lambda one: (*one.size, texts(one.unit)))


__all__ = ["EngineOptions", "RunVerdict", "ScoreColumn", "run_plan"]


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How a plan is run; none of it changes a score."""

    batch_pairs: int = 64  # pairs of one batch, unless a single image has more
    batch_bytes: int = 16 * _MIB  # bytes of the encoded images of one batch
    # stretch of images that are ordered by size and length of their texts, so that batches need
    # little padding; 1 keeps the order of the plan
    window: int = 256
    fetchers: int = 2  # threads that read images
    ahead: int = 128  # images that wait, read, to be put into a batch
    ahead_bytes: int = 64 * _MIB  # about how much these may hold, and a window as well
    keep_every_s: float = 1.0  # how much work may be lost; parts are written this often


def run_plan(
    plan: ScoringPlan,
    questions: Questions,
    source: ClientSource,
    shards: ShardFolder,
    listener: Listener | None = None,
    *,
    engine: Engine | None = None,
    options: EngineOptions | None = None,
    outputs: int = 1,
    clock: Callable[[], float] = time.monotonic,
) -> ScoreColumn:
    """Score whatever the shards do not hold yet, and put everything together.

    What is wrong with one image, text or pair becomes a finding, and the rest is scored.

    `outputs`: scores that the source gives for each pair; those after the first are the column's
    `others`.
    """
    engine = engine or LocalEngine()
    options = options or EngineOptions()
    kept = shards.load({pair.pair_id for pair in questions.pairs})
    left = plan.without(kept.scores)
    tracker = Tracker(
        plan.n_pairs, listener, already_done=len(kept.scores), stage="starting", clock=clock
    )
    keeper = Keeper(shards, options.keep_every_s, clock)
    feed = _Feed(questions, options)
    try:
        with _answers(engine, feed, left.units, source) as answers:
            for answer in answers:
                part = feed.part(answer)
                keeper.add(part)
                tracker.enter("scoring")
                tracker.advance(len(part.scores))
    finally:
        keeper.flush()
    unread = feed.finish()
    tracker.advance(len(unread.scores))
    whole = merged_parts([kept, *keeper.written, unread])
    _refuse_if_nothing_is_readable(plan, whole.findings, shards)
    return column_of(
        questions, whole, resumed=len(kept.scores), engine=engine.name, outputs=outputs
    )


@contextmanager
def _answers(
    engine: Engine, feed: _Feed, units: Sequence[Unit], source: ClientSource
) -> Iterator[Iterator[Answered]]:
    """The engine at work; it has stopped, and reads nothing more, when the context is left."""
    with closing(feed.batches(units)) as drawn:
        answers = engine.run(drawn, source)
        try:
            yield answers
        finally:
            if isinstance(answers, Generator):
                answers.close()


class _Feed:
    """Cuts batches for an engine, and turns what comes back into parts."""

    def __init__(self, questions: Questions, options: EngineOptions) -> None:
        self._questions = questions
        self._options = options
        self._out: dict[int, tuple[tuple[PairRequest, ...], ...]] = {}
        self._unread: list[Part] = []

    def batches(self, units: Sequence[Unit]) -> Generator[Batch, None, None]:
        """Batches in their order; images that cannot be read are left out and noted."""
        options = self._options
        reader = Reader(
            lambda image_id: self._questions.images[image_id](),
            threads=options.fetchers,
            ahead=options.ahead,
            ahead_bytes=options.ahead_bytes,
            measure=options.window > 1,
        )
        with closing(reader.all(units)) as fetched:
            ordered = in_windows(
                self._readable(fetched),
                self._longest_text,
                images=options.window,
                max_bytes=options.ahead_bytes,
            )
            for batch in batches(
                ordered,
                self._questions,
                max_pairs=options.batch_pairs,
                max_bytes=options.batch_bytes,
            ):
                self._out[batch.number] = tuple(item.asked for item in batch.items)
                yield batch

    def part(self, answer: Answered) -> Part:
        """What an answer comes to."""
        asked = self._out.pop(answer.batch, None)
        if asked is None:
            raise PlatformError(
                "batch_answered_twice", f"Batch {answer.batch} was answered, but not asked."
            )
        return part_of(
            asked,
            answer.reply,
            environment=answer.environment,
            peak_memory_bytes=answer.peak_memory_bytes,
        )

    def finish(self) -> Part:
        """What is known of the images that could not be read.

        Not kept in a shard: another start reads them again, for a disk may be mended.
        """
        if self._out:
            raise PlatformError(
                "batches_lost", f"The engine ended without an answer to {len(self._out)} batches."
            )
        return merged_parts(self._unread)

    def _readable(self, fetched: Iterator[Fetched]) -> Iterator[Fetched]:
        for one in fetched:
            if one.problem:
                scores = {pair.pair_id: nan for pair in one.unit.pairs}
                finding = unreadable(one.unit.image_id, one.problem)
                self._unread.append(Part(scores=scores, findings=(finding,)))
            else:
                yield one

    def _longest_text(self, unit: Unit) -> int:
        return max(len(self._questions.texts[pair.text_id]) for pair in unit.pairs)


def _refuse_if_nothing_is_readable(
    plan: ScoringPlan, findings: Sequence[Finding], shards: ShardFolder
) -> None:
    """A benchmark without one readable image is no result, and nothing to go on from."""
    unread = [finding for finding in findings if finding.code == "image_unreadable"]
    if not unread or len(unread) < plan.n_images:
        return
    shards.clear()
    raise PlatformError(
        "image_unreadable",
        f"None of the {plan.n_images} images of the benchmark can be read; "
        f"of {unread[0].item_id!r}: {unread[0].message}",
    )
