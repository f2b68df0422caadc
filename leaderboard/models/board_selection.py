"""Selection of a prompt set by a query: its prompts, its models and the metrics that scored."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import PromptSet, SetPrompt
from benchmarks.prompt_sets.registry import find_prompt_set
from benchmarks.schema import Answers
from benchmarks.statistics.resampling import ResamplingPlan
from leaderboard.ledger.judge_pins import Pins
from leaderboard.models.board_columns import (
    JudgeColumns,
    SetSlices,
    columns_of,
    slices_of,
    state_of,
)
from leaderboard.models.board_types import BoardQuery, Judge
from leaderboard.models.judges import Judging
from leaderboard.models.reading import ModelReader
from leaderboard.publication.measure_names import skill_title
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.publication.reader import View

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
