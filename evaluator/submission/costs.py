"""Costs of an image, a text and a pair to a scorer, and the time of every benchmark from them.

Three requests tell the costs apart: many images with one text; one image with many texts that are
new; the same once more, when an encoder of texts has its vectors already. Each is asked with pictures
of the demo's size and of the sizes that benchmarks have, and more than once.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from PIL import Image

from benchmarks.schema import Benchmark, Card, Questions
from evaluator.isolation.inside.wire_protocol import Capability
from evaluator.isolation.job import Limits
from evaluator.scoring.asking import Size
from evaluator.scoring.images import canonical_image

MEDIUM_SIDE, LARGE_SIDE = 512, 1024
"""Pixels of the sides of pictures: most of the benchmarks' lie between these two."""
SIDES = (MEDIUM_SIDE, LARGE_SIDE)
BUDGET_S = 5.0
_MOST, _FEWEST = 6, 2
_REPEATS = 2
_SIZES = 3
READERS = 2
"""Threads that read pictures while the scorer works on those before."""


class SandboxRequest(Protocol):
    """What is needed of a box; see `ScorerSession`."""

    @property
    def capabilities(self) -> Capability:
        """What the scorer can do."""

    def score(self, images: Sequence[bytes], pairs: Sequence[tuple[int, str]]) -> object:
        """One score per pair."""

    def score_rows(
        self, images: Sequence[bytes], pairs: Sequence[tuple[int, str]], outputs: int
    ) -> object:
        """So many scores per pair."""

    def score_elements(
        self, images: Sequence[bytes] | None, items: Sequence[tuple[int, str, Sequence[str]]]
    ) -> object:
        """One score per element of each item."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Seconds that one more of each takes."""

    image: float  # with all that happens to it before it is compared
    text: float  # 0 where texts are not encoded apart
    pair: float  # once image and text are known
    elements: float = 0.0  # of the elements of one pair; 0 where the scorer gives none


@dataclass(frozen=True, slots=True)
class Costs:
    """What was measured on this machine."""

    small: tuple[Rates, Rates]  # the least and the most, with small pictures
    medium: Rates  # the least, with pictures of medium size
    large: Rates  # the most, with large pictures
    small_side: int  # of the small pictures, in pixels
    # seconds in which one thread reads a medium and a large picture; the scorer's own time has none
    # of it
    reading: tuple[float, float] = (0.0, 0.0)


def measured(
    box: SandboxRequest,
    images: Sequence[bytes],
    texts: Sequence[str],
    *,
    outputs: int = 1,
    budget_s: float = BUDGET_S,
    clock: Callable[[], float] = time.perf_counter,
) -> Costs:
    """Ask a scorer that is warm and see what it costs."""
    small = [canonical_image(data).png for data in images[:_MOST]]
    probe = _Probe(box, texts, outputs, clock)
    n = _affordable(probe, _enlarged(small[0], LARGE_SIDE), budget_s, len(small))
    small = small[:n]
    medium, large = ([_enlarged(data, side) for data in small] for side in SIDES)
    of_small, of_medium, of_large = (
        sorted((probe.rates(pictures, n) for _ in range(_REPEATS)), key=_in_all)
        for pictures in (small, medium, large)
    )
    with Image.open(io.BytesIO(small[0])) as first:
        side = max(first.size)
    elements = probe.elements(small[0])
    return Costs(
        small=(replace(of_small[0], elements=elements), replace(of_small[-1], elements=elements)),
        medium=replace(of_medium[0], elements=elements),
        large=replace(of_large[-1], elements=elements),
        small_side=side,
        reading=(_reading_s(medium[:2], clock), _reading_s(large[:2], clock)),
    )


class _Probe:
    """Asks, and never the same text as a new one twice."""

    def __init__(
        self, box: SandboxRequest, texts: Sequence[str], outputs: int, clock: Callable[[], float]
    ) -> None:
        self._box = box
        self._outputs = outputs
        self._texts = list(dict.fromkeys(texts))
        self._clock = clock
        self._asked = 0

    def seconds(self, images: Sequence[bytes], pairs: Sequence[tuple[int, str]]) -> float:
        """Of one request."""
        started = self._clock()
        if self._outputs > 1:
            self._box.score_rows(images, pairs, self._outputs)
        else:
            self._box.score(images, pairs)
        return self._clock() - started

    def new_texts(self, n: int) -> list[str]:
        """Texts that were not asked about before; a full stop more makes another of one."""
        found = []
        for place in range(self._asked, self._asked + n):
            rounds, which = divmod(place, len(self._texts))
            found.append(self._texts[which] + " ." * (rounds + 1))
        self._asked += n
        return found

    def rates(self, images: Sequence[bytes], n: int) -> Rates:
        """One estimate."""
        known = self._texts[0]
        self.seconds(images[:1], [(0, known)])
        of_images = self.seconds(images, [(i, known) for i in range(len(images))]) / len(images)
        asked = [(0, text) for text in self.new_texts(n)]
        new, again = self.seconds(images[:1], asked), self.seconds(images[:1], asked)
        encodes = self._outputs == 1 and Capability.ENCODE in self._box.capabilities
        if not encodes:
            new = again = min(new, again)
        # of_images = image + pair;  again / n = image / n + pair.
        image = max(0.0, (of_images - again / n) / (1 - 1 / n))
        pair = max(0.0, of_images - image)
        return Rates(image, max(0.0, (new - again) / n), pair)

    def elements(self, image: bytes) -> float:
        """Seconds for two elements of one pair."""
        if Capability.SCORE_ELEMENTS not in self._box.capabilities:
            return 0.0
        text = self._texts[0]
        words = text.split()[:2] or [text]
        started = self._clock()
        self._box.score_elements([image], [(0, text, words)])
        return self._clock() - started


