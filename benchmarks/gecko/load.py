"""Reader of Gecko2K: released prompts, supplied ratings and images, scores and answers side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.errors import SubmitterError
from benchmarks.schema import Answers, Element, Pair, Questions, ScoreTable
from benchmarks.sources.folder import DataFolder, data_row, folder_images
from benchmarks.statistics.resampling import ResamplingPlan

TEMPLATES: tuple[str, ...] = ("WL", "Likert", "DSGH", "SxS")
"""Annotation templates: word level, Likert, DSG answered by humans, side by side."""


@dataclass(frozen=True)
class GeckoAnswers(Answers):
    """Raw ratings in the documented file format. The clusters are the prompts."""

    # `prompt_id` (str, a cluster id), `prompt` (str), `skill` (str, empty where the prompt has
    # none), `sub_skill` (str); where the benchmark has splits also `split` (`s` or `r`), `source`
    # (str, of `r`) and `reliable` (bool)
    prompts: pd.DataFrame
    # one row per image, in the benchmark's order: `pair_id` (`<prompt_id>/<model>`), `prompt_id`,
    # `model` (str)
    pairs: pd.DataFrame
    # one row per rated unit: `template` (one of TEMPLATES), `prompt_id`, `model`, `model_b` (str,
    # SxS only, else empty), `rater_id` (str), `unit_index` (int), `unit_text` (word or question,
    # may be empty), `value` (str: WL aligned | not_aligned | unsure; Likert 1..5 | unsure; DSGH yes
    # | no | invalid | unsure; SxS a | b | unsure)
    ratings: pd.DataFrame

    def counts(self) -> dict[str, int]:
        """Images, prompts, models and ratings, and prompts by split, source and skill."""
        found = {
            "images": len(self.pairs),
            "prompts": len(self.prompts),
            "models": self.pairs["model"].nunique(),
            "raters": self.ratings["rater_id"].nunique(),
        }
        for template in TEMPLATES:
            found[f"{template}: ratings"] = int((self.ratings["template"] == template).sum())
        if "split" in self.prompts:
            found |= self._counts_of_splits()
        found |= _sizes(self.prompts["skill"], "prompts")
        return found

    def _counts_of_splits(self) -> dict[str, int]:
        found = {}
        for split, rows in self.prompts.groupby("split", sort=True):
            found[f"{split}: prompts"] = len(rows)
            found[f"{split}_rel: reliable prompts"] = int(rows["reliable"].sum())
        return found | _sizes(self.prompts["source"], "prompts of this source")


@dataclass(frozen=True)
class Gecko2kAnswers(GeckoAnswers):
    """`GeckoAnswers` of Gecko2K."""

    # `released flag` or `ratings`: how the reliable prompts were found
    reliable_from: str = "released flag"

    def counts(self) -> dict[str, int]:
        """Those of `GeckoAnswers`, and the reliable prompts by how they were found."""
        found = {f"reliable prompts (from the {self.reliable_from})": 0}
        found[next(iter(found))] = int(self.prompts["reliable"].sum())
        return super().counts() | found


def _sizes(labels: pd.Series, what: str) -> dict[str, int]:
    sizes = labels[labels != ""].value_counts()
    return {f"{label}: {what}": int(sizes[label]) for label in sorted(sizes.index)}


# Ratings of an operator (see FORMAT.md).


RATINGS = "gecko/ratings.csv"
MODELS_FILE = "gecko/models.csv"
MODELS: tuple[str, ...] = ("Imagen", "Muse", "SDXL", "SD1.5")
"""The models of the paper; a models file names others."""
COLUMNS: tuple[str, ...] = (
    "template", "prompt_id", "model", "model_b", "rater_id", "unit_index", "unit_text", "value",
)  # fmt: skip

_WITH_UNITS = frozenset({"WL", "DSGH"})


def load_models(folder: DataFolder) -> tuple[str, ...]:
    """The models that may be rated: those of `gecko/models.csv`, or the paper's without it."""
    if not folder.has(MODELS_FILE):
        return MODELS
    names = folder.read_table(MODELS_FILE, ("model",))["model"]
    if names.empty:
        raise folder.malformed(MODELS_FILE, "has no row; expected the name of a model in each")
    right = ~names.duplicated() & names.str.fullmatch(r"[^/\\\s]+")
    folder.check_cells(MODELS_FILE, names, right, "names without spaces and slashes, each once")
    return tuple(names)


