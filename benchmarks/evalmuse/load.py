"""Reads the released EvalMuse files: labels into the answer side, images into the question side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from benchmarks.evalmuse.answers import EvalMuseAnswers
from benchmarks.evalmuse.element_keys import UNREPORTED_SKILL, parse_element_key
from benchmarks.evalmuse.items import Item, read_items
from benchmarks.evalmuse.prompt_split import held_out, prompt_key, text_id
from benchmarks.schema import Element, Pair, Questions
from benchmarks.sources.archives import ZipImages
from benchmarks.sources.folder import DataFolder
from benchmarks.sources.images import Reader, folder_images, zip_images

LABELS = "evalmuse/train_list.json"
PROMPTS = "evalmuse/prompt_t2i.json"
IMAGES = "evalmuse/images"
IMAGE_PARTS = tuple(f"evalmuse/images.zip.part-a{letter}" for letter in "abcdef")
_REAL_PROMPTS = 100
"""The ranking prompts begin with so many real ones; the others are synthetic."""


def load_answers(folder: DataFolder) -> EvalMuseAnswers:
    """The held-out quarter of the released training list, with averaged labels.

    Raises:
        SubmitterError: `data_missing` (no folder, no file) or `data_malformed` (not the released
            list).
    """
    listed = _items(folder)
    items, images = _held_out(listed)
    return EvalMuseAnswers(
        pair_ids=tuple(images["pair_id"]),
        clusters=tuple(sorted(set(images["prompt_id"]))),
        images=images,
        elements=element_table(items),
        labelled=len(listed),
        sources=folder.verified(),
    )


def load_questions(folder: DataFolder) -> Questions:
    """Each held-out image with its prompt and the elements of the prompt.

    Raises:
        SubmitterError: `images_missing`, and what `load_answers` raises.
    """
    items, _ = _held_out(_items(folder))
    return questions_of(items, _image_readers(folder, [item.img_path for item in items]))


def has_images(folder: DataFolder) -> bool:
    """Whether the unpacked folder or every part of the archive is there."""
    return folder.has(IMAGES) or all(map(folder.has, IMAGE_PARTS))


@dataclass(frozen=True, slots=True)
class RankingPrompt:
    """A prompt by which text-to-image models are ranked.

    Attributes:
        prompt_id: its place in the released list, `000` to `198`.
        text: the prompt.
        split: `real` or `synth`.
        elements: raw element keys, in the released order.
    """

    prompt_id: str
    text: str
    split: str
    elements: tuple[str, ...]

    @property
    def skills(self) -> frozenset[str]:
        """Skills of its elements."""
        return frozenset(parse_element_key(key).skill for key in self.elements)


def ranking_prompts(folder: DataFolder) -> list[RankingPrompt]:
    """The prompts by which text-to-image models are ranked, with their elements.

    Raises:
        SubmitterError: `data_missing` or `data_malformed`.
    """
    entries = folder.read_json(PROMPTS)
    if not isinstance(entries, dict):
        raise folder.malformed(PROMPTS, "is not a JSON object of prompts")
    folder.check_count(PROMPTS, "ranking prompts", len(entries))
    found = [
        RankingPrompt(
            f"{number:03d}",
            text,
            "real" if number < _REAL_PROMPTS else "synth",
            _prompt_elements(folder, text, entry),
        )
        for number, (text, entry) in enumerate(entries.items())
    ]
    folder.check_count(PROMPTS, "ranking elements", sum(len(one.elements) for one in found))
    folder.verified()
    return found


def load_prompts(folder: DataFolder) -> pd.DataFrame:
    """The ranking prompts as a table; see `Benchmark.prompts`.

    Raises:
        SubmitterError: `data_missing` or `data_malformed`.
    """
    found = ranking_prompts(folder)
    return pd.DataFrame(
        {
            "prompt_id": [one.prompt_id for one in found],
            "prompt": [one.text for one in found],
            "split": [one.split for one in found],
            "skills": [";".join(sorted(one.skills - {UNREPORTED_SKILL})) for one in found],
        }
    )


def element_table(items: Iterable[Item]) -> pd.DataFrame:
    """The table `EvalMuseAnswers.elements` of some items."""
    rows = [
        (item.img_path, key, parse_element_key(key).skill, label)
        for item in items
        for key, label in item.elements.items()
    ]
    table = pd.DataFrame(rows, columns=["pair_id", "element_id", "skill", "label"])
    return table.astype({"pair_id": str, "element_id": str, "skill": str, "label": "float64"})


def questions_of(items: Iterable[Item], images: Mapping[str, Reader]) -> Questions:
    """The question side of items that all have a prompt.

    Where two items of one prompt name different elements, each image is asked about all of them.
    """
    items = tuple(items)
    elements: dict[str, dict[str, Element]] = {}
    for item in items:
        known = elements.setdefault(text_id(item.prompt), {})
        for key in item.elements:
            known.setdefault(key, Element(key, parse_element_key(key).text))
    return Questions(
        images=images,
        texts={text_id(item.prompt): item.prompt for item in items},
        pairs=tuple(Pair(item.img_path, item.img_path, text_id(item.prompt)) for item in items),
        elements={text: tuple(found.values()) for text, found in elements.items()},
    )


def _items(folder: DataFolder) -> list[Item]:
    """All items of the released list."""
    items = read_items(folder, LABELS, released=True)
    folder.check_count(LABELS, "labelled images", len(items))
    # Neither its hash nor its exact size is published, but a part of it is another benchmark.
    folder.check_range(LABELS, "labelled images", len(items))
    return items


def _held_out(items: list[Item]) -> tuple[list[Item], pd.DataFrame]:
    """The held-out items and their table `EvalMuseAnswers.images`, in the same order."""
    images = _image_table(items)
    # A text that is listed with both types takes part in the draw once, as real.
    types = images.groupby("prompt_id")["split"].min()
    chosen = held_out(dict(zip(map(str, types.index), types, strict=True)))
    kept = images["prompt_id"].isin(chosen).to_numpy()
    return (
        [item for item, keep in zip(items, kept, strict=True) if keep],
        images[kept].reset_index(drop=True),
    )


def _image_table(items: Iterable[Item]) -> pd.DataFrame:
    rows = [
        {
            "pair_id": item.img_path,
            "prompt_id": prompt_key(item.prompt),
            "prompt": item.prompt,
            "split": item.split,
            "label": item.total,
            **item.flags,
            "fidelity_label": item.fidelity_label,
        }
        for item in items
    ]
    table = pd.DataFrame(rows)
    return table.assign(var=table.groupby("prompt")["label"].transform("var"))


def _image_readers(folder: DataFolder, names: Iterable[str]) -> dict[str, Reader]:
    if folder.has(IMAGES):
        return folder_images("evalmuse", folder.path(IMAGES), {name: name for name in names})
    archive = ZipImages(*map(folder.path, IMAGE_PARTS))
    return zip_images("evalmuse", archive, {name: f"images/{name}" for name in names})


def _prompt_elements(folder: DataFolder, text: str, entry: Any) -> tuple[str, ...]:
    """The element keys of a ranking prompt, each of which can be taken apart."""
    if not isinstance(entry, dict) or entry.get("prompt") != text:
        raise folder.malformed(PROMPTS, f"has an entry {text[:60]!r} whose prompt differs")
    try:
        keys = tuple(entry["element_score"])
        for key in keys:
            parse_element_key(key)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise folder.malformed(
            PROMPTS, f"has an entry {text[:60]!r} with unusable element_score: {error}"
        ) from error
    return keys
