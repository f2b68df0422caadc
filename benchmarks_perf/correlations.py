"""Correlations and agreement with people against plain evaluations, on the shape of EvalMuse.

1,000 prompts of 20 images, people's mean of three ratings with its ties, continuous metrics. Plain
sides that take minutes run a part of their resamples and are multiplied up, which is exact for a
loop over resamples.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from statistics import median

import numpy as np
from scipy import stats

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.correlation import (
    Groups,
    kendall_by_group,
    resampled_pearson,
    resampled_spearman,
)
from benchmarks.statistics.kendall import KendallForms, Ties
from benchmarks.statistics.pairwise_accuracy import Calibrated, GroupedPairs, tie_calibrated
from benchmarks.statistics.resampling import resampled_mean
from benchmarks_perf.made_up import N_IMAGES, N_PROMPTS, Rated, rated, resampled_prompts, skills
from benchmarks_perf.measuring import MIB, Figure, added_memory, alone, interleaved, seconds

N_METRICS, N_SKILLS, N_BLOCKS = 30, 40, 250
_RIGHT_ORDER, _WRONG_ORDER, _TIED_BY_PEOPLE, _TIED_BY_METRIC, _TIED_BY_BOTH = range(5)


def tie_calibration(rounds: int = 3) -> Iterator[Figure]:
    """Tie calibration by prompt; the labels' part is shared by 30 metrics."""
    data = rated(N_METRICS)
    scores = np.ascontiguousarray(data.scores.T)

    def ours() -> list[Calibrated]:
        pairs = GroupedPairs.of(data.gold, Groups.of(data.prompts))
        return [pairs.tie_calibrated(column) for column in scores]

    def plain() -> Calibrated:
        return _plain_tie_calibration(scores[3], data.gold, data.prompts)

    expected, found = plain(), ours()[3]
    yield _apart("accuracy", abs(found.accuracy - expected.accuracy), 1e-9)
    yield _apart("threshold", abs(found.threshold - expected.threshold), 1e-12)
    times = interleaved({"pair by pair": plain, "ours": ours}, rounds)
    times = times.scaled("ours", 1 / N_METRICS)
    yield times.compared("one metric of 30", "pair by pair", "ours", at_least=50)


def flat_tie_calibration(rounds: int = 5) -> Iterator[Figure]:
    """Exact tie calibration over all pairs of 20,000 images."""
    data = rated(1)
    scores = data.scores[:, 0].copy()
    sides = {
        "ours": lambda: tie_calibrated(scores, data.gold),
        "tau-b": lambda: stats.kendalltau(scores, data.gold),
    }
    yield interleaved(sides, rounds).compared("time of tau-b", "ours", "tau-b", at_most=500)
    _, added = added_memory(sides["ours"])
    yield Figure("memory added", added / MIB, "MiB", at_most=200)


def bootstrap(rounds: int = 3) -> Iterator[Figure]:
    """Spearman over all images, and Kendall by prompt, in 1,000 resamples of the prompts."""
    data, counts = rated(10), resampled_prompts()
    x, y, groups = data.scores[:, 0].copy(), data.gold, Groups.of(data.prompts)
    draws = [np.repeat(np.arange(N_PROMPTS), row.astype(int)) for row in counts[:20]]
    spearman = resampled_spearman(x, y, counts, data.prompts)[:20]
    yield _apart("Spearman", np.abs(spearman - _plain_spearman(x, data, draws)).max(), 1e-12)
    kendall = resampled_mean(kendall_by_group(x, y, groups), counts)[:1]
    yield _apart("Kendall", np.abs(kendall - _plain_kendall(x, data, draws[:1])).max(), 1e-12)
    sides = {
        "scipy": lambda: _plain_spearman(x, data, draws),
        "ours": lambda: resampled_spearman(x, y, counts, data.prompts),
        "ours, 10 metrics": lambda: resampled_spearman(data.scores, y, counts, data.prompts),
    }
    times = interleaved(sides, rounds).scaled("scipy", len(counts) / len(draws))
    times = times.scaled("ours, 10 metrics", 0.1)
    yield times.compared("Spearman over all images", "scipy", "ours", at_least=10)
    yield times.compared("each of 10 together", "scipy", "ours, 10 metrics", at_least=10)
    sides = {
        "scipy": lambda: _plain_kendall(x, data, draws[:1]),
        "ours": lambda: resampled_mean(kendall_by_group(x, y, groups), counts),
    }
    times = interleaved(sides, rounds).scaled("scipy", len(counts))
    yield times.compared("Kendall by prompt", "scipy", "ours", at_least=2000)


def correlation_board(skills: int = 8) -> Iterator[Figure]:
    """All draws of 30 metrics on all images and on skills of a quarter of the prompts."""
    limits = {"pearson": None, "spearman": 50.0, "kendall": None}
    for measure, at_least in limits.items():
        took, added, of_scipy = alone(_board, measure, skills)
        details = f"scipy {of_scipy:.0f} s (one resample timed), ours {took:.2f} s"
        yield Figure(measure, of_scipy / took, "x", at_least=at_least, details=details)
        yield Figure(f"{measure}, memory added", added / MIB, "MiB", at_most=500)


