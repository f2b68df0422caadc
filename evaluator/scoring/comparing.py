"""Comparisons: two images of a prompt, asked in both orders, and the scores that follow from them.

To the engine a comparison is a pair like any other, whose image is both images together.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np
import pandas as pd

from benchmarks.arrays import FloatArray
from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.questions import BETWEEN_PAIRS
from benchmarks.schema import Method, Pair, Questions
from benchmarks.statistics.bradley_terry import strengths_of_many
from evaluator.scoring.asking import Batch, Item, RawItem, Ready, Reply, ScorerClient
from evaluator.scoring.column import NO_SCORE, RunVerdict, ScoreColumn
from evaluator.scoring.contract import Verdict
from evaluator.scoring.engine import answered

NEIGHBOURS = 4
"""Images on either side, in a seeded order, that an image of a long list is compared with."""
_AT_ONCE = 8
"""Images that are compared with another in one request of a control."""


class TwoImages(bytes):
    """Two encoded images, one after the other. No content of a file can pass for it."""

    first_bytes: int


def packed(first: bytes, second: bytes) -> TwoImages:
    """Two encoded images as one."""
    found = TwoImages(first + second)
    found.first_bytes = len(first)
    return found


def unpacked(data: bytes) -> tuple[bytes, bytes] | None:
    """Both images where there are two; None for a single one."""
    if not isinstance(data, TwoImages):
        return None
    return bytes(data[: data.first_bytes]), bytes(data[data.first_bytes :])


def each_image(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """The file with its image, or both of its images, changed."""
    both = unpacked(data)
    return change(data) if both is None else packed(change(both[0]), change(both[1]))


def method_missing(asked: Method) -> SubmitterError:
    """The error for a metric that was asked by the method that it has not."""
    has = "score" if asked == "compare" else "compare"
    return SubmitterError(
        "method_missing",
        f"The metric was to be asked by {asked}, and has the method {has} alone.",
        f'Ask it by {has}; of a scoring module, write method = "{has}" into assay.toml.',
    )


@dataclass(frozen=True)
class Comparisons:
    """What a metric that compares is asked about the questions of a benchmark."""

    questions: Questions  # a pair for each order of each comparison
    pairs: Mapping[str, tuple[str, str]]  # its id to the pairs of the first and the second image
    text_of: Mapping[str, str]  # pair to its text, of all pairs of the benchmark

    @classmethod
    def of(cls, questions: Questions, seed: bytes) -> Self:
        """Both orders of the schedule of every list; the same seed gives the same.

        Raises:
            SubmitterError: `nothing_to_compare`: no text has two images.
            PlatformError: `questions_outdated`: they were exported before they said what is compared.
        """
        by_id = {pair.pair_id: pair for pair in questions.pairs}
        pairs: dict[str, tuple[str, str]] = {}
        if questions.lists is None:
            raise PlatformError(
                "questions_outdated",
                "The exported questions do not say which images are compared.",
                "Export them again: python -m benchmarks questions",
            )
        for one in questions.lists or _lists_of(questions):
            for first, second in scheduled([pair for pair in one if pair in by_id], seed):
                pairs |= {_named(first, second): (first, second)}
                pairs |= {_named(second, first): (second, first)}
        if not pairs:
            raise SubmitterError(
                "nothing_to_compare",
                "The benchmark has one image of each prompt, so there is nothing to compare.",
                "Name other benchmarks in assay.toml.",
            )

        def reader(first: str, second: str) -> Callable[[], bytes]:
            both = (questions.images[by_id[name].image_id] for name in (first, second))
            return partial(_read_both, *both)

        asked = Questions(
            images={name: reader(*both) for name, both in pairs.items()},
            texts=questions.texts,
            pairs=tuple(Pair(name, name, by_id[a].text_id) for name, (a, _) in pairs.items()),
        )
        return cls(asked, pairs, {pair.pair_id: pair.text_id for pair in questions.pairs})

    def column(self, asked: ScoreColumn) -> ScoreColumn:
        """Scores of the benchmark's pairs from margins: strengths within each text.

        A pair of no comparison that was answered in both orders has none.
        """
        both = pd.DataFrame(self.pairs.values(), columns=["pair_id", "other_id"])
        margins = both.assign(margin=asked.overall.loc[list(self.pairs)].to_numpy())
        overall = self._strengths(margins)
        return replace(
            asked,
            overall=overall,
            margins=margins,
            verdict=self._verdict(asked, overall),
        )

    def _strengths(self, margins: pd.DataFrame) -> pd.Series[float]:
        found = pd.Series(
            math.nan, index=pd.Index(list(self.text_of), name="pair_id"), name="score"
        )
        # What one order says alone may be said of the place.
        known = margins[(margins["margin"] + turned(margins)).notna()]
        codes, names = pd.factorize(pd.concat([known["pair_id"], known["other_id"]]))
        first, second = codes[: len(known)], codes[len(known) :]
        won = 0.5 + 0.5 * np.sign(known["margin"].to_numpy())
        found[names] = strengths_of_many(first, second, won, len(names))
        return found

    def _verdict(self, asked: ScoreColumn, overall: pd.Series[float]) -> RunVerdict:
        """Counts pairs that were compared; what was asked of each is among the findings."""
        of_pair: dict[str, list[str]] = {}
        for name, (first, second) in self.pairs.items():
            of_pair.setdefault(first, []).append(name)
            of_pair.setdefault(second, []).append(name)
        codes = {one.item_id: one.code for one in asked.findings if not one.scored}
        missing = [pair for pair in of_pair if math.isnan(overall[pair])]
        reasons = (
            next((codes[name] for name in of_pair[pair] if name in codes), NO_SCORE)
            for pair in missing
        )
        return RunVerdict(
            pairs=len(of_pair),
            scored=len(of_pair) - len(missing),
            unscored=dict(Counter(reasons).most_common()),
            remarks=asked.verdict.remarks,
        )


def scheduled(pairs: Sequence[str], seed: bytes) -> Iterator[tuple[str, str]]:
    """Pairs to be compared: all of a short list, of a long one each with its neighbours in a ring.

    The ring is in the order of a keyed hash, and every pair of it has as many neighbours.
    """

    def place(name: str) -> bytes:
        return hashlib.blake2b(name.encode(), key=seed[:64], digest_size=16).digest()

    ring = sorted(dict.fromkeys(pairs), key=place)
    n = len(ring)
    for step in range(1, min(NEIGHBOURS, n // 2) + 1):
        # Halfway round, both ends name the same pair of a ring of even length.
        yield from (
            (ring[at], ring[(at + step) % n]) for at in range(n // 2 if 2 * step == n else n)
        )


def turned(margins: pd.DataFrame) -> FloatArray:
    """Margin of each line's comparison in the other order, shape (n,); NaN where there is none."""
    first, second = margins["pair_id"], margins["other_id"]
    of_both = pd.Series(
        margins["margin"].to_numpy(), index=pd.MultiIndex.from_arrays([second, first])
    )
    return of_both.reindex(pd.MultiIndex.from_arrays([first, second])).to_numpy(np.float64)


