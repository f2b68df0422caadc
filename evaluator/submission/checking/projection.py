"""Projection of a scorer's time to each benchmark, from its costs here: pure arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from benchmarks.schema import Benchmark, Card, Questions
from evaluator.isolation.limits import Limits
from evaluator.scoring.plan import Size
from evaluator.submission.checking.costs import READERS, Costs, Rates

Span = tuple[int, int]
"""The least and the most."""
Fits = Literal["yes", "perhaps", "no"]

_TRUST_IMAGES, _TRUST_PAIRS = (84, 108), (84, 252)
"""What seven passes over twelve images ask, each with one to three texts."""
_IMAGES = ("images",)
_IMAGES_BETWEEN = ("labelled images, at least", "labelled images, at most")
_TEXTS = ("prompts", "graphs")


@dataclass(frozen=True, slots=True)
class Ran:
    """A run of the check, of a part of a benchmark.

    Attributes:
        family: of the benchmark.
        size: what was asked.
        scorer_s: seconds in the scorer.
        asking_s: seconds until every pair had its score.
        measuring_s: seconds from scores to measures.
    """

    family: str
    size: Size
    scorer_s: float
    asking_s: float
    measuring_s: float


@dataclass(frozen=True, slots=True)
class Pace:
    """What runs take beside that which the costs say.

    Attributes:
        hindered: the least and the most that the scorer took, as a multiple of its costs: reading
            and other work of the machine slow it down.
        waiting: seconds for each image in which nothing was asked, at most.
        measuring: by family, seconds for each pair until the measures were there.
    """

    hindered: tuple[float, float] = (1.0, 1.0)
    waiting: float = 0.0
    measuring: Mapping[str, float] = field(default_factory=dict)

    def measures_s(self, family: str) -> float:
        """Seconds for each pair; of a family that was not asked, the most that was seen."""
        return self.measuring.get(family, max(self.measuring.values(), default=0.0))


@dataclass(frozen=True, slots=True)
class Projection:
    """The time one benchmark would take on this machine.

    Attributes:
        benchmark: its name.
        size: what it asks; None where neither data nor card tell.
        low_s: the least, in seconds, without the start and the trust checks, which happen once for
            all benchmarks; None where the size is not known.
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
    once_s: float,
    limits: Limits,
    wanted: Iterable[str],
    pace: Pace | None = None,
) -> tuple[Projection, ...]:
    """Every benchmark, in the order of their names.

    Args:
        registry: all benchmarks.
        data: folder of data files.
        costs: as they were measured.
        once_s: seconds of what happens once, at most: the start and the trust checks.
        limits: of the worker.
        wanted: names the module asks for.
        pace: of the runs that were made.
    """
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
    costs: Costs, size: Size, pace: Pace | None = None, family: str = ""
) -> tuple[float, float]:
    """The least and the most seconds, without the start and the trust checks.

    The least is the scorer's own time, or that in which the pictures can be read. The most has the
    scorer, the reading of each picture and the measures one after the other, at the worst pace that
    was seen.

    Args:
        costs: as they were measured.
        size: of the benchmark.
        pace: of the runs that were made.
        family: of the benchmark.
    """
    pace = pace or Pace()
    low, high = _scorer_s(costs, size)
    reading = (0.0, 0.0) if size.small else costs.reading
    least = max(low * pace.hindered[0], reading[0] * size.images[0] / READERS)
    most = (
        high * pace.hindered[1]
        + max(reading[1], pace.waiting) * size.images[1]
        + pace.measures_s(family) * size.pairs[1]
    )
    return least, most


def _scorer_s(costs: Costs, size: Size) -> tuple[float, float]:
    """The time a scorer takes if nothing hinders it."""
    least, most = costs.small if size.small else (costs.medium, costs.large)
    low, high = _seconds(least, size, 0), _seconds(most, size, 1)
    return min(low, high), max(low, high)


def pace_of(costs: Costs, runs: Sequence[Ran]) -> Pace:
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
    return Pace((min(ratios), max(ratios)), max(waited, default=0.0), measuring)


def trust_span_s(costs: Costs, seen_s: float, *, small: bool) -> tuple[float, float]:
    """The time of the trust checks, which are made once, on the first benchmark.

    Args:
        costs: as they were measured.
        seen_s: seconds they took in the check.
        small: whether the first benchmark's pictures are as small as the demo's.
    """
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
