"""EvalMuse protocol against a plain evaluation with scipy, and against one sort of the elements.

    python -m benchmarks_perf.evalmuse_protocol [--prompts 1000] [--rounds 5]

One metric on a made-up benchmark of EvalMuse's size: 10 images per prompt, 4 elements per image.
The plain evaluation is written as the definitions read: scipy's `spearmanr`, `kendalltau` and
`curve_fit` for every split and skill, a loop over 101 thresholds for the accuracies. Its time for
1000 resamples is that of two physically repeated samples, times 500. All run alternately in one
process on one thread, and CPU time is compared, so that a busy machine slows all alike. The values
must agree.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from statistics import median

import numpy as np
import pandas as pd
from scipy.optimize import curve_fit
from scipy.stats import kendalltau, pearsonr, spearmanr

from benchmarks.arrays import FloatArray
from benchmarks.evalmuse.answers import EvalMuseAnswers
from benchmarks.evalmuse.element_keys import SKILLS, UNREPORTED_SKILL
from benchmarks.evalmuse.protocol import estimates
from benchmarks.rows import Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.statistics.thresholds import deal_folds

METRIC = "metric"
IMAGES_PER_PROMPT, ELEMENTS_PER_IMAGE = 10, 4
GRID = np.arange(101) / 100
REPEATED = 2
"""Resamples that the plain evaluation is timed on."""
Key = tuple[str, str | None, str | None, str | None]
"""Measure, variant, split and skill."""


def random_answers(rng: np.random.Generator, n_prompts: int = 1000) -> EvalMuseAnswers:
    """Prompts with ten images each; every image has the four elements of its prompt."""
    prompt = np.repeat(np.arange(n_prompts), IMAGES_PER_PROMPT)
    pair_ids = [f"model{i % IMAGES_PER_PROMPT}/{p:05d}.png" for i, p in enumerate(prompt)]
    images = pd.DataFrame(
        {
            "pair_id": pair_ids,
            "prompt_id": [f"{p:05d}" for p in prompt],
            "prompt": "",
            "split": np.where(prompt % 2, "real", "synth").astype(object),
            "label": np.round(rng.integers(3, 16, prompt.size) / 3.0, 6),
        }
    )
    kinds = rng.integers(0, len(SKILLS) + 1, (n_prompts, ELEMENTS_PER_IMAGE))[prompt].ravel()
    number = np.tile(np.arange(ELEMENTS_PER_IMAGE), prompt.size)
    names = np.array([*SKILLS, UNREPORTED_SKILL], object)[kinds]
    elements = pd.DataFrame(
        {
            "pair_id": np.repeat(np.array(pair_ids, object), ELEMENTS_PER_IMAGE),
            "element_id": [f"e{n} ({kind})" for n, kind in zip(number, names, strict=True)],
            "skill": names,
            "label": np.round(rng.integers(0, 4, names.size) / 3.0, 6),
        }
    )
    return EvalMuseAnswers(
        tuple(pair_ids), tuple(sorted(set(images["prompt_id"]))), images, elements
    )


def random_scores(rng: np.random.Generator, answers: EvalMuseAnswers) -> ScoreTable:
    """A metric with some signal in both its kinds of scores."""
    label = answers.images["label"].to_numpy(np.float64)
    overall = pd.DataFrame(
        {METRIC: label + rng.normal(size=label.size) * 1.5}, index=list(answers.pair_ids)
    )
    of_element = answers.elements["label"].to_numpy(np.float64)
    noisy = np.clip(0.3 + 0.3 * of_element + rng.normal(size=of_element.size) * 0.2, 0.0, 1.0)
    return ScoreTable(
        overall, {METRIC: answers.elements[["pair_id", "element_id"]].assign(score=noisy)}
    )


def plain_curve(x: FloatArray, b1: float, b2: float, b3: float, b4: float) -> FloatArray:
    """The four-parameter logistic."""
    curve: FloatArray = b2 + (b1 - b2) / (1.0 + np.exp(-(x - b3) / np.abs(b4)))
    return curve


def plain_fit(x: FloatArray, y: FloatArray, width: float | None = None) -> tuple[float, float]:
    """PLCC and RMSE after scipy's `curve_fit`."""
    start = (y.max(), y.min(), x.mean(), x.std() if width is None else width)
    fitted = plain_curve(x, *curve_fit(plain_curve, x, y, p0=start, maxfev=10_000)[0])
    return float(pearsonr(y, fitted)[0]), float(np.sqrt(np.mean((y - fitted) ** 2)))


