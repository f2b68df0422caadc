"""Reads Gecko2K: the released prompts, and ratings and images that an operator supplies."""

from __future__ import annotations

import re

import pandas as pd

from benchmarks.gecko.answers import Gecko2kAnswers
from benchmarks.gecko.load_ratings import load_models, load_ratings
from benchmarks.gecko.reliable import reliable_prompts
from benchmarks.schema import Element, Pair, Questions
from benchmarks.sources.folder import DataFolder, data_row
from benchmarks.sources.images import folder_images

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
    """Prompts, the images that were rated, and the ratings.

    Raises:
        SubmitterError: `data_missing` or `data_malformed`, naming file, place and expectation.
    """
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
    """Each rated image with its prompt; the elements of a prompt are the words that were rated.

    Raises:
        SubmitterError: `images_missing`, and what `load_answers` raises.
    """
    answers = load_answers(folder)
    place = folder.path(IMAGES)
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
        pairs=tuple(
            Pair(pair_id, pair_id, prompt_id)
            for pair_id, prompt_id in zip(
                answers.pairs["pair_id"], answers.pairs["prompt_id"], strict=True
            )
        ),
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

    Returns:
        Columns `prompt_id`, `prompt`, `split` (`s` or `r`), `skill`, `sub_skill`, `source` (str,
        empty where they do not apply) and, where the flag is in the file, `reliable` (bool).

    Raises:
        SubmitterError: `data_missing` or `data_malformed`.
    """
    table = folder.read_table(PROMPTS, _COLUMNS)
    folder.check_count(PROMPTS, "released prompts", len(table))
    _check_ids(folder, table)
    cells = zip(*(table[name] for name in _COLUMNS), strict=True)
    rows = (dict(zip(_COLUMNS, row, strict=True)) for row in cells)
    found = pd.DataFrame([_parsed(folder, data_row(k), row) for k, row in enumerate(rows)])
    for flag in (name for name in table if str(name).startswith(_FLAG_PREFIXES)):
        _check_flag(folder, str(flag), table[flag])
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
    odd = table.loc[~table["prompt_id"].str.fullmatch(r"\d+"), "prompt_id"]
    if len(odd):
        raise folder.malformed(
            PROMPTS,
            f"has {odd.iloc[0]!r} in column prompt_id ({data_row(odd.index[0])}); expected a "
            "whole number",
        )
    again = table.loc[table["prompt_id"].duplicated(), "prompt_id"]
    if len(again):
        raise folder.malformed(
            PROMPTS,
            f"names prompt_id {again.iloc[0]!r} again ({data_row(again.index[0])}); expected each once",
        )


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


def _check_flag(folder: DataFolder, flag: str, cells: pd.Series) -> None:
    odd = cells[~cells.isin(["True", "False"])]
    if len(odd):
        raise folder.malformed(
            PROMPTS,
            f"has {odd.iloc[0]!r} in column {flag} ({data_row(odd.index[0])}); expected True or False",
        )
