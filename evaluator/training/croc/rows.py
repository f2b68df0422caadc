"""Training rows of CROCScore: a caption with one image, which shows it or shows its contrast.

Leiter et al. 2025, CROC, and the script in its repository's history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.croc.load import TEXTS, CrocAnswers, pair_id
from benchmarks.croc_syn.load import PROPERTIES, CrocSynAnswers
from benchmarks.errors import SubmitterError
from benchmarks.parsing import folded
from benchmarks.schema import Answers, Pair, Questions

_PLACEMENT, _VARIATION = "entity_placement", "entity_variation"


@dataclass(frozen=True, slots=True)
class Caption:
    """A prompt of a contrast pair, with images of both sides."""

    text: str
    mode: str  # how its pair was made, as in CROC_syn; empty for a pair of CROC_hum
    matching: tuple[str, ...]  # ids of images that were made of it
    contrast: tuple[str, ...]  # ids of images of the other prompt
    other: str  # the other prompt


@dataclass(frozen=True, slots=True)
class Row:
    """A caption with one image."""

    caption: str
    image: str  # its id
    shows: bool  # whether the image was made of the caption; else of its contrast
    made_of: str  # the text that the image was made of


@dataclass(frozen=True)
class RowChoice:
    """Which captions are taken, and with which images."""

    entities: int = 3000  # captions whose pairs place (or vary) an entity
    most: int = 16_000  # captions in all
    images: int = 1  # of a caption, all of one side
    seed: int = 42
    # as the authors' code takes them: the first captions that vary an entity, where the paper
    # has a draw of those that place one
    released: bool = False

    def rows(self, captions: Sequence[Caption]) -> tuple[tuple[Row, ...], Mapping[str, int]]:
        """The rows in the order of the draw, and how many captions are left out, by the reason.

        Each caption stands once, the first time that it is seen but for capitals, spacing and Unicode
        form, and a coin says which side its images are of: no caption has images of both.
        """
        dropped: Counter[str] = Counter()
        seen: set[str] = set()
        kept: dict[str, list[Caption]] = {}
        for caption in captions:
            key = folded(caption.text)
            if not key:
                dropped["blank caption"] += 1
            elif not (caption.matching and caption.contrast):
                dropped["images of one side alone"] += 1
            elif key in seen:
                dropped["caption that came before"] += 1
            else:
                seen.add(key)
                kept.setdefault(caption.mode, []).append(caption)
        taken = self._taken(kept)
        order = np.random.default_rng(self.seed).permutation(len(taken))[: self.most]
        coins = np.random.default_rng(self.seed + 1).integers(0, 2, len(order))
        rows = tuple(
            Row(taken[at].text, image, bool(coin), taken[at].text if coin else taken[at].other)
            for at, coin in zip(order, coins, strict=True)
            for image in (taken[at].matching if coin else taken[at].contrast)[: self.images]
        )
        unused = sum(map(len, kept.values())) - len(order)
        return rows, {**dropped, **({"caption not drawn": unused} if unused else {})}

    def _taken(self, kept: Mapping[str, list[Caption]]) -> list[Caption]:
        entities = kept.get(_VARIATION if self.released else _PLACEMENT, [])
        if not self.released:
            drawn = np.random.default_rng([self.seed, 1]).permutation(len(entities))
            entities = [entities[at] for at in drawn]
        others = [caption for mode in (PROPERTIES, "") for caption in kept.get(mode, [])]
        return [*others, *entities[: self.entities]]


def captions_of(answers: Answers, questions: Questions) -> tuple[Caption, ...]:
    """Both captions of every contrast pair, in the benchmark's order.

    Raises:
        SubmitterError: `unfit_data`: it has no contrast pairs.
    """
    pairs = {pair.pair_id: pair for pair in questions.pairs}
    if isinstance(answers, CrocSynAnswers):
        found = _of_syn(answers, pairs)
    elif isinstance(answers, CrocAnswers):
        found = _of_hum(answers, pairs)
    else:
        raise SubmitterError(
            "unfit_data",
            "CROCScore learns from pairs of contrasting prompts with images of both.",
            "Train on a benchmark in the layout of CROC_syn or CROC_hum.",
        )
    return tuple(
        Caption(questions.texts[text], mode, matching, contrast, questions.texts[other])
        for mode, text, other, matching, contrast in found
    )


_Found = tuple[str, str, str, tuple[str, ...], tuple[str, ...]]
"""Mode, ids of a text and of its contrast, images of it, images of its contrast."""


def _of_syn(answers: CrocSynAnswers, pairs: Mapping[str, Pair]) -> Iterator[_Found]:
    """A prompt pair has k images of the original, then k of the contrast, each with both texts."""
    k = answers.images_per_prompt
    for number, mode in enumerate(answers.prompts["mode"]):
        its = [pairs[one] for one in answers.pair_ids[4 * k * number : 4 * k * (number + 1)]]
        images = [pair.image_id for pair in its[:: len(TEXTS)]]
        yield from _both(
            str(mode), [one.text_id for one in its[: len(TEXTS)]], images[:k], images[k:]
        )


def _of_hum(answers: CrocAnswers, pairs: Mapping[str, Pair]) -> Iterator[_Found]:
    for pair in answers.prompt_pairs:
        sides = [
            [pairs[pair_id(stem, TEXTS[0])] for stem in stems]
            for stems in (pair.original_images, pair.contrast_images)
        ]
        first = next((its[0] for its in sides if its), None)
        if first is None:
            continue
        stem = first.pair_id.rpartition("|")[0]
        texts = [pairs[pair_id(stem, text)].text_id for text in TEXTS]
        yield from _both("", texts, *([one.image_id for one in its] for its in sides))


def _both(
    mode: str, texts: Sequence[str], original: Sequence[str], contrast: Sequence[str]
) -> Iterator[_Found]:
    yield mode, texts[0], texts[1], tuple(original), tuple(contrast)
    yield mode, texts[1], texts[0], tuple(contrast), tuple(original)
