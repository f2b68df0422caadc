"""Folders of CROC data that a simulated writer wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaluator.croc.folder import CrocFolder, WritingRun
from evaluator.croc.requests import MODES, draw_requests
from evaluator.croc.taxonomy import EXAMPLE, read_taxonomy
from evaluator.croc.writing import write_pairs
from tools.figures.croc_writer import SimulatedWriter

TAXONOMY = read_taxonomy(EXAMPLE)
REQUESTS = draw_requests(TAXONOMY, MODES)
GUIDE = "The guide."


def settings(**changes: Any) -> WritingRun:
    values: dict[str, Any] = {
        "order": 0, "image_model": "flux", "text_model": "toy", "model": "toy@1",
        "taxonomy": TAXONOMY.digest, "draws": "paper", "seed": 0, "modes": MODES,
        "completions": 2, "most_words": 30, "max_tokens": 64, "wording": "x",
        "sampling": {"temperature": 0.6, "top_p": 0.9, "top_k": 50, "presence_penalty": 0.5},
        "requests": len(REQUESTS), "skills": {one.key: one.skill for one in TAXONOMY.properties},
    }  # fmt: skip
    return WritingRun.model_validate(values | changes)


def written(folder: Path, writer: Any = None, **changes: Any) -> CrocFolder:
    made = CrocFolder(folder)
    with made.opened():
        run = made.begin(settings(**changes))
        write_pairs(REQUESTS, run, writer or SimulatedWriter(), made, guide=GUIDE)
        made.publish(list(made.read()))
    return made
