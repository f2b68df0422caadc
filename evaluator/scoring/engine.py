"""Running a plan: images made ready ahead, batches asked, parts kept, one column at the end."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from math import nan
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.errors import PlatformError
from benchmarks.schema import Pair, Questions
from evaluator.isolation.frames import Capability
from evaluator.scoring.canonical import ImageError, canonical_png
from evaluator.scoring.plan import Fetched, ScoringPlan, Unit, batches
from evaluator.scoring.progress import Listener, Tracker
from evaluator.scoring.shards import ElementScore, Part, ShardFolder, joined

_MIB = 1024 * 1024


class Scores(Protocol):
    """What the engine needs of a session."""

    @property
    def capabilities(self) -> Capability:
        """What the scorer can do."""

    @property
    def peak_memory_bytes(self) -> int:
        """The most memory held so far."""

    def score(
        self, images: Sequence[bytes], pairs: Sequence[tuple[int, str]]
    ) -> NDArray[np.float64]:
        """One score per pair."""

    def score_elements(
        self,
        images: Sequence[bytes] | None,
        items: Sequence[tuple[int, str, Sequence[str]]],
    ) -> list[NDArray[np.float64]]:
        """One score per element of each item."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How a plan is run; none of it changes a score.

    Attributes:
        batch_pairs: pairs of one call of the scorer, unless a single image has more.
        batch_bytes: bytes of images of one call.
        fetchers: threads that make images ready.
        ahead: images that wait, ready, for the scorer.
        keep_every_s: how much work may be lost; parts are written this often.
    """

    batch_pairs: int = 64
    batch_bytes: int = 16 * _MIB
    fetchers: int = 2
    ahead: int = 128
    keep_every_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run cost, all its starts together.

    Attributes:
        images: images that were sent and decoded.
        pairs: pairs that were scored.
        seconds: time spent in the scorer.
        pairs_per_s: their ratio; 0 where no time passed.
        peak_memory_bytes: the most memory that the scorer's processes held.
        resumed_pairs: pairs that were kept from an earlier start.
    """

    images: int
    pairs: int
    seconds: float
    pairs_per_s: float
    peak_memory_bytes: int
    resumed_pairs: int


@dataclass(frozen=True)
class ScoreColumn:
    """The scores of one metric on one benchmark.

    Attributes:
        overall: index `pair_id` in the benchmark's order; NaN: the scorer gave no score.
        elements: columns `pair_id`, `element_id`, `score`, or None where there are none.
        cost: what it took.
    """

    overall: pd.Series[float]
    elements: pd.DataFrame | None
    cost: Cost


