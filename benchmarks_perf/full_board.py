"""Whole boards: every measure, interval and pairwise test of many metrics on four benchmarks.

    python -m benchmarks_perf.full_board [--metrics 30] [--skills 40] [--only NAME ...] [--workers 2]

Made-up benchmarks of the real shapes go through the real protocols, as the judge runs them: TS2
(165 graphs, 2,840 images), CROC (280 prompt pairs, 57,400 scores), EvalMuse (1,000 prompts, 20,000
images, ten skills a prompt) and Gecko (2,000 prompts, 8,000 images, four templates). Every row gets
1,000 bootstrap resamples, every block of clusters left out and doubled, a BCa interval, rank
ranges, and tests between each two metrics with tiers. Printed are CPU seconds of evaluation and of
ranking, wall time of all, and the largest memory of a process. What should be linear is checked
too: `--metrics` twice as large takes twice the time of evaluation, and the tests follow the pairs.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from multiprocessing import get_context

import numpy as np
import pandas as pd

from benchmarks.arrays import FloatArray
from benchmarks.croc.answers import CrocAnswers, PromptPair, pair_id
from benchmarks.croc.benchmark import CrocHum
from benchmarks.evalmuse.answers import EvalMuseAnswers
from benchmarks.evalmuse.benchmark import EvalMuse
from benchmarks.gecko.answers import GeckoAnswers
from benchmarks.gecko.benchmark import Gecko
from benchmarks.rows import Measured
from benchmarks.schema import Answers, Benchmark, Card, ScoreTable
from benchmarks.ts2.answers import Ts2Answers
from benchmarks.ts2.benchmark import Ts2
from leaderboard.cells import Cell
from leaderboard.draws import Draws
from leaderboard.slices import Slice, ranked

SEED = 20_261_121
GENERATORS = 20
TEMPLATE_VALUES = {"WL": ("aligned", "not_aligned"), "DSGH": ("yes", "no"), "Likert": "12345"}


@dataclass(frozen=True)
class Board:
    """A benchmark, made-up answers of its shape, and scores of many metrics."""

    benchmark: Benchmark
    answers: Answers
    scores: ScoreTable


@dataclass(frozen=True)
class Spent:
    """What one board took."""

    name: str
    rows: int
    slices: int
    tests: int
    evaluating_s: float
    ranking_s: float
    peak_mib: float


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


def spend(name: str, n_metrics: int, n_skills: int) -> Spent:
    """Make the board, then time what the judge does with it."""
    made = BOARDS[name](n_metrics, n_skills)
    begin = time.process_time()
    measured = made.benchmark.evaluate(made.scores, made.answers)
    middle = time.process_time()
    n_slices, n_tests = rank_all(measured, made.benchmark.card)
    end = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Spent(name, len(measured.rows), n_slices, n_tests, middle - begin, end - middle, peak)


def rank_all(measured: Measured, card: Card) -> tuple[int, int]:
    """Rank every slice with all tests; how many slices and tests that were."""
    slices = list(slices_of(measured))
    n_tests = 0
    for one in slices:
        found = ranked(one, card).ordering
        assert found.tests is not None
        n_tests += int(np.isfinite(np.triu(found.tests.p_value, 1)).sum()) - len(one.cells)
    return len(slices), n_tests


def slices_of(measured: Measured) -> Iterator[Slice]:
    """The rows of each slice with their draws."""
    groups: dict[tuple[str | None, ...], list[int]] = {}
    for place, row in enumerate(measured.rows):
        key = (row.measure, row.variant, row.split, row.facet, row.skill)
        groups.setdefault(key, []).append(place)
    for places in groups.values():
        cells = tuple(
            Cell.of(measured.rows[place].metric, place, measured.rows[place]) for place in places
        )
        yield Slice(cells, Draws(measured.resamples[places], measured.contributions[places]))


def main() -> None:
    """Print what each board took, and the whole."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--metrics", type=int, default=30)
    parser.add_argument("--skills", type=int, default=40)
    parser.add_argument("--only", nargs="*", choices=list(BOARDS), default=list(BOARDS))
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    task = partial(spend, n_metrics=asked.metrics, n_skills=asked.skills)
    begin = time.perf_counter()
    # The longest first, so that no worker waits for the other.
    names = sorted(asked.only, key=["evalmuse", "gecko", "croc", "ts2"].index)
    with ProcessPoolExecutor(asked.workers, get_context("spawn"), max_tasks_per_child=1) as pool:
        found = list(pool.map(task, names))
    wall = time.perf_counter() - begin
    print(
        f"{'board':10}{'rows':>8}{'slices':>8}{'tests':>9}{'evaluate':>11}{'rank':>9}{'peak':>11}"
    )
    for one in found:
        print(
            f"{one.name:10}{one.rows:8,}{one.slices:8,}{one.tests:9,}{one.evaluating_s:9.1f} s"
            f"{one.ranking_s:7.1f} s{one.peak_mib:7.0f} MiB"
        )
    cpu = sum(one.evaluating_s + one.ranking_s for one in found)
    print(
        f"\nCPU {cpu:.1f} s, {cpu / asked.workers:.1f} s on each of {asked.workers} cores;", end=" "
    )
    print(f"wall {wall:.1f} s with making the data and the imports; goal: below 90 s and 2 GiB.")


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


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
