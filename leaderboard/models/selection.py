"""Selection of a prompt set by a query: its prompts, its models and the metrics that scored."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.errors import SubmitterError
from benchmarks.model_boards import SliceScores
from benchmarks.prompt_sets.means import over_seeds
from benchmarks.prompt_sets.prompt_set import PromptSet, SetPrompt, find_prompt_set, skills_of
from benchmarks.schema import Answers
from benchmarks.statistics.resampling import ResamplingPlan
from leaderboard.ledger.judge_pins import Pins
from leaderboard.models.board_types import BoardQuery, Judge
from leaderboard.models.judges import Judging
from leaderboard.models.reading import ModelReader
from leaderboard.publication.measure_names import skill_title
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.publication.reader import View


class SetSlices:
    """Which prompts and elements of a set test which skill."""

    def __init__(self, prompts: Sequence[SetPrompt]) -> None:
        self.prompts = tuple(prompts)
        self.ids = tuple(one.prompt_id for one in self.prompts)
        parts = [(place, one) for place, p in enumerate(self.prompts) for one in p.elements]
        self.element_prompts = np.array([place for place, _ in parts], np.intp)
        self.element_skills = np.array([one.skill for _, one in parts], object)
        self.element_index = pd.MultiIndex.from_arrays(
            [[self.ids[place] for place, _ in parts], [one.element_id for _, one in parts]]
        )
        named = dict.fromkeys(self.element_skills.tolist())
        self.skills = tuple(dict.fromkeys([*skills_of(self.prompts), *(n for n in named if n)]))
        self._tagged = {
            skill: np.array([skill in one.skills for one in self.prompts], bool)
            for skill in self.skills
        }

    def tagged(self, skill: str | None) -> BoolArray:
        """Shape (P,), prompts that carry a skill; all for None."""
        if skill is None:
            return np.ones(len(self.prompts), bool)
        return self._tagged.get(skill, np.zeros(len(self.prompts), bool)).copy()

    def elements(self, skill: str) -> IntArray:
        """Places of the elements that test a skill."""
        return np.flatnonzero(self.element_skills == skill)

    def testing(self, skill: str | None) -> BoolArray:
        """Shape (P,), prompts that carry a skill or an element of it."""
        found = self.tagged(skill)
        if skill is not None:
            found[self.element_prompts[self.elements(skill)]] = True
        return found


@dataclass(frozen=True)
class JudgeColumns:
    """One metric's scores of M models on the P prompts of a set with E elements."""

    judge: str  # entry id of the metric
    values: FloatArray  # shape (P, M), mean over the seeds that have a score; NaN where none has
    images: IntArray  # shape (P, M), images with a score
    wanted: IntArray  # shape (M,), images that were to be drawn of each prompt
    # shape (E, M), scores of elements; None where it scores none, or for one seed
    elements: FloatArray | None

    @cached_property
    def digest(self) -> str:
        """The same for two metrics only if all their scores are."""
        parts = (self.values, self.images, self.elements)
        found = hashlib.sha256()
        for part in parts:
            found.update(b"|" if part is None else np.ascontiguousarray(part).tobytes())
        return found.hexdigest()

    @cached_property
    def tells_apart(self) -> bool:
        """Whether any prompt has two models with other scores; so taken for fewer than two models.

        A metric that looks at prompts alone gives all models the same, whatever they drew.
        """
        if self.values.shape[1] < 2:
            return True
        lowest = np.where(np.isfinite(self.values), self.values, np.inf).min(axis=1, initial=np.inf)
        highest = np.where(np.isfinite(self.values), self.values, -np.inf).max(
            axis=1, initial=-np.inf
        )
        return bool((highest > lowest).any())

    @cached_property
    def scored(self) -> BoolArray:
        """Shape (M,), models with any score."""
        return np.asarray(np.isfinite(self.values).any(axis=0))

    @property
    def nbytes(self) -> int:
        """What its arrays take in memory."""
        elements = 0 if self.elements is None else self.elements.nbytes
        return self.values.nbytes + self.images.nbytes + elements

    def of_models(self, places: IntArray) -> JudgeColumns:
        """Those of some models."""
        elements = None if self.elements is None else self.elements[:, places]
        if elements is not None and not np.isfinite(elements).any():
            elements = None
        return JudgeColumns(
            self.judge,
            self.values[:, places],
            self.images[:, places],
            self.wanted[places],
            elements,
        )

    def slice(self, slices: SetSlices, skill: str | None, places: IntArray) -> SliceScores:
        """Its scores on a skill."""
        rows = slices.elements(skill) if skill is not None and self.elements is not None else None
        if rows is not None and rows.size and self.elements is not None:
            at = np.searchsorted(places, slices.element_prompts[rows])
            inside = np.isin(slices.element_prompts[rows], places)
            return SliceScores.of_elements(self.elements[rows[inside]], at[inside], len(places))
        values = self.values[places]
        if skill is not None:
            values = np.where(slices.tagged(skill)[places, None], values, np.nan)
        return SliceScores.of_prompts(values)