def _lists_of(questions: Questions) -> list[list[str]]:
    """Pairs by text."""
    found: dict[str, list[str]] = {}
    for pair in questions.pairs:
        found.setdefault(pair.text_id, []).append(pair.pair_id)
    return list(found.values())


def _named(first: str, second: str) -> str:
    return f"{first}{BETWEEN_PAIRS}{second}"


def _read_both(first: Callable[[], bytes], second: Callable[[], bytes]) -> bytes:
    return packed(first(), second())


@dataclass(frozen=True)
class AgainstImage:
    """A client that scores an image with a prompt by its margin over one image of that prompt.

    The mean of both orders; an image is level with itself, and with a prompt that has no image
    there is no score.
    """

    client: ScorerClient  # of a metric that compares
    image_of: Mapping[str, bytes]  # prompt to its image
    asks_elements: bool = False

    @property
    def peak_memory_bytes(self) -> int:
        """See `ScorerClient`."""
        return self.client.peak_memory_bytes

    @property
    def environment(self) -> dict[str, str]:
        """See `ScorerClient`."""
        return self.client.environment

    def ready(self, data: bytes) -> Ready:
        """See `ScorerClient`."""
        return Ready(data, len(data))

    def ask(self, items: Sequence[Item]) -> Reply:
        """See `ScorerClient`."""
        wanted = [
            (item.image.content, self.image_of[one.prompt], one)
            for item in items
            for one in item.asked
            if self.image_of.get(one.prompt, item.image.content) != item.image.content
        ]
        margins: list[float] = []
        for start in range(0, len(wanted), _AT_ONCE):
            orders = [
                (packed(*images), one)
                for image, own, one in wanted[start : start + _AT_ONCE]
                for images in ((image, own), (own, image))
            ]
            both = tuple(
                RawItem(f"{n}", data, (replace(one, pair_id=f"{n}"),))
                for n, (data, one) in enumerate(orders)
            )
            reply = answered(self.client, Batch(start, both)).reply
            margins += [verdict.score for (verdict,) in reply.verdicts]
        found = iter(zip(margins[::2], margins[1::2], strict=True))

        def verdict(image: bytes, prompt: str) -> Verdict:
            if prompt not in self.image_of:
                return Verdict.of(math.nan)
            if self.image_of[prompt] == image:
                return Verdict(0.0)
            there, back = next(found)
            return Verdict.of((there - back) / 2)

        return Reply(
            tuple(
                tuple(verdict(item.image.content, one.prompt) for one in item.asked)
                for item in items
            )
        )
