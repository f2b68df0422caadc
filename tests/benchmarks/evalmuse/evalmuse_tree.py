"""A small tree in the layout of the released EvalMuse files."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

Record = dict[str, Any]


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