def load_ratings(
    folder: DataFolder, prompts: tuple[str, ...], models: tuple[str, ...]
) -> pd.DataFrame:
    """The ratings in the form of `GeckoAnswers.ratings`."""
    table = _read(folder)

    def allowed(column: str, right: pd.Series, expected: str) -> None:
        folder.check_cells(RATINGS, table[column], right, expected)

    is_sxs = table["template"] == "SxS"
    allowed("template", table["template"].isin(TEMPLATES), " | ".join(TEMPLATES))
    allowed("prompt_id", table["prompt_id"].isin(prompts), "an id of prompts.csv")
    allowed("model", table["model"].isin(models), " | ".join(models))
    allowed(
        "model_b",
        (table["model_b"].isin(models) & (table["model_b"] != table["model"])).where(
            is_sxs, table["model_b"] == ""
        ),
        f"another of {' | '.join(models)} for SxS, else nothing",
    )
    allowed("rater_id", table["rater_id"].str.strip() != "", "the name of a rater")
    whole = table["unit_index"].str.fullmatch(r"0|[1-9]\d{0,5}")
    one_unit = table["template"].isin(_WITH_UNITS) | (table["unit_index"] == "0")
    allowed("unit_index", whole & one_unit, "a whole number from 0 on; 0 for Likert and SxS")
    for template, values in VALUES.items():
        fits = table["value"].isin(values) | (table["template"] != template)
        allowed("value", fits, f"{' | '.join(values)} for {template}")
    ratings = table[list(COLUMNS)].assign(unit_index=table["unit_index"].astype(int))
    _check_once(folder, ratings)
    _check_texts(folder, ratings)
    if ratings.empty:
        raise folder.malformed(RATINGS, "has no rating; expected one in each row")
    return ratings


def _read(folder: DataFolder) -> pd.DataFrame:
    """All cells as text; a missing cell is empty."""
    path = folder.path(RATINGS)
    if path.suffix != ".parquet":
        return folder.read_table(RATINGS, COLUMNS)
    try:
        table = pd.read_parquet(path)
    except (ValueError, OSError) as error:  # pyarrow's errors are kinds of both
        raise folder.malformed(RATINGS, "cannot be read; expected a Parquet table") from error
    missing = [name for name in COLUMNS if name not in table]
    if missing:
        raise folder.malformed(
            RATINGS, f"has no column {', '.join(missing)}; expected {', '.join(COLUMNS)}"
        )
    texts = {name: table[name].astype(object).where(table[name].notna(), "") for name in COLUMNS}
    return pd.DataFrame({name: cells.astype(str) for name, cells in texts.items()})


def _check_once(folder: DataFolder, ratings: pd.DataFrame) -> None:
    """Refuse a second answer to a unit; a comparison is one in either order of its models."""
    sides = ratings[["model", "model_b"]]
    sxs = ratings["template"] == "SxS"
    key = ratings.assign(
        model=sides.min(axis=1).where(sxs, ratings["model"]),
        model_b=sides.max(axis=1).where(sxs, ""),
    )[["template", "prompt_id", "model", "model_b", "rater_id", "unit_index"]]
    again = key.duplicated()
    if again.any():
        at = int(again.to_numpy().argmax())
        first = int((key == key.loc[at]).all(axis=1).to_numpy().argmax())
        row = ratings.loc[at]
        turned = " with the models the other way round" * bool(
            row["model"] != ratings.loc[first, "model"]
        )
        raise folder.malformed(
            RATINGS,
            f"has a second answer of rater {row['rater_id']!r} to {row['template']} of prompt "
            f"{row['prompt_id']} and model {row['model']}, unit {row['unit_index']}{turned} "
            f"({data_row(at)}; the first is {data_row(first)}); expected one",
        )


