"""Small label files of NTIRE 2025 track 2, as an operator supplies them."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.evalmuse_track2.load import SIZE
from benchmarks.evalmuse_track2.protocol import CARD, EvalMuseTrack2
from tests.benchmarks.contract import Case, Damage

MASKS = np.random.default_rng(3).random((2, SIZE, SIZE)) > 0.7


def npz(**arrays: object) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def write(root: Path, name: str, content: bytes) -> Path:
    (root / "evalmuse_track2").mkdir(exist_ok=True)
    (root / "evalmuse_track2" / name).write_bytes(content)
    return root


def labels(**changed: object) -> bytes:
    arrays = {"images": np.array(["b", "a"]), "scores": np.array([1.25, 4.5]), "masks": MASKS}
    return npz(**{name: a for name, a in (arrays | changed).items() if a is not None})


def box_info() -> dict[str, Any]:
    rectangle = {"bbox_type": 1, "bbox": [{"x": 10, "y": 20}, {"x": 60, "y": 90}]}
    triangle = {"bbox_type": 2, "bbox": [[100, 100], [160, 110], [130, 170]]}
    return {
        "img": {"prompt_en": "a cat", "mos": 3.5, "bbox_info": [[rectangle], [triangle], []]},
        "none": {"prompt_en": "a dog", "mos": 5, "bbox_info": []},
    }


def write_boxes(root: Path, info: object, size: tuple[int, int] = (SIZE, SIZE)) -> Path:
    write(root, "train_info.json", json.dumps(info).encode())
    (root / "evalmuse_track2" / "images").mkdir(exist_ok=True)
    for name in ("img", "none"):
        Image.new("RGB", size).save(root / "evalmuse_track2" / "images" / f"{name}.jpg")
    return root


def write_labels(root: Path) -> Path:
    """The label file of two images and their prompts."""
    prompts = {name: {"prompt_en": f"a cat, {name}"} for name in "ab"}
    write(root, "info.json", json.dumps(prompts).encode())
    return write(root, "gt.npz", labels())


def draw(root: Path, images: str = "ab") -> None:
    """Images that hold their own names."""
    (root / "evalmuse_track2" / "images").mkdir()
    for name in images:
        (root / "evalmuse_track2" / "images" / f"{name}.jpg").write_text(name)


def gt(content: bytes, *says: str) -> Damage:
    """Another label file."""
    return Damage(lambda root: write(root, "gt.npz", content), ("gt.npz", *says))


def arrays(*says: str, **changed: object) -> Damage:
    """A label file with other arrays."""
    return Damage(lambda root: write(root, "gt.npz", labels(**changed)), ("gt.npz", *says))


def boxes(change: Callable[[dict[str, Any]], object], *says: str) -> Damage:
    """Another file of annotations."""

    def write_it(root: Path) -> None:
        info = box_info()
        change(info)
        data = write_boxes(root, info)
        Image.new("RGB", (SIZE, SIZE)).save(data / "x.jpg")  # a name must not lead there

    return Damage(write_it, says)


CASES = (
    Case(
        board=EvalMuseTrack2,
        card=CARD,
        held={"images": 2},
        write=write_labels,
        files=("evalmuse_track2/gt.npz",),
        pair_ids=("a", "b"),
        clusters=("a", "b"),
        counts={"images": 2, "images with a distorted region": 2},
        draw=draw,
        question=("b", b"b", "a cat, b"),
        incomplete=Damage(lambda root: draw(write_labels(root), "a"), ("1 of the 2", "'b.jpg'")),
        damages=(
            gt(b"", "npz"),
            gt(b"PK", "npz"),
            gt(pickle.dumps({}), "npz"),
            arrays("array masks", masks=None),
            arrays("no image", images=np.array([], "U1"), scores=[], masks=MASKS[:0]),
            arrays("512 x 512", masks=np.zeros((2, 4, 4))),
            arrays("not finite", masks=np.full((2, SIZE, SIZE), np.nan)),
            arrays("not finite", masks=np.full((2, SIZE, SIZE), np.inf, "f4")),
            arrays("'a' no", scores=[1.0, float("nan")]),
            arrays("1e+300", scores=[1.0, 1e300]),
            arrays("'../a'", images=np.array(["b", "../a"])),
            boxes(lambda info: info["img"].pop("mos"), "number mos"),
            boxes(lambda info: info["img"].update(mos="3"), "number mos"),
            boxes(lambda info: info["img"].pop("bbox_info"), "of lists"),
            boxes(lambda info: info["img"].update(bbox_info=[{}]), "of lists"),
            boxes(
                lambda info: info["img"].update(bbox_info=[[{"bbox_type": 3, "bbox": []}]]),
                "neither",
            ),
            boxes(lambda info: info["img"].update(mos=10**400), "'img' 'mos'"),
            boxes(lambda info: info["img"].update(mos=10**18), "1e+18"),
            boxes(lambda info: info["img"].update(mos=float("nan")), "NaN at 'img' 'mos'"),
            boxes(lambda info: info.update({"../../../x": info["img"]}), "'../../../x'"),
            boxes(lambda info: info.update({"a\\x": info["img"]}), "an image"),
            boxes(lambda info: info.update({"": info["img"]}), "image ''"),
            boxes(lambda info: info.update(img=3), "of objects"),
        ),
    ),
)
