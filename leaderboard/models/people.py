"""Boards of text-to-image models by people's ratings of their images, apart from all metrics."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from pathlib import Path

import numpy as np

from benchmarks.errors import SubmitterError
from benchmarks.model_boards.estimates import LEVEL, compared
from benchmarks.model_boards.rated_models import (
    TITLES,
    RatedModels,
    SliceScores,
    rating_benchmarks,
    ratings_by_gold,
)
from benchmarks.prompt_sets.prompt_set import PromptSet
from benchmarks.schema import Benchmark, Card
from benchmarks.statistics.multiplicity import holm_of_pairs
from benchmarks.statistics.paired import paired_many
from benchmarks.statistics.resampling import ResamplingPlan
from leaderboard.models.board import pair_test, ranked_means
from leaderboard.models.board_types import Mean, PairTest
from leaderboard.models.reading import ModelReader
from leaderboard.ranking.rank_ranges import MIN_CLUSTERS

PEOPLE = ""  # Stands where tests of a metric's scores name the metric
ALL_PROMPTS = "All prompts"
TOO_FEW = f"Too few prompts to order models ({{n}}; at least {MIN_CLUSTERS} needed)."
log = logging.getLogger(__name__)

_KEPT = 16


@dataclass(frozen=True)
class RatedSkill:
    """All models on one skill."""

    skill: str | None  # key of the benchmark's card; None: all prompts
    title: str  # how it is shown
    n_prompts: int  # that need it
    means: Mapping[str, Mean]  # model to its mean rating, the highest first
    pairs: Mapping[tuple[str, str], PairTest]  # tests of each two models, in the order of `means`
    note: str = ""  # why no order can be given; empty as a rule

    @property
    def ahead_of(self) -> tuple[str, ...]:
        """Models that are rated significantly lower than the first."""
        first = next(iter(self.means), "")
        return tuple(
            b for (a, b), test in self.pairs.items() if a == first and test.t_p_holm < LEVEL
        )

    @property
    def undecided(self) -> bool:
        """Whether there are prompts enough and yet no two models differ significantly."""
        return not self.note and all(test.t_p_holm >= LEVEL for test in self.pairs.values())


@dataclass(frozen=True)
class PeopleBoard:
    """People's ratings of several models' images of the prompts of a set."""

    prompt_set: str  # its name
    benchmark: Card  # card of the benchmark of metrics that the ratings are from
    gold: str  # key of the benchmark's facets; empty where there is one set of ratings only
    gold_title: str  # how the gold is shown; empty likewise
    # name in the release to the name in the paper, the highest mean first
    models: Mapping[str, str]
    skills: Mapping[str | None, RatedSkill]  # key to its figures, all prompts (None) first
    n_ratings: int  # single ratings behind the means
    seed: int  # of the resamples of prompts that intervals and rank ranges rest on
    note: str = ""  # what a reader must know of the ratings; empty as a rule

    @property
    def overall(self) -> RatedSkill:
        """All prompts."""
        return self.skills[None]


def people_boards(prompt_set: PromptSet, data: Path | None) -> tuple[PeopleBoard, ...]:
    """The boards of people's ratings of models on the prompts of a set, one for each gold.

    They are computed once for each state of the ratings.
    """
    benchmark = rating_benchmarks().get(prompt_set.rated_by)
    if benchmark is None:
        return ()
    return _boards(prompt_set.name, benchmark, data, benchmark.folder(data).signature())


def rated_sets(reader: ModelReader) -> dict[str, tuple[PeopleBoard, ...]]:
    """The prompt sets whose ratings by people can be read here, with their boards."""
    found: dict[str, tuple[PeopleBoard, ...]] = {}
    for name, prompt_set in reader.prompt_sets.items():
        try:
            boards = people_boards(prompt_set, reader.data)
        except SubmitterError as error:
            log.warning("No ratings of models on %s are shown: %s", name, error)
            continue
        if boards:
            found[name] = boards
    return found


@lru_cache(maxsize=_KEPT)
def _boards(
    name: str, benchmark: Benchmark, data: Path | None, signature: tuple[tuple[str, int, int], ...]
) -> tuple[PeopleBoard, ...]:
    del signature
    answers, card = benchmark.answers(data), benchmark.card
    plan = ResamplingPlan.for_revision(card.name, card.revision, answers.clusters)
    return tuple(
        _board(name, card, gold, rated, plan) for gold, rated in ratings_by_gold(answers).items()
    )


def _board(
    name: str, card: Card, gold: str, rated: RatedModels, plan: ResamplingPlan
) -> PeopleBoard:
    skills = {one.skill: one for one in _skills(card, rated, plan)}
    return PeopleBoard(
        prompt_set=name,
        benchmark=card,
        gold=gold,
        gold_title=card.facets.get(gold, gold),
        models={one: TITLES.get(one, one) for one in skills[None].means},
        skills=skills,
        n_ratings=rated.n_ratings,
        seed=plan.seed,
        note=rated.note,
    )


def _skills(card: Card, rated: RatedModels, plan: ResamplingPlan) -> Iterator[RatedSkill]:
    yield _skill(rated, plan, None, ALL_PROMPTS, rated.prompts)
    listed = [one for one in card.skills if one in rated.skills]
    for skill in (*listed, *(one for one in rated.skills if one not in card.skills)):
        prompts = tuple(one for one in rated.prompts if one in rated.skills[skill])
        yield _skill(rated, plan, skill, card.skills.get(skill, skill), prompts)


def _skill(
    rated: RatedModels,
    plan: ResamplingPlan,
    skill: str | None,
    title: str,
    prompts: tuple[str, ...],
) -> RatedSkill:
    """Means, tests and ranks on some of the prompts; p-values are corrected over its pairs."""
    index = {prompt: place for place, prompt in enumerate(rated.prompts)}
    values = rated.people[[index[prompt] for prompt in prompts]]
    counts = plan.counts_of(prompts)
    scores = SliceScores.of_prompts(values)
    everyone = np.ones(len(rated.models), bool)
    tests = compared(scores, MIN_CLUSTERS)
    means = ranked_means(scores, counts, everyone, tests)
    order = [int(place) for place in np.argsort(-np.nan_to_num(scores.means), kind="stable")]
    many = paired_many(values, counts)
    corrected = holm_of_pairs(tests.p)
    return RatedSkill(
        skill=skill,
        title=title,
        n_prompts=len(prompts),
        means={rated.models[m]: means[m] for m in order},
        pairs={
            (rated.models[a], rated.models[b]): pair_test(
                many, (a, b), float(corrected[a, b]), judge=PEOPLE, skill=skill
            )
            for a, b in combinations(order, 2)
        },
        note="" if len(prompts) >= MIN_CLUSTERS else TOO_FEW.format(n=len(prompts)),
    )