def _check_texts(folder: DataFolder, ratings: pd.DataFrame) -> None:
    """A word or question is the same for all raters and models."""
    told = ratings[(ratings["unit_text"] != "") & ratings["template"].isin(_WITH_UNITS)]
    unit = told.groupby(["template", "prompt_id", "unit_index"])["unit_text"]
    odd = told[told["unit_text"] != unit.transform("first")]
    if len(odd):
        row = odd.iloc[0]
        raise folder.malformed(
            RATINGS,
            f"has {row['unit_text']!r} as unit {row['unit_index']} of {row['template']} of prompt "
            f"{row['prompt_id']} ({data_row(odd.index[0])}), but another text before; expected "
            "the same for all raters and models",
        )


# Released prompts, answers and questions.


PROMPTS = "gecko/prompts.csv"
IMAGES = "gecko/images"
SUFFIXES = (".png", ".jpg")
RELIABLE_FLAG = "max_disagreement_less_0.5"
"""The flag of the variance version at half of the maximum: the paper's reliable prompts."""
NAMED_OTHERWISE: dict[str, str] = {
    "style_100yr": "style",
    "texture_material": "texture",
    "complexity_nopeople": "lang_complexity",
    "compositional": "lang_compositional",
    "artwork": "named_entity",
    "landmarks": "named_entity",
}
"""Skill group of a released id to the paper's skill, where the two differ."""

_COLUMNS = ("dataset_id", "prompt", "prompt_type", "prompt_id")
_FLAG_PREFIXES = ("max_disagreement_less_", "v1_max_disagreement_less_")
_TYPES = {"Gecko(S)": "s", "Gecko(R)": "r"}
_IDS = {
    "s": re.compile(r"(?P<group>[a-z]+/[a-z0-9_]+):(?P<sub_skill>[^:\s]+)"),
    "r": re.compile(r"(?P<source>[a-z]+(_[a-z]+)*)_(?P<number>\d+)"),
}
_EXAMPLES = {"s": "att/color:stroop", "r": "tifa_855"}


def load_answers(folder: DataFolder) -> Gecko2kAnswers:
    """Prompts, the images that were rated, and the ratings."""
    prompts = load_prompts(folder)
    models = load_models(folder)
    ratings = load_ratings(folder, tuple(prompts["prompt_id"]), models)
    pairs = _rated_images(ratings, prompts, models)
    prompts = prompts[prompts["prompt_id"].isin(set(pairs["prompt_id"]))].reset_index(drop=True)
    released = "reliable" in prompts
    if not released:
        prompts = prompts.assign(reliable=prompts["prompt_id"].isin(reliable_prompts(ratings)))
    return Gecko2kAnswers(
        pair_ids=tuple(pairs["pair_id"]),
        clusters=tuple(prompts["prompt_id"]),
        prompts=prompts,
        pairs=pairs,
        ratings=ratings,
        reliable_from="released flag" if released else "ratings",
        sources=folder.verified(),
    )


def load_questions(folder: DataFolder) -> Questions:
    """Each rated image with its prompt; the elements of a prompt are the words that were rated."""
    answers = load_answers(folder)
    pairs, place = answers.pairs, folder.path(IMAGES)
    names = {}
    for pair_id in answers.pair_ids:
        found = (f"{pair_id}{suffix}" for suffix in SUFFIXES)
        there = (name for name in found if (place / name).is_file())
        names[pair_id] = next(there, f"{pair_id}{SUFFIXES[0]}")
    words = answers.ratings[answers.ratings["template"] == "WL"]
    words = words[words["unit_text"] != ""].drop_duplicates(["prompt_id", "unit_index"])
    words = words.sort_values("unit_index", kind="stable")
    return Questions(
        images=folder_images("gecko", place, names, remedy=folder.remedy(IMAGES)),
        texts=dict(zip(answers.prompts["prompt_id"], answers.prompts["prompt"], strict=True)),
        pairs=tuple(map(Pair, pairs["pair_id"], pairs["pair_id"], pairs["prompt_id"])),
        elements={
            str(prompt_id): tuple(
                Element(str(index), text)
                for index, text in zip(rows["unit_index"], rows["unit_text"], strict=True)
            )
            for prompt_id, rows in words.groupby("prompt_id", sort=False)
        },
    )


