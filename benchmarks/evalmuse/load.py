"""Reader of EvalMuse-40K and of NTIRE 2025 track 1: labelled images, ratings, elements, held-out prompts."""

from __future__ import annotations

import ast
import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pandas as pd

from benchmarks.errors import SubmitterError
from benchmarks.parsing import folded
from benchmarks.schema import Answers, Element, Pair, Questions
from benchmarks.sources.archives import ZipImages
from benchmarks.sources.folder import DataFolder, Reader, folder_images, packed_images

# Element keys such as `two cups (counting)`: the element's text and its type.


SKILLS: tuple[str, ...] = (
    "attribute",
    "material",
    "color",
    "location",
    "object",
    "a./h.",
    "food",
    "spatial",
    "activity",
    "shape",
    "counting",
)
"""Element types with a column in the paper's Table 6, in its order; `a./h.` is animal or human."""
UNREPORTED_SKILL = "other"
"""Type of all remaining elements, which the paper counts in the overall accuracy only."""
_ANIMAL_OR_HUMAN = frozenset({"animal", "human", "animal/human"})


@dataclass(frozen=True, slots=True)
class ElementKey:
    """A key taken apart."""

    text: str  # the element as it stands in the prompt, e.g. `two cups`.
    # its type as annotated, without spaces and brackets around it, e.g. `object-vehicle`.
    kind: str

    @property
    def skill(self) -> str:
        """The skill: a key of `SKILLS`, or `other`."""
        group = self.kind.lower().partition("-")[0].strip()
        if group in _ANIMAL_OR_HUMAN:
            return "a./h."
        return group if group in SKILLS else UNREPORTED_SKILL


@lru_cache(maxsize=1 << 16)  # the images of one prompt repeat its keys
def parse_element_key(key: str) -> ElementKey:
    """Take a key apart at its last opening bracket.

    The released types differ in capitals, have sub-types after a hyphen, and in part a space
    after the closing bracket.
    """
    text, bracket, kind = key.rpartition("(")
    if not bracket or not text.strip():
        raise ValueError(f"{key!r} is no element with a type in brackets, such as 'cup (object)'")
    return ElementKey(text.strip(), kind.strip(" \t\n)"))


@dataclass(frozen=True)
class EvalMuseAnswers(Answers):
    """Averaged human labels. The clusters are the prompts."""

    # one row per image, in the benchmark's order: `pair_id` (str), `prompt_id` (str, a cluster id),
    # `prompt` (str), `split` (`real` or `synth`, empty where that is not known), `label` (float,
    # mean overall rating 1..5). Released lists add columns that no measure reads: `var` (float,
    # sample variance of the labels of all images of the same prompt text, NaN for a single image),
    # the averaged flags `split_confidence`, `attribute_confidence` and `promt_meaningless` (float
    # in 0..1, NaN where not given), `fidelity_label` (str) and `ratings` (tuple of one rating of each
    # annotator, empty where the list has averages).
    images: pd.DataFrame
    # one row per (image, element): `pair_id`, `element_id` (str), `skill` (str, normalised element
    # type such as `counting`), `label` (float in 0..1, mean of the annotators' 0/1 labels)
    elements: pd.DataFrame
    # how many images the released list holds, of which these are the held-out part; 0 where there
    # is no such list
    labelled: int = field(default=0, kw_only=True)

    def counts(self) -> dict[str, int]:
        """Images, prompts and elements, in all, by split and by skill."""
        found = {
            "images": len(self.images),
            "prompts": len(self.clusters),
            "elements": len(self.elements),
            "images without elements": len(
                set(self.images["pair_id"]) - set(self.elements["pair_id"])
            ),
        }
        if self.labelled:
            found["labelled images"] = self.labelled
        for split in sorted(set(self.images["split"]) - {""}):
            members = self.images.loc[self.images["split"] == split, "prompt_id"]
            found[f"{split}: images"] = len(members)
            found[f"{split}: prompts"] = members.nunique()
        sizes = self.elements["skill"].value_counts()
        for skill in sorted(set(sizes.index) - {UNREPORTED_SKILL}):
            found[f"{skill}: elements"] = int(sizes[skill])
        return found


# Labelled items of the released lists: one image, its ratings, its elements.


RATINGS = (1.0, 5.0)
LABEL_RANGE = (0.0, 1.0)
FLAGS: tuple[str, ...] = ("split_confidence", "attribute_confidence", "promt_meaningless")
"""Averaged annotators' flags, by their released names (one of them misspelt)."""
_DIGITS = 6
"""Decimals of an average, as in the authors' preprocessing."""
Fault = Callable[[str], SubmitterError]


@dataclass(frozen=True, slots=True)
class Item:
    """Image with its averaged labels."""

    img_path: str  # path of the image, e.g. `SDXL-Turbo/00805.png`.
    total: float  # mean overall rating, 1..5
    elements: dict[str, float]  # raw element key to the mean label, 0..1
    prompt: str = ""  # the prompt; empty where the list has none
    split: str = ""  # `real`, `synth`, or empty where the list does not say
    # mean of each of `FLAGS`; NaN where the item has none
    flags: dict[str, float] = field(default_factory=dict)
    fidelity_label: str = ""  # the annotators' words, joined by `;`; empty where it has none
    ratings: tuple[float, ...] = ()  # one of each annotator; none where the list has an average


