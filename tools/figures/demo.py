"""The bundled scorers on the demo split, scored here: what the figures are computed from."""

from __future__ import annotations

import importlib.util
import io
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from benchmarks.arrays import FloatArray
from benchmarks.registry import load_registry
from benchmarks.rows import Measured
from benchmarks.schema import Answers, Benchmark, ScoreTable
from evaluator.bundled import bundled_modules

DEMO = ("demo_croc", "demo_evalmuse", "demo_gecko", "demo_ts2")


@dataclass(frozen=True)
class Board:
    """The headline of one demo benchmark."""

    benchmark: Benchmark  # it
    answers: Answers  # its answers
    scores: ScoreTable  # of all bundled scorers
    metrics: tuple[str, ...]  # their names, best first
    values: FloatArray  # shape (M,)
    low: FloatArray  # shape (M,), lower ends of the intervals
    high: FloatArray  # shape (M,), upper ends
    resamples: FloatArray  # shape (M, B)
    contributions: FloatArray  # shape (M, G)
    n_clusters: int  # behind each value


@cache
def board(name: str) -> Board:
    """The headline over all skills of a demo benchmark, as its board has it."""
    benchmark = load_registry()[name]
    answers, scores = benchmark.answers(None), demo_scores(name)
    measured: Measured = benchmark.evaluate(scores, answers)
    headline = benchmark.card.headline
    chosen = [i for i, r in enumerate(measured.rows) if headline.matches(r) and r.skill is None]
    order = sorted(chosen, key=lambda i: -measured.rows[i].value)
    rows = [measured.rows[i] for i in order]
    return Board(
        benchmark,
        answers,
        scores,
        tuple(row.metric for row in rows),
        np.array([row.value for row in rows]),
        np.array([row.ci_low for row in rows]),
        np.array([row.ci_high for row in rows]),
        measured.resamples[order].astype(np.float64),
        measured.contributions[order],
        rows[0].n_clusters,
    )


@cache
def demo_scores(name: str) -> ScoreTable:
    """What the bundled scorers give the pairs of a demo benchmark."""
    questions = load_registry()[name].questions(None)
    images = {key: _picture(load) for key, load in questions.images.items()}
    shown = [images[pair.image_id] for pair in questions.pairs]
    texts = [questions.texts[pair.text_id] for pair in questions.pairs]
    index = pd.Index([pair.pair_id for pair in questions.pairs], name="pair_id")
    columns = {title: scorer.score(shown, texts) for title, scorer in _scorers().items()}
    return ScoreTable(pd.DataFrame(columns, index=index, dtype=np.float64))


@cache
def _scorers() -> dict[str, Any]:
    found = {}
    for folder in bundled_modules():
        manifest = tomllib.loads((folder / "assay.toml").read_text(encoding="utf-8"))
        given = {"weights": folder / manifest["weights"]} if manifest.get("weights") else {}
        found[manifest["name"]] = _class_of(folder)(**given)
    return found


def _class_of(folder: Path) -> Callable[..., Any]:
    spec = importlib.util.spec_from_file_location(f"figures_{folder.name}", folder / "scorer.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(folder / "scorer.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Its dataclasses look for it there.
    spec.loader.exec_module(module)
    made: Callable[..., Any] = module.Scorer
    return made


def _picture(load: Callable[[], bytes]) -> Image.Image:
    return Image.open(io.BytesIO(load())).convert("RGB")
