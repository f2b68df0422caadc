"""Small copies of the two files of ratings of TIFA160."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.families.card import FamilyCard
from benchmarks.tifa160.protocol import HUMAN, IMAGES, LIKERT, MODEL_NAMES, TIFA160, Tifa160
from tests.benchmarks.contract import Case, Damage
from tests.kit.checks import trial_card

FIRST = "coco_1_mini_dalle"
PROMPTS = {"coco_1": "A dog, brown", "drawbench_22": "Two cats"}
COUNTS = {"images": 10, "prompts": 2, "human_avg: ratings": 20, "dsg_likert: ratings": 49}


def board(card: FamilyCard) -> Tifa160:
    return Tifa160(card, TIFA160.home)


def small(**counts: int) -> Tifa160:
    """The benchmark with the counts of two prompts by five models and nothing pinned."""
    return board(trial_card(TIFA160.card, **counts or COUNTS))


def entry(prompt: str, model: str, k: int = 0) -> dict[str, Any]:
    scores = [1 + k % 4, 2 + k % 4]
    return {
        "text_id": prompt,
        "image_path": f"{prompt}_{model}.jpg",
        "text": PROMPTS.get(prompt, ""),
        "human_scores": scores,
        "human_avg": sum(scores) / 2,
        "clipscore_vitb32": 20.0 + k,
    }


def human_file() -> dict[str, Any]:
    """The TIFA file: ratings 1 and 2, 2 and 3, ... by the order of the images."""
    keys = [(prompt, str(model)) for prompt in PROMPTS for model in MODEL_NAMES.values()]
    return {f"{p}_{model}": entry(p, model, k) for k, (p, model) in enumerate(keys)}


def likert() -> pd.DataFrame:
    """The DSG file: five ratings of each image, only four of the last."""
    rows = [
        ("tifa160", model, f"tifa160_{i}", prompt, f"worker {rater}", "How?", str(1 + rater))
        for i, prompt in enumerate(PROMPTS)
        for model in MODEL_NAMES
        for rater in range(5)
    ]
    columns = ["dsg_prompt_split", "t2i_model", "item_id", "source_id", "worker_id", "question"]
    return pd.DataFrame(rows[:-1], columns=[*columns, "answer"])


def write(folder: Path, human: Any = None, ratings: pd.DataFrame | None = None) -> Path:
    for name in (HUMAN, LIKERT):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / HUMAN).write_text(json.dumps(human_file() if human is None else human))
    (likert() if ratings is None else ratings).to_csv(folder / LIKERT, index=False)
    return folder


def draw(folder: Path, without: str = "") -> None:
    """Every image, which holds its own name."""
    (folder / IMAGES).mkdir()
    for name in human_file():
        if name != without:
            (folder / IMAGES / f"{name}.jpg").write_bytes(name.encode())


def tifa(change: Callable[[dict[str, Any]], object], *says: str) -> Damage:
    """A release with another TIFA file."""

    def write_it(folder: Path) -> None:
        human = human_file()
        change(human)
        write(folder, human)

    return Damage(write_it, says)


def dsg(change: Callable[[pd.DataFrame], pd.DataFrame], *says: str) -> Damage:
    """A release with another DSG file."""
    return Damage(lambda folder: write(folder, ratings=change(likert())), says)


def first(field: str, value: object) -> Callable[[dict[str, Any]], object]:
    """Another value in a field of the first image."""
    return lambda table: table[FIRST].update({field: value})


CASES = (
    Case(
        board=board,
        card=TIFA160.card,
        held=COUNTS,
        write=write,
        files=(LIKERT, HUMAN),
        pair_ids=(FIRST, "coco_1_vq_diffusion"),
        clusters=tuple(PROMPTS),
        counts=COUNTS | {"coco": 5, "drawbench": 5},
        draw=draw,
        question=(FIRST, FIRST.encode(), PROMPTS["coco_1"]),
        incomplete=Damage(
            lambda folder: draw(write(folder), FIRST), ("1 of the 10", f"{FIRST}.jpg")
        ),
        prompts=(
            ("coco_1", PROMPTS["coco_1"], "", "coco"),
            ("drawbench_22", PROMPTS["drawbench_22"], "", "drawbench"),
        ),
        damages=(
            tifa(lambda t: t.pop(FIRST), LIKERT, "coco_1", "fit no row"),
            tifa(lambda t: t[FIRST].pop("human_scores"), HUMAN, "column human_avg", "row 1)"),
            tifa(first("human_scores", [1, 6]), HUMAN, "'6'", "from 1 to 5"),
            tifa(first("human_scores", [1, "x"]), HUMAN, "'x'", "whole number"),
            tifa(first("human_scores", [1]), HUMAN, "holds 19 human_avg: ratings"),
            tifa(first("text_id", "coco_2"), "coco_1", "fit no row"),
            tifa(lambda t: t.update(x_1_mini_dalle=entry("x_1", "mini_dalle")), "'x_1'", "source"),
            tifa(lambda t: t.update({FIRST: 3}), HUMAN, "column prompt", "row 1)"),
            dsg(lambda t: t.drop(columns=["answer"]), "no column answer"),
            dsg(lambda t: t.iloc[:-1], "48 dsg_likert: ratings", "expected 49"),
            dsg(
                lambda t: t.replace("sd1dot1", "sd9"), "10 cells", "column model", "'sd9'", "row 11"
            ),
            dsg(lambda t: t.assign(answer=t["answer"].replace("3", "3.5")), "'3.5'", "row 3"),
            dsg(lambda t: t.replace("coco_1", "coco_9"), "'coco_9'", "row 1)"),
            Damage(lambda folder: write(folder, [1, 2]), ("no object",)),
        ),
    ),
)
