"""What the released prompts, ratings and taxonomies hold, against what the papers say of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.errata.data import data_folder
from benchmarks.errata.recompute import Finding, Findings, Recompute
from benchmarks.statistics.raters import krippendorff_alpha

_GECKO = "gecko/prompts.csv"
_EVALMUSE = "evalmuse/prompt_t2i.json"
_TAXONOMY = "croc/taxonomy.json"
_GENAI = {"genai1600": "genai_1600/genai_image.json", "genai527": "genai_527/genai_image.json"}
_OUT_OF_RANGE = {
    "genai1600": (("00231", "DALLE_3"), ("00252", "DeepFloyd_I_XL_v1")),
    "genai527": (("00232", "DALLE_3"), ("00253", "DeepFloyd_I_XL_v1")),
}
_HIGHEST_RATING = 5


def gecko_release(data: Path) -> Findings:
    """Prompts, reliable prompts and sub-skills of the released Gecko prompt file."""
    prompts = pd.read_csv(data_folder(data).path(_GECKO))
    findings = {}
    for split in ("S", "R"):
        part = prompts[prompts["prompt_type"] == f"Gecko({split})"]
        findings[f"Gecko({split}), prompts"] = Finding(len(part))
        reliable = int(part["max_disagreement_less_0.5"].sum())
        findings[f"Gecko({split}), reliable prompts"] = Finding(reliable)
    synthetic = prompts.loc[prompts["prompt_type"] == "Gecko(S)", "dataset_id"]
    return {**findings, "Gecko(S), sub-skills": Finding(synthetic.nunique())}


def evalmuse_prompts(data: Path) -> Findings:
    """Prompts of the file for ranking text-to-image models."""
    return {"prompts": Finding(len(_json(data, _EVALMUSE)))}


def genai_ratings(data: Path) -> Findings:
    """Mean rating of the images with a rating above 5, without it; alpha likewise."""
    findings: dict[str, Finding] = {}
    for name, images in _OUT_OF_RANGE.items():
        entries = _json(data, _GENAI[name])
        for prompt, model in images:
            ratings = np.array(entries[prompt]["models"][model], np.float64)
            kept = ratings[ratings <= _HIGHEST_RATING]
            label = f"{name} {prompt} {model}, mean rating"
            findings[label] = Finding(float(kept.mean()), float(ratings.mean()))
        raw = np.array(
            [r for e in entries.values() for r in e["models"].values()], dtype=np.float64
        )
        clean = np.where(raw <= _HIGHEST_RATING, raw, np.nan)
        findings[f"{name}, alpha (interval)"] = Finding(
            krippendorff_alpha(clean, "interval"), krippendorff_alpha(raw, "interval")
        )
    return findings


def croc_properties(data: Path) -> Findings:
    """Leaves of the released taxonomy that the generator crosses with the subjects."""
    taxonomy = _json(data, _TAXONOMY)
    [subject] = [node for node, path in _nodes(taxonomy) if path[-1] == "Subject Matter"]
    everything = sum(1 for _ in _leaves(taxonomy))
    return {"properties": Finding(everything - sum(1 for _ in _leaves(subject)))}


def croc_modes(data: Path) -> Findings:
    """Modes that a split of the prompt ids finds: literal, and as the script does."""
    del data
    ids = pd.Series(["entity_variation|||a|||b", "entity_placement|||a", "subject_property|||a"])
    literal = ids.str.split("|||", regex=False).str[0].nunique()
    return {"modes": Finding(literal, ids.str.split("|||").str[0].nunique())}


def croc_chance(data: Path) -> Findings:
    """Chance level of the text-based rule with five images, in percent: n / (n + 1)."""
    del data
    return {"chance level": Finding(100.0 * 5 / 6)}


@cache
def _json(data: Path, path: str) -> Any:
    return data_folder(data).read_json(path)


def _nodes(
    node: dict[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    path = (*above, str(node.get("name", "")))
    yield node, path
    for child in node.get("classes") or ():
        yield from _nodes(child, path)


def _leaves(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return (found for found, _ in _nodes(node) if not found.get("classes"))


RECOMPUTE: dict[str, Recompute] = {
    "gecko-release": gecko_release,
    "evalmuse-199-prompts": evalmuse_prompts,
    "genai-out-of-range-ratings": genai_ratings,
    "croc-syn-properties": croc_properties,
    "croc-syn-script-modes": croc_modes,
    "croc-syn-chance": croc_chance,
}
