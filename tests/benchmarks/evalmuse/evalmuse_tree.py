"""A small tree in the layout of the released EvalMuse files."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

from benchmarks.evalmuse.protocol import CARD, NTIRE_CARD, EvalMuse, EvalMuseNtire
from tests.benchmarks.contract import Case, Damage

Record = dict[str, Any]
LIST, NTIRE_LIST, RANKING = "train_list.json", "eval.json", "prompt_t2i.json"


def record(img_path: str, prompt: str = "a cup", kind: str = "real", **changes: Any) -> Record:
    """One item as released, with three annotators."""
    return {
        "prompt_id": "00001",
        "prompt": prompt,
        "type": kind,
        "img_path": img_path,
        "total_score": [4, 5, 3],
        "element_score": {"cup (object)": [1, 1, 0], "a (Counting) ": [0, 0, 1]},
        "promt_meaningless": [0, 0, 1],
        "split_confidence": [0, 0, 0],
        "attribute_confidence": [1, 1, 1],
        "fidelity_label": ["", "", "hand"],
    } | changes


def labelled_list(n_prompts: int = 16, images: int = 2) -> list[Record]:
    """Half real, half synthetic prompts with as many images each."""
    kinds = ("real", "synthetic")
    return [
        record(
            f"model{k}/{p:05d}.png",
            f"prompt number {p}",
            kinds[p % 2],
            prompt_id=f"{p:05d}",
            total_score=[1 + (p + k) % 5, 1 + (p * k) % 5, 3],
        )
        for p in range(n_prompts)
        for k in range(images)
    ]


def write_json(folder: Path, name: str, content: object) -> Path:
    """Write a file of the tree; returns the folder of data."""
    place = folder / "evalmuse" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return folder


def image_bytes(img_path: str) -> bytes:
    """What the tree holds for an image: no picture, but different for each."""
    return f"bytes of {img_path}".encode() * 40


def write_parts(folder: Path, names: list[str], n_parts: int = 6) -> Path:
    """The image archive, cut into parts in the middle of its files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(f"images/{name}", image_bytes(name))
    content = buffer.getvalue()
    size = -(-len(content) // n_parts)
    for number, letter in enumerate("abcdef"[:n_parts]):
        part = folder / "evalmuse" / f"images.zip.part-a{letter}"
        part.write_bytes(content[number * size : (number + 1) * size])
    return folder


def write_images(folder: Path, below: str, names: list[str]) -> Path:
    """The unpacked images."""
    for name in names:
        place = folder / "evalmuse" / below / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(image_bytes(name))
    return folder


def write_list(folder: Path) -> Path:
    """The labelled list of 16 prompts."""
    return write_json(folder, LIST, labelled_list())


def without_part(folder: Path) -> None:
    """Five of the six parts of the archive."""
    write_parts(write_list(folder), [item["img_path"] for item in labelled_list()])
    (folder / "evalmuse" / "images.zip.part-ac").unlink()


def item(img_path: str, *keys: str, **changes: Any) -> Record:
    """An item of the label file of NTIRE 2025 track 1."""
    return {
        "img_path": img_path,
        "total_score": 3.0,
        "element_score": dict.fromkeys(keys, 0.666667),
    } | changes


NAMES = [f"{model}/{n:05d}.png" for model in ("Kolors", "SDXL-Turbo") for n in range(10)]


def labelled(folder: Path, **changes: Any) -> Path:
    """The label file of NTIRE 2025 track 1: 20 images of 10 prompts."""
    items = [
        item(name, "cup (object)", f"{n % 10} (counting)", total_score=1 + n % 5, **changes)
        for n, name in enumerate(NAMES)
    ]
    return write_json(folder, NTIRE_LIST, items)


def unusable(changed: Record, *says: str) -> Damage:
    """A list whose second item is unusable."""
    where = "item 1 (from 0, img_path 'm/7.png')"
    items = [record("m/1.png"), changed]
    return Damage(lambda folder: write_json(folder, LIST, items), (LIST, where, *says))


def bad(**changes: Any) -> Record:
    """An item with other fields."""
    return record("m/7.png", **changes)


def without(key: str) -> Record:
    """An item that lacks a field."""
    return {name: value for name, value in record("m/7.png").items() if name != key}


def content(of: object, *says: str, name: str = LIST) -> Damage:
    """A file that holds something else than a list of items."""
    return Damage(lambda folder: write_json(folder, name, of), (name, *says))


def text(written: bytes, *says: str) -> Damage:
    """A file of these bytes."""

    def write(folder: Path) -> None:
        (write_json(folder, LIST, []) / "evalmuse" / LIST).write_bytes(written)

    return Damage(write, (LIST, *says))


def ranking(of: object, *says: str) -> Damage:
    """Other prompts by which text-to-image models are ranked."""
    return Damage(lambda folder: write_json(folder, RANKING, of), (RANKING, *says), "prompts")


CASES = (
    Case(
        board=EvalMuse,
        card=CARD,
        held={"labelled images": 32},
        write=write_list,
        files=(f"evalmuse/{LIST}",),
        pair_ids=("model0/00000.png", "model0/00006.png", "model0/00009.png"),
        clusters=("0dd306bd122c52a1", "30e86e675a52d255", "45659e0ace80edf2", "4c1bb5aa9b1f057d"),
        counts={"images": 8, "prompts": 4, "elements": 16, "real: images": 4},
        draw=lambda folder: write_images(
            folder, "images", [item["img_path"] for item in labelled_list()]
        ),
        question=("model1/00009.png", image_bytes("model1/00009.png"), "prompt number 9"),
        incomplete=Damage(without_part, ("part-ac",)),
        damages=(
            unusable(bad(kind="artificial"), "'artificial'"),
            unusable(bad(total_score=[]), "total_score"),
            unusable(bad(total_score=[3, 6]), "in 1..5"),
            unusable(bad(total_score=[0]), "holds 0"),
            unusable(bad(total_score=["3"]), "holds '3'"),
            unusable(bad(total_score=[True]), "holds True"),
            unusable(bad(total_score=None), "holds None"),
            unusable(bad(element_score={"cup (object)": []}), "'cup (object)'"),
            unusable(bad(element_score={"cup (object)": [2]}), "in 0..1"),
            unusable(bad(element_score={"cup": [1]}), "'cup'"),
            unusable(bad(element_score=[1, 0]), "an object"),
            unusable(
                bad(element_score={"cup (object)": [1], "cup (object) ": [0]}), "'cup (object) '"
            ),
            unusable(bad(element_score="{'cup (object)': [1]"), "an object"),
            unusable(bad(element_score="__import__('os')"), "an object"),
            unusable(bad(element_score="[1, 0]"), "an object"),
            unusable(bad(element_score="{'cup (object)': [1], 'cup (object)': [0]}"), "twice"),
            unusable(bad(split_confidence=[2]), "split_confidence"),
            unusable(bad(prompt=" "), "prompt is"),
            *(
                unusable(without(key), f"no {key}")
                for key in ("prompt", "type", "total_score", "element_score")
            ),
            content({}, "JSON array"),
            content([], "JSON array"),
            content([3], "item 0 (from 0)"),
            content([without("img_path")], "no img_path"),
            content([record("m/1.png"), record("m/1.png")], "'m/1.png' a second"),
            text(b'[{"a": 1,', "JSON"),
            text(b"\xff", "JSON"),
            text(b'[{"a": 1, "a": 2}]', "'a' stands"),
            text(b'[{"total_score": [NaN]}]', "NaN at [0] 'total_score' [0]"),
            text(rb'[{"prompt": "a \ud800"}]', r"'a \ud800' at [0] 'prompt'"),
            text(
                rb'[{"element_score": {"\udfff (object)": [1]}}]', r"key '\udfff (object)' at [0]"
            ),
            ranking([], "JSON object"),
            ranking({"a": {"prompt": "b", "element_score": {}}}, "'a' whose"),
            ranking({"a": {"prompt": "a"}}, "'a'"),
            ranking({"a": {"prompt": "a", "element_score": {"cup": None}}}, "'cup'"),
        ),
    ),
    Case(
        board=EvalMuseNtire,
        card=NTIRE_CARD,
        held={},
        write=lambda folder: labelled(folder, prompt="a cup"),
        files=(f"evalmuse/{NTIRE_LIST}",),
        pair_ids=tuple(NAMES),
        clusters=(),
        counts={"images": 20, "prompts": 1, "elements": 40, "counting: elements": 20},
        draw=lambda folder: write_images(folder, "ntire_images", NAMES),
        question=(NAMES[3], image_bytes(NAMES[3]), "a cup"),
        incomplete=Damage(
            lambda folder: write_images(
                labelled(folder, prompt="a cup"), "ntire_images", NAMES[1:]
            ),
            ("1 of the 20", NAMES[0]),
        ),
        damages=(
            content({}, "JSON array", name=NTIRE_LIST),
            content([item("a.png", total_score=6.0)], "item 0", "in 1..5", name=NTIRE_LIST),
            content([item("a.png", "cup")], "item 0", "'cup'", name=NTIRE_LIST),
        ),
    ),
)
