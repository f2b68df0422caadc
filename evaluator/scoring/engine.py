"""Running a plan: images read ahead, batches asked, parts kept, one column at the end."""

from __future__ import annotations

import io
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from math import nan

from PIL import Image

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.schema import Questions
from evaluator.scoring.asking import (
    Answered,
    Batch,
    ClientSource,
    Engine,
    Finding,
    PairRequest,
    RawItem,
    ScoringPlan,
    Unit,
)
from evaluator.scoring.batch_work import LocalEngine, unreadable
from evaluator.scoring.column import (
    Cost,
    Keeper,
    Part,
    RunVerdict,
    ScoreColumn,
    ShardFolder,
    column_of,
    merged_parts,
    part_of,
)
from evaluator.scoring.progress import Listener, Tracker


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


__all__ = ["Cost", "EngineOptions", "RunVerdict", "ScoreColumn", "run_plan"]

_MIB = 1024 * 1024


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
    clock: Callable[[], float] = time.monotonic,
) -> ScoreColumn:
    """Score whatever the shards do not hold yet, and put everything together.

    What is wrong with one image, text or pair becomes a finding, and the rest is scored.
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
    return column_of(questions, whole, resumed=len(kept.scores), engine=engine.name)


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