def _affordable(probe: _Probe, image: bytes, budget_s: float, images: int) -> int:
    """How many images and texts a request may have: a slow scorer is asked less."""
    once = probe.seconds([image], [(0, text) for text in probe.new_texts(1)])
    requests = 3 * _SIZES * _REPEATS
    fit = int(budget_s / requests / once) if once > 0 else _MOST
    return max(_FEWEST, min(fit, images))


def _in_all(rates: Rates) -> float:
    return rates.image + rates.text + rates.pair


def _reading_s(images: Sequence[bytes], clock: Callable[[], float]) -> float:
    """Seconds in which one thread reads one picture and makes it ready."""
    started = clock()
    for data in images:
        canonical_image(data)
    return (clock() - started) / len(images)


def _enlarged(data: bytes, side: int) -> bytes:
    """The picture in the size of a benchmark's, with some noise: flat pictures are too easy."""
    with Image.open(io.BytesIO(data)) as image:
        large = np.asarray(image.convert("RGB").resize((side, side)), np.int16)
    noise = np.random.default_rng(0).integers(-8, 9, large.shape)
    buffer = io.BytesIO()
    Image.fromarray(np.clip(large + noise, 0, 255).astype(np.uint8)).save(
        buffer, "PNG", compress_level=1
    )
    return buffer.getvalue()


Span = tuple[int, int]
"""The least and the most."""
Fits = Literal["yes", "perhaps", "no"]

_TRUST_IMAGES, _TRUST_PAIRS = (84, 324), (84, 1020)
"""What seven passes over twelve images ask, each with one to three texts, and the controls: 24
images with as many prompts, then changed in seven ways, and then with no prompt, where there are as
many."""
_IMAGES = ("images",)
_IMAGES_BETWEEN = ("labelled images, at least", "labelled images, at most")
_TEXTS = ("prompts", "graphs")


@dataclass(frozen=True, slots=True)
class Ran:
    """A run of the check, of a part of a benchmark."""

    family: str  # of the benchmark
    size: Size  # what was asked
    scorer_s: float  # seconds in the scorer
    asking_s: float  # seconds until every pair had its score
    measuring_s: float  # seconds from scores to measures


@dataclass(frozen=True, slots=True)
class MeasuredTimes:
    """What runs take beside that which the costs say."""

    # the least and the most that the scorer took, as a multiple of its costs: reading and other
    # work of the machine slow it down
    hindered: tuple[float, float] = (1.0, 1.0)
    waiting: float = 0.0  # seconds for each image in which nothing was asked, at most
    # by family, seconds for each pair until the measures were there
    measuring: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Projection:
    """The time one benchmark would take on this machine."""

    benchmark: str  # its name
    size: Size | None  # what it asks; None where neither data nor card tell
    # the least, in seconds, without the start and the trust checks, which happen once for all
    # benchmarks; None where the size is not known
    low_s: float | None
    high_s: float | None  # the most
    # whether the worker's limit for a whole submission allows it; None: not known
    fits: Fits | None
    wanted: bool  # whether the module, as it stands, would be run on it


def projections(
    registry: Mapping[str, Benchmark],
    data: Path | None,
    costs: Costs,
    *,
    once_s: float,
    limits: Limits,
    wanted: Iterable[str],
    pace: MeasuredTimes | None = None,
) -> tuple[Projection, ...]:
    """Every benchmark, in the order of their names."""
    asked = frozenset(wanted)
    found = []
    for name, benchmark in sorted(registry.items()):
        size = size_of(benchmark, data)
        if size is None:
            found.append(Projection(name, None, None, None, None, name in asked))
            continue
        low, high = span_s(costs, size, pace, benchmark.card.family)
        fits = fits_into(once_s + low, once_s + high, limits.job_s)
        found.append(Projection(name, size, low, high, fits, name in asked))
    return tuple(found)


