"""Generations of the demo's four simulated models, as folders that a developer would submit.

Each model makes every kind of mistake at a known rate, so the true order of the models is known.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from benchmarks.demo.load import gecko_answers, pictures
from benchmarks.prompt_sets.prompt_set import IMAGES, image_file
from evaluator.generation.manifest import TABLE, GenerationsManifest, manifest_text
from evaluator.manifest import FILE

PROMPT_SET = "demo_prompts"
SEEDS = (1, 2)
DESCRIPTIONS = {
    "demo-alpha": "Good at everything.",
    "demo-beta": "Knows colours, but can neither count nor place things.",
    "demo-gamma": "Counts and places well, but confuses colours and patterns.",
    "demo-delta": "Poor throughout.",
}
"""Each simulated model, in words."""


def write_generations(model: str, folder: Path) -> Path:
    """Write what a simulated model drew of the bundled prompts, ready to be submitted.

    Args:
        model: one of DESCRIPTIONS.
        folder: made here.

    Returns:
        The folder.

    Raises:
        SubmitterError: `data_missing` or `data_malformed`, where the bundled files are not whole.
    """
    (folder / IMAGES).mkdir(parents=True)
    drawn, prompts = pictures("models"), gecko_answers().prompts
    with (folder / TABLE).open("wb") as table:
        for prompt_id, text in zip(prompts["prompt_id"], prompts["prompt"], strict=True):
            for seed in SEEDS:
                file, content = image_file(prompt_id, seed), drawn[f"{model}/{prompt_id}/{seed}"]()
                (folder / file).write_bytes(content)
                table.write(_line(prompt_id, text, seed, file, content))
    manifest = GenerationsManifest(
        name=model,
        version="1",
        description=f"A simulated model, drawn by a program. {DESCRIPTIONS[model]}",
        licence="Same as the software",
        benchmark=PROMPT_SET,
        benchmark_revision="demo-1",
        seeds=SEEDS,
    )
    (folder / FILE).write_bytes(manifest_text(manifest))
    return folder


def _line(prompt_id: str, text: str, seed: int, file: str, content: bytes) -> bytes:
    row = {
        "prompt_id": prompt_id,
        "seed": seed,
        "file": file,
        "prompt": text,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    return json.dumps(row).encode() + b"\n"
