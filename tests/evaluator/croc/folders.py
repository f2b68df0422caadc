"""Folders of small CROC data, with images that are one colour each, and their reviews."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd
from PIL import Image

from benchmarks.croc_syn.protocol import CARD as SYN
from evaluator.croc.decisions import DecisionLog
from evaluator.croc.review import Review
from evaluator.croc.review_set import read_review_set
from tests.benchmarks.croc_syn.syn_tree import EV, PV, line

TABLE = "croc_hum_metadata.tsv"
COLUMNS = ("prompt_paths", "contrast_paths", "alt_contrast_paths")
PAIRS: Mapping[str, tuple[str, str, int, int]] = {
    "counting_1": ("Two cups.", "Three cups.", 2, 3),
    "shapes_1": ("A round <b>box</b>.", "A square <b>box</b>.", 2, 1),
    "negation_1": ("A dog and a cat.", "A dog and no cat.", 1, 1),
}
"""Pair to its texts and how many images its sides have."""


def png(number: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (8, 8), (number % 256, 40, 90)).save(out, "PNG")
    return out.getvalue()


def place(pair: str, side: str, k: int) -> str:
    category = pair.rpartition("_")[0]
    return f"{category}/{side}/{pair}___{side}___toy___image{k}.png"


def hum_folder(folder: Path, pairs: Mapping[str, tuple[str, str, int, int]] = PAIRS) -> Path:
    """In the layout of CROC_hum, without a card."""
    folder.mkdir(parents=True)
    rows: list[dict[str, object]] = []
    for pair, (prompt, contrast, n_prompt, n_contrast) in pairs.items():
        lists: dict[str, list[str]] = {name: [] for name in COLUMNS}
        other = "alt_contrast" if pair.startswith("negation") else "contrast"
        for side, n in (("prompt", n_prompt), (other, n_contrast)):
            for k in range(1, n + 1):
                path = folder / place(pair, side, k)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(png(len(rows) * 40 + k))
                lists[f"{side}_paths"].append(f"images/{place(pair, side, k)}")
        rows.append({"id": pair, "prompt": prompt, "contrast": contrast, **lists})
    pd.DataFrame(rows).to_csv(folder / TABLE, sep="\t", index=False)
    return folder


def syn_folder(folder: Path, n_images: int = 2) -> Path:
    """In the layout of CROC_syn, without a card: one cell with a property and an entity."""
    folder.mkdir(parents=True)
    files = [Path(file.path).name for file in SYN.files if not file.folder]
    for name in files:
        (folder / name).write_text("")
    (folder / files[0]).write_text(f"{line(PV, ['A red cat.', ''])}\n{line(EV, ['Ada at sea.'])}\n")
    for stem in (PV, EV):
        name = stem.replace("|||", "_____")
        for side, word in (("prompts", "prompt"), ("contrast_prompts", "contrast")):
            for k in range(n_images):
                path = folder / f"images/flux/ds/{side}/{name}_{word}_0_image_{k}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(png(k))
    return folder


def review_of(folder: Path, **options: float) -> Review:
    log = DecisionLog(folder / "review.jsonl")
    return Review(read_review_set(folder), log, seed=0, repeats=options.get("repeats", 0.0))


def decide_all(review: Review, rater: str, keep: Callable[[str], bool]) -> None:
    """Every row, by a rule on the names of images."""
    while (at := review.next_place(rater)) is not None:
        images = review.rows_of(rater)[at].images
        review.decide(rater, at, tuple(None if i is None else keep(i.path) for i in images))