def load_prompts(folder: DataFolder) -> pd.DataFrame:
    """The released prompts: 1546, of which 930 have skills.

    Prompts of Gecko(R) have no skill: the paper reports skills of Gecko(S) alone. They carry the
    data set they were drawn from in `source`.

    Columns `prompt_id`, `prompt`, `split` (`s` or `r`), `skill`, `sub_skill`, `source` (str, empty
    where they do not apply) and, where the flag is in the file, `reliable` (bool).
    """
    table = folder.read_table(PROMPTS, _COLUMNS)
    folder.check_count(PROMPTS, "released prompts", len(table))
    _check_ids(folder, table)
    cells = zip(*(table[name] for name in _COLUMNS), strict=True)
    rows = (dict(zip(_COLUMNS, row, strict=True)) for row in cells)
    found = pd.DataFrame([_parsed(folder, data_row(k), row) for k, row in enumerate(rows)])
    for flag in (name for name in table if str(name).startswith(_FLAG_PREFIXES)):
        folder.check_cells(
            PROMPTS, table[flag], table[flag].isin(["True", "False"]), "True or False"
        )
    if RELIABLE_FLAG in table:
        found["reliable"] = (table[RELIABLE_FLAG] == "True").to_numpy(bool)
    return found


def split_id(dataset_id: str, split: str) -> dict[str, str] | None:
    """Skill and sub-skill, or source, in a released id; None where it has another form.

    The skill is the last part of the group before the colon, under the paper's name; the
    sub-skill is what follows the colon.
    """
    found = _IDS[split].fullmatch(dataset_id)
    if found is None:
        return None
    if split == "r":
        return {"skill": "", "sub_skill": "", "source": found["source"]}
    group = found["group"].rpartition("/")[2]
    skill = NAMED_OTHERWISE.get(group, group)
    return {"skill": skill, "sub_skill": found["sub_skill"], "source": ""}


def _rated_images(
    ratings: pd.DataFrame, prompts: pd.DataFrame, models: tuple[str, ...]
) -> pd.DataFrame:
    """Every image that a rating names, in the order of prompts and models."""
    second = ratings.loc[ratings["template"] == "SxS", ["prompt_id", "model_b"]]
    named = [ratings[["prompt_id", "model"]], second.set_axis(["prompt_id", "model"], axis=1)]
    rated = pd.concat(named).drop_duplicates().reset_index(drop=True)
    places = [prompts["prompt_id"].tolist(), list(models)]
    index = pd.MultiIndex.from_product(places, names=["prompt_id", "model"])
    there = index[index.isin(pd.MultiIndex.from_frame(rated))]
    rated = there.to_frame(index=False)
    return rated.assign(pair_id=rated["prompt_id"] + "/" + rated["model"])


def _check_ids(folder: DataFolder, table: pd.DataFrame) -> None:
    ids = table["prompt_id"]
    folder.check_cells(PROMPTS, ids, ids.str.fullmatch(r"\d+"), "a whole number")
    folder.check_cells(PROMPTS, ids, ~ids.duplicated(), "each once")


