"""People's ratings of models' images: boards by them alone, and metrics held against them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from pathlib import Path

import numpy as np

from benchmarks.errors import SubmitterError
from benchmarks.model_boards import (
    LEVEL,
    TITLES,
    PairRelation,
    RatedModels,
    SliceScores,
    compared,
    ordering_record,
    rating_benchmarks,
    ratings_by_gold,
    readers,
)
from benchmarks.prompt_sets.prompt_set import PromptSet
from benchmarks.schema import Benchmark, Card, Selector
from benchmarks.statistics.better_or_tied import least_prompts
from benchmarks.statistics.multiplicity import holm_of_pairs
from benchmarks.statistics.paired import paired_many
from benchmarks.statistics.resampling import ResamplingPlan
from leaderboard.models.board import pair_test, ranked_means, too_few_prompts
from leaderboard.models.board_types import BoardQuery, Mean, PairTest
from leaderboard.models.reading import ModelReader
from leaderboard.models.selection import Selection, selection
from leaderboard.publication.item_scores import scores_of
from leaderboard.publication.reader import View, headline_cells
from leaderboard.store.interface import NotFoundError

log = logging.getLogger(__name__)

ON_BOARD = "model_pairs_right"
"""The measure of boards in the manner of Gecko, whose protocol counts the pairs itself."""


@dataclass(frozen=True)
class ModelOrdering:
    """One metric on one benchmark."""

    benchmark: str  # its name
    entry_id: str  # of the metric
    right: int  # pairs of models that it relates as people do (Wilcoxon, p < 0.001)
    of: int  # pairs that people rated
    # pairs that it orders significantly against the people's significant order; None where
    # only the count is published
    reversed: int | None = None
    pairs: tuple[PairRelation, ...] = ()  # each pair; none where only the count is published
    note: str = ""  # what a reader must know; empty as a rule


@dataclass(frozen=True)
class ModelOrderings:
    """All records of the metrics that scored the models of a set."""

    found: tuple[ModelOrdering, ...]  # by benchmark and metric, in the order of the boards
    simulated: frozenset[str]  # benchmarks among these whose people are simulated
    missing: Mapping[str, str]  # benchmark to why nothing is told of it


def model_orderings(reader: ModelReader, view: View, query: BoardQuery) -> ModelOrderings:
    """How the metrics that scored a set's models order other models, held against people.

    The ratings are read where the benchmarks' data are; elsewhere only boards whose protocol
    counts the pairs tell anything, and `missing` says so.
    """
    chosen = selection(reader, view, query)
    metrics = [one for one in chosen.metrics if query.judge in ("", one)]
    found: list[ModelOrdering] = []
    missing: dict[str, str] = {}
    rated = readers()
    for name, board in view.boards.items():
        on_board = {cell.entry_id for cell in headline_cells(board)}
        own = [one for one in metrics if one in on_board]
        if not own:
            continue
        if name in rated:
            made, why = _computed(chosen, name, own)
            found += made
            if why:
                missing[name] = why
        else:
            found += _published(view, name, own)
    names = {one.benchmark for one in found}
    simulated = frozenset(name for name in names if view.boards[name].card.simulated)
    return ModelOrderings(tuple(found), simulated, missing)


def _published(view: View, name: str, metrics: list[str]) -> list[ModelOrdering]:
    """What the benchmark's own protocol counted: the variant and split of its headline first."""
    board = view.boards[name]
    able = [s for s in board.selectors(None) if s.measure == ON_BOARD]
    if not able:
        return []
    cells = board.cells(min(able, key=_first), None)
    return [
        ModelOrdering(
            name, cell.entry_id, round(cell.value), cell.n_items, note=_note_of(cell.note)
        )
        for cell in cells
        if cell.entry_id in metrics and cell.value is not None
    ]


def _first(selector: Selector) -> tuple[bool, bool, str, str]:
    """The paper's variant over the whole benchmark, or all its reliable prompts, before others."""
    return (
        selector.variant != "paper",
        selector.split not in (None, "all", "rel"),
        selector.split or "",
        selector.facet or "",
    )


def _note_of(note: str) -> str:
    """What a row's note says of the count: not how many pairs, nor that it is not tested."""
    parts = note.split("; ")
    return "; ".join(p for p in parts if not p.startswith(("of ", "no paired test", "no interval")))


def _computed(chosen: Selection, name: str, metrics: list[str]) -> tuple[list[ModelOrdering], str]:
    data = chosen.reader.data
    rated = _ratings(chosen.reader, name, data)
    if rated is None:
        return [], "Its ratings are not on this machine."
    found = []
    without = []
    for entry_id in metrics:
        record = _record(chosen, name, entry_id, rated)
        if record is None:
            without.append(chosen.view.entries[entry_id].metric)
        else:
            found.append(record)
    why = f"No published scores of {', '.join(without)}." if without else ""
    return found, why


def _ratings(reader: ModelReader, name: str, data: Path | None) -> RatedModels | None:
    def read() -> RatedModels | None:
        try:
            return readers()[name](data)
        except SubmitterError:
            return None

    found: RatedModels | None = reader.memory.once(("ratings", name, data), read)
    return found


def _record(
    chosen: Selection, name: str, entry_id: str, rated: RatedModels
) -> ModelOrdering | None:
    entry = chosen.view.entries[entry_id]

    def make() -> ModelOrdering | None:
        path = f"results/{entry.submission_id}/{name}.scores.parquet"
        try:
            scores = scores_of(chosen.reader.public.read(path), entry.metric)
        except NotFoundError:
            return None
        sign = -1.0 if _lower_is_better(chosen, entry_id) else 1.0
        record = ordering_record(rated.people, sign * rated.arranged(scores), rated.models)
        unscored = sum(pair.metric is None for pair in record.pairs)
        return ModelOrdering(
            name,
            entry_id,
            record.right,
            len(record.pairs),
            record.reversed,
            record.pairs,
            f"{unscored} pairs without scores count as wrong." if unscored else "",
        )

    found: ModelOrdering | None = chosen.reader.memory.once(
        ("ordering", name, entry_id, entry.published_at, rated.source, id(rated)), make
    )
    return found


def _lower_is_better(chosen: Selection, entry_id: str) -> bool:
    runs = (entry.judges.get(entry_id) for entry in chosen.entries)
    return any(run is not None and run.lower_is_better for run in runs)


PEOPLE = ""  # Stands where tests of a metric's scores name the metric
ALL_PROMPTS = "All prompts"

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
        return not self.note and not any(test.t_p_holm < LEVEL for test in self.pairs.values())


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
    tests = compared(scores)
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
        note="" if len(prompts) >= least_prompts(len(order)) else too_few_prompts(len(order)),
    )
