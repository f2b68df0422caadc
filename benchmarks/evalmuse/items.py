"""Labelled items of the released lists, each checked: one image, its ratings, its elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.errors import SubmitterError
from benchmarks.evalmuse.element_keys import parse_element_key
from benchmarks.sources.folder import DataFolder

RATINGS = (1.0, 5.0)
LABELS = (0.0, 1.0)
FLAGS: tuple[str, ...] = ("split_confidence", "attribute_confidence", "promt_meaningless")
"""Averaged annotators' flags, by their released names (one of them misspelt)."""
_DIGITS = 6
"""Decimals of an average, as in the authors' preprocessing."""
Fault = Callable[[str], SubmitterError]


@dataclass(frozen=True, slots=True)
class Item:
    """One image with its averaged labels.

    Attributes:
        img_path: path of the image, e.g. `SDXL-Turbo/00805.png`.
        total: mean overall rating, 1..5.
        elements: raw element key to the mean label, 0..1.
        prompt: the prompt; empty where the list has none.
        split: `real`, `synth`, or empty where the list does not say.
        flags: mean of each of `FLAGS`; NaN where the item has none.
        fidelity_label: the annotators' words, joined by `;`; empty where it has none.
    """

    img_path: str
    total: float
    elements: dict[str, float]
    prompt: str = ""
    split: str = ""
    flags: dict[str, float] = field(default_factory=dict)
    fidelity_label: str = ""


def read_items(folder: DataFolder, path: str, *, released: bool) -> list[Item]:
    """The items of a list, sorted by image path.

    Args:
        folder: where the list lies.
        path: its declared path.
        released: whether it is the released training list, whose items name prompt and type;
            other lists need neither.

    Raises:
        SubmitterError: `data_missing`, or `data_malformed` with file, item and image.
    """
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
    """The content of a JSON array that is not empty.

    Raises:
        SubmitterError: `data_missing` or `data_malformed`.
    """
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
    return Item(
        img_path=_text(record, "img_path", fault),
        total=_average(_value(record, "total_score", fault), RATINGS, "total_score", fault),
        elements=_elements(_value(record, "element_score", fault), fault),
        prompt=prompt,
        split=_split(_text(record, "type", fault), fault) if released else "",
        flags={
            name: _average(record[name], LABELS, name, fault) if name in record else math.nan
            for name in FLAGS
        },
        fidelity_label=_words(record.get("fidelity_label", "")),
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
        key: _average(values, LABELS, f"the label of element {key!r}", fault)
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


def _words(value: Any) -> str:
    return ";".join(map(str, value)) if isinstance(value, list) else str(value)


def _short(value: object) -> str:
    return repr(value)[:60]