def plain_overall(images: pd.DataFrame, with_skill: dict[str, set[str]]) -> dict[Key, float]:
    """Every measure of overall scores.

    Args:
        images: columns `pair_id`, `split`, `label`, `score`.
        with_skill: skill to the pairs with an element of it.
    """
    found: dict[Key, float] = {}
    for split in ("all", "real", "synth"):
        part = images if split == "all" else images[images["split"] == split]
        x, y = part["score"].to_numpy(np.float64), part["label"].to_numpy(np.float64)
        found["srcc", "paper", split, None] = float(spearmanr(x, y)[0])
        found["krcc", "paper", split, None] = float(kendalltau(x, y)[0])
        found["pearson", "paper", split, None] = float(pearsonr(x, y)[0])
        found["plcc", "paper", split, None], found["rmse", "paper", split, None] = plain_fit(x, y)
        if split == "all":
            found["plcc", "ntire_code", split, None] = plain_fit(y, x)[0]
            found["plcc", "ntire_page", split, None] = plain_fit(x, y, 0.5)[0]
    for skill, pairs in with_skill.items():
        part = images[images["pair_id"].isin(pairs)]
        found["srcc", "assay", "all", skill] = float(spearmanr(part["score"], part["label"])[0])
    return found


def plain_elements(elements: pd.DataFrame) -> dict[Key, float]:
    """Every accuracy; columns `score`, `label`, `split`, `skill`, `fold`."""
    positive = elements["label"] >= 0.5
    rights = {"paper": (elements["score"] >= _best(elements)) == positive}
    rights["ntire"] = (elements["score"] >= 0.5) == positive
    cut = {fold: _best(elements[elements["fold"] != fold]) for fold in elements["fold"].unique()}
    rights["held_out"] = (elements["score"] >= elements["fold"].map(cut)) == positive
    found: dict[Key, float] = {}
    for variant, right in rights.items():
        found["element_accuracy", variant, "all", None] = float(right.mean())
        for split in ("real", "synth"):
            value = float(right[elements["split"] == split].mean())
            found["element_accuracy", variant, split, None] = value
        for skill in SKILLS:
            value = float(right[elements["skill"] == skill].mean())
            found["element_accuracy", variant, "all", skill] = value
    return found


def _best(elements: pd.DataFrame) -> float:
    positive = elements["label"] >= 0.5
    reached = [float(((elements["score"] >= t) == positive).mean()) for t in GRID]
    return float(GRID[int(np.argmax(reached))])


class Plain:
    """The plain evaluation of a sample or of one resample."""

    def __init__(self, scores: ScoreTable, answers: EvalMuseAnswers) -> None:
        self.images = answers.images.assign(score=scores.overall[METRIC].to_numpy())
        pairs = answers.images.set_index("pair_id")
        elements = answers.elements.assign(score=scores.elements[METRIC]["score"].to_numpy())
        of_pair = pairs.loc[elements["pair_id"]]
        folds = dict(zip(answers.clusters, deal_folds(answers.clusters, 5), strict=True))
        self.elements = elements.assign(
            split=of_pair["split"].to_numpy(),
            prompt_id=of_pair["prompt_id"].to_numpy(),
            fold=of_pair["prompt_id"].map(folds).to_numpy(),
        )
        self.with_skill = {
            skill: set(elements.loc[elements["skill"] == skill, "pair_id"]) for skill in SKILLS
        }

    def values(self) -> dict[Key, float]:
        """Every value of the sample."""
        return {**plain_overall(self.images, self.with_skill), **plain_elements(self.elements)}

    def resampled(self, drawn: dict[str, int]) -> dict[Key, float]:
        """Every value of a physically repeated sample."""
        images = self.images.loc[self.images.index.repeat(self.images["prompt_id"].map(drawn))]
        elements = self.elements.loc[
            self.elements.index.repeat(self.elements["prompt_id"].map(drawn))
        ]
        return {**plain_overall(images, self.with_skill), **plain_elements(elements)}