def _parsed(folder: DataFolder, place: str, row: dict[str, str]) -> dict[str, str]:
    split = _TYPES.get(row["prompt_type"])
    if split is None:
        raise folder.malformed(
            PROMPTS,
            f"has {row['prompt_type']!r} in column prompt_type ({place}); expected "
            f"{' or '.join(_TYPES)}",
        )
    parts = split_id(row["dataset_id"], split)
    if parts is None:
        raise folder.malformed(
            PROMPTS,
            f"has {row['dataset_id']!r} in column dataset_id ({place}); expected the form of "
            f"{_EXAMPLES[split]!r} for {row['prompt_type']}",
        )
    return {"prompt_id": row["prompt_id"], "prompt": row["prompt"], "split": split, **parts}


# Aggregation of raw ratings.


ABSOLUTE_TEMPLATES: tuple[str, ...] = ("WL", "Likert", "DSGH")
"""Templates that rate one image; SxS compares two."""

Preference = Literal[1, 0, -1]

_NUMBERS: dict[str, dict[str, float]] = {
    "WL": {"aligned": 1.0, "not_aligned": 0.0, "unsure": np.nan},
    # Printed scores are multiples of 1/15 from 0.2 up: ratings over 5, not (r - 1) / 4.
    "Likert": {**{str(r): r / 5.0 for r in range(1, 6)}, "unsure": np.nan},
    # The paper does not say what "invalid" counts for; like "unsure" it is dropped.
    "DSGH": {"yes": 1.0, "no": 0.0, "invalid": np.nan, "unsure": np.nan},
}
VALUES: dict[str, tuple[str, ...]] = {
    **{template: tuple(numbers) for template, numbers in _NUMBERS.items()},
    "SxS": ("a", "b", "unsure"),
}
"""Answers of each template."""
SCORE_DIGITS = 12
"""Digits of a human score. Means of fifths and thirds that are equal differ in their last bits with the
order of the raters; rank correlations would take them for different."""
_VOTES: dict[str, int] = {"a": 1, "unsure": 0, "b": -1}


def template_scores(ratings: pd.DataFrame) -> pd.DataFrame:
    """Human score of each image in each absolute template.

    Each rater's words or questions are averaged first, then the raters; unsure and invalid
    answers are left out, and a rater with nothing else counts for nothing.

    Columns `template`, `prompt_id`, `model`, `score` (0..1; Likert 0.2..1; NaN where every answer
    was unsure or invalid), sorted by the first three.
    """
    item = ["template", "prompt_id", "model"]
    numbers = coded(ratings[ratings["template"].isin(ABSOLUTE_TEMPLATES)])
    by_rater = numbers.groupby([*item, "rater_id"], sort=True)["score"].mean()
    means = by_rater.groupby(level=item, sort=True).mean()
    return means.round(SCORE_DIGITS).reset_index()


def coded(absolute: pd.DataFrame) -> pd.DataFrame:
    """Ratings of the absolute templates with a column `score`: 0..1, NaN for unsure and invalid."""
    scores = pd.Series(np.nan, absolute.index, np.float64)
    for template, rows in absolute.groupby("template", sort=True):
        numbers = _coded(rows, str(template), _NUMBERS[str(template)])
        scores[absolute["template"] == template] = numbers
    return absolute.assign(score=scores)


def preferences(ratings: pd.DataFrame) -> pd.DataFrame:
    """Majority vote of each side-by-side comparison.

    Columns `prompt_id`, `model`, `model_b` (model < model_b) and `preference`: 1 where `model` has
    more than half of the votes, -1 where `model_b` has, 0 where raters are unsure or tied; sorted
    by the first three.
    """
    rows = ratings[ratings["template"] == "SxS"]
    votes = _coded(rows, "SxS", {value: float(vote) for value, vote in _VOTES.items()})
    swapped = (rows["model"] > rows["model_b"]).to_numpy()
    first = np.where(swapped, rows["model_b"], rows["model"])
    second = np.where(swapped, rows["model"], rows["model_b"])
    votes = np.where(swapped, -votes, votes)
    table = pd.DataFrame(
        {
            "prompt_id": rows["prompt_id"].to_numpy(),
            "model": first,
            "model_b": second,
            "for_a": votes == 1,
            "for_b": votes == -1,
            "unsure": votes == 0,
        }
    )
    counts = table.groupby(["prompt_id", "model", "model_b"], sort=True).sum().reset_index()
    preference = [
        majority(int(a), int(b), int(unsure))
        for a, b, unsure in zip(counts["for_a"], counts["for_b"], counts["unsure"], strict=True)
    ]
    found = counts[["prompt_id", "model", "model_b"]]
    return found.assign(preference=np.array(preference, np.intp))


