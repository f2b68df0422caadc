"""Small sets in the layout of CROC_syn."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.croc_syn.load import CrocSynAnswers
from benchmarks.croc_syn.protocol import CARD, CrocSyn
from benchmarks.schema import ScoreTable
from tests.kit.checks import trial_card

FILES = [(image, text) for image in ("flux", "sd") for text in ("ds", "qwen")]
PV = "subject_property|||Wild_Animals|||Red"
EV = "entity_variation|||Portraits|||Ada|||Grace"
EP = "entity_placement|||Groups|||Choir"
PROMPTS = "croc_syn/3_extracted_prompts_{}_{}.jsonl"
"""Prompt file of an image model and a text model."""


def line(prompt_id: str, prompts: list[str], contrasts: list[str] | None = None) -> str:
    """One line of a prompt file, with the fields the authors write."""
    mode, subject, *rest = prompt_id.split("|||")
    record = {
        "mode": mode,
        "subject": subject.replace("_", " "),
        "property": rest[0].replace("_", " ") if mode == "subject_property" and rest else None,
        "alt_subject": None,
        "entity": None,
        "prompts": prompts,
        "contrast_prompts": contrasts or [f"not {p}" if p else "" for p in prompts],
        "model_name": "any",
        "prompt_id": prompt_id,
    }
    return json.dumps(record)


def write(folder: Path, lines: Mapping[tuple[str, str], Iterable[str]]) -> Path:
    """The four prompt files; those that are not named are empty."""
    (folder / "croc_syn").mkdir(exist_ok=True)
    for image, text in FILES:
        path = folder / PROMPTS.format(image, text)
        path.write_text("".join(f"{entry}\n" for entry in lines.get((image, text), ())))
    return folder


def same_everywhere(*lines: str) -> dict[tuple[str, str], list[str]]:
    return {models: list(lines) for models in FILES}


def benchmark(n_images: int = 5) -> CrocSyn:
    return CrocSyn(trial_card(CARD, **{"images per prompt": n_images}))


def load(folder: Path, n_images: int = 5) -> CrocSynAnswers:
    return benchmark(n_images).answers(folder)


def table_of(answers: CrocSynAnswers, **metrics: np.ndarray) -> ScoreTable:
    """Scores of shape (prompts, 2 sides, K images, 2 texts), one per metric."""
    columns = {name: values.reshape(-1) for name, values in metrics.items()}
    return ScoreTable(pd.DataFrame(columns, index=list(answers.pair_ids), dtype=np.float64))
