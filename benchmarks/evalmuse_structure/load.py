"""Reads the questions and answers of the structure test that an operator supplies."""

from __future__ import annotations

import pandas as pd

from benchmarks.evalmuse_structure.answers import StructureAnswers
from benchmarks.evalmuse_structure.labels import (
    CATEGORY_LABELS,
    LABELS,
    PROBLEM_LABELS,
    QUESTION,
    problem_skill,
)
from benchmarks.schema import Pair, Questions
from benchmarks.sources.folder import DataFolder, data_row
from benchmarks.sources.images import folder_images

TABLE = "evalmuse_structure/structure.csv"
IMAGES = "evalmuse_structure/images"

_COLUMNS = ("img_path", "label", "kind", "answer")
_OF_KIND = {"category": CATEGORY_LABELS, "problem": PROBLEM_LABELS}
MAX_PROMPT = 500


def load_answers(folder: DataFolder) -> StructureAnswers:
    """Read and check the table.

    Raises:
        SubmitterError: `data_missing` or `data_malformed`, naming the first row that is wrong.
    """
    table = _table(folder)
    pairs = table["pair_id"]
    frame = pd.DataFrame(
        {
            "pair_id": pairs,
            "cluster": table["prompt_id"] if "prompt_id" in table else table["img_path"],
            "category": table["label"].map({k: label.category for k, label in LABELS.items()}),
            "skill": table["label"].map(problem_skill),
            "yes": table["answer"] == "yes",
        }
    )
    of_kind = {kind: frame[(table["kind"] == kind).to_numpy()] for kind in _OF_KIND}
    return StructureAnswers(
        pair_ids=tuple(dict.fromkeys(pairs)),
        clusters=tuple(dict.fromkeys(frame["cluster"])),
        categories=of_kind["category"].drop(columns="skill").reset_index(drop=True),
        problems=of_kind["problem"].drop(columns=["category", "yes"]).reset_index(drop=True),
        sources=folder.verified(),
    )


def load_questions(folder: DataFolder) -> Questions:
    """Each image with each question about it; nothing tells which answer is expected.

    Raises:
        SubmitterError: `images_missing`, and what `load_answers` raises.
    """
    table = _table(folder).drop_duplicates("pair_id").sort_values("pair_id")
    names = {image: image for image in dict.fromkeys(table["img_path"])}
    given = dict(zip(table["label"], _prompts(table), strict=True))
    return Questions(
        images=folder_images(
            "evalmuse_structure", folder.path(IMAGES), names, remedy=folder.remedy(IMAGES)
        ),
        texts={label: QUESTION.format(cls_prompt=words) for label, words in given.items()},
        pairs=tuple(
            Pair(pair, image, label)
            for pair, image, label in zip(
                table["pair_id"], table["img_path"], table["label"], strict=True
            )
        ),
    )


def _table(folder: DataFolder) -> pd.DataFrame:
    """The checked table with a column `pair_id`."""
    table = folder.read_table(TABLE, _COLUMNS)
    for column in table:
        table[column] = table[column].str.strip()
    if table.empty:
        raise folder.malformed(TABLE, "has no rows")
    _check_cells(folder, table)
    table["pair_id"] = table["img_path"] + "|" + table["label"]
    _check_rows(folder, table)
    folder.check_count(TABLE, "images", table["img_path"].nunique())
    folder.check_count(TABLE, "questions", table["pair_id"].nunique())
    return table


def _check_cells(folder: DataFolder, table: pd.DataFrame) -> None:
    path = table["img_path"]
    leaves = path.str.startswith("/") | path.str.split("/").map(lambda parts: ".." in parts)
    _refuse(folder, table, (path == "") | leaves, "img_path", "a path below images/")
    _refuse(
        folder, table, path.str.contains("|", regex=False), "img_path", "a path without the sign |"
    )
    _refuse(folder, table, ~table["kind"].isin(_OF_KIND), "kind", "category or problem")
    for kind, labels in _OF_KIND.items():
        wrong = (table["kind"] == kind) & ~table["label"].isin(labels)
        _refuse(folder, table, wrong, "label", f"for kind {kind} one of {', '.join(labels)}")
    _refuse(folder, table, ~table["answer"].isin(("yes", "no")), "answer", "yes or no")
    denied = (table["kind"] == "problem") & (table["answer"] == "no")
    _refuse(folder, table, denied, "answer", "yes, since a problem stands there only if annotated")
    if "prompt_id" in table:
        _refuse(folder, table, table["prompt_id"] == "", "prompt_id", "an id in every row")
    if "cls_prompt" in table:
        long = table["cls_prompt"].str.len() > MAX_PROMPT
        _refuse(folder, table, long, "cls_prompt", f"up to {MAX_PROMPT} characters")


def _check_rows(folder: DataFolder, table: pd.DataFrame) -> None:
    twice = table.duplicated(["pair_id", "kind"])
    _refuse(folder, table, twice, "label", "each label once per image and kind")
    problems = set(table.loc[table["kind"] == "problem", "pair_id"])
    denied = (table["answer"] == "no") & table["pair_id"].isin(problems)
    _refuse(folder, table, denied, "answer", "yes, since the same image has that problem annotated")
    if "prompt_id" in table:
        first = table.groupby("img_path")["prompt_id"].transform("first")
        differs = table["prompt_id"] != first
        _refuse(folder, table, differs, "prompt_id", "one prompt per image")
    words = _prompts(table)
    first = words.groupby(table["label"]).transform("first")
    _refuse(folder, table.assign(cls_prompt=words), words != first, "cls_prompt", "one per label")


def _prompts(table: pd.DataFrame) -> pd.Series:
    """Words of each row's question: the operator's, else ours."""
    ours = table["label"].map({key: label.cls_prompt for key, label in LABELS.items()})
    if "cls_prompt" not in table:
        return ours
    return table["cls_prompt"].where(table["cls_prompt"] != "", ours)


def _refuse(
    folder: DataFolder, table: pd.DataFrame, wrong: pd.Series, column: str, expected: str
) -> None:
    """Raise for the first wrong row.

    Raises:
        SubmitterError: `data_malformed`.
    """
    if not wrong.any():
        return
    index = table.index[wrong][0]
    cell = str(table.loc[index, column])[:80]
    raise folder.malformed(
        TABLE,
        f"has {int(wrong.sum())} wrong cells in column {column}, the first is {cell!r} of the "
        f"image {str(table.loc[index, 'img_path'])[:80]!r} ({data_row(index)}); "
        f"expected {expected}",
    )