def slices_of(reader: ModelReader, prompts: tuple[SetPrompt, ...]) -> SetSlices:
    """The slices of a set, made once for the same prompts."""
    # The slices keep the prompts, so while they are remembered nothing else has that identity.
    found: SetSlices = reader.memory.once(("slices", id(prompts)), lambda: SetSlices(prompts))
    return found


def columns_of(
    reader: ModelReader,
    entries: Sequence[ModelEntry],
    judge: str,
    slices: SetSlices,
    seed: int | None = None,
) -> JudgeColumns:
    """One metric's scores of models."""
    key = (judge, seed, slices, tuple(state_of(one, judge) for one in entries))
    found: JudgeColumns = reader.memory.columns.of(
        key, lambda: _read(reader, entries, judge, slices, seed)
    )
    return found


def state_of(entry: ModelEntry, judge: str) -> tuple[object, ...]:
    """What is another thing whenever a metric's scores of a model are others."""
    run = entry.judges.get(judge)
    return entry.submission_id, entry.since, None if run is None else run.scored_at


def seed_at(entry: ModelEntry, place: int) -> int | None:
    """The seed of a model at a place, ascending; None where it has fewer."""
    seeds = sorted(entry.images.seeds)
    return seeds[place] if 0 <= place < len(seeds) else None


def _read(
    reader: ModelReader,
    entries: Sequence[ModelEntry],
    judge: str,
    slices: SetSlices,
    seed: int | None,
) -> JudgeColumns:
    shape = (len(slices.ids), len(entries))
    values, images = np.full(shape, np.nan), np.zeros(shape, np.intp)
    elements = np.full((len(slices.element_prompts), len(entries)), np.nan)
    for m, entry in enumerate(entries):
        found = reader.scores.of(entry, judge, slices.ids)
        if found is None:
            continue
        scores = found.scores
        if seed is not None:
            own = seed_at(entry, seed)
            scores = scores[[place for place, one in enumerate(found.seeds) if one == own]]
        images[:, m] = np.isfinite(scores).sum(axis=0)
        values[:, m] = over_seeds(scores)
        if len(elements) and len(found.elements) and seed is None:
            named = pd.MultiIndex.from_frame(found.elements[["prompt_id", "element_id"]])
            at = slices.element_index.get_indexer(named)
            elements[at[at >= 0], m] = found.elements["score"].to_numpy(np.float64)[at >= 0]
    wanted = [
        len(one.images.seeds) if seed is None else int(seed_at(one, seed) is not None)
        for one in entries
    ]
    return JudgeColumns(
        judge=judge,
        values=values,
        images=images,
        wanted=np.array(wanted, np.intp),
        elements=elements if np.isfinite(elements).any() else None,
    )


