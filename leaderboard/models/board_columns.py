"""Scores of several models by one metric as arrays over the prompts of their set."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.model_boards.rated_models import SliceScores
from benchmarks.prompt_sets.means import over_seeds
from benchmarks.prompt_sets.prompt_set import SetPrompt, skills_of
from leaderboard.models.reading import ModelReader
from leaderboard.publication.model_entries import ModelEntry


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
