"""Benchmark of the family `preference` out of a revision of votes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import tomlkit

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import PromptSet, SetPrompt
from benchmarks.sources.output import new_folder
from leaderboard.votes.records import DrawnImage, Purpose
from leaderboard.votes.results import VoteResults

_HERE = "It lies beside the card."
_VALUES = {"a": "left", "b": "right", "tie": "equal", "bad": "both_bad"}


@dataclass(frozen=True)
class Exported:
    """What a benchmark of votes holds."""

    votes: int
    images: int
    left_out: int  # votes whose images or prompt are gone


def export(
    results: VoteResults,
    table: bytes,
    known: PromptSet,
    prompts: tuple[SetPrompt, ...],
    pictures: Callable[[str, str], bytes | None],
    *,
    out: Path,
    named: tuple[str, str],
) -> Exported:
    """Write a benchmark with the votes that rank: card, votes and the pictures that were compared.

    `table`: the Parquet file of the revision; `pictures`: finds an image by submission and by
    `PROMPT/SEED`; `out`: a new folder; `named`: name and title of the benchmark.

    Raises:
        SubmitterError: `nothing_to_export`: no image of the votes is there; `folder_exists`,
            `cannot_write`.
    """
    texts = {one.prompt_id: one for one in prompts}
    rows = [
        row
        for row in pq.read_table(BytesIO(table)).to_pylist()
        if row["purpose"] == Purpose.RANK and not row["careless"]
    ]
    images: dict[str, bytes | None] = {}
    for text in (row[side] for row in rows for side in ("left_image", "right_image")):
        if text not in images:
            image = DrawnImage.parse(text)
            images[text] = pictures(image.submission_id, f"{image.prompt_id}/{image.seed}")
    kept = [
        row
        for row in rows
        if row["prompt_id"] in texts and images[row["left_image"]] and images[row["right_image"]]
    ]
    if not kept:
        raise SubmitterError(
            "nothing_to_export",
            f"Of {len(rows)} votes on {results.prompt_set} no image or prompt is there.",
            "Fetch the prompts, and look whether the models are still on the boards.",
        )
    lines = "".join(json.dumps(_line(row, texts), ensure_ascii=False) + "\n" for row in kept)
    shown = {row[side] for row in kept for side in ("left_image", "right_image")}
    with new_folder(out) as part:
        (part / "images").mkdir()
        for name in shown:
            (part / "images" / _file(name)).write_bytes(images[name] or b"")
        (part / "votes.jsonl").write_text(lines, "utf-8")
        revision = hashlib.sha256(lines.encode()).hexdigest()[:12]
        (part / "card.toml").write_text(
            tomlkit.dumps(_card(results, known, kept, named, revision)), "utf-8"
        )
    return Exported(len(kept), len(shown), len(rows) - len(kept))


def _line(row: dict[str, Any], texts: dict[str, SetPrompt]) -> dict[str, object]:
    prompt = texts[row["prompt_id"]]
    return {
        "vote": row["vote"],
        "prompt": prompt.prompt_id,
        "text": prompt.text,
        "skills": list(prompt.skills),
        "left": _file(row["left_image"]),
        "right": _file(row["right_image"]),
        "left_model": row["left"],
        "right_model": row["right"],
        "choice": row["choice"],
        "rater": row["rater"],
        "pair_probability": row["pair_probability"],
        "prompt_probability": row["prompt_probability"],
    }


def _file(image: str) -> str:
    """Name of a picture, which tells nothing of its model."""
    return f"{hashlib.sha256(image.encode()).hexdigest()[:16]}.webp"


def _card(
    results: VoteResults,
    known: PromptSet,
    kept: list[dict[str, Any]],
    named: tuple[str, str],
    revision: str,
) -> dict[str, object]:
    name, title = named
    raters = len({row["rater"] for row in kept})
    columns = {
        one: one
        for one in (
            "vote", "prompt", "text", "left", "right", "left_model", "right_model", "choice",
        )
    }  # fmt: skip
    return {
        "name": name,
        "title": title,
        "family": "preference",
        "kind": "preference",
        "summary": f"{len(kept)} votes of {raters} people between two models' images of a prompt: does the "
        "metric prefer the image that the voter preferred?",
        "description": f"Revision {results.number} of the votes on {known.card.title}. Voters were shown a "
        "prompt and two images without the names of their models, on sides that were drawn, and chose "
        f"one, both as equal, or both as bad. {results.n_careless} careless raters are left out. Pairs of "
        "models were drawn by what a vote would tell, prompts alike.",
        "revision": revision,
        "cluster": "prompt",
        "licence": known.card.licence,
        "citation": f"Assay: votes on {known.card.title}, revision {results.number}.",
        "headline": {"measure": "accuracy", "variant": "assay"},
        "skills": dict(known.card.skills),
        "tables": [
            {
                "name": "votes",
                "path": f"{name}/votes.jsonl",
                "columns": {
                    **columns,
                    "skills": {"from": "skills", "type": "list_str", "optional": True},
                },
            }
        ],
        "items": {
            "pair": "vote",
            "prompt": "prompt",
            "text": "text",
            "image": ["left", "right"],
            "model": ["left_model", "right_model"],
            "shared": True,
            "skills": "skills",
        },
        "images": {"source": "folder", "path": f"{name}/images", "name": "{image}"},
        "preference": {"label": "choice", "values": _VALUES, "metric_ties": "half"},
        "evaluation": {"measures": ["accuracy", "accuracy_strict", "accuracy_half", "auc"]},
        "files": [
            {
                "path": f"{name}/votes.jsonl", "role": "answers", "beside": True, "supplied": _HERE,
            },
            {
                "path": f"{name}/images", "role": "images", "folder": True, "beside": True,
                "supplied": _HERE,
            },
        ],
    }  # fmt: skip