def read_items(folder: DataFolder, path: str, *, released: bool) -> list[Item]:
    """The items of a list, sorted by image path."""
    records = read_list(folder, path)
    items: dict[str, Item] = {}
    for position, record in enumerate(records):
        item = _item(record, _fault(folder, path, position, record), released=released)
        if item.img_path in items:
            raise folder.malformed(
                path, f"names image {item.img_path!r} a second time in item {position} (from 0)"
            )
        items[item.img_path] = item
    return [items[name] for name in sorted(items)]


def read_list(folder: DataFolder, path: str) -> list[Any]:
    """The content of a JSON array that is not empty."""
    records = folder.read_json(path)
    if not isinstance(records, list) or not records:
        raise folder.malformed(path, "is not a JSON array of items")
    return records


def _fault(folder: DataFolder, path: str, position: int, record: object) -> Fault:
    name = record.get("img_path") if isinstance(record, dict) else None
    where = f"item {position} (from 0{f', img_path {name!r}' if name else ''})"
    return lambda what: folder.malformed(path, f"has an unusable {where}: {what}")


def _item(record: Any, fault: Fault, *, released: bool) -> Item:
    if not isinstance(record, dict):
        raise fault("it is not an object")
    prompt = _text(record, "prompt", fault) if released or "prompt" in record else ""
    rated = _value(record, "total_score", fault)
    return Item(
        img_path=_text(record, "img_path", fault),
        total=_average(rated, RATINGS, "total_score", fault),
        elements=_elements(_spelt_out(_value(record, "element_score", fault), fault), fault),
        prompt=prompt,
        split=_split(_text(record, "type", fault), fault) if released else "",
        flags={
            name: _average(record[name], LABEL_RANGE, name, fault) if name in record else math.nan
            for name in FLAGS
        },
        fidelity_label=_label(record.get("fidelity_label", "")),
        ratings=tuple(map(float, rated)) if isinstance(rated, list) else (),
    )


def _value(record: dict[str, Any], key: str, fault: Fault) -> Any:
    if key not in record:
        raise fault(f"it has no {key}")
    return record[key]


def _text(record: dict[str, Any], key: str, fault: Fault) -> str:
    text = _value(record, key, fault)
    if not isinstance(text, str) or not text.strip():
        raise fault(f"{key} is {text!r}; expected a text")
    return text


def _split(kind: str, fault: Fault) -> str:
    """`real` or `synth`; the released lists may spell them out (`synthetic`)."""
    for split in ("real", "synth"):
        if kind.strip().lower().startswith(split):
            return split
    raise fault(f"type is {kind!r}; expected real or synth")


def _spelt_out(labels: Any, fault: Fault) -> Any:
    """What a text spells out: the dataset's card has them as text, which the authors evaluate."""
    if not isinstance(labels, str):
        return labels
    try:
        written = ast.parse(labels.strip(), mode="eval").body
        found = ast.literal_eval(written)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise fault(f"element_score is {_short(labels)}; expected an object of elements") from error
    if isinstance(written, ast.Dict) and len(written.keys) != len(found):
        raise fault("element_score names an element twice")
    return found


def _elements(labels: Any, fault: Fault) -> dict[str, float]:
    if not isinstance(labels, dict):
        raise fault(f"element_score is {_short(labels)}; expected an object of elements")
    seen: set[object] = set()
    for key in labels:
        try:
            element = parse_element_key(key)
        except ValueError as error:
            raise fault(f"element {error}") from error
        if element in seen:
            raise fault(f"element {key!r} stands twice, spaces aside")
        seen.add(element)
    return {
        key: _average(values, LABEL_RANGE, f"the label of element {key!r}", fault)
        for key, values in labels.items()
    }


def _average(values: Any, limits: tuple[float, float], what: str, fault: Fault) -> float:
    """Mean of one annotation each, or an average as it is, rounded as the authors do."""
    given = values if isinstance(values, list) else [values]
    if not given:
        raise fault(f"{what} is an empty list")
    low, high = limits
    for value in given:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not low <= value <= high:
            raise fault(f"{what} holds {_short(value)}; expected numbers in {low:g}..{high:g}")
    return round(sum(given) / len(given), _DIGITS)


def _label(value: Any) -> str:
    return ";".join(map(str, value)) if isinstance(value, list) else str(value)


def _short(value: object) -> str:
    return repr(value)[:60]


# Held-out prompts.


HELD_OUT_OF = 4
"""Prompts to each held-out one, as in the paper's own test set."""


