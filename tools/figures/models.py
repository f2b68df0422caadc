"""Figures of the model track: dominance, trusted metrics and contradictions, seeds."""

from __future__ import annotations

import numpy as np

from benchmarks.arrays import FloatArray
from benchmarks.model_boards import consensus
from benchmarks.statistics.concordance import competition_ranks, seed_stability
from benchmarks.statistics.paired import dominance, paired_t, wilcoxon
from benchmarks.statistics.resampling import resampled_mean, seed_of
from evaluator.drawing import Drawing, scale
from tools.figures.demo import board
from tools.figures.ranks import ordered

MODELS = ("demo-alpha", "demo-delta")
"""Two of the simulated models."""
LEVEL = 0.05


def _scores(model: str, metric: str) -> FloatArray:
    """What a metric gives the images of a model in `demo_gecko`, by prompt."""
    shown = board("demo_gecko")
    pairs = shown.answers.pairs  # type: ignore[attr-defined]
    chosen = pairs.loc[pairs["model"] == model].sort_values("prompt_id")
    found: FloatArray = shown.scores.overall.loc[chosen["pair_id"], metric].to_numpy(np.float64)
    return found


def dominance_ratio() -> str:
    """The differences of two models, prompt by prompt."""
    first, second = (_scores(model, "two-tower") for model in MODELS)
    apart = np.sort(first - second)[::-1]
    wins, losses = dominance(first, second)
    p_values = paired_t(first, second).p_value, wilcoxon(first, second).p_value
    figure = Drawing(
        f"Difference of two-tower’s score between {MODELS[0]} and {MODELS[1]} on each of "
        f"{apart.size} prompts, sorted: the first wins {wins:.0%} of them and loses {losses:.0%}.",
        285,
    )
    up = scale(-1.2, 1.5, 235, 45)
    width = 410 / apart.size
    for n, value in enumerate(apart):
        kind = "one" if value > 0 else "two" if value < 0 else "grey"
        top, end = min(up(0.0), up(value)), max(up(0.0), up(value))
        figure.rectangle(45 + n * width, top, max(width - 1, 1), max(end - top, 1), kind)
    figure.line(40, up(0.0), 460, up(0.0))
    for tick in (-1.0, -0.5, 0.0, 0.5, 1.0):
        figure.text(36, up(tick) + 5, f"{tick:+.1f}", "muted", "end", 12)
    figure.text(45, 30, f"{MODELS[0]} wins {wins:.0%}", "one strong")
    figure.text(455, 30, f"{MODELS[1]} wins {losses:.0%}", "two strong", "end")
    said = f"mean {np.mean(first - second):+.3f}; paired t: {_p(p_values[0])}"
    figure.text(240, 258, f"{said}; Wilcoxon: {_p(p_values[1])}", "muted", "middle", 13)
    figure.text(240, 276, "prompts, sorted by difference", "muted", "middle", 13)
    return figure.svg()


def trusted() -> str:
    """Who may judge two models, and what each metric says of them."""
    shown = board("demo_gecko")
    found = ordered(shown)
    plan = shown.benchmark.plan(shown.answers)
    figure = Drawing(
        f"{MODELS[0]} less {MODELS[1]} by every bundled metric, in standard deviations, with "
        "intervals; only metrics of the first tier that are clear of chance may judge.",
        285,
    )
    place = scale(-0.5, 1.0, 165, 455)
    figure.line(place(0.0), 30, place(0.0), 220)
    for row, name in enumerate(shown.metrics):
        y = 48 + 36 * row
        apart = _scores(MODELS[0], name) - _scores(MODELS[1], name)
        why_not = _why_not(found.tiers[row], float(shown.low[row]), apart)
        judges = not why_not
        spread = float(apart.std(ddof=1)) or 1.0
        draws = resampled_mean(apart, plan.counts) / spread
        low, high = np.quantile(draws, [0.025, 0.975])
        kind = "one" if judges else "grey"
        figure.text(157, y + 1, name, "strong" if judges else "muted", "end", 13)
        figure.text(157, y + 15, why_not or "judges", "one" if judges else "muted", "end", 11)
        figure.interval(place, y + 4, low, float(apart.mean() / spread), high, kind)
    figure.axis(place, 228, (-0.5, 0.0, 0.5, 1.0), f"{MODELS[0]} better →", ".1f")
    return figure.svg()


