"""Reader of the EvalMuse structure test: structural problems, questions and answers."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from benchmarks.schema import Answers, Pair, Questions
from benchmarks.sources.folder import DataFolder, folder_images

QUESTION = (
    "Does this generated image have any structural problems? Specifically, {cls_prompt}? "
    "Please answer yes or no only."
)
"""The paper's question."""


@dataclass(frozen=True)
class Label:
    """Subject of a question: a structural problem, or a category of them."""

    category: str  # `animal`, `object` or `human`, the three for which accuracy is reported
    title: str  # the paper's name
    cls_prompt: str  # our words for it in the question; those of the paper are not published


def _human(title: str, words: str) -> Label:
    return Label("human", title, f"does a person in it have {words}")


CATEGORIES: dict[str, str] = {"animal": "Animal", "object": "Object", "human": "Human"}
"""Category key to display name."""

CATEGORY_LABELS: dict[str, Label] = {
    "animal": Label("animal", "Animal", "is the body of an animal in it malformed"),
    "object": Label("object", "Object", "is the shape of an object in it malformed"),
    "human_body": Label("human", "Human Body", "is the body of a person in it malformed"),
}
"""Labels whose question is asked of an image whether or not it has the problem."""

_HUMAN_PARTS: dict[str, Label] = {
    "face_missing_extra": _human(
        "Face-Missing/Extra Feature", "a face with a missing or an extra feature"
    ),
    "face_distorted": _human("Face-Distorted/Exaggerated", "a distorted or exaggerated face"),
    "limb_missing_extra": _human("Limb-Missing/Extra Limbs", "a missing or an extra limb"),
    "limb_distorted": _human("Limb-Distorted/Deformed", "a distorted or deformed limb"),
    "limb_disproportionate": _human("Limb-Disproportionate", "limbs out of proportion"),
    "palm_shapeless": _human("Palm-Shapeless", "a hand without a clear shape"),
    "palm_missing_extra": _human("Palm-Missing/Extra Finger", "a missing or an extra finger"),
    "palm_deformed": _human("Palm-Deformed", "a deformed hand"),
    "palm_overlapping": _human("Palm-Overlapping", "hands or fingers that run into one another"),
}

PROBLEM_LABELS: dict[str, Label] = {
    "animal": CATEGORY_LABELS["animal"],
    "object": CATEGORY_LABELS["object"],
    **_HUMAN_PARTS,
}
"""The eleven labels of annotated problems."""

LABELS: dict[str, Label] = {**CATEGORY_LABELS, **_HUMAN_PARTS}

SKILLS: dict[str, str] = {
    **CATEGORIES,
    **{f"human:{key}": label.title for key, label in _HUMAN_PARTS.items()},
}
"""Skill keys of rows, by category and by part of the human body."""


def problem_skill(label: str) -> str:
    """Skill key of a problem: `animal`, `object` or e.g. `human:palm_deformed`."""
    return f"human:{label}" if label in _HUMAN_PARTS else LABELS[label].category


@dataclass(frozen=True)
class StructureAnswers(Answers):
    """Yes or no per question. The clusters are the prompts where they are known, else the images."""

    # questions of the accuracy test: `pair_id` (str), `cluster` (str), `category` (str: `animal`,
    # `object` or `human`), `yes` (bool)
    categories: pd.DataFrame
    # questions of the recall test, to all of which the answer is yes: `pair_id`, `cluster`, `skill`
    # (str, e.g. `human:palm_deformed`). A pair may stand in both tables.
    problems: pd.DataFrame

    def counts(self) -> dict[str, int]:
        """Images, questions of both tests, and yes and no by category."""
        images = {pair.rsplit("|", 1)[0] for pair in self.pair_ids}
        counts = {
            "images": len(images),
            "clusters": len(self.clusters),
            "category questions": len(self.categories),
            "annotated problems": len(self.problems),
        }
        for key in CATEGORIES:
            of_category = self.categories[self.categories["category"] == key]
            counts[f"{key}: yes"] = int(of_category["yes"].sum())
            counts[f"{key}: no"] = int((~of_category["yes"]).sum())
        return counts


# The operator's table of questions and answers.


TABLE = "evalmuse_structure/structure.csv"
IMAGES = "evalmuse_structure/images"

_COLUMNS = ("img_path", "label", "kind", "answer")
_OF_KIND = {"category": CATEGORY_LABELS, "problem": PROBLEM_LABELS}
MAX_PROMPT = 500


def load_answers(folder: DataFolder) -> StructureAnswers:
    """Read and check the table."""
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
    """Each image with each question about it; nothing tells which answer is expected."""
    table = _table(folder).drop_duplicates("pair_id").sort_values("pair_id")
    names = {image: image for image in dict.fromkeys(table["img_path"])}
    given = dict(zip(table["label"], _prompts(table), strict=True))
    return Questions(
        images=folder_images(
            "evalmuse_structure", folder.path(IMAGES), names, remedy=folder.remedy(IMAGES)
        ),
        texts={label: QUESTION.format(cls_prompt=words) for label, words in given.items()},
        pairs=tuple(map(Pair, table["pair_id"], table["img_path"], table["label"])),
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
    def allowed(column: str, right: pd.Series, expected: str) -> None:
        folder.check_cells(TABLE, table[column], right, expected)

    path, problem = table["img_path"], table["kind"] == "problem"
    leaves = path.str.startswith("/") | path.str.split("/").map(lambda parts: ".." in parts)
    allowed("img_path", (path != "") & ~leaves, "a path below images/")
    allowed("img_path", ~path.str.contains("|", regex=False), "a path without the sign |")
    allowed("kind", table["kind"].isin(_OF_KIND), "category or problem")
    for kind, labels in _OF_KIND.items():
        fits = (table["kind"] != kind) | table["label"].isin(labels)
        allowed("label", fits, f"for kind {kind} one of {', '.join(labels)}")
    allowed("answer", table["answer"].isin(("yes", "no")), "yes or no")
    annotated = ~problem | (table["answer"] == "yes")
    allowed("answer", annotated, "yes, since a problem stands there only if annotated")
    if "prompt_id" in table:
        allowed("prompt_id", table["prompt_id"] != "", "an id in every row")
    if "cls_prompt" in table:
        short = table["cls_prompt"].str.len() <= MAX_PROMPT
        allowed("cls_prompt", short, f"up to {MAX_PROMPT} characters")


def _check_rows(folder: DataFolder, table: pd.DataFrame) -> None:
    def allowed(column: pd.Series, wrong: pd.Series, expected: str) -> None:
        folder.check_cells(TABLE, column, ~wrong, expected)

    twice = table.duplicated(["pair_id", "kind"])
    allowed(table["label"], twice, "each label once per image and kind")
    problems = set(table.loc[table["kind"] == "problem", "pair_id"])
    denied = (table["answer"] == "no") & table["pair_id"].isin(problems)
    allowed(table["answer"], denied, "yes, since the same image has that problem annotated")
    if "prompt_id" in table:
        first = table.groupby("img_path")["prompt_id"].transform("first")
        allowed(table["prompt_id"], table["prompt_id"] != first, "one prompt per image")
    words = _prompts(table).rename("cls_prompt")
    allowed(words, words != words.groupby(table["label"]).transform("first"), "one per label")


def _prompts(table: pd.DataFrame) -> pd.Series:
    """Words of each row's question: the operator's, else ours."""
    ours = table["label"].map({key: label.cls_prompt for key, label in LABELS.items()})
    if "cls_prompt" not in table:
        return ours
    return table["cls_prompt"].where(table["cls_prompt"] != "", ours)
