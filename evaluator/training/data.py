"""Data to train on: the two sides of a benchmark, cut by clusters into a training and a held-out part."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, Literal

import numpy as np
import pandas as pd
from PIL import Image

from benchmarks.croc.load import TEXTS, CrocAnswers, PromptPair, pair_id
from benchmarks.croc_syn.load import CrocSynAnswers
from benchmarks.errors import SubmitterError
from benchmarks.evalmuse.load import EvalMuseAnswers
from benchmarks.rows import Row
from benchmarks.schema import Answers, Benchmark, Questions, ScoreTable
from evaluator.scoring.images import decode
from evaluator.scoring.progress import Listener, Tracker

Origin = Literal["board", "release", "folder"]
"""Where data are from: what a board measures on; what a board leaves of a release; a folder."""
PairScorer = Callable[[Sequence[Image.Image], Sequence[str]], Sequence[float]]
"""Scores of images with their prompts, pair by pair."""
_CHUNK = 64
_RESAMPLES = 1000


@dataclass(frozen=True)
class TrainingData:
    """A benchmark's images, texts and answers, or a part of them."""

    benchmark: Benchmark  # whose protocol measures the held-out part
    questions: Questions
    answers: Answers
    origin: Origin = "board"

    @property
    def name(self) -> str:
        """Of the benchmark or the folder."""
        return self.benchmark.name

    @property
    def revision(self) -> str:
        """Of the data."""
        return self.benchmark.card.revision

    def part(self, clusters: Collection[str]) -> TrainingData:
        """The same with these clusters alone."""
        answers: Answers = part_of(self.answers, frozenset(clusters))
        inside = frozenset(answers.pair_ids)
        pairs = tuple(pair for pair in self.questions.pairs if pair.pair_id in inside)
        questions = replace(
            self.questions,
            images={one: self.questions.images[one] for one in sorted({p.image_id for p in pairs})},
            texts={one: self.questions.texts[one] for one in sorted({p.text_id for p in pairs})},
            pairs=pairs,
            lists=None,
        )
        return replace(self, questions=questions, answers=answers)

    def split(
        self, share: float, seed: int, most: int | None = None
    ) -> tuple[TrainingData, TrainingData]:
        """Training and held-out part, by clusters; examples that are in both, the guard drops.

        `share`: of the clusters that are held out; `most`: how many at most.

        Raises:
            SubmitterError: `too_little_data`: a part would be empty.
        """
        clusters = self.answers.clusters
        n_held_out = min(max(1, round(share * len(clusters))), most or len(clusters))
        if n_held_out >= len(clusters):
            raise SubmitterError(
                "too_little_data",
                f"{self.name} has {len(clusters)} clusters ({self.benchmark.card.cluster}): with "
                f"{n_held_out} held out, none is left to train on.",
                "Bring more data, or hold out a smaller share.",
            )
        order = np.random.default_rng(seed).permutation(len(clusters))
        held_out = {clusters[at] for at in order[:n_held_out]}
        return self.part(set(clusters) - held_out), self.part(held_out)

    @property
    def digest(self) -> str:
        """SHA-256 of ids, texts and answers; images are told by their ids, so their pixels are not in it."""
        tables = {
            key: value.to_dict("records") if isinstance(value, pd.DataFrame) else repr(value)
            for key, value in vars(self.answers).items()
        }
        told = (sorted(self.questions.texts.items()), sorted(self.questions.images), tables)
        return hashlib.sha256(repr(told).encode()).hexdigest()

    def evaluate(
        self, score: PairScorer, metric: str = "trained", listener: Listener | None = None
    ) -> tuple[Row, ...]:
        """Every measure of the benchmark's protocol on this part, with intervals."""
        texts = self.questions.texts
        tracker = Tracker(len(self.questions.pairs), listener, stage="evaluating")
        found: dict[str, float] = {}
        for start in range(0, len(self.questions.pairs), _CHUNK):
            pairs = self.questions.pairs[start : start + _CHUNK]
            decoded = {
                one: decode(self.questions.images[one]()).image
                for one in {p.image_id for p in pairs}
            }
            scores = score(
                [decoded[pair.image_id] for pair in pairs], [texts[pair.text_id] for pair in pairs]
            )
            found |= {p.pair_id: float(s) for p, s in zip(pairs, scores, strict=True)}
            tracker.advance(len(pairs))
        column = [found.get(pair_id, math.nan) for pair_id in self.answers.pair_ids]
        index = pd.Index(self.answers.pair_ids, name="pair_id")
        table = ScoreTable(pd.DataFrame({metric: column}, index=index, dtype=np.float64))
        return self.benchmark.evaluate(table, self.answers, _RESAMPLES).rows

    def headline(self, rows: Sequence[Row]) -> Row:
        """The row that the board of the benchmark is ordered by."""
        selector = self.benchmark.card.headline
        return next(row for row in rows if selector.matches(row) and row.skill is None)