class Ours:
    """The protocol, with the time that each measure's resamples take."""

    def __init__(self, scores: ScoreTable, answers: EvalMuseAnswers, plan: ResamplingPlan) -> None:
        self._arguments = (scores, answers, plan, "evalmuse", "perf")

    def rows(self) -> list[Row]:
        """Point estimates alone."""
        return [estimate.row for estimate in estimates(*self._arguments)]

    def intervals(self) -> dict[str, float]:
        """CPU seconds of the resamples by measure, and of the point estimates."""
        spent: dict[str, float] = defaultdict(float)
        start = time.process_time()
        found = list(estimates(*self._arguments))
        spent["point estimates"] = time.process_time() - start
        for estimate in found:
            start = time.process_time()
            assert estimate.drawn.values is not None, estimate.row
            spent[estimate.row.measure] += time.process_time() - start
        return spent


def _seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _resamples(plan: ResamplingPlan) -> Iterator[dict[str, int]]:
    for counts in plan.counts[:REPEATED]:
        yield dict(zip(plan.clusters, counts.astype(int), strict=True))


def _compare(n_prompts: int, rounds: int) -> None:
    rng = np.random.default_rng(0)
    answers = random_answers(rng, n_prompts)
    scores = random_scores(rng, answers)
    plan = ResamplingPlan.for_revision("evalmuse", "perf", answers.clusters)
    of_elements: FloatArray = scores.elements[METRIC]["score"].to_numpy(np.float64)
    plain, ours = Plain(scores, answers), Ours(scores, answers, plan)
    few = list(_resamples(plan))
    runs: dict[str, Callable[[], object]] = {
        "sort": lambda: np.sort(of_elements),
        "argsort": lambda: np.argsort(of_elements, kind="stable"),
        "plain": plain.values,
        "plain resamples": lambda: [plain.resampled(drawn) for drawn in few],
        "ours": ours.rows,
    }
    times = [{name: _seconds(run) for name, run in runs.items()} for _ in range(rounds)]
    parts = [ours.intervals() for _ in range(rounds)]
    seconds = {name: median(one[name] for one in times) for name in runs}
    repeated = seconds.pop("plain resamples") * plan.n_resamples / REPEATED
    by_measure = {name: median(one[name] for one in parts) for name in parts[0]}
    whole = sum(by_measure.values())

    print(f"EvalMuse: {len(answers.pair_ids)} images, {of_elements.size} elements, one metric")
    print(f"CPU seconds, one thread, median of {rounds} rounds")
    print(f"{'point estimates':36}{'seconds':>10}{'/ sort':>10}{'plain / it':>12}")
    for name, spent in seconds.items():
        ratios = f"{spent / seconds['sort']:10.0f}{seconds['plain'] / spent:12.1f}"
        print(f"  {name:34}{spent:10.4f}{ratios}")
    print(f"{f'with {plan.n_resamples} resamples':36}{'seconds':>10}")
    print(f"  {f'plain ({REPEATED} timed)':34}{seconds['plain'] + repeated:10.1f}")
    print(f"  {'ours':34}{whole:10.2f}   plain / ours {(seconds['plain'] + repeated) / whole:.0f}")
    for name, spent in by_measure.items():
        print(f"    {name:32}{spent:10.3f}")
    print(f"largest difference of a value {_largest_difference(plain, ours):.1e}")
    print(f"largest difference in a resample {_largest_in_resamples(plain, ours, few):.1e}")


def _largest_difference(plain: Plain, ours: Ours) -> float:
    found = {(r.measure, r.variant, r.split, r.skill): r.value for r in ours.rows()}
    return max(abs(found[key] - value) for key, value in plain.values().items())


def _largest_in_resamples(plain: Plain, ours: Ours, few: list[dict[str, int]]) -> float:
    """The largest gap in the timed resamples; curves are searched on a grid there."""
    drawn = {
        (e.row.measure, e.row.variant, e.row.split, e.row.skill): e.drawn.values
        for e in estimates(*ours._arguments)
    }
    gaps = [0.0]
    for number, one in enumerate(few):
        for key, value in plain.resampled(one).items():
            values = drawn[key]
            assert values is not None
            gaps.append(abs(float(values[number]) - value))
    return max(gaps)


def _on_one_thread() -> None:
    """Start again with one BLAS thread: the number is fixed when numpy is loaded."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if any(os.environ.get(name) != value for name, value in limits.items()):
        command = [sys.executable, "-m", "benchmarks_perf.evalmuse_protocol", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, **limits})


def main() -> None:
    """Print the table."""
    _on_one_thread()
    parser = argparse.ArgumentParser(description="EvalMuse protocol against a plain evaluation")
    parser.add_argument("--prompts", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    _compare(options.prompts, options.rounds)


if __name__ == "__main__":
    main()