def _why_not(tier: int | None, low: float, apart: FloatArray) -> str:
    """By the rule of the board of models; empty where it judges."""
    if not apart.any():
        return "gives all models the same"
    if low <= 0.0:
        return "not clear of chance"
    return "" if tier == 1 else f"tier {tier}"


def contradiction() -> str:
    """Simulated: two trusted metrics that contradict each other, and what becomes of the board."""
    rng = np.random.default_rng(seed_of("figure contradiction", "1"))
    n = 60
    # Model A gets numbers right more often, model B textures; each metric sees one of the two.
    apart = {"sees numbers": rng.normal(0.40, 1.0, n), "sees textures": rng.normal(-0.40, 1.0, n)}
    tests = [paired_t(values, np.zeros(n)) for values in apart.values()]
    relations = np.zeros((2, 2, 2), np.intp)
    for one, (test, values) in enumerate(zip(tests, apart.values(), strict=True)):
        sign = int(np.sign(values.mean())) if test.p_value < LEVEL else 0
        relations[one] = [[0, sign], [-sign, 0]]
    joined = consensus(relations, np.array([1.0, 0.0]))
    figure = Drawing(
        "Simulated: two trusted metrics order two models in opposite ways, each with significance; "
        "the board orders neither.",
        205,
    )
    place = scale(-1.2, 1.2, 150, 455)
    figure.line(place(0.0), 30, place(0.0), 110)
    for row, (name, values) in enumerate(apart.items()):
        y = 50 + 40 * row
        error = 2.0 * float(values.std(ddof=1)) / np.sqrt(n)
        mean = float(values.mean())
        figure.text(140, y + 1, name, "strong", "end", 13)
        figure.text(140, y + 16, _p(tests[row].p_value), "muted", "end", 12)
        figure.interval(place, y + 4, mean - error, mean, mean + error, ("one", "two")[row])
    figure.axis(place, 118, (-1.0, -0.5, 0.0, 0.5, 1.0), form=".1f")
    figure.text(150, 24, "← B better", "muted", size=13)
    figure.text(455, 24, "A better →", "muted", "end", 13)
    ranges = [f"{a}–{b}" for a, b in zip(joined.rank_low, joined.rank_high, strict=True)]
    verdict = "the metrics disagree" if joined.disputed[0, 1] else "ordered"
    figure.text(240, 170, f"{verdict}: A has ranks {ranges[0]}, B {ranges[1]}", "strong", "middle")
    figure.text(240, 191, "one tier, and the board says why", "muted", "middle", 13)
    return figure.svg()


def seeds() -> str:
    """Simulated: ranks of four models over six seeds, steady and not."""
    means = np.array([0.62, 0.59, 0.57, 0.53])
    figure = Drawing(
        "Simulated: ranks of four models with six seeds. Left, seeds matter little and Kendall’s W "
        "is near 1; right, they change the order and W is lower.",
        255,
    )
    for panel, noise in enumerate((0.006, 0.04)):
        rng = np.random.default_rng(seed_of("figure seeds", str(noise)))
        table = means + rng.normal(0.0, noise, (6, 4))
        told = seed_stability(table)
        left = 45 + 230 * panel
        ranks = np.array([competition_ranks(row) for row in table])
        for model, kind in enumerate(("one", "two", "three", "grey")):
            points = [(left + 33 * s, 70 + 38 * (ranks[s, model] - 1)) for s in range(6)]
            figure.path(points, kind)
            for x, y in points:
                figure.dot(x, y, kind, 5)
        w = told.concordance.w
        figure.text(left, 30, f"W = {w:.2f}", "strong")
        figure.text(
            left, 48, f"{told.swapped} of {told.n_model_pairs} pairs swap", "muted", size=13
        )
        for s in range(6):
            figure.text(left + 33 * s, 212, str(s + 1), "muted", "middle", 13)
        figure.text(left + 82, 232, "seed", "muted", "middle", 13)
    for rank in range(4):
        figure.text(28, 75 + 38 * rank, str(rank + 1), "muted", "end", 13)
    return figure.svg()


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"
