"""A board of preferences with many comparisons: against a plain loop with pandas, and memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.families.card import FamilyCard
from benchmarks.families.comparisons import ComparedPairs, RankedLists
from benchmarks.families.items import Items
from benchmarks.families.preference import MEASURES, PreferenceAnswers, PreferenceBenchmark
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks_perf.measuring import MIB, Figure, Times, added_memory, seconds

SPEED_AT_LEAST = 20.0
AGREE_WITHIN = 1e-12


def preference_board(  # noqa: PLR0917 (sizes, given by name)
    comparisons: int = 1_000_000,
    prompts: int = 20_000,
    metrics: int = 20,
    resamples: int = 1000,
    looped: int = 3,
    memory_mib: int = 1500,
) -> tuple[Figure, ...]:
    """Accuracy, strict and by prompt, of every metric in every resample; the loop runs a few of them."""
    random = np.random.default_rng(1)
    of_row = np.sort(random.integers(0, prompts, comparisons))
    answers = _answers(of_row, prompts, random)
    scores = random.normal(size=(2 * comparisons, metrics))
    gold = answers.compared.gold.astype(np.float64)
    scores[0::2] += 0.3 * gold[:, None]  # Lines of a, then of b, of each comparison.
    names = [f"m{k}" for k in range(metrics)]
    table = ScoreTable(pd.DataFrame(scores, list(answers.pair_ids), names))
    board = _board()
    plan = ResamplingPlan(answers.clusters, 1, resamples)
    drawn = plan.counts  # Both sides are given them.
    took = {}
    own: list[FloatArray] = []

    def run() -> None:
        own.append(np.asarray(board.measure(table, answers, plan).resamples, np.float64))

    took["ours"] = [0.0]
    _, added = added_memory(lambda: took["ours"].__setitem__(0, seconds(run)))
    margins = pd.DataFrame(scores[0::2] - scores[1::2], columns=names)
    found: list[FloatArray] = []
    took["pandas"] = [
        seconds(lambda: found.append(_loop(margins, gold, of_row, drawn[:looped])))
        * (resamples / looped)
    ]
    times = Times(took)
    apart = float(np.abs(own[0].reshape(metrics, 2, -1)[:, :, :looped] - found[0]).max())
    work = f"{comparisons:,} comparisons, {metrics} metrics, {resamples:,} resamples"
    return (
        Figure("largest difference", apart, at_most=AGREE_WITHIN, details=f"{looped} resamples"),
        times.compared(f"speed, {work}", "pandas", "ours", at_least=SPEED_AT_LEAST),
        Figure("memory added", added / MIB, "MiB", at_most=memory_mib, details=work),
    )


def _loop(
    margins: pd.DataFrame, gold: FloatArray, prompt: IntArray, drawn: FloatArray
) -> FloatArray:
    """Shape (metrics, 2, resamples): accuracy, and its mean over prompts, resample by resample."""
    found = np.empty((margins.shape[1], 2, len(drawn)))
    for draw, counts in enumerate(drawn):
        weight = pd.Series(counts[prompt])
        for k, name in enumerate(margins):
            right = (margins[name] * gold > 0).astype(float)
            found[k, 0, draw] = (right * weight).sum() / weight.sum()
            by_prompt = right.groupby(prompt).mean()
            times = counts[by_prompt.index]
            found[k, 1, draw] = (by_prompt * times).sum() / times.sum()
    return found


def _board() -> PreferenceBenchmark:
    measures = ("accuracy", "accuracy_macro")
    card = FamilyCard.model_validate(
        {
            "name": "many", "title": "Many", "family": "preference", "kind": "preference",
            "summary": "Many.", "description": "Many.", "revision": "1", "cluster": "prompt",
            "headline": {"measure": "accuracy", "variant": "assay"},
            "measures": {name: MEASURES[name] for name in measures},
            "tables": [{"name": "t", "path": "t.csv", "columns": {
                name: name for name in ("prompt", "text", "image", "label")}}],
            "files": [{"path": "t.csv", "role": "answers", "supplied": "Made up."}],
            "preference": {"label": "label", "values": {"a": "a", "b": "b"}, "sides": "given"},
        }
    )  # fmt: skip
    return PreferenceBenchmark(card, Path())


def _answers(of_row: IntArray, prompts: int, random: np.random.Generator) -> PreferenceAnswers:
    n = len(of_row)
    numbers = np.arange(n)
    ids = pd.Series(np.arange(2 * n)).astype(str).to_numpy(object)
    names = pd.Series(np.arange(prompts)).astype(str).to_numpy(object)
    rows = pd.DataFrame({"prompt_id": names[of_row], "split": "", "skills": ""})
    clusters, cluster = np.unique(of_row, return_inverse=True)
    items = Items(rows, pd.DataFrame({"pair_id": ids}), np.empty((0, 3), np.intp))
    gold = np.where(random.random(n) < 0.5, 1, -1).astype(np.int8)
    votes = np.column_stack([gold > 0, gold < 0]).astype(np.float64)
    compared = ComparedPairs(
        numbers, cluster, 2 * numbers, 2 * numbers + 1, gold, votes, np.ones(n)
    )
    lists = RankedLists(*(np.empty(0, np.intp),) * 2, np.empty(0))
    return PreferenceAnswers(
        tuple(ids), tuple(names[clusters]), items, compared, lists, np.empty((n, 0)), cluster
    )