def contrast_pairs(data: TrainingData) -> tuple[PromptPair, ...]:
    """Pairs of prompts, each with the ids of its images.

    Raises:
        SubmitterError: `unfit_data`: the data are no such pairs.
    """
    if not isinstance(data.answers, CrocAnswers):
        raise SubmitterError(
            "unfit_data",
            f"{data.name} has no pairs of prompts with images of both.",
            "Train on a benchmark in the layout of CROC, or on a folder of images with prompts.",
        )
    image_of = {pair.pair_id: pair.image_id for pair in data.questions.pairs}
    return tuple(
        replace(
            pair,
            original_images=tuple(image_of[pair_id(one, TEXTS[0])] for one in pair.original_images),
            contrast_images=tuple(image_of[pair_id(one, TEXTS[1])] for one in pair.contrast_images),
        )
        for pair in data.answers.prompt_pairs
    )


@singledispatch
def part_of(answers: Answers, clusters: frozenset[str]) -> Any:
    """Answers with some clusters alone; another kind of benchmark is added with `register`."""
    del clusters
    raise SubmitterError(
        "unfit_data",
        f"Data of the kind {type(answers).__name__} cannot be cut into parts to train on.",
        "Train on a benchmark in the layout of CROC or EvalMuse-40K, or on a folder.",
    )


@part_of.register
def _(answers: CrocAnswers, clusters: frozenset[str]) -> CrocAnswers:
    pairs = tuple(pair for pair in answers.prompt_pairs if pair.id in clusters)
    stems = {stem for pair in pairs for stem in pair.images}
    return replace(
        answers,
        pair_ids=tuple(one for one in answers.pair_ids if one.rpartition("|")[0] in stems),
        clusters=tuple(pair.id for pair in pairs),
        prompt_pairs=pairs,
    )


@part_of.register
def _(answers: CrocSynAnswers, clusters: frozenset[str]) -> CrocSynAnswers:
    kept = [at for at, cluster in enumerate(answers.clusters) if cluster in clusters]
    inside = answers.prompts["cluster"].isin(kept).to_numpy()
    prompts = answers.prompts[inside].reset_index(drop=True)
    for column in ("cluster", "group"):  # numbers without gaps, in the order of before
        prompts[column] = pd.factorize(prompts[column], sort=True)[0]
    pair_ids = np.array(answers.pair_ids, object).reshape(len(answers.prompts), -1)
    return replace(
        answers,
        pair_ids=tuple(pair_ids[inside].ravel()),
        clusters=tuple(answers.clusters[at] for at in kept),
        prompts=prompts,
    )


@part_of.register
def _(answers: EvalMuseAnswers, clusters: frozenset[str]) -> EvalMuseAnswers:
    images = answers.images[answers.images["prompt_id"].isin(clusters)].reset_index(drop=True)
    inside = frozenset(images["pair_id"])
    elements = answers.elements[answers.elements["pair_id"].isin(inside)].reset_index(drop=True)
    return replace(
        answers,
        pair_ids=tuple(one for one in answers.pair_ids if one in inside),
        clusters=tuple(one for one in answers.clusters if one in clusters),
        images=images,
        elements=elements,
    )
