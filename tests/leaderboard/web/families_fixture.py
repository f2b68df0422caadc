"""A board of each family of cards, and of each card whose human data are bundled, with made-up metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.families.benchmark import CardBenchmark
from benchmarks.registry import load_registry
from benchmarks.schema import Card, ScoreTable
from leaderboard.publication.publisher import cards_of
from leaderboard.publication.results import Published
from leaderboard.ranking.draws import Draws
from leaderboard.records import RunResult
from leaderboard.store.interface import Store
from tests.benchmarks.families.cards import RATED, benchmark_of, with_keys
from tests.kit.boards import NOW, publish, submission
from tests.kit.store import memory_store

HTML = "<img src=x onerror=alert(1)>"
METRICS = ("follows people", "noisy", "silent at times", "always alike")
N_PROMPTS, MODELS = 12, ("one", "two", "three")
_TEXTS = ("id", "p", "t", "u", "x", "y", "s", "k", "model", "better", "part")
_TABLE = {
    "name": "t",
    "path": "rows.json",
    "columns": {
        **{name: name for name in _TEXTS},
        **{name: {"from": name, "type": "float"} for name in ("mean", "there")},
        "ratings": {"from": "ratings", "type": "list_float"},
    },
}
_HUMAN = {
    "name": "human",
    "path": "human.csv",
    "columns": {"model": "model", "value": {"from": "value", "type": "float"}},
}
_ONE_IMAGE = {"pair": "id", "prompt": "p", "text": "t", "image": "x", "skills": "k", "split": "s"}
_ITEMS = {**_ONE_IMAGE, "model": "model"}
FAMILIES: Mapping[str, Mapping[str, Any]] = {
    "rating": {
        "items": _ITEMS,
        "gold": {"mean": {"ratings": "ratings", "mean": None, "scale": [1, 5]}},
    },
    "preference": {
        "gold": None,
        "kind": "preference",
        "items": {**_ONE_IMAGE, "image": ["x", "y"]},
        "preference": {"label": "better", "values": {"a": "left", "b": "right", "tie": "same"}},
        "headline": {"measure": "accuracy", "facet": None},
    },
    "group": {
        "gold": None,
        "items": {**_ONE_IMAGE, "text": ["t", "u"], "image": ["x", "y"]},
        "group": {"rule": "winoground"},
        "headline": {"measure": "group_score", "facet": None},
    },
    "best_of": {
        "family": "group",
        "items": _ITEMS,
        "gold": {"mean": {"ratings": "ratings", "mean": None, "scale": [1, 5]}},
        "group": {"rule": "best_of", "gold": "mean", "size": [3]},
        "headline": {"measure": "top1_agreement", "facet": "best_of_3"},
    },
    "element": {
        "gold": None,
        "items": _ITEMS,
        "element": {"element": "part", "element_text": "part", "label": "there"},
        "headline": {"measure": "auroc", "facet": None},
    },
    "system": {
        "gold": None,
        "kind": "quality",
        "tables": [_TABLE, _HUMAN],
        "items": {**_ONE_IMAGE, "split": None, "model": "model"},
        "system": {"human": "human"},
        "headline": {"measure": "pa", "facet": None},
    },
}
"""Family, or a choice among rated images, to the keys of a small card."""


def small(folder: Path, family: str) -> CardBenchmark:
    """A benchmark of a family: three images by three models of each of twelve prompts."""
    names = ["rows.json", *(["human.csv"] if family == "system" else [])]
    card = {
        **RATED,
        "name": f"of_{family}",
        "title": f"Made up: {family} {HTML}",
        "family": family,
        "skills": {"a": "Animals", "b": "Buildings"},
        "tables": [_TABLE],
        "files": [{**RATED["files"][0], "path": name} for name in names],
    }
    rows = [_row(k) for k in range(N_PROMPTS * len(MODELS))]
    human = "model,value\n" + "".join(f"{one},{3 + k}\n" for k, one in enumerate(MODELS))
    return benchmark_of(folder, with_keys(card, FAMILIES[family]), rows_json=rows, human_csv=human)


def _row(k: int) -> dict[str, Any]:
    prompt, rng = k // len(MODELS), np.random.default_rng(k)
    ratings = rng.integers(1, 6, 3).tolist()
    return {
        "id": f"r{k}", "p": f"p{prompt}", "t": f"a {HTML} {prompt}", "u": f"no {prompt}",
        "x": f"x{k}.png", "y": f"y{k}.png", "s": "vw"[prompt % 2], "k": "ab"[prompt // 2 % 2],
        "model": MODELS[k % len(MODELS)], "better": ("left", "right", "same")[k * 7 % 5 % 3],
        "part": "a cat", "there": float(rng.random() < 0.5), "ratings": ratings, "mean": 0.0,
    }  # fmt: skip


def bundled() -> dict[str, CardBenchmark]:
    """The benchmarks of cards that need no data of others."""
    return {
        name: one
        for name, one in load_registry().items()
        if isinstance(one, CardBenchmark) and one.has_answers(None)
    }


def scores_of(benchmark: CardBenchmark, answers: Any) -> ScoreTable:
    """Scores of the made-up metrics, one of which gives none for every ninth pair."""
    gold = np.nan_to_num(benchmark.gold_of_pairs(answers))
    rng = np.random.default_rng(3)
    noisy = gold + rng.normal(0, 2 * gold.std() + 0.1, gold.size)
    silent = np.where(np.arange(gold.size) % 9 == 4, np.nan, noisy[::-1])
    values = (gold, noisy, silent, np.zeros(gold.size))
    overall = pd.DataFrame(dict(zip(METRICS, values, strict=True)), list(answers.pair_ids))
    return ScoreTable(overall, benchmark.elements_of_controls(overall, answers))


def run_on(benchmark: CardBenchmark, place: int = 0, n_resamples: int = 60) -> Published:
    """A run of the made-up metrics."""
    answers = benchmark.answers(None)
    measured = benchmark.evaluate(scores_of(benchmark, answers), answers, n_resamples=n_resamples)
    own = submission(place, "made up", (benchmark.name,), metrics=METRICS)
    result = RunResult(
        submission_id=own.submission_id, benchmark=benchmark.name,
        revision=benchmark.card.revision, rows=tuple(row.to_json() for row in measured.rows),
        resampling_seed=1, n_resamples=n_resamples, isolation=("scores as submitted",), versions={},
        judged_at=NOW,
    )  # fmt: skip
    return Published(own, result, Draws(measured.resamples, measured.contributions))


def site_store(
    runs: Sequence[Published], benchmarks: Mapping[str, CardBenchmark]
) -> tuple[Store, dict[str, Card]]:
    """A store with runs, and the cards of its boards."""
    cards = cards_of(benchmarks)
    return publish(memory_store(), runs, cards), cards


def filled() -> tuple[Store, dict[str, Card]]:
    """A store with a board of each family, and their cards."""
    with TemporaryDirectory() as folder:
        made = [small(Path(folder) / family, family) for family in FAMILIES]
        runs = [run_on(one, place) for place, one in enumerate(made)]
    return site_store(runs, {one.name: one for one in made})
