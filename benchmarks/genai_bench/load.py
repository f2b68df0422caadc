"""Reader of GenAI-Bench: ratings, tags and the images of six models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray
from benchmarks.released.bundle import released_table, sources_of
from benchmarks.schema import Answers, Pair, Questions
from benchmarks.sources.archives import ZipImages
from benchmarks.sources.folder import DataFolder, Reader, folder_images, packed_images

LOWEST, HIGHEST = 1, 5
"""Ends of the rating scale."""


@dataclass(frozen=True)
class GenAiAnswers(Answers):
    """Ratings of images and tags of prompts. The clusters are the prompts."""

    # one row per image, in the benchmark's order: `pair_id` (str), `prompt_id` (str, a cluster id),
    # `model` (str, who made the image)
    images: pd.DataFrame
    # shape (images, raters), as released: a few lie outside 1..5. At least one per image; NaN where
    # an image has fewer than others.
    ratings: FloatArray
    # tag to the ids of its prompts; a prompt may have none, or several
    skills: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @cached_property
    def labels(self) -> FloatArray:
        """Shape (images,): mean rating."""
        mean: FloatArray = np.nanmean(self.ratings, axis=1)
        return mean

    @cached_property
    def cleaned_labels(self) -> FloatArray:
        """Shape (images,): mean of the ratings in 1..5; NaN for an image without one."""
        inside = self._inside
        with np.errstate(invalid="ignore"):
            mean: FloatArray = np.where(inside, self.ratings, 0).sum(axis=1) / inside.sum(axis=1)
        return mean

    @property
    def cleaned_ratings(self) -> FloatArray:
        """`ratings` with NaN for those outside 1..5."""
        return np.where(self._inside, self.ratings, np.nan)

    @property
    def n_outside(self) -> int:
        """Ratings outside 1..5."""
        return int((~self._inside & ~np.isnan(self.ratings)).sum())

    @property
    def untagged(self) -> tuple[str, ...]:
        """Prompts without a tag, in the benchmark's order."""
        tagged = frozenset().union(*self.skills.values())
        return tuple(prompt for prompt in self.clusters if prompt not in tagged)

    def counts(self) -> dict[str, int]:
        """Images, prompts, models and ratings, and the prompts of each tag."""
        return {
            "images": len(self.images),
            "prompts": len(self.clusters),
            "models": self.images["model"].nunique(),
            "ratings": int(np.isfinite(self.ratings).sum()),
            "ratings outside 1-5": self.n_outside,
            "untagged prompts": len(self.untagged),
            **{f"{skill}: prompts": len(prompts) for skill, prompts in self.skills.items()},
        }

    @property
    def _inside(self) -> NDArray[np.bool_]:
        return np.asarray((self.ratings >= LOWEST) & (self.ratings <= HIGHEST))


RATERS = 3
ID_DIGITS = 5
RATINGS = range(100)
"""Numbers read as ratings. The scale is 1 to 5, but the released files hold 41 and 33, two slips
that the benchmark reports; a number of more digits is no slip."""
_LONGEST_ID = 9


