"""Reads the label file of NTIRE 2025 track 1, where an operator has one (see FORMAT.md)."""

from __future__ import annotations

import pandas as pd

from benchmarks.evalmuse.answers import EvalMuseAnswers
from benchmarks.evalmuse.items import Item, read_items
from benchmarks.evalmuse.load import element_table, questions_of
from benchmarks.evalmuse.prompt_split import prompt_key, text_id
from benchmarks.schema import Questions
from benchmarks.sources.folder import DataFolder
from benchmarks.sources.images import folder_images

LABELS = "evalmuse/eval.json"
IMAGES = "evalmuse/ntire_images"


def load_answers(folder: DataFolder) -> EvalMuseAnswers:
    """All items of the label file.

    Raises:
        SubmitterError: `data_missing` (no folder, no file) or `data_malformed`.
    """
    items = read_items(folder, LABELS, released=False)
    images = pd.DataFrame(
        [(item.img_path, _prompt_of(item), item.prompt, "", item.total) for item in items],
        columns=["pair_id", "prompt_id", "prompt", "split", "label"],
    )
    return EvalMuseAnswers(
        pair_ids=tuple(images["pair_id"]),
        clusters=tuple(sorted(set(images["prompt_id"]))),
        images=images,
        elements=element_table(items),
        sources=folder.verified(),
    )


def load_questions(folder: DataFolder) -> Questions:
    """Each image with its prompt, where the operator has both.

    Raises:
        SubmitterError: `images_missing`, `data_missing` or `data_malformed`.
    """
    images = folder.path(IMAGES)
    items = read_items(folder, LABELS, released=False)
    without = [item.img_path for item in items if not item.prompt]
    if without:
        raise folder.malformed(
            LABELS,
            f"gives no prompt for {len(without)} of {len(items)} images, the first is "
            f"{without[0]!r}, so code cannot be run on them",
        )
    names = {item.img_path: item.img_path for item in items}
    return questions_of(
        items, folder_images("evalmuse_ntire", images, names, remedy=folder.remedy(IMAGES))
    )


def _prompt_of(item: Item) -> str:
    """An id of the image's prompt.

    The organisers' file names no prompts, but images of one prompt have the same elements. An
    image with neither stands for itself.
    """
    if item.prompt:
        return prompt_key(item.prompt)
    return text_id("\n".join(sorted(item.elements)) if item.elements else item.img_path)
