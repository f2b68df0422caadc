"""Control of what a score is about: every prompt of a sample is put to every image of it.

Cost: 24 x 24 pairs and 24 empty prompts, whatever the benchmark; the images are 24.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray
from benchmarks.cases import BETWEEN_SKILLS
from benchmarks.errors import SubmitterError
from benchmarks.schema import Benchmark, Pair, Questions
from benchmarks.statistics.prompt_effect import MIN_SIZE, Area, prompt_effect
from evaluator.scoring.asking import PairRequest, RawItem, ScorerClient
from evaluator.trust import canonical_items, scores_of
from leaderboard.trust import AreaFigures, PromptControl

SIZE = 24
"""Prompts, and images, of a sample."""
ENDED = "it ended when it was asked about prompts of other images"

Skills = Mapping[str, frozenset[str]]
"""Pair id to the skills that its prompt tests."""


@dataclass(frozen=True)
class Crossing:
    """A sample of images with a prompt each; no image is asked with another's in the benchmark."""

    questions: Questions  # pairs: one of each image, in an order that nobody can know
    skills: Skills  # of these pairs; empty where they are not known

    @property
    def texts(self) -> list[str]:
        """The prompts, shape (P,); the p-th is that of the p-th pair."""
        return [self.questions.texts[pair.text_id] for pair in self.questions.pairs]

    @property
    def alike(self) -> BoolArray | None:
        """Shape (P, P), whether two prompts share a skill; None where that is not known."""
        if not self.skills:
            return None
        of = [self.skills.get(pair.pair_id, frozenset()) for pair in self.questions.pairs]
        return np.array([[bool(one & other) for other in of] for one in of], bool)


def crossed(questions: Questions, seed: bytes, skills: Skills | None = None) -> Crossing:
    """Draw up to `SIZE` images, by a keyed hash: nobody can know them without the key.

    The right prompt of an image is one that the benchmark asks of it. Where that asks several, it
    may be one of a contrast: closer to the image than another's prompt all the same.
    """

    def place(name: str) -> bytes:
        return hashlib.blake2b(name.encode(), key=seed, person=b"prompt", digest_size=16).digest()

    by_image: dict[str, list[Pair]] = {}
    for pair in questions.pairs:
        if questions.texts[pair.text_id].strip():
            by_image.setdefault(pair.image_id, []).append(pair)
    chosen: list[Pair] = []
    own: set[str] = set()
    asked: set[str] = set()
    for image in sorted(by_image, key=place):
        one = min(by_image[image], key=lambda pair: place(pair.pair_id))
        text = questions.texts[one.text_id]
        texts = {questions.texts[pair.text_id] for pair in by_image[image]}
        if text in asked or texts & own:
            continue
        chosen.append(one)
        own.add(text)
        asked |= texts
        if len(chosen) == SIZE:
            break
    known = skills or {}
    named = {pair.pair_id: known[pair.pair_id] for pair in chosen if pair.pair_id in known}
    few = replace(
        questions,
        images={pair.image_id: questions.images[pair.image_id] for pair in chosen},
        pairs=tuple(chosen),
    )
    return Crossing(few, named)


def prompt_control(
    client: ScorerClient, crossing: Crossing, *, direction: int = 1, rounding: float = 0.0
) -> PromptControl:
    """Put a scorer through the control; what it cannot answer is counted, and never dropped.

    `direction`: +1 where higher scores are better, else -1; `rounding`: largest difference that is
    put down to rounding.
    """
    pairs = crossing.questions.pairs
    if len(pairs) < MIN_SIZE:
        return PromptControl(
            verdict="undecided",
            why_not=f"only {len(pairs)} images have prompts of their own; {MIN_SIZE} are needed",
        )
    items = {one.image_id: one for one in canonical_items(crossing.questions)}
    there = [items[pair.image_id] for pair in pairs if pair.image_id in items]
    try:
        table = _scores(client, crossing, there)
    except SubmitterError:
        return PromptControl(verdict="undecided", why_not=ENDED, n_cells=len(pairs) ** 2)
    own = np.arange(len(pairs))
    found = prompt_effect(direction * table, own, crossing.alike, rounding)
    change = direction * (_empty_scores(client, crossing, there) - table.diagonal())
    known = ~np.isnan(change)
    return PromptControl(
        verdict=found.verdict,
        why_not="too few scores to tell" if math.isnan(found.centred.value) else "",
        n_prompts=found.n_prompts,
        n_images=found.n_images,
        n_cells=table.size,
        n_missing=found.n_missing,
        prompt_share=_or_none(found.prompt_share),
        image_share=_or_none(found.image_share),
        both_share=_or_none(found.both_share),
        match=_or_none(found.match),
        match_se=_or_none(found.match_se),
        raw=_figures(found.raw),
        centred=_figures(found.centred),
        within=_figures(found.within),
        empty_change=float(change[known].mean()) if known.any() else None,
        n_empty=len(change),
        n_empty_missing=int((~known).sum()),
    )


def _or_none(figure: float) -> float | None:
    return None if math.isnan(figure) else figure


def _figures(area: Area) -> AreaFigures | None:
    return None if math.isnan(area.value) else AreaFigures(**vars(area))


def _scores(client: ScorerClient, crossing: Crossing, items: Sequence[RawItem]) -> FloatArray:
    """Of each prompt with each image, shape (P, P); a request is an image with all prompts."""
    pairs = crossing.questions.pairs
    asked = tuple(
        PairRequest(str(p), pair.text_id, text)
        for p, (pair, text) in enumerate(zip(pairs, crossing.texts, strict=True))
    )
    table = np.full((len(pairs), len(pairs)), np.nan)
    for item in items:
        found = scores_of(client, [replace(item, asked=asked)])
        table[:, _places(pairs)[item.image_id]] = [found[one.pair_id] for one in asked]
    return table


def _empty_scores(client: ScorerClient, crossing: Crossing, items: Sequence[RawItem]) -> FloatArray:
    """Of an empty prompt with each image, shape (P,); a scorer may end at it, and then none."""
    places = _places(crossing.questions.pairs)
    scores = np.full(len(places), np.nan)
    empty = [replace(item, asked=(PairRequest(item.image_id, "", ""),)) for item in items]
    try:
        found = scores_of(client, empty)
    except SubmitterError:
        return scores
    for image_id, score in found.items():
        scores[places[image_id]] = score
    return scores


def _places(pairs: Sequence[Pair]) -> dict[str, int]:
    return {pair.image_id: place for place, pair in enumerate(pairs)}


def skills_of(benchmark: Benchmark, data: Path | None) -> Skills:
    """Skills by pair; none where answers are withheld, not at hand, or name none."""
    if not benchmark.card.answers_public or not benchmark.has_answers(data):
        return {}
    cases = benchmark.cases(benchmark.answers(data), data)
    if cases is None:
        return {}
    named = zip(cases["pair_id"], cases["skills"], strict=True)
    return {
        str(pair): frozenset(filter(None, skills.split(BETWEEN_SKILLS))) for pair, skills in named
    }
