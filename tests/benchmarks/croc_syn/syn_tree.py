"""Small sets in the layout of CROC_syn, and a slow implementation of its rules."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.croc_syn.load import CrocSynAnswers
from benchmarks.croc_syn.protocol import CARD, CrocSyn
from benchmarks.schema import ScoreTable
from tests.benchmarks.cards import trial_card

FILES = [(image, text) for image in ("flux", "sd") for text in ("ds", "qwen")]
PV = "subject_property|||Wild_Animals|||Red"
EV = "entity_variation|||Portraits|||Ada|||Grace"
EP = "entity_placement|||Groups|||Choir"


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
        path = folder / "croc_syn" / f"3_extracted_prompts_{image}_{text}.jsonl"
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


@dataclass(frozen=True)
class Image:
    """One image of a group with its scores for both texts."""

    side: str
    orig: float
    contrast: float


def slow_groups(scores: pd.Series, folder: Path) -> dict[tuple[str, ...], list[Image]]:
    """Images by (image model, text model, prompt id, original text), read from the files anew."""
    groups: dict[tuple[str, ...], list[Image]] = {}
    for image_model, text_model in FILES:
        path = folder / "croc_syn" / f"3_extracted_prompts_{image_model}_{text_model}.jsonl"
        for record in map(json.loads, path.read_text().splitlines()):
            texts = zip(record["prompts"], record["contrast_prompts"], strict=True)
            for number, (prompt, contrast) in enumerate(texts):
                if not prompt or not contrast:
                    continue
                name = record["prompt_id"].replace("|||", "_____")
                for word, side in (("prompt", "prompts"), ("contrast", "contrast_prompts")):
                    for k in range(1000):
                        stem = f"{name}_{word}_{number}_image_{k}"
                        place = f"{image_model}/{text_model}/{side}/{stem}"
                        if f"{place}|orig" not in scores:
                            break
                        key = (image_model, text_model, record["prompt_id"], prompt)
                        groups.setdefault(key, []).append(
                            Image(word, scores[f"{place}|orig"], scores[f"{place}|contrast"])
                        )
    return groups


def slow_outcome(images: list[Image], direction: str) -> float | None:
    """1 or 0 by the rules of the paper; None where the group is left out."""
    own, text = ("prompt", "orig") if "forward" in direction else ("contrast", "contrast")
    other_text = {"orig": "contrast", "contrast": "orig"}[text]
    mine = [i for i in images if i.side == own and not math.isnan(getattr(i, text))]
    if not mine:
        return None
    if direction.endswith("text"):
        best = mine[0]
        for candidate in mine[1:]:
            if getattr(candidate, text) > getattr(best, text):
                best = candidate
        return float(getattr(best, text) > getattr(best, other_text))
    theirs = [getattr(i, text) for i in images if i.side != own]
    theirs = [score for score in theirs if not math.isnan(score)]
    return float(bool(theirs) and max(getattr(i, text) for i in mine) > max(theirs))


def slow_accuracies(scores: pd.Series, folder: Path) -> dict[tuple[str, str, str], float]:
    """Accuracy by (direction, mode, text model), both image models pooled."""
    groups = slow_groups(scores, folder)
    found = {}
    directions = ("forward_text", "inverse_text", "forward_image", "inverse_image")
    modes = {key[2].split("|||")[0] for key in groups}
    for direction, mode, text_model in product(directions, modes, ("ds", "qwen")):
        outcomes = [
            slow_outcome(images, direction)
            for key, images in groups.items()
            if key[1] == text_model and key[2].split("|||")[0] == mode
        ]
        used = [outcome for outcome in outcomes if outcome is not None]
        if outcomes:
            found[direction, mode, text_model] = sum(used) / len(used) if used else math.nan
    return found
