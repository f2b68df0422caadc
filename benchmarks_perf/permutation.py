"""Permutation tests and paired tests of metrics against plain tests with scipy.

A plain permutation test swaps, builds both hybrids and hands them to scipy, so that its time is
linear in the draws: a few are run and multiplied by (K + 1) / (k + 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.arrays import FloatArray
from benchmarks.statistics.joint_tests import JointTests
from benchmarks.statistics.paired import dominance, paired_many, rank_statistics, t_statistics
from benchmarks.statistics.perm_both import Statistic, perm_both
from benchmarks.statistics.permutation import PermutationTests
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.statistics.sign_flips import pair_tests
from benchmarks_perf.made_up import N_IMAGES, rated, skills
from benchmarks_perf.measuring import Figure, Times, interleaved, seconds

N_DRAWS = 1000
N_METRICS = 30
N_REPEATED = 20
"""Times that a test of a few milliseconds runs in a row."""
SCIPY: dict[Statistic, Callable[..., Any]] = {
    "pearson": stats.pearsonr,
    "spearman": stats.spearmanr,
    "kendall": stats.kendalltau,
}
PlainTest = Callable[[int], float]
"""The two-sided p-value from so many draws."""


@dataclass(frozen=True)
class _Case:
    """A test of ours, the same test draw by draw, and how much faster ours has to be."""

    name: str
    ours: Callable[[], PermutationTests]
    plain: PlainTest
    at_least: float
    timed_draws: int = 5
    checked: bool = True
    """Whether the plain p-value is compared, too."""


def permutation_tests(rounds: int = 3, draws: int = 100) -> Iterator[Figure]:
    """Two metrics; p-values within three standard deviations of those of so many plain draws."""
    for case in _cases():
        sides: dict[str, Callable[[], object]] = {
            "plain": partial(case.plain, case.timed_draws),
            "ours": case.ours,
        }
        times = interleaved(sides, rounds)
        times = times.scaled("plain", (N_DRAWS + 1) / (case.timed_draws + 1))
        yield times.compared(case.name, "plain", "ours", at_least=case.at_least)
        if case.checked:
            p, plain = float(case.ours().p_values[0, 1]), case.plain(draws)
            deviation = np.sqrt(max(p * (1 - p), 1e-3) * (1 / draws + 1 / N_DRAWS))
            found = abs(p - plain) / deviation
            details = f"p {p:.4f}, plain {plain:.4f}, in standard deviations"
            yield Figure(f"{case.name}, p-values apart", found, at_most=3, details=details)


def _cases() -> Iterator[_Case]:
    data = rated(2)
    tied = np.round(data.scores * 10.0)

    def flat(name: str, statistic: Statistic, scores: FloatArray, at_least: float) -> _Case:
        return _Case(
            name,
            lambda: perm_both(scores, data.gold, statistic, n_draws=N_DRAWS),
            _plain_correlation_test(statistic, scores, data.gold, data.gold.size),
            at_least,
        )

    yield flat("Pearson", "pearson", data.scores, 40)
    yield flat("Spearman", "spearman", data.scores, 300)
    yield flat("Kendall", "kendall", data.scores, 200)
    yield _Case(
        "Kendall by prompt",
        lambda: perm_both(data.scores, data.gold, "kendall", groups=data.prompts, n_draws=N_DRAWS),
        _plain_correlation_test("kendall", data.scores, data.gold, N_IMAGES),
        5000,
        timed_draws=0,
        checked=False,
    )
    yield flat(f"Spearman, {np.unique(tied).size} levels", "spearman", tied, 8)


def permutation_board(skills: int = 8, rounds: int = 2) -> Iterator[Figure]:
    """Spearman tests of 435 pairs on all images and on skills of a quarter of the prompts.

    The machine's limit is the product of coefficients and signs, 2 x 435 x 1,000 x items flops in
    single precision.
    """
    found = [_board_round(skills) for _ in range(rounds)]
    times = Times({"tests": [a for a, _ in found], "product": [b for _, b in found]})
    yield times.compared("of one product of that size", "tests", "product", at_most=12)


def joint_board(rounds: int = 3) -> Iterator[Figure]:
    """Joint tests of boards of 30, 200 and 500 metrics over 250 blocks of clusters.

    The yardstick is a test of each pair by itself, which Holm's correction needs.
    """
    rng = np.random.default_rng(3)
    for n_metrics in (30, 200, 500):
        shared = rng.normal(size=250)
        worth = np.linspace(0.0, 0.3, n_metrics)[:, None]
        shares = (shared + rng.normal(size=(n_metrics, 250)) + worth) / 250
        pairs = np.triu_indices(n_metrics, 1)
        sides: dict[str, Callable[[], object]] = {
            "each pair": partial(pair_tests, shares, *pairs, 1),
            "joint": partial(JointTests.of, shares, 1),
        }
        times = interleaved(sides, rounds)
        yield Figure(
            f"{n_metrics} metrics, of a test of each pair",
            times.ratio("joint", "each pair"),
            "x",
            at_most=3.0,
            details=f"{times.of('joint'):.2f} s, each pair {times.of('each pair'):.2f} s",
        )


def _board_round(n_skills: int) -> tuple[float, float]:
    data, rng = rated(N_METRICS), np.random.default_rng(3)
    n_pairs = N_METRICS * (N_METRICS - 1) // 2
    ours = product = 0.0
    masks = [np.isin(data.prompts, prompts) for prompts in skills(n_skills)]
    for items in (np.ones(data.gold.size, np.bool_), *masks):
        rows = rng.normal(size=(n_pairs, int(items.sum()))).astype(np.float32)
        signs = rng.choice(np.array([-1, 1], np.float32), (rows.shape[1], N_DRAWS))
        part, gold = data.scores[items], data.gold[items]
        product += seconds(lambda a=rows, b=signs: a @ b)  # type: ignore[misc]
        ours += seconds(lambda x=part, y=gold: perm_both(x, y, "spearman", n_draws=N_DRAWS))  # type: ignore[misc]
    return ours, product


def paired_tests(rounds: int = 3, prompts: int = 10_000) -> Iterator[Figure]:
    """All pairs of 30 metrics; scipy's Wilcoxon runs on 29 of the 435 and is multiplied up."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(prompts, 1))
    drawn = common + rng.normal(size=(prompts, N_METRICS)) + rng.normal(0, 0.02, N_METRICS)
    counts = ResamplingPlan(tuple(map(str, range(prompts))), seed=0).counts
    pairs = list(combinations(range(N_METRICS), 2))
    for name, values in (("continuous", drawn), ("ties", np.round(drawn))):
        columns, some = np.ascontiguousarray(values.T), pairs[::15]

        def loop(test: Callable[..., Any], chosen: list[tuple[int, int]]) -> FloatArray:
            return np.array([test(columns[a], columns[b]) for a, b in chosen])  # noqa: B023

        whole = paired_many(values)
        rows, places = tuple(zip(*pairs, strict=True)), tuple(zip(*some, strict=True))
        apart = [
            np.abs(loop(stats.ttest_rel, pairs) - np.stack([whole.t[rows], whole.t_p[rows]], 1)),
            np.abs(loop(stats.wilcoxon, some)[:, 1] - whole.wilcoxon_p[places]),
            np.abs(loop(dominance, pairs)[:, 0] - whole.dominance[rows]),
        ]
        largest = max(float(one.max()) for one in apart)
        yield Figure(f"{name}: largest difference", largest, at_most=1e-10)
        times = interleaved(
            {
                "t loop": partial(loop, stats.ttest_rel, pairs),
                "t": partial(_repeated, t_statistics, values),
                "Wilcoxon loop": partial(loop, stats.wilcoxon, some),
                "ranks": partial(rank_statistics, values),
                "all": partial(paired_many, values, counts),
            },
            rounds,
        )
        times = times.scaled("t", 1 / N_REPEATED).scaled("Wilcoxon loop", len(pairs) / len(some))
        yield times.compared(f"{name}: paired t", "t loop", "t", at_least=100)
        yield times.compared(f"{name}: Wilcoxon", "Wilcoxon loop", "ranks", at_least=1.5)
        yield Figure(f"{name}: everything with 1,000 resamples", times.of("all"), "s")


def _repeated(run: Callable[[FloatArray], object], values: FloatArray) -> None:
    for _ in range(N_REPEATED):
        run(values)


def _plain_correlation_test(
    statistic: Statistic, scores: FloatArray, gold: FloatArray, width: int
) -> PlainTest:
    """PERM-BOTH of two metrics as the paper describes it, averaged over groups of `width`."""
    z = stats.zscore(scores)
    parts = gold.reshape(-1, width)

    def value(hybrid: FloatArray) -> float:
        pairs = zip(hybrid.reshape(-1, width), parts, strict=True)
        return float(np.mean([SCIPY[statistic](x, y).statistic for x, y in pairs]))

    def p_value(n_draws: int) -> float:
        rng = np.random.default_rng(1)
        observed, hits = abs(value(z[:, 0]) - value(z[:, 1])), 0
        for _ in range(n_draws):
            stay = rng.integers(0, 2, gold.size, np.int8).astype(bool)
            one, other = np.where(stay, z[:, 0], z[:, 1]), np.where(stay, z[:, 1], z[:, 0])
            hits += abs(value(one) - value(other)) >= observed * (1 - 1e-9)
        return (1 + hits) / (1 + n_draws)

    return p_value
