"""The four simulated models of the demo, drawing the bundled prompt set as a developer would.

Each makes every kind of mistake at a known rate (`benchmarks.demo.models.ERROR_RATES`), so the true
order of the models is known.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.demo.gecko_split import Prompt, prompts
from benchmarks.demo.models import MODELS, depict
from benchmarks.demo.shots import chance, shoot
from benchmarks.prompt_sets.image_names import IMAGES, image_file
from evaluator.generation.manifest import GenerationsManifest, manifest_text
from evaluator.generation.rows import TABLE
from evaluator.manifest import FILE

PROMPT_SET = "demo_prompts"
SEEDS = (1, 2)
_WORDS = {
    "demo-alpha": "Good at everything.",
    "demo-beta": "Knows colours, but can neither count nor place things.",
    "demo-gamma": "Counts and places well, but confuses colours and patterns.",
    "demo-delta": "Poor throughout.",
}


def draw(model: str, folder: Path, seeds: Sequence[int] = SEEDS) -> Path:
    """Have a simulated model draw the bundled prompts into a new folder, ready to be submitted.

    The same model and seeds give the same bytes.

    Args:
        model: one of `benchmarks.demo.models.MODELS`.
        folder: made here.
        seeds: each prompt is drawn with each.

    Returns:
        The folder.
    """
    (folder / IMAGES).mkdir(parents=True)
    with (folder / TABLE).open("wb") as table:
        for prompt, seed in ((p, seed) for p in prompts() for seed in seeds):
            file, content = image_file(prompt.id, seed), _picture(prompt, model, seed)
            (folder / file).write_bytes(content)
            table.write(_line(prompt, seed, file, content))
    manifest = GenerationsManifest(
        name=model,
        version="1",
        description=f"A simulated model, drawn by a program. {_WORDS.get(model, '')}".strip(),
        licence="Same as the software",
        benchmark=PROMPT_SET,
        benchmark_revision="demo-1",
        seeds=tuple(seeds),
    )
    (folder / FILE).write_bytes(manifest_text(manifest))
    return folder


def drawn(place: Path) -> Iterator[Path]:
    """The folder of every simulated model, one after the other.

    Args:
        place: folder for them.
    """
    for model in MODELS:
        yield draw(model, place / model)


def _picture(prompt: Prompt, model: str, seed: int) -> bytes:
    depiction = depict(prompt.scene, model, chance("models", prompt.id, model, seed))
    return shoot(depiction.drawn, f"models/{prompt.id}/{model}/{seed}")


def _line(prompt: Prompt, seed: int, file: str, content: bytes) -> bytes:
    row = {
        "prompt_id": prompt.id,
        "seed": seed,
        "file": file,
        "prompt": prompt.text,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    return json.dumps(row).encode() + b"\n"