def majority(for_a: int, for_b: int, unsure: int) -> Preference:
    """The vote of more than half of the raters: 1 for a, -1 for b; 0 where there is none."""
    votes = for_a + for_b + unsure
    if 2 * for_a > votes:
        return 1
    return -1 if 2 * for_b > votes else 0


def _coded(rows: pd.DataFrame, template: str, numbers: dict[str, float]) -> np.ndarray:
    values = rows["value"].astype(str)
    unknown = values[~values.isin(list(numbers))]
    if not unknown.empty:
        raise SubmitterError(
            "unknown_rating",
            f"{unknown.iloc[0]!r} is no value of the annotation template {template} "
            f"({len(unknown)} such ratings).",
            f"Use one of: {', '.join(numbers)}.",
        )
    return values.map(numbers).to_numpy(np.float64)


# Scores and human answers, aligned image by image.


@dataclass(frozen=True)
class Comparisons:
    """Side-by-side comparisons (k,)."""

    first: IntArray  # positions of images
    second: IntArray  # positions of the images they are compared with
    preference: FloatArray  # 1 where the first is preferred, -1 the second, 0 neither

    def decided(self) -> tuple[IntArray, IntArray]:
        """Winners and losers, of the comparisons that have them."""
        kept = self.preference != 0
        a, b, won = self.first[kept], self.second[kept], self.preference[kept] > 0
        return np.where(won, a, b), np.where(won, b, a)


@dataclass(frozen=True)
class Aligned:
    """Scores and human answers, aligned with the n images of the benchmark."""

    metrics: tuple[str, ...]  # names of the M metrics
    scores: FloatArray  # shape (n, M), higher is better
    prompts: IntArray  # shape (n,), index of each image's prompt in the plan
    models: NDArray[np.object_]  # shape (n,), model of each image
    human: dict[str, FloatArray]  # template to shape (n,), score or NaN
    comparisons: Comparisons  # the side-by-side comparisons
    # shape (B + 1, C); row 0 draws each prompt once and so gives the estimate, the others are the
    # plan's resamples
    draws: FloatArray
    resampled: slice  # of the rows of `draws`: those that are bootstrap resamples

    @cached_property
    def model_codes(self) -> IntArray:
        """The model of each image as a number, shape (n,)."""
        return np.unique(self.models, return_inverse=True)[1]

    def by_prompt(self, values: FloatArray, chosen: NDArray[np.bool_]) -> dict[str, FloatArray]:
        """Image values (n,) of some images: model to shape (C,), NaN where it has none."""
        found: dict[str, FloatArray] = {}
        for model in sorted(set(self.models)):
            images = np.flatnonzero(chosen & (self.models == model))
            found[model] = np.full(self.draws.shape[1], np.nan)
            found[model][self.prompts[images]] = values[images]
        return found


def align(scores: ScoreTable, answers: GeckoAnswers, plan: ResamplingPlan) -> Aligned:
    """Bring scores and ratings into the order of the benchmark's images."""
    pairs = answers.pairs
    return Aligned(
        metrics=scores.metrics,
        scores=scores.oriented().loc[pairs["pair_id"]].to_numpy(np.float64),
        prompts=plan.positions(pairs["prompt_id"]),
        models=pairs["model"].to_numpy(object),
        human=human_scores(answers),
        comparisons=comparisons(answers),
        draws=plan.draws,
        resampled=plan.resampled,
    )