ALL_PROMPTS = "All prompts"
BLIND = "It gives all models the same score on every prompt, so it cannot order them."
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, eq=False)
class Selection:
    """What a query is about."""

    reader: ModelReader  # reads models and scores
    view: View  # the boards of metrics
    query: BoardQuery  # what was asked
    prompt_set: PromptSet
    slices: SetSlices  # of all its prompts
    places: IntArray  # prompts that the filter leaves, ascending
    entries: tuple[ModelEntry, ...]  # the models, oldest first
    # entry ids of the metrics that scored at least one of them and are still on the boards,
    # in order of first appearance
    metrics: tuple[str, ...]
    left_out: tuple[str, ...]  # titles of models that drew another revision
    pins: Pins  # what operators decided
    everyone: tuple[ModelEntry, ...]  # the models of the set, also those that are not compared
    _columns: dict[str, JudgeColumns] = field(default_factory=dict, repr=False)

    @property
    def skills(self) -> tuple[str | None, ...]:
        """The skills that are wanted, all prompts first."""
        if self.query.skills:
            return tuple(dict.fromkeys(self.query.skills))
        listed = [skill for skill in self.prompt_set.card.skills if skill in self.slices.skills]
        every = dict.fromkeys([*listed, *self.slices.skills])
        return (None, *(skill for skill in every if ":" not in skill))

    @property
    def plan(self) -> ResamplingPlan:
        """The resamples of the set's prompts."""
        card = self.prompt_set.card
        found: ResamplingPlan = self.reader.memory.once(
            ("plan", card.name, card.revision, self.slices),
            lambda: self.prompt_set.plan(Answers((), self.slices.ids)),
        )
        return found

    @property
    def counts(self) -> FloatArray:
        """Shape (B, P), how often each prompt of the set is drawn in each resample."""
        return self.plan.counts

    def title(self, skill: str | None) -> str:
        """How a skill is shown."""
        return ALL_PROMPTS if skill is None else skill_title(self.prompt_set.card, skill)

    def testing(self, skill: str | None) -> IntArray:
        """Places of the prompts that test a skill, after the filter."""
        return self.places[self.slices.testing(skill)[self.places]]

    def columns(self, judge: str) -> JudgeColumns:
        """One metric's scores of the models."""
        if judge not in self._columns:
            found = self._of_everyone(judge)
            if len(self.entries) < len(self.everyone):
                own = {one.submission_id for one in self.entries}
                places = [m for m, one in enumerate(self.everyone) if one.submission_id in own]
                found = found.of_models(np.array(places, np.intp))
            self._columns[judge] = found
        return self._columns[judge]

    def judges(self, skill: str | None) -> tuple[Judge, ...]:
        """Every metric that scored a model in its role on a skill, trusted ones first."""
        judging = Judging(self.view, self.prompt_set.card, self.pins, self.reader.memory)
        found = [self._if_it_looks(one) for one in judging.of(skill, self.metrics)]
        in_order = sorted(found, key=lambda one: not one.trusted)
        return tuple(replace(one, seconds_per_image=self._seconds(one)) for one in in_order)

    def judging(self, skill: str | None) -> tuple[Judge, ...]:
        """The metrics that rank: the trusted ones, or the one that was asked for."""
        if self.query.judge:
            return tuple(one for one in self.judges(skill) if one.entry_id == self.query.judge)
        return tuple(one for one in self.judges(skill) if one.trusted)

    def distinct(self, judges: Sequence[Judge]) -> list[str]:
        """Entry ids of metrics, of those with the very same scores the first only.

        One metric under several names is one witness, and one member of a family of tests.
        """
        found: dict[str, str] = {}
        for one in judges:
            found.setdefault(self.columns(one.entry_id).digest, one.entry_id)
        return list(found.values())

    @property
    def state(self) -> tuple[object, ...]:
        """What is another thing whenever the board is another for the same view."""
        runs = tuple(state_of(entry, judge) for entry in self.entries for judge in self.metrics)
        titles = tuple(entry.title for entry in self.entries)
        return (
            self.query,
            self.prompt_set.card.revision,
            self.slices,
            runs,
            titles,
            self.metrics,
            self.left_out,
            self.pins,
        )

    def _of_everyone(self, judge: str) -> JudgeColumns:
        # Read for all models, whichever of them are compared: they are kept for other queries.
        return columns_of(self.reader, self.everyone, judge, self.slices, self.query.seed)

    def _if_it_looks(self, judge: Judge) -> Judge:
        """The judge, trusted only if the models' images make a difference to it."""
        if not judge.trusted or judge.pinned or self._of_everyone(judge.entry_id).tells_apart:
            return judge
        return replace(judge, trusted=False, why=BLIND)

    def _seconds(self, judge: Judge) -> float | None:
        """Measured on the images of these models, else what the boards of metrics know."""
        runs = [entry.judges.get(judge.entry_id) for entry in self.entries]
        costs = [run.cost for run in runs if run is not None and run.cost and run.cost.images]
        if not costs:
            return judge.seconds_per_image
        return sum(cost.seconds for cost in costs) / sum(cost.images for cost in costs)


def selection(reader: ModelReader, view: View, query: BoardQuery) -> Selection:
    """Find what a query is about."""
    known = find_prompt_set(reader.prompt_sets, query.prompt_set)
    prompts = reader.prompts(query.prompt_set)
    if prompts is None:
        raise SubmitterError(
            "prompts_missing",
            f"The prompts of {known.name} are not on this machine.",
            f"python -m benchmarks fetch {known.name} --data DATA brings them.",
        )
    slices = slices_of(reader, prompts)
    revisions = {known.card.revision, *known.card.same_questions_as}
    every = reader.track().of(known.name)
    wanted = frozenset(query.models)
    everyone = tuple(one for one in every if one.images.revision in revisions)
    entries = tuple(one for one in everyone if not wanted or one.submission_id in wanted)
    metrics = tuple(
        dict.fromkeys(
            judge
            for entry in entries
            for judge, run in entry.judges.items()
            if not run.failed and judge in view.entries
        )
    )
    if query.judge and query.judge not in metrics:
        raise SubmitterError(
            "unknown_judge",
            f"{query.judge[:120]!r} is no metric on the boards that scored models on {known.name}.",
            f"Metrics that did: {', '.join(metrics) or 'none yet'}.",
        )
    return Selection(
        reader=reader,
        view=view,
        query=query,
        prompt_set=known,
        slices=slices,
        places=np.flatnonzero(_kept(slices.prompts, query)),
        entries=entries,
        metrics=metrics,
        left_out=tuple(one.title for one in every if one.images.revision not in revisions),
        pins=reader.pins(),
        everyone=everyone,
    )


def _kept(prompts: Sequence[SetPrompt], query: BoardQuery) -> BoolArray:
    """Which prompts a filter leaves, shape (P,)."""
    words = query.words.casefold().split()
    return np.array(
        [
            (not query.split or one.split == query.split)
            and (not words or _holds(one.text.casefold(), words))
            for one in prompts
        ],
        bool,
    )


def _holds(text: str, words: Sequence[str]) -> bool:
    """Whether each word begins a word of the text; scripts without spaces are searched as they are."""
    own = _WORD.findall(text)
    return all(
        any(one.startswith(word) for one in own)
        if word.isascii() and word.isalnum()
        else word in text
        for word in words
    )
