"""Reader of TIFA160: two sets of human ratings, and images of five models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from benchmarks.arrays import FloatArray
from benchmarks.released.bundle import released_table, sources_of
from benchmarks.schema import Answers, Pair, Questions
from benchmarks.sources.folder import DataFolder, data_row, folder_images

GOLDS = ("dsg_likert", "human_avg")
"""The two golds, the one of the headline first."""


@dataclass(frozen=True)
class Tifa160Answers(Answers):
    """Ratings of whole images. The clusters are the prompts."""

    # one row per image, in the benchmark's order, with columns `pair_id`, `prompt_id`, `model`,
    # `source` (all str: the collection a prompt was taken from, e.g. `coco`) and one column per
    # gold (float, 1..5): the mean rating of the image.
    images: pd.DataFrame
    # one row per prompt, in the benchmark's order, with columns `prompt_id`, `source`
    prompts: pd.DataFrame
    # gold to the single ratings behind it, shape (images, raters), 1..5; NaN where an image has
    # fewer ratings than others. A column is not one person.
    ratings: Mapping[str, FloatArray]

    def counts(self) -> dict[str, int]:
        """Images, prompts (also by source) and ratings of each gold."""
        sources = self.prompts["source"].value_counts(sort=False)
        return {
            "images": len(self.images),
            "prompts": len(self.prompts),
            **{f"{source}: prompts": int(n) for source, n in sources.items()},
            **{
                f"{gold}: ratings": int(np.isfinite(table).sum())
                for gold, table in self.ratings.items()
            },
        }


HUMAN = "tifa160/human_annotations_with_scores.json"
LIKERT = "dsg_tifa160/tifa160-likert-anns.csv"
IMAGES = "tifa160/images"
RATINGS = "tifa160/ratings.parquet"
"""Both sets of ratings in the bundle of released results."""
SOURCES = ("coco", "partiprompt", "paintskill", "drawbench")
MODEL_NAMES = {
    "mini-dalle": "mini_dalle",
    "vq-diffusion": "vq_diffusion",
    "sd1dot1": "stable_diffusion_v1_1",
    "sd1dot5": "stable_diffusion_v1_5",
    "sd2dot1": "stable_diffusion_v2_1",
}
"""Names of the models in the DSG files to those in the TIFA file."""

_TIFA_RATERS, _DSG_RATERS = 2, 5
_COLUMNS = ("t2i_model", "source_id", "worker_id", "answer")
_Rating = Annotated[int, Field(ge=1, le=5)]


class _Entry(BaseModel):
    """Image of the TIFA file; its fields of released metrics are not read."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    text_id: str
    image_path: str
    text: str
    human_scores: list[_Rating] = Field(min_length=_TIFA_RATERS, max_length=_TIFA_RATERS)
    human_avg: float

    @property
    def source(self) -> str:
        """The collection the prompt was taken from."""
        return _source_of(self.text_id)

    def problem(self, key: str) -> str:
        """Contradiction in the entry of this name; empty where all fits together."""
        if key not in {f"{self.text_id}_{model}" for model in MODEL_NAMES.values()}:
            return f"is not named <text_id>_<model> with text_id {self.text_id!r}"
        if self.source not in SOURCES:
            return f"has text_id {self.text_id!r}; expected it to begin with {', '.join(SOURCES)}"
        if self.image_path != f"{key}.jpg":
            return f"has image_path {self.image_path!r}; expected {key + '.jpg'!r}"
        if self.human_avg != sum(self.human_scores) / _TIFA_RATERS:
            return f"has human_avg {self.human_avg!r}, not the mean of {self.human_scores!r}"
        return ""


_Annotations = dict[str, _Entry]
"""The TIFA file: `<text_id>_<model>` to the image of that name."""


def load_answers(folder: DataFolder) -> Tifa160Answers:
    """Read both sets of ratings: 800 images, five for each of 160 prompts."""
    annotations = _annotations(folder)
    rows = [
        (key, entry.text_id, key.removeprefix(f"{entry.text_id}_"), entry.source)
        for key, entry in annotations.items()
    ]
    images = pd.DataFrame(rows, columns=["pair_id", "prompt_id", "model", "source"])
    ratings = {
        "dsg_likert": _likert(folder, images["pair_id"]),
        "human_avg": np.array([entry.human_scores for entry in annotations.values()], float),
    }
    return _answers(images, ratings, folder.verified())


def released_answers() -> Tifa160Answers:
    """The same from the bundle of released results."""
    table = released_table(RATINGS)
    named = zip(table["pair_id"], table["prompt_id"], strict=True)
    images = pd.DataFrame(
        {
            "pair_id": table["pair_id"],
            "prompt_id": table["prompt_id"],
            "model": [pair.removeprefix(f"{prompt}_") for pair, prompt in named],
            "source": table["prompt_id"].map(_source_of),
        }
    )
    ratings = {gold: table.filter(regex=f"^{gold}_").to_numpy(float) for gold in GOLDS}
    return _answers(images, ratings, sources_of(RATINGS))