def prompt_records(folder: DataFolder, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Key and record of each prompt, in the file's order."""
    content = folder.read_json(path)
    if not isinstance(content, dict) or not content:
        raise folder.malformed(path, "is not an object of prompts by id")
    numbers: dict[int, str] = {}
    for key, record in content.items():
        if not (key.isascii() and key.isdigit() and len(key) <= _LONGEST_ID):
            raise folder.malformed(
                path, f"has a prompt id {key[:60]!r}; expected digits, such as 00012"
            )
        earlier = numbers.setdefault(int(key), key)
        if earlier != key:  # tags and image files name prompts by number
            raise folder.malformed(path, f"has prompts {earlier!r} and {key!r}: the same number")
        if not isinstance(record, dict):
            raise folder.malformed(path, f"has no record under {key!r}; expected an object")
        prompt = record.get("prompt")
        if not isinstance(prompt, str) or not prompt.strip():
            raise folder.malformed(path, f"has no prompt under {key!r}; found {prompt!r}")
        yield key, record


def models_of(
    folder: DataFolder, path: str, key: str, record: Mapping[str, Any], models: Sequence[str]
) -> Mapping[str, Any]:
    """Content of a prompt's record for each model."""
    found = record.get("models")
    if not isinstance(found, dict) or set(found) != set(models):
        shown = ", ".join(found) if isinstance(found, dict) else repr(found)
        raise folder.malformed(
            path, f"has models {shown or 'none'} under {key!r}; expected {', '.join(models)}"
        )
    return found


def ratings_of(
    folder: DataFolder, path: str, where: str, found: object, raters: int | None = RATERS
) -> tuple[int, ...]:
    """The ratings of one image."""
    if (
        not isinstance(found, list)
        or (len(found) != raters if raters else not found)
        or not all(type(rating) is int and rating in RATINGS for rating in found)
    ):
        raise folder.malformed(
            path,
            f"has ratings {str(found)[:80]!r} for {where}; expected {raters or 'some'} whole "
            f"numbers from {RATINGS[0]} to {RATINGS[-1]}",
        )
    return tuple(found)


def skills(
    folder: DataFolder, path: str, prompts: Sequence[str], *, others: bool = False
) -> dict[str, frozenset[str]]:
    """Tag to ids of prompts. A file lists the numbers of the prompts' ids, not their positions.

    With `others`, it may hold other tags and prompts that are not in the set; they are passed over.
    """
    content = folder.read_json(path)
    if (
        not isinstance(content, dict)
        or not set(SKILLS) <= set(content)
        or (len(content) > len(SKILLS) and not others)
    ):
        shown = ", ".join(map(str, content)) if isinstance(content, dict) else repr(content)
        raise folder.malformed(path, f"has tags {shown}; expected {', '.join(SKILLS)}")
    by_number = {int(prompt): prompt for prompt in prompts}
    found: dict[str, frozenset[str]] = {}
    for name in SKILLS:
        numbers = content[name]
        if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
            raise folder.malformed(path, f"has no list of whole numbers under {name!r}")
        strange = [number for number in numbers if number not in by_number]
        if strange and not others:
            raise folder.malformed(
                path, f"tags prompt {strange[0]} as {name!r}; no prompt has this number"
            )
        if len(set(numbers)) < len(numbers):
            raise folder.malformed(path, f"names a prompt twice under {name!r}")
        found[name] = frozenset(by_number[number] for number in numbers if number in by_number)
    return found


MODELS = (
    "DALLE_3", "SDXL_Turbo", "DeepFloyd_I_XL_v1", "Midjourney_6", "SDXL_2_1", "SDXL_Base",
)  # fmt: skip
SKILLS = (
    "basic", "attribute", "scene", "spatial relation", "action relation", "part relation",
    "advanced", "counting", "comparison", "differentiation", "negation", "universal",
)  # fmt: skip


@dataclass(frozen=True)
class Release:
    """Files of one of the two sets, which have the same layout."""

    name: str

    @property
    def ratings(self) -> str:
        """Prompts and ratings."""
        return f"{self.name}/genai_image.json"

    @property
    def skills(self) -> str:
        """Tags."""
        return f"{self.name}/genai_skills.json"

    @property
    def bundled_ratings(self) -> str:
        """Ratings in the bundle of released results."""
        return f"{self.name}/ratings.parquet"

    @property
    def bundled_tags(self) -> str:
        """Tags in the bundle."""
        return f"{self.name}/tags.parquet"


def load_answers(folder: DataFolder, release: Release) -> GenAiAnswers:
    """Read ratings and tags."""
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
    tags = skills(folder, release.skills, prompts)
    images = pd.DataFrame(rows, columns=["pair_id", "prompt_id", "model"])
    return _answers(images, np.array(ratings, np.float64), tags, folder.verified())


def released_answers(release: Release) -> GenAiAnswers:
    """The same from the bundle of released results."""
    table, tags = map(released_table, (release.bundled_ratings, release.bundled_tags))
    named = zip(table["prompt_id"], table["model"], strict=True)
    images = table[["prompt_id", "model"]]
    images.insert(0, "pair_id", [pair_id(prompt, model) for prompt, model in named])
    ratings = table.filter(regex="^rating_").to_numpy(np.float64)
    tagged = {tag: frozenset(tags.loc[tags["tag"] == tag, "prompt_id"]) for tag in SKILLS}
    return _answers(
        images, ratings, tagged, sources_of(release.bundled_ratings, release.bundled_tags)
    )


def _answers(
    images: pd.DataFrame,
    ratings: FloatArray,
    tags: Mapping[str, frozenset[str]],
    sources: Mapping[str, str],
) -> GenAiAnswers:
    return GenAiAnswers(
        pair_ids=tuple(images["pair_id"]),
        clusters=tuple(images["prompt_id"].drop_duplicates()),
        images=images,
        ratings=ratings,
        skills=tags,
        sources=sources,
    )


def load_prompts(folder: DataFolder, release: Release) -> pd.DataFrame:
    """Columns `prompt_id`, `prompt`, `split` (empty) and `skills` (joined by `;`)."""
    texts = load_texts(folder, release)
    tags = skills(folder, release.skills, list(texts))
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
    """Each image with its prompt."""
    texts = load_texts(folder, release)
    files = {
        model: {pair_id(key, model): f"{model}/{int(key):0{ID_DIGITS}d}.jpeg" for key in texts}
        for model in MODELS
    }
    asked = (
        (pair_id(key, model), key)
        for key, record in prompt_records(folder, release.ratings)
        for model in models_of(folder, release.ratings, key, record, MODELS)
    )
    return questions_of(folder, release.name, files, texts, asked)


def questions_of(
    folder: DataFolder,
    benchmark: str,
    files: Mapping[str, Mapping[str, str]],
    texts: Mapping[str, str],
    asked: Iterable[tuple[str, str]],
) -> Questions:
    """Questions about images that a model's archive holds, or the folder unpacked beside it.

    `files` is model to pair id to file; `asked` are pair ids with their prompts.
    """
    images: dict[str, Reader] = {}
    for model, names in files.items():
        packed = archive(benchmark, model)
        if folder.has(packed) or not is_unpacked(folder, packed, model):
            images |= packed_images(benchmark, ZipImages(folder.path(packed)), names)
        else:
            images |= folder_images(benchmark, folder.beside(packed), names)
    return Questions(images, texts, tuple(Pair(pair, pair, prompt) for pair, prompt in asked))


def has_images(folder: DataFolder, benchmark: str, models: Iterable[str]) -> bool:
    """Whether the images of every model are there, packed or not."""
    packed = {model: archive(benchmark, model) for model in models}
    return all(folder.has(one) or is_unpacked(folder, one, model) for model, one in packed.items())


def archive(benchmark: str, model: str) -> str:
    """Archive of the images of one model."""
    return f"{benchmark}/{model}.zip"


def is_unpacked(folder: DataFolder, archive: str, model: str) -> bool:
    """Whether a folder of the model's name lies beside its archive."""
    return (folder.beside(archive) / model).is_dir()


def pair_id(prompt: str, model: str) -> str:
    """Id of one image with its prompt."""
    return f"{prompt}/{model}"


def load_texts(folder: DataFolder, release: Release) -> dict[str, str]:
    """Prompt id to the prompt."""
    return {key: record["prompt"] for key, record in prompt_records(folder, release.ratings)}
