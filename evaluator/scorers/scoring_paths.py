"""Three ways to ask a scorer, from the cheapest it offers to the one that each has.

Whichever it is, the same pair gets the same score; what differs is how often an image or a text
goes through the model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.errors import PlatformError
from evaluator.scorers.embeddings import EmbeddingCache, digest_of_text
from evaluator.scoring.asking import Item, Work
from evaluator.scoring.contract import Verdict
from evaluator.scoring.images import Remark

_T = TypeVar("_T")


@dataclass(slots=True)
class Picture:
    """An image as these ways take it; what is found out about it stays with it."""

    digest: bytes  # SHA-256 of its encoded bytes
    prepared: Any = None  # what the scorer takes; None where its vector was kept
    vector: NDArray[np.float32] | None = None  # its embedding, once it is known
    remarks: tuple[Remark, ...] = ()  # what was done to it
    problem: str = ""  # why the scorer cannot take it; empty where it can
    # whether it was decoded, and that is not yet among the work that was told
    uncounted: bool = False


@dataclass(slots=True)
class Meter:
    """Counts work until it is told; what a failed request cost goes to the next one that works."""

    clock: Callable[[], float] = time.perf_counter
    calls: int = 0
    decoded: int = 0
    images: int = 0
    texts: int = 0
    seconds: float = 0.0

    def call(self, method: Callable[..., _T], *arguments: Any) -> _T:
        """Call a method of the scorer."""
        started = self.clock()
        self.calls += 1
        try:
            return method(*arguments)
        finally:
            self.seconds += self.clock() - started

    def take(self) -> Work:
        """What was done since the last time."""
        work = Work(self.calls, self.decoded, self.images, self.texts, self.seconds)
        self.calls = self.decoded = self.images = self.texts = 0
        self.seconds = 0.0
        return work


ScoringPath = Callable[[Sequence[Item]], list[tuple[Verdict, ...]]]
"""Scores a batch, for each item one verdict per prompt, or raises whatever the scorer raised."""


def path_of(
    scorer: Any, meter: Meter, *, batch_texts: int, cache: EmbeddingCache | None = None
) -> ScoringPath:
    """The cheapest way that a scorer offers."""
    if is_dual_encoder(scorer):
        return DualPath(scorer, meter, batch_texts, cache).score
    return partial(by_image if offers(scorer, "score_texts") else by_pair, scorer, meter)


def offers(scorer: Any, *methods: str) -> bool:
    """Whether a scorer has these methods."""
    return all(callable(getattr(scorer, name, None)) for name in methods)


def is_dual_encoder(scorer: Any) -> bool:
    """Whether it encodes images and texts apart."""
    return offers(scorer, "encode_images", "encode_texts", "similarity")


@dataclass(slots=True)
class DualPath:
    """Each image once, each text once in a run, then the wanted combinations row by row.

    In which company a text is encoded depends on what was asked before; where that must not even
    change rounding, `batch_texts` is 1.
    """

    scorer: Any
    meter: Meter
    batch_texts: int
    cache: EmbeddingCache | None = None
    _texts: dict[str, NDArray[np.float32]] = field(default_factory=dict)

    def score(self, items: Sequence[Item]) -> list[tuple[Verdict, ...]]:
        """See `ScoringPath`."""
        self._encode_images(_pictures(items))
        self._encode_texts({asked.prompt for item in items for asked in item.asked})
        images = [item.image.content.vector for item in items for _ in item.asked]
        texts = [self._texts[asked.prompt] for item in items for asked in item.asked]
        scores = self.meter.call(self.scorer.similarity, np.stack(images), np.stack(texts))
        return _split(checked(scores, len(images), "similarity"), items)

    def _encode_images(self, pictures: Sequence[Picture]) -> None:
        known = {one.digest: one.vector for one in pictures if one.vector is not None}
        missing = {one.digest: one for one in pictures if one.digest not in known}
        if missing:
            images = [one.prepared for one in missing.values()]
            found = self.meter.call(self.scorer.encode_images, images)
            vectors = _rows(found, len(images), "encode_images")
            self.meter.images += len(images)
            for one, vector in zip(missing.values(), vectors, strict=True):
                known[one.digest] = vector
                if self.cache is not None:
                    self.cache.add("image", one.digest, vector, one.remarks)
        for one in pictures:
            one.vector = known[one.digest]

    def _encode_texts(self, prompts: set[str]) -> None:
        # Texts of like length together: they are padded to the longest.
        missing = sorted(prompts - self._texts.keys(), key=lambda prompt: (len(prompt), prompt))
        if self.cache is not None:
            missing = [prompt for prompt in missing if not self._recall(prompt, self.cache)]
        for start in range(0, len(missing), self.batch_texts):
            chunk = missing[start : start + self.batch_texts]
            found = self.meter.call(self.scorer.encode_texts, chunk)
            vectors = _rows(found, len(chunk), "encode_texts")
            self.meter.texts += len(chunk)
            for prompt, vector in zip(chunk, vectors, strict=True):
                self._texts[prompt] = vector
                if self.cache is not None:
                    self.cache.add("text", digest_of_text(prompt), vector)

    def _recall(self, prompt: str, cache: EmbeddingCache) -> bool:
        row = cache.find("text", digest_of_text(prompt))
        if row is not None:
            self._texts[prompt] = row.vector
        return row is not None


def by_image(scorer: Any, meter: Meter, items: Sequence[Item]) -> list[tuple[Verdict, ...]]:
    """Each image once with all its texts."""
    images = [picture.prepared for picture in _pictures(items)]
    prompts = [[asked.prompt for asked in item.asked] for item in items]
    found = meter.call(scorer.score_texts, images, prompts)
    rows = checked(found, len(items), "score_texts")
    scores = [
        tuple(Verdict.of(value) for value in checked(row, len(asked), "score_texts"))
        for row, asked in zip(rows, prompts, strict=True)
    ]
    meter.images += len(images)
    meter.texts += sum(map(len, prompts))
    return scores


def by_pair(scorer: Any, meter: Meter, items: Sequence[Item]) -> list[tuple[Verdict, ...]]:
    """Each pair on its own."""
    pairs = [
        (picture.prepared, asked.prompt)
        for item, picture in zip(items, _pictures(items), strict=True)
        for asked in item.asked
    ]
    images, prompts = [image for image, _ in pairs], [prompt for _, prompt in pairs]
    found = checked(meter.call(scorer.score, images, prompts), len(pairs), "score")
    meter.images += len(pairs)
    meter.texts += len(pairs)
    return _split(found, items)


def checked(values: Any, n: int, method: str) -> list[Any]:
    """What a method gave, as a list of the right length."""
    found = values.tolist() if hasattr(values, "tolist") else list(values)
    if len(found) != n:
        raise PlatformError("scorer_defect", f"{method} gave {len(found)} values for {n}.")
    return found


def _rows(values: Any, n: int, method: str) -> NDArray[np.float32]:
    # A copy: the scorer may use its buffer again.
    vectors = np.array(values, dtype=np.float32)
    if vectors.ndim < 2 or len(vectors) != n:
        raise PlatformError(
            "scorer_defect", f"{method} gave an array of shape {vectors.shape} for {n} rows."
        )
    return vectors


def _split(scores: Sequence[Any], items: Sequence[Item]) -> list[tuple[Verdict, ...]]:
    left = iter(scores)
    return [tuple(Verdict.of(next(left)) for _ in item.asked) for item in items]


def _pictures(items: Sequence[Item]) -> list[Picture]:
    return [item.image.content for item in items]