def text_id(text: str) -> str:
    """A short id of a text: the first 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def prompt_key(text: str) -> str:
    """An id that texts share if they differ in capitals, spacing or Unicode form only."""
    return text_id(folded(text))


def held_out(types: Mapping[str, str]) -> frozenset[str]:
    """The held-out prompts: of each type the quarter (rounded up) with the smallest keys.

    Keys are hashes, so this is a random draw; a prompt's fate depends on the set of prompts, never
    on the order of a file.
    """
    chosen: set[str] = set()
    for kind in set(types.values()):
        keys = sorted(key for key, of_kind in types.items() if of_kind == kind)
        chosen.update(keys[: -(-len(keys) // HELD_OUT_OF)])
    return frozenset(chosen)


# Released files.


LABELS = "evalmuse/train_list.json"
PROMPTS = "evalmuse/prompt_t2i.json"
IMAGES = "evalmuse/images"
IMAGE_PARTS = tuple(f"evalmuse/images.zip.part-a{letter}" for letter in "abcdef")
_REAL_PROMPTS = 100
"""The ranking prompts begin with so many real ones; the others are synthetic."""


def load_answers(folder: DataFolder, *, training: bool = False) -> EvalMuseAnswers:
    """The held-out quarter of the released training list, with averaged labels.

    `training`: all that is not held out, in its place.
    """
    listed = _items(folder)
    items, images = _part(listed, training=training)
    return EvalMuseAnswers(
        pair_ids=tuple(images["pair_id"]),
        clusters=tuple(sorted(set(images["prompt_id"]))),
        images=images,
        elements=element_table(items),
        labelled=len(listed),
        sources=folder.verified(),
    )


def load_questions(folder: DataFolder, *, training: bool = False) -> Questions:
    """Each image of the same part with its prompt and the elements of the prompt."""
    items, _ = _part(_items(folder), training=training)
    return questions_of(items, _image_readers(folder, [item.img_path for item in items]))


def has_images(folder: DataFolder) -> bool:
    """True where the unpacked folder or every part of the archive is there."""
    return folder.has(IMAGES) or all(map(folder.has, IMAGE_PARTS))


@dataclass(frozen=True, slots=True)
class RankingPrompt:
    """A prompt by which text-to-image models are ranked."""

    prompt_id: str  # its place in the released list, `000` to `198`
    text: str  # the prompt
    split: str  # `real` or `synth`
    elements: tuple[str, ...]  # raw element keys, in the released order

    @property
    def skills(self) -> frozenset[str]:
        """Skills of its elements."""
        return frozenset(parse_element_key(key).skill for key in self.elements)


def ranking_prompts(folder: DataFolder) -> list[RankingPrompt]:
    """The prompts by which text-to-image models are ranked, with their elements."""
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
    """The ranking prompts as a table; see `Benchmark.prompts`."""
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


def _part(items: list[Item], *, training: bool) -> tuple[list[Item], pd.DataFrame]:
    """The held-out items, or all others, and their table `EvalMuseAnswers.images` in that order."""
    images = _image_table(items)
    # A text that is listed with both types takes part in the draw once, as real.
    types = images.groupby("prompt_id")["split"].min()
    chosen = held_out(dict(zip(map(str, types.index), types, strict=True)))
    kept = images["prompt_id"].isin(chosen).to_numpy() != training
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
            "ratings": item.ratings,
        }
        for item in items
    ]
    table = pd.DataFrame(rows)
    return table.assign(var=table.groupby("prompt")["label"].transform("var"))


def _image_readers(folder: DataFolder, names: Iterable[str]) -> dict[str, Reader]:
    if folder.has(IMAGES):
        return folder_images("evalmuse", folder.path(IMAGES), {name: name for name in names})
    archive = ZipImages(*map(folder.path, IMAGE_PARTS))
    return packed_images("evalmuse", archive, {name: f"images/{name}" for name in names})


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


# Label file of NTIRE 2025 track 1 (see FORMAT.md).


NTIRE_LABELS = "evalmuse/eval.json"
NTIRE_IMAGES = "evalmuse/ntire_images"


def load_ntire_answers(folder: DataFolder) -> EvalMuseAnswers:
    """All items of the label file."""
    items = read_items(folder, NTIRE_LABELS, released=False)
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


def load_ntire_questions(folder: DataFolder) -> Questions:
    """Each image with its prompt, where the operator has both."""
    images = folder.path(NTIRE_IMAGES)
    items = read_items(folder, NTIRE_LABELS, released=False)
    without = [item.img_path for item in items if not item.prompt]
    if without:
        raise folder.malformed(
            NTIRE_LABELS,
            f"gives no prompt for {len(without)} of {len(items)} images, the first is "
            f"{without[0]!r}, so code cannot be run on them",
        )
    names = {item.img_path: item.img_path for item in items}
    return questions_of(
        items, folder_images("evalmuse_ntire", images, names, remedy=folder.remedy(NTIRE_IMAGES))
    )


def _prompt_of(item: Item) -> str:
    """An id of the image's prompt.

    The organisers' file names no prompts, but images of one prompt have the same elements. An
    image with neither stands for itself.
    """
    if item.prompt:
        return prompt_key(item.prompt)
    return text_id("\n".join(sorted(item.elements)) if item.elements else item.img_path)