def human_scores(answers: GeckoAnswers) -> dict[str, FloatArray]:
    """Score of every image, shape (n,), in each absolute template that was used; NaN without one."""
    scored = template_scores(answers.ratings)
    _check_images_exist(_keys(scored), answers.pairs)
    rated = scored.set_index(["template", "prompt_id", "model"])["score"]
    return {
        template: rated.loc[template].reindex(_keys(answers.pairs)).to_numpy(np.float64)
        for template in ABSOLUTE_TEMPLATES
        if template in rated.index.get_level_values("template")
    }


def comparisons(answers: GeckoAnswers) -> Comparisons:
    """Majority votes as positions of the two images."""
    voted = preferences(answers.ratings)
    first = _keys(voted)
    second = _keys(voted.drop(columns="model").rename(columns={"model_b": "model"}))
    _check_images_exist(first.union(second), answers.pairs)
    position = {key: i for i, key in enumerate(_keys(answers.pairs))}
    return Comparisons(
        np.array([position[key] for key in first], np.intp),
        np.array([position[key] for key in second], np.intp),
        voted["preference"].to_numpy(np.float64),
    )


def same_missing(finite: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.bool_], IntArray]]:
    """Metrics (columns) that scored the same images, so that they share one computation."""
    patterns, group = np.unique(finite, axis=1, return_inverse=True)
    for i, scored in enumerate(patterns.T):
        yield scored, np.flatnonzero(group.ravel() == i)


def _check_images_exist(rated: pd.MultiIndex, pairs: pd.DataFrame) -> None:
    unknown = rated.difference(_keys(pairs))
    if len(unknown):
        prompt_id, model = unknown[0]
        raise SubmitterError(
            "rating_without_image",
            f"The ratings hold {len(unknown)} images that the benchmark does not, the first is "
            f"prompt {prompt_id!r} of model {model!r}.",
            "Rate only images that are listed.",
        )


def _keys(pairs: pd.DataFrame) -> pd.MultiIndex:
    return pd.MultiIndex.from_frame(pairs[["prompt_id", "model"]])


# Reliable prompts from raw ratings (Gecko, section on reliable prompts).


SHARE_OF_MAXIMUM = 0.5


def disagreements(ratings: pd.DataFrame) -> pd.DataFrame:
    """Disagreement of the raters on each image in each absolute template.

    Likert: variance of the raters' scores. WL and DSG(H): mean over words or questions of the
    variance over raters. Unsure and invalid answers are left out; the variance is that of the
    population (divisor: number of raters), so a unit with one answer has none.

    Columns `template`, `prompt_id`, `model`, `disagreement` (NaN where no unit has an answer),
    sorted by the first three.
    """
    item = ["template", "prompt_id", "model"]
    numbers = coded(ratings[ratings["template"].isin(ABSOLUTE_TEMPLATES)])
    by_unit = numbers.groupby([*item, "unit_index"], sort=True)["score"].var(ddof=0)
    by_item = by_unit.groupby(level=item, sort=True).mean()
    return by_item.rename("disagreement").reset_index()


def reliable_prompts(ratings: pd.DataFrame) -> frozenset[str]:
    """Prompts on which raters agree well enough, in every template and for every model.

    A prompt is kept where its disagreement lies below half the maximum over prompts, for all
    pairs of model and absolute template that rated it; where the maximum is 0 nobody disagrees
    and all are kept. An image without any answer in a template says nothing about disagreement.
    Then prompts go of which every Likert rating is Unsure.
    """
    table = disagreements(ratings)
    largest = table.groupby(["template", "model"])["disagreement"].transform("max")
    below = (table["disagreement"] < SHARE_OF_MAXIMUM * largest) | (largest == 0)
    below |= table["disagreement"].isna()
    unreliable = set(table.loc[~below, "prompt_id"])
    likert = ratings[ratings["template"] == "Likert"]
    unsure = (likert["value"] == "unsure").groupby(likert["prompt_id"]).all()
    unreliable |= set(unsure.index[unsure.to_numpy(bool)])
    return frozenset(set(table["prompt_id"]) - unreliable)
