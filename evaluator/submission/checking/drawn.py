"""Part of a benchmark: some of its clusters, drawn evenly, with both of its sides cut to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.croc.load import TEXTS, CrocAnswers, pair_id
from benchmarks.evalmuse.load import EvalMuseAnswers
from benchmarks.gecko.load import GeckoAnswers
from benchmarks.rows import Measured
from benchmarks.schema import Answers, Benchmark, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan, seed_of
from benchmarks.ts2.load import Ts2Answers

USUAL_PAIRS = 400
"""Asked in a check, of all its benchmarks together, where its author says nothing else."""


class Drawn(Benchmark):
    """A benchmark of which some clusters are asked; its protocol is unchanged.

    Args:
        whole: the benchmark.
        data: folder of its data.
        pairs: about so many are drawn, by whole clusters; None: all.
    """

    def __init__(self, whole: Benchmark, data: Path | None, pairs: int | None) -> None:
        self.card = whole.card
        self.further = whole.further
        self._whole = whole
        answers, questions = whole.answers(data), whole.questions(data)
        self.n_pairs_whole = len(questions.pairs)
        if pairs is not None and pairs < len(questions.pairs):
            n = round(len(answers.clusters) * pairs / len(questions.pairs))
            seed = seed_of(whole.name, whole.card.revision)
            answers = narrowed(answers, evenly(answers.clusters, max(n, 2), seed))
            questions = only_pairs(questions, frozenset(answers.pair_ids))
        self._answers, self._questions = answers, questions

    @property
    def n_pairs(self) -> int:
        """How many are asked."""
        return len(self._questions.pairs)

    def answers(self, data: Path | None) -> Answers:
        """The answer side of what was drawn."""
        del data
        return self._answers

    def questions(self, data: Path | None) -> Questions:
        """The question side of what was drawn."""
        del data
        return self._questions

    def has_questions(self, data: Path | None) -> bool:
        """They were loaded."""
        del data
        return True

    def measure(self, scores: ScoreTable, answers: Any, plan: ResamplingPlan) -> Measured:
        """The benchmark's own protocol."""
        return self._whole.measure(scores, answers, plan)


def evenly(clusters: Sequence[str], n: int, seed: int) -> tuple[str, ...]:
    """One cluster from each of `n` stretches of about the same length, in their order.

    Neighbours mostly share a skill, so every skill gets its share.
    """
    if n >= len(clusters):
        return tuple(clusters)
    rng = np.random.default_rng(seed)
    ends = np.linspace(0, len(clusters), n + 1).astype(int)
    places = [int(rng.integers(ends[i], ends[i + 1])) for i in range(n)]
    return tuple(clusters[place] for place in places)


def only_pairs(questions: Questions, pair_ids: frozenset[str]) -> Questions:
    """The question side of some pairs."""
    pairs = tuple(pair for pair in questions.pairs if pair.pair_id in pair_ids)
    images = {pair.image_id: questions.images[pair.image_id] for pair in pairs}
    texts = {pair.text_id: questions.texts[pair.text_id] for pair in pairs}
    elements = {text: its for text, its in questions.elements.items() if text in texts}
    return Questions(images, texts, pairs, elements)


@singledispatch
def narrowed(answers: Answers, clusters: Sequence[str]) -> Answers:
    """The answer side of some clusters; answers of a kind that is not known stay whole.

    Args:
        answers: of a benchmark.
        clusters: some of its own, in their order.
    """
    del clusters
    return answers


@narrowed.register
def _croc(answers: CrocAnswers, clusters: Sequence[str]) -> Answers:
    wanted = set(clusters)
    prompt_pairs = tuple(pair for pair in answers.prompt_pairs if pair.id in wanted)
    there = {pair_id(i, text) for pair in prompt_pairs for i in pair.images for text in TEXTS}
    return replace(
        answers,
        pair_ids=_among(answers.pair_ids, there),
        clusters=tuple(clusters),
        prompt_pairs=prompt_pairs,
    )


@narrowed.register
def _ts2(answers: Ts2Answers, clusters: Sequence[str]) -> Answers:
    nodes = answers.nodes[answers.nodes["graph"].isin(list(clusters))].reset_index(drop=True)
    return replace(
        answers,
        pair_ids=_among(answers.pair_ids, set(nodes["pair_id"])),
        clusters=tuple(clusters),
        nodes=nodes,
    )


@narrowed.register
def _evalmuse(answers: EvalMuseAnswers, clusters: Sequence[str]) -> Answers:
    images = answers.images[answers.images["prompt_id"].isin(list(clusters))]
    there = set(images["pair_id"])
    return replace(
        answers,
        pair_ids=_among(answers.pair_ids, there),
        clusters=tuple(clusters),
        images=images.reset_index(drop=True),
        elements=answers.elements[answers.elements["pair_id"].isin(there)].reset_index(drop=True),
    )


@narrowed.register
def _gecko(answers: GeckoAnswers, clusters: Sequence[str]) -> Answers:
    wanted = list(clusters)
    prompts, pairs, ratings = (
        table[table["prompt_id"].isin(wanted)].reset_index(drop=True)
        for table in (answers.prompts, answers.pairs, answers.ratings)
    )
    return replace(
        answers,
        pair_ids=_among(answers.pair_ids, set(pairs["pair_id"])),
        clusters=tuple(clusters),
        prompts=prompts,
        pairs=pairs,
        ratings=ratings,
    )


def _among(pair_ids: Sequence[str], there: set[str]) -> tuple[str, ...]:
    return tuple(pair_id for pair_id in pair_ids if pair_id in there)
