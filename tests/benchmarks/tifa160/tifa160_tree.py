"""A small TIFA160: two prompts, five models, in the layout of the released files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.tifa160.load import HUMAN, LIKERT, MODEL_NAMES
from benchmarks.tifa160.protocol import CARD, Tifa160
from tests.benchmarks.cards import trial_card

PROMPTS = {"coco_1": "A dog, brown", "drawbench_22": "Two cats"}
COUNTS = {"images": 10, "prompts": 2, "human_avg: ratings": 20, "dsg_likert: ratings": 49}


def small() -> Tifa160:
    """The benchmark with the counts of the small tree and nothing pinned."""
    return Tifa160(trial_card(CARD, **COUNTS))


def human_file() -> dict[str, dict[str, Any]]:
    """The TIFA file: ratings 1 and 2, 2 and 3, ... by the order of the images."""
    keys = [(prompt, model) for prompt in PROMPTS for model in MODEL_NAMES.values()]
    found = {}
    for k, (prompt, model) in enumerate(keys):
        scores = [1 + k % 4, 2 + k % 4]
        found[f"{prompt}_{model}"] = {
            "text_id": prompt,
            "image_path": f"{prompt}_{model}.jpg",
            "text": PROMPTS[prompt],
            "human_scores": scores,
            "human_avg": sum(scores) / 2,
            "clipscore_vitb32": 20.0 + k,
        }
    return found


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


def write(
    folder: Path,
    human: dict[str, Any] | None = None,
    ratings: pd.DataFrame | None = None,
) -> Path:
    """Write both files; returns the folder of data."""
    for name in (HUMAN, LIKERT):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / HUMAN).write_text(json.dumps(human_file() if human is None else human))
    (likert() if ratings is None else ratings).to_csv(folder / LIKERT, index=False)
    return folder