def span_s(
    costs: Costs, size: Size, pace: MeasuredTimes | None = None, family: str = ""
) -> tuple[float, float]:
    """The least and the most seconds, without the start and the trust checks.

    The least is the scorer's own time, or that in which the pictures can be read. The most has the
    scorer, the reading of each picture and the measures one after the other, at the worst pace that
    was seen.
    """
    pace = pace or MeasuredTimes()
    low, high = _scorer_s(costs, size)
    reading = (0.0, 0.0) if size.small else costs.reading
    least = max(low * pace.hindered[0], reading[0] * size.images[0] / READERS)
    most = (
        high * pace.hindered[1]
        + max(reading[1], pace.waiting) * size.images[1]
        + pace.measuring.get(family, max(pace.measuring.values(), default=0.0)) * size.pairs[1]
    )
    return least, most


def _scorer_s(costs: Costs, size: Size) -> tuple[float, float]:
    """The time a scorer takes if nothing hinders it."""
    least, most = costs.small if size.small else (costs.medium, costs.large)
    low, high = _seconds(least, size, 0), _seconds(most, size, 1)
    return min(low, high), max(low, high)


def pace_of(costs: Costs, runs: Sequence[Ran]) -> MeasuredTimes:
    """How runs that were made differ from what the costs say of them."""
    ratios = [1.0]
    for run in runs:
        low, high = _scorer_s(costs, run.size)
        if 0.0 < run.scorer_s < low:
            ratios.append(run.scorer_s / low)
        elif run.scorer_s > high > 0.0:
            ratios.append(run.scorer_s / high)
    waited = [max(0.0, run.asking_s - run.scorer_s) / run.size.images[0] for run in runs]
    measuring: dict[str, float] = {}
    for run in runs:
        rate = run.measuring_s / run.size.pairs[0]
        measuring[run.family] = max(measuring.get(run.family, 0.0), rate)
    return MeasuredTimes((min(ratios), max(ratios)), max(waited, default=0.0), measuring)


def trust_span_s(costs: Costs, seen_s: float, *, small: bool) -> tuple[float, float]:
    """The time of the trust checks, which are made once, on the first benchmark."""
    if small:
        return seen_s, seen_s
    images, pairs = _TRUST_IMAGES, _TRUST_PAIRS
    asked = Size(images, (1, images[1]), pairs, elements=False, small=False, from_card=False)
    low, high = _scorer_s(costs, asked)
    return min(seen_s, low), max(seen_s, high)


def fits_into(low: float, high: float, limit: float) -> Fits:
    """Whether a span of seconds lies below a limit."""
    if high <= limit:
        return "yes"
    return "no" if low > limit else "perhaps"


def size_of(benchmark: Benchmark, data: Path | None) -> Size | None:
    """What a benchmark asks: from its questions where they are here, else from its card."""
    if benchmark.has_questions(data):
        return of_questions(benchmark.questions(data), small=benchmark.card.simulated)
    return of_card(benchmark.card)


def of_questions(questions: Questions, *, small: bool) -> Size:
    """Counted."""
    images = len({pair.image_id for pair in questions.pairs})
    texts = len({pair.text_id for pair in questions.pairs})
    pairs = len(questions.pairs)
    spans = (images, images), (texts, texts), (pairs, pairs)
    return Size(*spans, elements=bool(questions.elements), small=small, from_card=False)


def of_card(card: Card) -> Size | None:
    """As its card says; None where that names no number of images.

    Every image is asked with its own prompt, in CROC with those of both sides. Where the card does
    not say how many prompts there are, there is at least one and at most one for each image.
    """
    images = _images(card.counts)
    if images is None:
        return None
    sides = 2 if card.family == "croc" else 1
    if "prompt pairs" in card.counts:
        texts = (2 * card.counts["prompt pairs"],) * 2
    else:
        named = next((card.counts[key] for key in _TEXTS if key in card.counts), None)
        texts = (1, images[1]) if named is None else (named, named)
    pairs = (sides * images[0], sides * images[1])
    return Size(
        images, texts, pairs, elements=card.family == "evalmuse", small=False, from_card=True
    )


def _images(counts: Mapping[str, int]) -> Span | None:
    for names in (_IMAGES, _IMAGES_BETWEEN):
        if all(name in counts for name in names):
            return counts[names[0]], counts[names[-1]]
    return None


def _seconds(rates: Rates, size: Size, end: Literal[0, 1]) -> float:
    elements = rates.elements * size.pairs[end] if size.elements else 0.0
    return (
        rates.image * size.images[end]
        + rates.text * size.texts[end]
        + rates.pair * size.pairs[end]
        + elements
    )
