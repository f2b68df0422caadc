"""How long a scorer would take on each benchmark, from what it costs here: pure arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.schema import Benchmark, Card, Questions
from evaluator.isolation.limits import Limits
from evaluator.submission.costs import Costs, Rates

Span = tuple[int, int]
"""The least and the most."""
Fits = Literal["yes", "perhaps", "no"]

_IMAGES = ("images",)
_IMAGES_BETWEEN = ("labelled images, at least", "labelled images, at most")
_TEXTS = ("prompts", "graphs")


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything a benchmark asks.

    Attributes:
        images: distinct ones.
        texts: distinct ones.
        pairs: scores that are wanted.
        elements: whether parts of prompts are asked about as well.
        small: whether its pictures are as small as the demo's.
        from_card: the data are not here: these are the counts that its card names.
    """

    images: Span
    texts: Span
    pairs: Span
    elements: bool
    small: bool
    from_card: bool


@dataclass(frozen=True, slots=True)
class Projection:
    """The time one benchmark would take on this machine.

    Attributes:
        benchmark: its name.
        size: what it asks; None where neither data nor card tell.
        low_s: the least, in seconds, without the start, which happens once for all benchmarks;
            None where the size is not known.
        high_s: the most.
        fits: whether the worker's limit for a whole submission allows it; None: not known.
        wanted: whether the module, as it stands, would be run on it.
    """

    benchmark: str
    size: Size | None
    low_s: float | None
    high_s: float | None
    fits: Fits | None
    wanted: bool


def projections(
    registry: Mapping[str, Benchmark],
    data: Path | None,
    costs: Costs,
    *,
    start_s: float,
    limits: Limits,
    wanted: Iterable[str],
) -> tuple[Projection, ...]:
    """Every benchmark, in the order of their names.

    Args:
        registry: all benchmarks.
        data: folder of data files.
        costs: as they were measured.
        start_s: seconds until the scorer was ready.
        limits: of the worker.
        wanted: names the module asks for.
    """
    asked = frozenset(wanted)
    found = []
    for name, benchmark in sorted(registry.items()):
        size = size_of(benchmark, data)
        if size is None:
            found.append(Projection(name, None, None, None, None, name in asked))
            continue
        low, high = span_s(costs, size)
        fits = fits_into(start_s + low, start_s + high, limits.job_s)
        found.append(Projection(name, size, low, high, fits, name in asked))
    return tuple(found)


def span_s(costs: Costs, size: Size) -> tuple[float, float]:
    """The least and the most seconds, without the start."""
    least, most = costs.small if size.small else (costs.medium, costs.large)
    low, high = _seconds(least, size, 0), _seconds(most, size, 1)
    return min(low, high), max(low, high)


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