def load_prompts(folder: DataFolder) -> pd.DataFrame:
    """The prompts, with columns `prompt_id`, `prompt` and `source`."""
    first = {entry.text_id: entry for entry in _annotations(folder).values()}
    rows = [(prompt, entry.text, entry.source) for prompt, entry in first.items()]
    return pd.DataFrame(rows, columns=["prompt_id", "prompt", "source"])


def load_questions(folder: DataFolder) -> Questions:
    """Each image with its prompt."""
    annotations = _annotations(folder)
    names = {key: entry.image_path for key, entry in annotations.items()}
    return Questions(
        images=folder_images("tifa160", folder.path(IMAGES), names),
        texts={entry.text_id: entry.text for entry in annotations.values()},
        pairs=tuple(Pair(key, key, entry.text_id) for key, entry in annotations.items()),
    )


def load_image_names(folder: DataFolder) -> tuple[str, ...]:
    """Names of the image files, in the benchmark's order."""
    return tuple(entry.image_path for entry in _annotations(folder).values())


def _annotations(folder: DataFolder) -> _Annotations:
    """The checked TIFA file."""
    try:
        found = TypeAdapter(_Annotations).validate_python(folder.read_json(HUMAN), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ", ".join(map(str, first["loc"])) or "its top"
        raise folder.malformed(
            HUMAN,
            f"has {error.error_count()} wrong entries, the first at {where}: {first['msg']} "
            f"(found {str(first['input'])[:80]!r})",
        ) from error
    texts: dict[str, str] = {}
    for key, entry in found.items():
        problem = entry.problem(key)
        if not problem and texts.setdefault(entry.text_id, entry.text) != entry.text:
            problem = f"gives prompt {entry.text_id!r} another text than an earlier image"
        if problem:
            raise folder.malformed(HUMAN, f"is wrong at {key!r}: it {problem}")
    folder.check_count(HUMAN, "images", len(found))
    folder.check_count(HUMAN, "prompts", len(texts))
    folder.check_count(HUMAN, "human_avg: ratings", _TIFA_RATERS * len(found))
    return found


def _source_of(prompt_id: str) -> str:
    """The collection a prompt was taken from."""
    return prompt_id.split("_", maxsplit=1)[0]


def _answers(
    images: pd.DataFrame, ratings: Mapping[str, FloatArray], sources: Mapping[str, str]
) -> Tifa160Answers:
    prompts = images[["prompt_id", "source"]].drop_duplicates(ignore_index=True)
    return Tifa160Answers(
        pair_ids=tuple(images["pair_id"]),
        clusters=tuple(prompts["prompt_id"]),
        images=images.assign(
            **{gold: np.nanmean(table, axis=1) for gold, table in ratings.items()}
        ),
        prompts=prompts,
        ratings=ratings,
        sources=sources,
    )


def _likert(folder: DataFolder, pair_ids: pd.Series) -> FloatArray:
    """The DSG ratings of each image, shape (images, 5), NaN where an image has fewer."""
    table = folder.read_table(LIKERT, _COLUMNS)
    for column, allowed in (("t2i_model", MODEL_NAMES), ("answer", "12345")):
        right = table[column].isin(list(allowed))
        folder.check_cells(LIKERT, table[column], right, f"one of {', '.join(allowed)}")
    pair = table["source_id"] + "_" + table["t2i_model"].map(MODEL_NAMES)
    image = pd.Index(pair_ids).get_indexer(pd.Index(pair))
    if (image < 0).any():
        row = int(np.flatnonzero(image < 0)[0])
        raise folder.malformed(
            LIKERT,
            f"rates {int((image < 0).sum())} times an image that {HUMAN} does not have, the first "
            f"is {pair.iloc[row]!r} ({data_row(row)})",
        )
    rater = pair.groupby(pair).cumcount().to_numpy()
    twice = pd.DataFrame({"pair": pair, "worker": table["worker_id"]}).duplicated().to_numpy()
    wrong = twice | (rater >= _DSG_RATERS)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise folder.malformed(
            LIKERT,
            f"has {int(wrong.sum())} ratings too many, the first is of {pair.iloc[row]!r} by "
            f"{table['worker_id'].iloc[row]!r} ({data_row(row)}); expected at most {_DSG_RATERS} "
            "raters for an image, each once",
        )
    folder.check_count(LIKERT, "dsg_likert: ratings", len(table))
    ratings = np.full((len(pair_ids), _DSG_RATERS), np.nan)
    ratings[image, rater] = table["answer"].astype(float)
    bare = np.flatnonzero(np.isnan(ratings).all(axis=1))
    if bare.size:
        raise folder.malformed(
            LIKERT,
            f"rates {bare.size} images not at all, the first is {pair_ids.iloc[bare[0]]!r}",
        )
    return ratings
