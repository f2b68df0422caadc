"""The EvalMuse protocol against a plain evaluation.

The plain evaluation is written as the definitions read: scipy's `spearmanr`, `kendalltau` and
`curve_fit` for every split and skill, a loop over 101 thresholds for the accuracies. Its time for
1,000 resamples is that of two physically repeated samples, times 500.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.optimize import curve_fit
from scipy.stats import kendalltau, pearsonr, spearmanr

from benchmarks.arrays import FloatArray
from benchmarks.evalmuse.load import SKILLS, UNREPORTED_SKILL, EvalMuseAnswers
from benchmarks.evalmuse.protocol import estimates
from benchmarks.rows import Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.statistics.thresholds import deal_folds
from benchmarks_perf.measuring import Figure, interleaved

IMAGES_PER_PROMPT, ELEMENTS_PER_IMAGE = 10, 4
GRID = np.arange(101) / 100
REPEATED = 2
"""Resamples that the plain evaluation is timed on."""
Key = tuple[str, str | None, str | None, str | None]
"""Measure, variant, split and skill."""


def evalmuse_protocol(rounds: int = 2, prompts: int = 1000) -> Iterator[Figure]:
    """One metric on 10 images a prompt with 4 elements each; 1,000 resamples."""
    rng = np.random.default_rng(0)
    answers = _answers(rng, prompts)
    scores = _scores(rng, answers)
    plan = ResamplingPlan.for_revision("evalmuse", "perf", answers.clusters)
    plain, few = _Plain(scores, answers), plan.counts[:REPEATED]

    def rows() -> list[Row]:
        return [one.row for one in estimates(scores, answers, plan, "evalmuse", "perf")]

    def resampled() -> dict[Key, FloatArray]:
        drawn = {}
        for one in estimates(scores, answers, plan, "evalmuse", "perf"):
            assert one.drawn.values is not None, one.row
            drawn[_key(one.row)] = one.drawn.values
        return drawn

    repeated = [plain.resampled(dict(zip(plan.clusters, row, strict=True))) for row in few]
    expected, found, drawn = plain.values(), {_key(row): row.value for row in rows()}, resampled()
    apart = max(abs(found[key] - value) for key, value in expected.items())
    yield Figure("values, largest difference", apart, at_most=1e-9)
    gaps = [
        abs(float(drawn[key][number]) - value)
        for number, one in enumerate(repeated)
        for key, value in one.items()
    ]
    # Curves are searched on a grid there.
    yield Figure("values of resamples, largest difference", max(gaps), at_most=1e-3)
    sides = {
        "plain": plain.values,
        "plain, resampled": lambda: [
            plain.resampled(dict(zip(plan.clusters, row, strict=True))) for row in few
        ],
        "ours": rows,
        "ours, resampled": resampled,
    }
    times = interleaved(sides, rounds)
    times = times.scaled("plain, resampled", plan.n_resamples / REPEATED)
    yield times.compared("values", "plain", "ours")
    name = "values and resamples"
    yield times.compared(name, "plain, resampled", "ours, resampled", at_least=50)


def _key(row: Row) -> Key:
    return row.measure, row.variant, row.split, row.skill


def _answers(rng: np.random.Generator, n_prompts: int) -> EvalMuseAnswers:
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


def _scores(rng: np.random.Generator, answers: EvalMuseAnswers) -> ScoreTable:
    """A metric with some signal in both its kinds of scores."""
    label = answers.images["label"].to_numpy(np.float64)
    noisy = label + rng.normal(size=label.size) * 1.5
    overall = pd.DataFrame({"metric": noisy}, index=list(answers.pair_ids))
    present = answers.elements["label"].to_numpy(np.float64)
    of_elements = np.clip(0.3 + 0.3 * present + rng.normal(size=present.size) * 0.2, 0.0, 1.0)
    keys = answers.elements[["pair_id", "element_id"]]
    return ScoreTable(overall, {"metric": keys.assign(score=of_elements)})


def _plain_curve(x: FloatArray, b1: float, b2: float, b3: float, b4: float) -> FloatArray:
    """The four-parameter logistic."""
    curve: FloatArray = b2 + (b1 - b2) / (1.0 + np.exp(-(x - b3) / np.abs(b4)))
    return curve


def _plain_fit(x: FloatArray, y: FloatArray, width: float | None = None) -> tuple[float, float]:
    """PLCC and RMSE after scipy's `curve_fit`."""
    start = (y.max(), y.min(), x.mean(), x.std() if width is None else width)
    fitted = _plain_curve(x, *curve_fit(_plain_curve, x, y, p0=start, maxfev=10_000)[0])
    return float(pearsonr(y, fitted)[0]), float(np.sqrt(np.mean((y - fitted) ** 2)))


def _plain_overall(images: pd.DataFrame, with_skill: dict[str, set[str]]) -> dict[Key, float]:
    """Every measure of overall scores."""
    found: dict[Key, float] = {}
    for split in ("all", "real", "synth"):
        part = images if split == "all" else images[images["split"] == split]
        x, y = part["score"].to_numpy(np.float64), part["label"].to_numpy(np.float64)
        found["srcc", "paper", split, None] = float(spearmanr(x, y)[0])
        found["krcc", "paper", split, None] = float(kendalltau(x, y)[0])
        found["pearson", "paper", split, None] = float(pearsonr(x, y)[0])
        found["plcc", "paper", split, None], found["rmse", "paper", split, None] = _plain_fit(x, y)
        if split == "all":
            found["plcc", "ntire_code", split, None] = _plain_fit(y, x)[0]
            found["plcc", "ntire_page", split, None] = _plain_fit(x, y, 0.5)[0]
    for skill, pairs in with_skill.items():
        part = images[images["pair_id"].isin(pairs)]
        found["srcc", "assay", "all", skill] = float(spearmanr(part["score"], part["label"])[0])
    return found


def _plain_elements(elements: pd.DataFrame) -> dict[Key, float]:
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


class _Plain:
    """The plain evaluation of a sample or of one resample."""

    def __init__(self, scores: ScoreTable, answers: EvalMuseAnswers) -> None:
        self.images = answers.images.assign(score=scores.overall["metric"].to_numpy())
        pairs = answers.images.set_index("pair_id")
        elements = answers.elements.assign(score=scores.elements["metric"]["score"].to_numpy())
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
        return {**_plain_overall(self.images, self.with_skill), **_plain_elements(self.elements)}

    def resampled(self, drawn: dict[str, float]) -> dict[Key, float]:
        """Every value of a physically repeated sample."""
        images = self.images.loc[self.images.index.repeat(self.images["prompt_id"].map(drawn))]
        elements = self.elements.loc[
            self.elements.index.repeat(self.elements["prompt_id"].map(drawn))
        ]
        return {**_plain_overall(images, self.with_skill), **_plain_elements(elements)}