def _board(measure: str, n_skills: int) -> tuple[float, int, float]:
    """Seconds and bytes that a board takes, and seconds of scipy for all its draws."""
    data, chosen = rated(N_METRICS), skills(n_skills)
    block = np.random.default_rng(2).permutation(N_PROMPTS) % N_BLOCKS
    inside = block == np.arange(N_BLOCKS)[:, None]
    draws = np.vstack([resampled_prompts(), 1.0 - inside, 1.0 + inside])
    take = _kendall_board if measure == "kendall" else _moment_board
    took, added = added_memory(lambda: seconds(lambda: take(measure, data, draws, chosen)))
    scipy = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
    drawn = np.random.default_rng(4).integers(0, data.gold.size, data.gold.size)
    x, y = data.scores[drawn, 10], data.gold[drawn]
    once = median(seconds(lambda: scipy[measure](x, y)) for _ in range(9))
    return took, added, once * (1 + n_skills / 4) * N_METRICS * len(draws)


def _moment_board(measure: str, data: Rated, draws: FloatArray, chosen: list[IntArray]) -> None:
    resampled = resampled_spearman if measure == "spearman" else resampled_pearson
    resampled(data.scores, data.gold, draws, data.prompts)
    for part in chosen:
        inside = np.isin(data.prompts, part)
        resampled(data.scores[inside], data.gold[inside], draws, data.prompts[inside])


def _kendall_board(_: str, data: Rated, draws: FloatArray, chosen: list[IntArray]) -> None:
    labels = Ties.of(data.gold, data.prompts, N_PROMPTS)
    slices = [np.arange(N_PROMPTS), *chosen]
    pairs = [labels.among(part).untied_pairs(draws[:, part]) for part in slices]
    for column in data.scores.T:
        forms = KendallForms.of(column, data.gold, data.prompts, N_PROMPTS, labels)
        for part, of_labels in zip(slices, pairs, strict=True):
            forms.among(part).tau_b(draws[:, part], of_labels)


def _apart(what: str, difference: float, at_most: float) -> Figure:
    return Figure(f"{what}, largest difference", float(difference), at_most=at_most)


def _plain_tie_calibration(scores: FloatArray, gold: FloatArray, groups: IntArray) -> Calibrated:
    """As Deutsch et al. (2023) describe it: pairs become ties one by one, in order of distance."""
    pairs, counts = [], {}
    for group in range(N_PROMPTS):
        members = np.flatnonzero(groups == group)
        counts[group] = dict.fromkeys(range(5), 0)
        own, labels = scores[members].tolist(), gold[members].tolist()
        for i, j in combinations(range(N_IMAGES), 2):
            kind, if_tied = _kinds(own[i] - own[j], labels[i] - labels[j])
            counts[group][kind] += 1
            pairs.append((abs(own[i] - own[j]), group, kind, if_tied))

    def accuracy(group: int) -> float:
        found = counts[group]
        return (found[_RIGHT_ORDER] + found[_TIED_BY_BOTH]) / sum(found.values())

    total = sum(map(accuracy, counts))
    thresholds, accuracies = [0.0], [total / N_PROMPTS]
    for distance, group, kind, if_tied in sorted(pairs, key=lambda pair: pair[0]):
        total -= accuracy(group)
        counts[group][kind] -= 1
        counts[group][if_tied] += 1
        total += accuracy(group)
        if thresholds[-1] != distance:
            thresholds.append(distance)
            accuracies.append(0.0)
        accuracies[-1] = total / N_PROMPTS
    best = int(np.argmax(accuracies))
    return Calibrated(accuracies[best], thresholds[best])


def _kinds(by_metric: float, by_people: float) -> tuple[int, int]:
    """What a pair is, and what it is once the metric calls it tied."""
    if by_people == 0:
        return _TIED_BY_BOTH if by_metric == 0 else _TIED_BY_PEOPLE, _TIED_BY_BOTH
    if by_metric == 0:
        return _TIED_BY_METRIC, _TIED_BY_METRIC
    same = (by_metric > 0) == (by_people > 0)
    return _RIGHT_ORDER if same else _WRONG_ORDER, _TIED_BY_METRIC


def _plain_spearman(x: FloatArray, data: Rated, draws: list[IntArray]) -> FloatArray:
    """Rho of each resample: the images of the drawn prompts put together and ranked again."""
    items = data.items
    samples = (np.concatenate([items[c] for c in drawn]) for drawn in draws)
    return np.array([stats.spearmanr(x[one], data.gold[one]).statistic for one in samples])


def _plain_kendall(x: FloatArray, data: Rated, draws: list[IntArray]) -> FloatArray:
    """Mean tau-b of the drawn prompts in each resample, computed anew for every one."""
    items, y = data.items, data.gold
    found = [[stats.kendalltau(x[items[c]], y[items[c]]).statistic for c in d] for d in draws]
    return np.array([np.nanmean(one) for one in found])
