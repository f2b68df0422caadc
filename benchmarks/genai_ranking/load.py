"""Reader of the ranking set of GenAI-Bench: nine rated images per prompt and model."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.genai_bench.load import (
    ID_DIGITS,
    GenAiAnswers,
    models_of,
    prompt_records,
    prompt_table,
    questions_of,
    ratings_of,
    skills,
)
from benchmarks.schema import Questions
from benchmarks.sources.folder import DataFolder

IMAGES_PER_PROMPT = 9


@dataclass(frozen=True)
class RankingAnswers(GenAiAnswers):
    """Nine rated images of each prompt by each model, one after the other.

    `images` has a column `number` (int, 1..9) beside those of `GenAiAnswers`. Its rows go by
    prompt, then by model, then by number.
    """

    @property
    def models(self) -> tuple[str, ...]:
        """The models that made the images, in the benchmark's order."""
        return tuple(dict.fromkeys(self.images["model"]))

    def rows_of(self, model: str) -> NDArray[np.intp]:
        """Shape (P, 9): row of each image of one model, by prompt and number."""
        rows = np.flatnonzero(self.images["model"].to_numpy(object) == model)
        return rows.reshape(-1, IMAGES_PER_PROMPT)


RATINGS = "genai_ranking/human_rating.json"
TAGS = "genai_ranking/genai_skills.json"
MODELS = ("DALLE_3", "SDXL_Base")
NUMBERS = tuple(str(number) for number in range(1, IMAGES_PER_PROMPT + 1))


def load_answers(folder: DataFolder) -> RankingAnswers:
    """Read ratings and tags."""
    rows: list[tuple[str, str, str, int]] = []
    ratings: list[tuple[int, ...]] = []
    prompts: list[str] = []
    for key, record in prompt_records(folder, RATINGS):
        prompts.append(key)
        models = models_of(folder, RATINGS, key, record, MODELS)
        for model in MODELS:
            images = models[model]
            if not isinstance(images, dict) or set(images) != set(NUMBERS):
                shown = ", ".join(map(str, images)) if isinstance(images, dict) else repr(images)
                raise folder.malformed(
                    RATINGS, f"has images {shown or 'none'} for {key}/{model}; expected 1 to 9"
                )
            for number in NUMBERS:
                name = pair_id(key, model, number)
                rows.append((name, key, model, int(number)))
                ratings.append(ratings_of(folder, RATINGS, name, images[number], raters=None))
    folder.check_count(RATINGS, "prompts", len(prompts))
    folder.check_count(RATINGS, "images", len(rows))
    return RankingAnswers(
        pair_ids=tuple(row[0] for row in rows),
        clusters=tuple(prompts),
        images=pd.DataFrame(rows, columns=["pair_id", "prompt_id", "model", "number"]),
        ratings=_padded(ratings),
        skills=skills(folder, TAGS, prompts, others=True),
        sources=folder.verified(),
    )


def load_prompts(folder: DataFolder) -> pd.DataFrame:
    """Columns `prompt_id`, `prompt`, `split` (empty) and `skills` (joined by `;`)."""
    texts = _texts(folder)
    return prompt_table(texts, skills(folder, TAGS, list(texts), others=True))


def load_questions(folder: DataFolder) -> Questions:
    """Each image with its prompt."""
    texts = _texts(folder)
    files = {
        model: {
            pair_id(key, model, number): f"{model}/{int(key):0{ID_DIGITS}d}_{int(number):02d}.jpeg"
            for key in texts
            for number in NUMBERS
        }
        for model in MODELS
    }
    asked = ((pair_id(*one), one[0]) for one in product(texts, MODELS, NUMBERS))
    return questions_of(folder, "genai_ranking", files, texts, asked)


def pair_id(prompt: str, model: str, number: str) -> str:
    """Id of one image with its prompt."""
    return f"{prompt}/{model}/{number}"


def _texts(folder: DataFolder) -> dict[str, str]:
    return {key: record["prompt"] for key, record in prompt_records(folder, RATINGS)}


def _padded(ratings: list[tuple[int, ...]]) -> NDArray[np.float64]:
    table = np.full((len(ratings), max(map(len, ratings))), np.nan)
    for row, found in enumerate(ratings):
        table[row, : len(found)] = found
    return table
