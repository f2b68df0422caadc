"""A made-up benchmark on which people rated models, and the prompt set it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.arrays import FloatArray
from benchmarks.errors import SubmitterError
from benchmarks.families.items import items_of
from benchmarks.families.rating import RatingAnswers
from benchmarks.families.tables import JoinedTable
from benchmarks.genai_bench.protocol import GENAI_1600, GenAiBench
from benchmarks.prompt_sets.prompt_set import MEASURE, MEASURES, PromptSet
from benchmarks.schema import Benchmark, Card, Selector
from benchmarks.sources.folder import DataFile

RATED = "rated_prompts"
SKILLS = {"basic": "Basic", "counting": "Counting"}
FILE = "ratings.json"


def rated_answers(
    means: Mapping[str, float], n: int = 120, counting: int = 60, seed: int = 1
) -> RatingAnswers:
    """Three ratings of one image of each prompt and model; the first prompts are about counting."""
    rng = np.random.default_rng(seed)
    prompts = tuple(f"p{place:03d}" for place in range(n))
    tags = {prompt: "counting" if k < counting else "basic" for k, prompt in enumerate(prompts)}
    images = pd.DataFrame(
        [(f"{one}/{prompt}", prompt, "", one, tags[prompt]) for prompt in prompts for one in means],
        columns=["pair", "prompt", "text", "model", "tag"],
    )
    about = np.array([means[model] for model in images["model"]])
    ratings = np.clip(np.rint(about[:, None] + rng.normal(0, 0.7, (len(images), 3))), 1, 5)
    return _labelled(images, ratings)


def rated_again(answers: RatingAnswers, ratings: FloatArray) -> RatingAnswers:
    """The same images with other ratings, shape (images, raters)."""
    return _labelled(answers.items.rows, ratings)


def _labelled(images: pd.DataFrame, ratings: FloatArray) -> RatingAnswers:
    folder, table = GENAI_1600.folder(None), JoinedTable(images.assign(ratings=ratings.tolist()))
    return GENAI_1600.labelled(folder, items_of(folder, GENAI_1600.card, table))


def ratings_of(answers: RatingAnswers) -> FloatArray:
    """Single ratings, shape (images, raters)."""
    [rated] = answers.facets.values()
    return rated.ratings


class RatedBenchmark(GenAiBench):
    """Its ratings, or why they are not at hand; counts how often they are read."""

    def __init__(self, answers: RatingAnswers | SubmitterError, name: str = "rated") -> None:
        self.found = answers
        self.reads = 0
        card = GENAI_1600.card.model_copy(
            update={
                "name": name, "title": "Rated images", "skills": SKILLS, "counts": {},
                "licence": "CC BY 4.0", "files": (DataFile(path=FILE, role="answers", supplied="Ask."),),
            }
        )  # fmt: skip
        super().__init__(card, GENAI_1600.home)

    def answers(self, data: Path | None) -> RatingAnswers:
        """What it was made with."""
        del data
        self.reads += 1
        if isinstance(self.found, SubmitterError):
            raise self.found
        return self.found


def rated_set(rated_by: str = "rated", name: str = RATED, *, simulated: bool = False) -> PromptSet:
    """A prompt set without prompts at hand, as where only the ratings are."""
    card = Card(
        name=name, title=f"The {name.replace('_', ' ')}", family="rated", summary="Prompts.",
        description="Prompts.", revision="1", cluster="prompt", simulated=simulated,
        headline=Selector(measure=MEASURE), measures=dict(MEASURES),
    )  # fmt: skip
    return PromptSet(card, lambda _: (), rated_by=rated_by)


def rating(monkeypatch: pytest.MonkeyPatch, *benchmarks: Benchmark) -> None:
    """Make these the benchmarks on which people rated models."""
    known = {one.name: one for one in benchmarks}
    monkeypatch.setattr("leaderboard.models.people.rating_benchmarks", lambda: known)
