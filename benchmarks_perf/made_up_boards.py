"""Made-up benchmarks of the real shapes, with the scores of many graded metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from benchmarks.arrays import FloatArray
from benchmarks.croc.answers import CrocAnswers, PromptPair, pair_id
from benchmarks.croc.benchmark import CrocHum
from benchmarks.evalmuse.answers import EvalMuseAnswers
from benchmarks.evalmuse.benchmark import EvalMuse
from benchmarks.gecko.answers import GeckoAnswers
from benchmarks.gecko.benchmark import Gecko
from benchmarks.schema import Answers, Benchmark, ScoreTable
from benchmarks.ts2.answers import Ts2Answers
from benchmarks.ts2.benchmark import Ts2

SEED = 20_261_121
GENERATORS = 20
TEMPLATE_VALUES = {"WL": ("aligned", "not_aligned"), "DSGH": ("yes", "no"), "Likert": "12345"}


@dataclass(frozen=True)
class Board:
    """A benchmark, made-up answers of its shape, and scores of many metrics."""

    benchmark: Benchmark
    answers: Answers
    scores: ScoreTable


def evalmuse_board(n_metrics: int, n_skills: int) -> Board:
    """1,000 prompts with 20 images each; a quarter of the skills in each prompt."""
    rng = np.random.default_rng([SEED, 1])
    n_prompts, per_prompt = 1000, max(n_skills // 4, 1)
    prompt = np.repeat(np.arange(n_prompts), GENERATORS)
    pair_ids = [f"{i % GENERATORS}/{p:05d}.png" for i, p in enumerate(prompt)]
    label = rng.integers(3, 16, prompt.size) / 3.0
    images = pd.DataFrame(
        {
            "pair_id": pair_ids,
            "prompt_id": [f"{p:05d}" for p in prompt],
            "prompt": "",
            "split": np.where(prompt % 2, "real", "synth").astype(object),
            "label": label,
        }
    )
    kinds = np.stack([rng.permutation(n_skills)[:per_prompt] for _ in range(n_prompts)])[prompt]
    present = rng.integers(0, 4, kinds.size) / 3.0
    elements = pd.DataFrame(
        {
            "pair_id": np.repeat(np.array(pair_ids, object), per_prompt),
            "element_id": [f"e{n}" for n in np.tile(np.arange(per_prompt), prompt.size)],
            "skill": np.array([f"skill{k:02d}" for k in range(n_skills)], object)[kinds.ravel()],
            "label": present,
        }
    )
    clusters = tuple(dict.fromkeys(images["prompt_id"]))
    overall = _overall(rng, label, pair_ids, n_metrics, prompt)
    keys = elements[["pair_id", "element_id"]]
    of_elements = {
        name: keys.assign(
            score=np.clip(0.3 + 0.3 * present + 0.2 * rng.normal(size=present.size), 0.0, 1.0)
        )
        for name in overall.columns
    }
    answers = EvalMuseAnswers(tuple(pair_ids), clusters, images, elements)
    return Board(EvalMuse(), answers, ScoreTable(overall, of_elements))


def gecko_board(n_metrics: int, n_skills: int) -> Board:
    """2,000 prompts of one skill each, four models, three raters in every template."""
    rng = np.random.default_rng([SEED, 2])
    models, n_prompts = ("imagen", "muse", "sd15", "sdxl"), 2000
    prompts = pd.DataFrame(
        {
            "prompt_id": [f"{p:05d}" for p in range(n_prompts)],
            "prompt": "",
            # Each skill has one sub-skill, so half the slices are skills and half sub-skills.
            "skill": [f"skill{p % (n_skills // 2):02d}" for p in range(n_prompts)],
            "sub_skill": "of it",
        }
    )
    pairs = prompts[["prompt_id"]].merge(pd.DataFrame({"model": models}), how="cross")
    pairs = pairs.assign(pair_id=pairs["prompt_id"] + "/" + pairs["model"])
    quality = rng.normal(size=len(pairs))
    absolute = [
        _ratings(rng, pairs, template, values, quality, rater)
        for template, values in TEMPLATE_VALUES.items()
        for rater in range(3)
    ]
    compared = [
        _comparisons(rng, prompts, a, b, rater)
        for a, b in combinations(models, 2)
        for rater in range(3)
    ]
    ratings = pd.concat([*absolute, *compared], ignore_index=True)
    ids = tuple(pairs["pair_id"])
    prompt = np.repeat(np.arange(n_prompts), len(models))
    overall = _overall(rng, quality, list(ids), n_metrics, prompt)
    answers = GeckoAnswers(
        ids,
        tuple(prompts["prompt_id"]),
        prompts=prompts,
        pairs=pairs[["pair_id", "prompt_id", "model"]],
        ratings=ratings,
    )
    return Board(Gecko(), answers, ScoreTable(overall))


def croc_board(n_metrics: int, n_skills: int) -> Board:
    """280 prompt pairs with about 103 images, each scored with both prompts."""
    rng = np.random.default_rng([SEED, 3])
    pairs = tuple(
        PromptPair(
            id=f"skill{p % n_skills:02d}_{p}",
            category=f"skill{p % n_skills:02d}",
            prompt="a",
            contrast="b",
            original_images=tuple(f"o{p}_{i}" for i in range(52)),
            contrast_images=tuple(f"c{p}_{i}" for i in range(51)),
        )
        for p in range(280)
    )
    ids, right, cluster = [], [], []
    for place, pair in enumerate(pairs):
        for own, images in (("orig", pair.original_images), ("contrast", pair.contrast_images)):
            for stem in images:
                for text in ("orig", "contrast"):
                    ids.append(pair_id(stem, text))
                    right.append(float(text == own))
                    cluster.append(place)
    overall = _overall(rng, np.array(right), ids, n_metrics, np.array(cluster))
    answers = CrocAnswers(tuple(ids), tuple(p.id for p in pairs), pairs)
    return Board(CrocHum(), answers, ScoreTable(overall.round(3)))


def ts2_board(n_metrics: int, n_skills: int) -> Board:
    """165 graphs of about 17 images on up to six levels."""
    rng = np.random.default_rng([SEED, 4])
    graph = np.sort(np.concatenate([np.tile(np.arange(165), 4), rng.integers(0, 165, 2180)]))
    level = rng.integers(0, 6, graph.size)
    level[np.unique(graph, return_index=True)[1]] = 0
    nodes = pd.DataFrame(
        {
            "pair_id": [f"{g:03d}-{i}" for i, g in enumerate(graph)],
            "graph": [str(g) for g in graph],
            "label": [f"{n}{'ab'[n % 2]}" for n in level],
            "level": level,
            "split": np.array(["synth", "nat", "real"], object)[graph % 3],
            "skill": [f"skill{g % n_skills:02d}" for g in graph],
        }
    )
    ids = tuple(nodes["pair_id"])
    overall = _overall(rng, -level.astype(float), list(ids), n_metrics, graph)
    answers = Ts2Answers(
        ids, tuple(dict.fromkeys(nodes["graph"])), nodes, not_in_paper=frozenset({"164"})
    )
    return Board(Ts2(), answers, ScoreTable(overall))


BOARDS: dict[str, Callable[[int, int], Board]] = {
    "ts2": ts2_board,
    "croc": croc_board,
    "evalmuse": evalmuse_board,
    "gecko": gecko_board,
}


def _overall(
    rng: np.random.Generator,
    truth: FloatArray,
    pair_ids: list[str],
    n_metrics: int,
    cluster: np.ndarray,
) -> pd.DataFrame:
    """Scores of graded metrics: the truth with noise of items and of clusters."""
    columns = {}
    for metric in range(n_metrics):
        shared = rng.normal(size=cluster.max() + 1)[cluster]
        noise = (0.5 + 0.1 * metric) * (rng.normal(size=truth.size) + 0.5 * shared)
        columns[f"metric{metric:02d}"] = truth + noise
    return pd.DataFrame(columns, index=pd.Index(pair_ids, name="pair_id"))


def _ratings(  # noqa: PLR0917 - a column each
    rng: np.random.Generator,
    pairs: pd.DataFrame,
    template: str,
    values: Sequence[str],
    quality: FloatArray,
    rater: int,
) -> pd.DataFrame:
    felt = quality + rng.normal(size=quality.size)
    place = np.clip(np.digitize(felt, np.linspace(-1.5, 1.5, len(values) - 1)), 0, len(values) - 1)
    chosen = np.array(list(values), object)[place if template == "Likert" else 1 - place]
    return pairs[["prompt_id", "model"]].assign(
        template=template, model_b="", rater_id=str(rater), unit_index=0, unit_text="", value=chosen
    )


def _comparisons(
    rng: np.random.Generator, prompts: pd.DataFrame, a: str, b: str, rater: int
) -> pd.DataFrame:
    return prompts[["prompt_id"]].assign(
        template="SxS",
        model=a,
        model_b=b,
        rater_id=str(rater),
        unit_index=0,
        unit_text="",
        value=rng.choice(["a", "b", "unsure"], len(prompts)),
    )