def run_plan(
    plan: ScoringPlan,
    questions: Questions,
    session: Scores,
    shards: ShardFolder,
    listener: Listener | None = None,
    *,
    options: EngineOptions | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> ScoreColumn:
    """Score whatever the shards do not hold yet, and put everything together.

    Raises:
        SubmitterError: the scorer failed; what was scored before stays in the shards.
        PlatformError: `image_unreadable`, an image of the benchmark.
    """
    options = options or EngineOptions()
    kept = shards.load({pair.pair_id for pair in questions.pairs})
    left = plan.without(kept.scores)
    tracker = Tracker(plan.n_pairs, listener, already_done=len(kept.scores), clock=clock)
    keeper = _Keeper(shards, options.keep_every_s, clock)
    asker = _Asker(questions, session, clock)
    try:
        with closing(_fetched(left.units, questions, options)) as fetched:
            cut = batches(fetched, max_pairs=options.batch_pairs, max_bytes=options.batch_bytes)
            for batch in cut:
                part = asker.ask(batch)
                keeper.add(part)
                tracker.advance(len(part.scores))
    finally:
        keeper.flush()
    whole = joined([kept, *keeper.written])
    return _column(questions, whole, resumed=len(kept.scores), with_elements=asker.asks_elements)


class _Keeper:
    """Collects parts and writes them now and then: one file per batch would be too many."""

    def __init__(self, shards: ShardFolder, every_s: float, clock: Callable[[], float]) -> None:
        self._shards = shards
        self._every_s = every_s
        self._clock = clock
        self._flushed = clock()
        self._waiting: list[Part] = []
        self.written: list[Part] = []

    def add(self, part: Part) -> None:
        self._waiting.append(part)
        if self._clock() - self._flushed >= self._every_s:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            part = joined(self._waiting)
            self._shards.write(part)
            self.written.append(part)
            self._waiting = []
        self._flushed = self._clock()


class _Asker:
    """Turns a batch into requests, and replies into a part."""

    def __init__(self, questions: Questions, session: Scores, clock: Callable[[], float]) -> None:
        self._questions = questions
        self._session = session
        self._clock = clock
        can = Capability.SCORE_ELEMENTS in session.capabilities
        self.asks_elements = can and bool(questions.elements)

    def ask(self, batch: Sequence[Fetched]) -> Part:
        started = self._clock()
        pairs = [(i, pair) for i, one in enumerate(batch) for pair in one.unit.pairs]
        scores = self._session.score(
            [one.png for one in batch],
            [(image, self._questions.texts[pair.text_id]) for image, pair in pairs],
        )
        elements = self._elements(pairs) if self.asks_elements else ()
        return Part(
            scores={pair.pair_id: float(s) for (_, pair), s in zip(pairs, scores, strict=True)},
            elements=tuple(elements),
            images=len(batch),
            seconds=self._clock() - started,
            peak_memory_bytes=self._session.peak_memory_bytes,
        )

    def _elements(self, pairs: Sequence[tuple[int, Pair]]) -> Iterator[ElementScore]:
        of_text = self._questions.elements
        asked = [
            (image, pair, of_text[pair.text_id])
            for image, pair in pairs
            if of_text.get(pair.text_id)
        ]
        if not asked:
            return
        items = [
            (image, self._questions.texts[pair.text_id], [element.text for element in elements])
            for image, pair, elements in asked
        ]
        # None: the images of the request before, which the box has decoded already.
        replies = self._session.score_elements(None, items)
        for (_, pair, elements), values in zip(asked, replies, strict=True):
            for element, value in zip(elements, values, strict=True):
                yield ElementScore(pair.pair_id, element.element_id, float(value))


def _fetched(
    units: Iterable[Unit], questions: Questions, options: EngineOptions
) -> Generator[Fetched, None, None]:
    """Images in the order of the plan, made ready by a few threads a bounded way ahead."""
    with ThreadPoolExecutor(options.fetchers, thread_name_prefix="images") as pool:
        waiting: deque[tuple[Unit, Future[bytes]]] = deque()
        try:
            for unit in units:
                waiting.append((unit, pool.submit(_image, questions, unit.image_id)))
                if len(waiting) > options.ahead:
                    yield _first(waiting)
            while waiting:
                yield _first(waiting)
        finally:
            for _, future in waiting:
                future.cancel()


def _first(waiting: deque[tuple[Unit, Future[bytes]]]) -> Fetched:
    unit, future = waiting.popleft()
    return Fetched(unit, future.result())


def _image(questions: Questions, image_id: str) -> bytes:
    try:
        return canonical_png(questions.images[image_id]())
    except (ImageError, OSError) as error:
        raise PlatformError(
            "image_unreadable", f"Image {image_id!r} of the benchmark cannot be read: {error}."
        ) from error


def _column(questions: Questions, whole: Part, *, resumed: int, with_elements: bool) -> ScoreColumn:
    pair_ids = [pair.pair_id for pair in questions.pairs]
    overall = pd.Series(
        [whole.scores[pair_id] for pair_id in pair_ids],
        index=pd.Index(pair_ids, name="pair_id"),
        dtype="float64",
        name="score",
    )
    rate = len(whole.scores) / whole.seconds if whole.seconds > 0 else 0.0
    cost = Cost(
        images=whole.images,
        pairs=len(whole.scores),
        seconds=whole.seconds,
        pairs_per_s=rate,
        peak_memory_bytes=whole.peak_memory_bytes,
        resumed_pairs=resumed,
    )
    elements = _element_table(questions, whole) if with_elements else None
    return ScoreColumn(overall, elements, cost)


def _element_table(questions: Questions, whole: Part) -> pd.DataFrame:
    """Elements in the benchmark's order of pairs, and in each text's own order."""
    scores = {(one.pair_id, one.element_id): one.score for one in whole.elements}
    rows = [
        (pair.pair_id, element.element_id, scores.get((pair.pair_id, element.element_id), nan))
        for pair in questions.pairs
        for element in questions.elements.get(pair.text_id, ())
    ]
    frame = pd.DataFrame(rows, columns=["pair_id", "element_id", "score"])
    return frame.astype({"score": "float64"})
