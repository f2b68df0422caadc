"""A made-up store whose benchmarks have chance and ceiling, for tests of the index page."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.schema import Card, MeasureInfo, Scale, Selector
from leaderboard.publication.reader import View
from leaderboard.publication.results import Published
from leaderboard.records import Submission
from leaderboard.store.interface import Store
from tests.kit.boards import (
    NASTY_NAME,
    NOW,
    card_of,
    measured,
    publish,
    run_of,
    submission,
    view_over,
)
from tests.kit.store import memory_store

__all__ = ["METRICS", "NASTY", "NOW", "REAL", "cards", "fill", "index_view_of", "runs_of"]
NASTY = NASTY_NAME
SCALES: dict[str, tuple[str, float, float] | None] = {
    "graphs": ("Error graphs", 0.0, 0.993902),
    "ratings": ("Ratings of prompts", 0.0, 0.6375),
    "errors": ("Squared errors", 1.2, 0.1),
    "genai_527": ("GenAI-Bench (527 prompts)", 0.4524, 0.696412),
    "genai_1600": ("GenAI-Bench (1,600 prompts)", 0.4524, 0.70),
    "accuracy": ("Contrast pairs", 0.5, 0.91),
    "demo": ("Demo · simulated", 0.0, 1.0),
    "unscaled": None,
    "unused": ("Unused", 0.0, 1.0),
}
"""Benchmark to title, chance and ceiling; None: it states neither."""
REAL = ("graphs", "ratings", "errors", "genai_527", "genai_1600", "accuracy")
EVERY = (*REAL, "demo")
METRICS: dict[str, tuple[str, ...]] = {
    "VQAScore": (*EVERY, "unscaled"),
    **dict.fromkeys(("BLIP2-ITM", "CLIPScore", "PickScore", "ImageReward", "SigLIP-2"), EVERY),
    "prompt-length": EVERY,
    NASTY: EVERY,
    "HPSv2": ("graphs", "ratings", "errors", "genai_1600"),
    "TIFA": ("ratings", "genai_527"),
    "always-half": REAL,
    "only simulated": ("demo",),
}
"""Metric to the benchmarks it was run on, the best first."""
UNDEFINED = ("always-half", "ratings")


def cards() -> dict[str, Card]:
    """Nine benchmarks: one simulated, one without a scale, one without results."""
    return {name: _card(name, scale) for name, scale in SCALES.items()}


def _card(name: str, scale: tuple[str, float, float] | None) -> Card:
    title, chance, ceiling = scale or ("Without a scale", 0.0, 1.0)
    info = MeasureInfo(
        title="Squared error" if chance > ceiling else "Spearman ρ", chance=chance,
        meaning="How far the scores agree with people.", higher_is_better=ceiling > chance,
    )  # fmt: skip
    stated = Scale(
        chance=chance, ceiling=ceiling,
        ceiling_is="Agreement of one rater with the mean of the others.",
        source="Paper, Table 3. Chance: independent scores have no correlation.",
    )  # fmt: skip
    return card_of(
        name, title, {"headline": info}, Selector(measure="headline"), simulated=name == "demo",
        headline_scale=stated if scale else None,
    )  # fmt: skip


def runs_of(metrics: dict[str, tuple[str, ...]] | None = None) -> list[Published]:
    """A run for every metric on each of its benchmarks."""
    rng = np.random.default_rng(5)
    found = []
    for place, (name, boards) in enumerate((metrics or METRICS).items()):
        trained = ("ratings", "demo") if name == "PickScore" else ()
        more: dict[str, Any] = {"account": "", "same_content_as": (), "description": ""}
        own = submission(place, name, boards, trained_on=trained, submitter="A group", **more)
        found += [_run(own, board, 0.85 - 0.09 * place, rng) for board in boards]
    return found


def _run(own: Submission, board: str, worth: float, rng: np.random.Generator) -> Published:
    """Values around the worth of the metric, on the scale of the benchmark."""
    _, chance, ceiling = SCALES[board] or ("", 0.0, 1.0)
    length = ceiling - chance
    value = chance + length * (worth + 0.05 * rng.standard_normal())
    one = measured(
        own, board, Selector(measure="headline"), value, rng, clusters=120, spread=0.06 * length,
        defined=(own.name, board) != UNDEFINED, plan="0123abcd", versions="assay 1; numpy 2",
    )  # fmt: skip
    return run_of(own, board, [one])


def fill(store: Store, metrics: dict[str, tuple[str, ...]] | None = None) -> Store:
    """Publish everything."""
    return publish(store, runs_of(metrics), cards())


def index_view_of(metrics: dict[str, tuple[str, ...]] | None = None) -> View:
    """What the pages see of it."""
    return view_over(fill(memory_store(), metrics), cards(), runs_of(metrics))
