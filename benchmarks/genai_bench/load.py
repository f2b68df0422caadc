"""Reads the released files of GenAI-Bench: ratings and tags, and the images of six models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.genai_bench.answers import GenAiAnswers
from benchmarks.genai_bench.records import (
    ID_DIGITS,
    models_of,
    prompt_records,
    ratings_of,
    skills,
)
from benchmarks.schema import Pair, Questions
from benchmarks.sources.archives import ZipImages
from benchmarks.sources.folder import DataFolder
from benchmarks.sources.images import Reader, folder_images, zip_images

MODELS = (
    "DALLE_3",
    "SDXL_Turbo",
    "DeepFloyd_I_XL_v1",
    "Midjourney_6",
    "SDXL_2_1",
    "SDXL_Base",
)
SKILLS = (
    "basic",
    "attribute",
    "scene",
    "spatial relation",
    "action relation",
    "part relation",
    "advanced",
    "counting",
    "comparison",
    "differentiation",
    "negation",
    "universal",
)


@dataclass(frozen=True)
class Release:
    """Where the files of one of the two sets lie: both have the same layout."""

    name: str

    @property
    def ratings(self) -> str:
        """Prompts and ratings."""
        return f"{self.name}/genai_image.json"

    @property
    def skills(self) -> str:
        """Tags."""
        return f"{self.name}/genai_skills.json"

    def archive(self, model: str) -> str:
        """Images of one model."""
        return f"{self.name}/{model}.zip"


def load_answers(folder: DataFolder, release: Release) -> GenAiAnswers:
    """Read ratings and tags.

    Raises:
        SubmitterError: `data_missing`, or `data_malformed` naming the first wrong record.
    """
    path = release.ratings
    rows: list[tuple[str, str, str]] = []
    ratings: list[tuple[int, ...]] = []
    prompts: list[str] = []
    for key, record in prompt_records(folder, path):
        prompts.append(key)
        for model, found in models_of(folder, path, key, record, MODELS).items():
            rows.append((pair_id(key, model), key, model))
            ratings.append(ratings_of(folder, path, f"{key}/{model}", found))
    folder.check_count(path, "prompts", len(prompts))
    folder.check_count(path, "images", len(rows))
    tags = skills(folder, release.skills, prompts, SKILLS)
    return GenAiAnswers(
        pair_ids=tuple(row[0] for row in rows),
        clusters=tuple(prompts),
        images=pd.DataFrame(rows, columns=["pair_id", "prompt_id", "model"]),
        ratings=np.array(ratings, np.float64),
        skills=tags,
        sources=folder.verified(),
    )


def load_prompts(folder: DataFolder, release: Release) -> pd.DataFrame:
    """Columns `prompt_id`, `prompt`, `split` (empty) and `skills` (joined by `;`).

    Raises:
        SubmitterError: `data_missing` or `data_malformed`.
    """
    texts = _texts(folder, release)
    tags = skills(folder, release.skills, list(texts), SKILLS)
    return prompt_table(texts, tags)


def prompt_table(texts: Mapping[str, str], tags: Mapping[str, frozenset[str]]) -> pd.DataFrame:
    """Prompts with their tags, as `Benchmark.prompts` returns them."""
    return pd.DataFrame(
        {
            "prompt_id": list(texts),
            "prompt": list(texts.values()),
            "split": "",
            "skills": [
                ";".join(tag for tag, prompts in tags.items() if prompt in prompts)
                for prompt in texts
            ],
        }
    )


def load_questions(folder: DataFolder, release: Release) -> Questions:
    """Each image with its prompt.

    Raises:
        SubmitterError: `images_missing`, and what `load_answers` raises.
    """
    texts = _texts(folder, release)
    images: dict[str, Reader] = {}
    for model in MODELS:
        names = {pair_id(key, model): f"{model}/{_file_name(key)}" for key in texts}
        images |= model_images(folder, release.name, release.archive(model), model, names)
    return Questions(
        images=images,
        texts=texts,
        pairs=tuple(
            Pair(pair_id(key, model), pair_id(key, model), key)
            for key, record in prompt_records(folder, release.ratings)
            for model in models_of(folder, release.ratings, key, record, MODELS)
        ),
    )


def has_images(folder: DataFolder, release: Release) -> bool:
    """Whether the images of every model are there, packed or not."""
    return all(
        folder.has(release.archive(model)) or is_unpacked(folder, release.archive(model), model)
        for model in MODELS
    )


def model_images(
    folder: DataFolder, benchmark: str, archive: str, model: str, names: Mapping[str, str]
) -> dict[str, Reader]:
    """Readers of one model's images, from its archive or from the folder unpacked beside it.

    Args:
        folder: of the benchmark.
        benchmark: registry name, for messages.
        archive: the declared archive.
        model: name of the folder in the archive.
        names: image id to path in the archive.

    Raises:
        SubmitterError: `images_missing` or `data_malformed`.
    """
    if is_unpacked(folder, archive, model) and not folder.has(archive):
        return folder_images(benchmark, folder.beside(archive), names)
    return zip_images(benchmark, ZipImages(folder.path(archive)), names)


def is_unpacked(folder: DataFolder, archive: str, model: str) -> bool:
    """Whether a folder of the model's name lies beside its archive."""
    return (folder.beside(archive) / model).is_dir()


def pair_id(prompt: str, model: str) -> str:
    """Id of one image with its prompt."""
    return f"{prompt}/{model}"


def _file_name(key: str) -> str:
    return f"{int(key):0{ID_DIGITS}d}.jpeg"


def _texts(folder: DataFolder, release: Release) -> dict[str, str]:
    return {key: record["prompt"] for key, record in prompt_records(folder, release.ratings)}
