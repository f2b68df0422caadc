"""Costs of an image, a text and a pair to a scorer in its box, found by asking differently.

Three requests tell them apart: many images with one text; one image with many texts that are new;
the same once more, when an encoder of texts has its vectors already. Each is asked with pictures of
the demo's size and of the sizes that benchmarks have, and more than once.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from PIL import Image

from evaluator.isolation.inside.frames import Capability
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


class Asked(Protocol):
    """What is needed of a box; see `ScorerSession`."""

    @property
    def capabilities(self) -> Capability:
        """What the scorer can do."""

    def score(self, images: Sequence[bytes], pairs: Sequence[tuple[int, str]]) -> object:
        """One score per pair."""

    def score_elements(
        self, images: Sequence[bytes] | None, items: Sequence[tuple[int, str, Sequence[str]]]
    ) -> object:
        """One score per element of each item."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Seconds that one more of each takes.

    Attributes:
        image: with all that happens to it before it is compared.
        text: 0 where texts are not encoded apart.
        pair: once image and text are known.
        elements: of the elements of one pair; 0 where the scorer gives none.
    """

    image: float
    text: float
    pair: float
    elements: float = 0.0


@dataclass(frozen=True, slots=True)
class Costs:
    """What was measured on this machine.

    Attributes:
        small: the least and the most, with small pictures.
        medium: the least, with pictures of medium size.
        large: the most, with large pictures.
        small_side: of the small pictures, in pixels.
        reading: seconds in which one thread reads a medium and a large picture; the scorer's own
            time has none of it.
    """

    small: tuple[Rates, Rates]
    medium: Rates
    large: Rates
    small_side: int
    reading: tuple[float, float] = (0.0, 0.0)


def measured(
    box: Asked,
    images: Sequence[bytes],
    texts: Sequence[str],
    *,
    budget_s: float = BUDGET_S,
    clock: Callable[[], float] = time.perf_counter,
) -> Costs:
    """Ask a scorer that is warm and see what it costs.

    Args:
        box: entered, and asked before.
        images: encoded pictures of the demo, at least two.
        texts: prompts of the demo, at least two.
        budget_s: about how long this may take.
        clock: seconds.

    Raises:
        SubmitterError: the scorer failed.
    """
    small = [canonical_image(data).png for data in images[:_MOST]]
    probe = _Probe(box, texts, clock)
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

    def __init__(self, box: Asked, texts: Sequence[str], clock: Callable[[], float]) -> None:
        self._box = box
        self._texts = list(dict.fromkeys(texts))
        self._clock = clock
        self._asked = 0

    def seconds(self, images: Sequence[bytes], pairs: Sequence[tuple[int, str]]) -> float:
        """Of one request."""
        started = self._clock()
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
        encodes = Capability.ENCODE in self._box.capabilities
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
