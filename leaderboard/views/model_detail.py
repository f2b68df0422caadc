"""View of one text-to-image model: its card, its scores, its seeds and its images."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from leaderboard.models.board_types import ModelBoard
from leaderboard.models.reading import ModelReader
from leaderboard.models.robustness import Robustness, robustness
from leaderboard.models.seeds import seed_report
from leaderboard.models.seeds_types import SeedReport
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.publication.reader import View
from leaderboard.records import JudgeRun
from leaderboard.views.models import (
    PER_PAGE,
    Choice,
    Drawn,
    ModelQuery,
    board_of,
    drawn_of,
    judge_of,
    resolve,
)


@dataclass(frozen=True)
class AbsentModel:
    """In place of a model that is not there."""

    submission_id: str  # that was asked for; empty: none was
    entries: tuple[ModelEntry, ...]  # of the models on the boards
    known: bool  # whether it is on the boards, but its prompt set is not here


@dataclass(frozen=True)
class ModelView:
    """One model."""

    query: ModelQuery  # the exact state
    entry: ModelEntry  # the model
    choice: Choice  # its prompt set, and what of it is shown
    known: Mapping[str, ModelEntry]  # models on the boards, by submission id
    runs: Mapping[str, JudgeRun]  # of the metrics on the boards, by entry id
    board: ModelBoard | None = None  # of the whole set; None where the model stands on none
    seeds: SeedReport | None = None  # of the models by one metric; None likewise
    # the one-pixel change by each metric
    changes: Mapping[str, Robustness] = field(default_factory=dict)
    judge: str = ""  # entry id of the metric whose scores are shown; empty where there is none
    # of this page of prompts: place in the set, and the images
    images: tuple[tuple[int, Drawn], ...] = ()
    page: int = 1  # from 1
    pages: int = 1  # how many there are

    @property
    def current(self) -> bool:
        """Whether its images are of the prompts as they are now."""
        return self.entry in self.choice.entries


def model_view(query: ModelQuery, reader: ModelReader, view: View) -> ModelView | AbsentModel:
    """One model, or which there are where it is not there."""
    track = reader.track()
    entry = track.entries.get(query.submission_id)
    every = tuple(track.entries.values())
    if entry is None or entry.prompt_set not in reader.prompt_sets:
        return AbsentModel(query.submission_id, every, known=entry is not None)
    choice = resolve(replace(query.of, prompt_set=entry.prompt_set, models=()), reader, view)
    if choice is None:
        return AbsentModel(query.submission_id, (), known=True)
    query = replace(query, of=choice.query)
    # Metrics that were taken off the boards are named nowhere.
    runs = {one: run for one, run in entry.judges.items() if one in view.entries}
    # Of an earlier revision nothing is compared: its prompts may be others.
    whole = board_of(choice, reader, view, whole=True) if entry in choice.entries else None
    if whole is None:
        return ModelView(query, entry, choice, track.entries, runs)
    judge = judge_of(choice, reader, view)
    every_prompt = replace(
        choice.wanted, split="", words="", judge="", models=(), seed=None, skills=()
    )
    changes = {one.judge.entry_id: one for one in robustness(reader, view, every_prompt)}
    seeds = seed_report(reader, view, replace(every_prompt, judge=judge))
    drawn = drawn_of(reader, entry, judge, choice.prompts, choice.places)
    order = in_order(drawn, query)
    pages = max(1, -(-len(order) // PER_PAGE))
    page = min(query.page, pages)
    shown = order[(page - 1) * PER_PAGE : page * PER_PAGE]
    images = tuple((choice.places[at], drawn[at]) for at in shown)
    return ModelView(query, entry, choice, track.entries, runs, whole, seeds, changes, judge,
                     images, page, pages)  # fmt: skip


def in_order(drawn: Sequence[Drawn], query: ModelQuery) -> list[int]:
    """Places of the prompts in the order of a query; those without a score come last."""
    places = list(range(len(drawn)))
    if query.order == "set":
        return places
    sign = 1.0 if query.order == "worst" else -1.0
    means = [one.mean for one in drawn]
    return sorted(
        places, key=lambda at: sign * means[at] if not math.isnan(means[at]) else math.inf
    )
