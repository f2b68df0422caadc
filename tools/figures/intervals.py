"""Figures of intervals: what is drawn anew, how often intervals hold the truth, missing scores."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.arrays import FloatArray
from benchmarks.pooled import MAX_MISSING
from benchmarks.statistics import intervals
from benchmarks.statistics.correlation import spearman
from benchmarks.statistics.intervals import PerturbedPlan, bca, percentile
from benchmarks.statistics.resampling import ResamplingPlan, resampled_mean, seed_of
from evaluator.drawing import Drawing, scale
from tools.figures.demo import board

METRIC = "colour-count-reader"
PROMPTS, IMAGES = 40, 4
"""Of the simulated benchmark."""
TRUTH = 0.4
REPEATED = 400
SIZES = (5, 8, 12, 20, 40, 80)
REPETITIONS = 4_000
RESAMPLES = 1_000
MISSING = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2)


def _rated(metric: str) -> tuple[FloatArray, FloatArray]:
    """Scores and ratings of the images of `demo_evalmuse`."""
    shown = board("demo_evalmuse")
    images = shown.answers.images  # type: ignore[attr-defined]
    scores = shown.scores.overall.loc[images["pair_id"], metric].to_numpy(np.float64)
    return scores, images["label"].to_numpy(np.float64)


def clusters_or_pairs() -> str:
    """Simulated: resamples of one correlation by prompt and by image, and how often they cover."""
    of_image = np.repeat(np.arange(PROMPTS), IMAGES)
    by_prompt = ResamplingPlan(tuple(map(str, range(PROMPTS))), 1)
    by_image = ResamplingPlan(tuple(map(str, range(PROMPTS * IMAGES))), 1)
    plans = {"whole prompts": by_prompt.counts[:, of_image], "single images": by_image.counts}
    rng = np.random.default_rng(seed_of("figure clusters", "1"))
    covered = dict.fromkeys(plans, 0)
    for _ in range(REPEATED):
        x, y = _clustered(rng)
        drawn = {name: _pearson(x, y, counts) for name, counts in plans.items()}
        for name, values in drawn.items():
            low, high = np.quantile(values, [0.025, 0.975])
            covered[name] += int(low <= TRUTH <= high)
    figure = Drawing(
        "Simulated: a correlation in 1,000 resamples of whole prompts and of single images. The "
        "latter spread too little, and their intervals hold the truth too seldom.",
        300,
    )
    place = scale(0.0, 0.8, 30, 450)
    edges = np.linspace(0.0, 0.8, 61)
    rows = zip(drawn.items(), (120, 235), ("one", "two"), strict=True)
    for (name, values), floor, kind in rows:
        shares = np.histogram(values, edges)[0] / len(values)
        figure.path(_steps(edges, shares, place, floor, 700.0), kind, filled=True)
        figure.line(30, floor, 450, floor)
        low, high = np.quantile(values, [0.025, 0.975])
        figure.interval(place, floor + 12, low, _pearson(x, y, np.ones((1, x.size)))[0], high, kind)
        figure.text(30, floor - 82, name, f"{kind} strong")
        figure.text(
            450, floor - 82, f"holds the truth: {covered[name] / REPEATED:.0%}", kind, "end"
        )
    figure.axis(place, 258, (0.0, 0.2, 0.4, 0.6, 0.8), form=".1f")
    return figure.svg()


def _clustered(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Scores and ratings of images of which four fifths of the variance are their prompt's."""
    u, v = rng.normal(size=(2, PROMPTS))
    v = 0.5 * u + np.sqrt(0.75) * v
    own = rng.normal(size=(2, PROMPTS * IMAGES)) * np.sqrt(0.2)
    return (
        np.sqrt(0.8) * np.repeat(u, IMAGES) + own[0],
        np.sqrt(0.8) * np.repeat(v, IMAGES) + own[1],
    )


def _pearson(x: FloatArray, y: FloatArray, counts: FloatArray) -> FloatArray:
    """Pearson's correlation with each row of multiplicities."""
    n = counts.sum(axis=1)
    means = [counts @ values / n for values in (x, y, x * x, y * y, x * y)]
    covariance = means[4] - means[0] * means[1]
    found: FloatArray = covariance / np.sqrt(
        (means[2] - means[0] ** 2) * (means[3] - means[1] ** 2)
    )
    return found


def _steps(
    edges: FloatArray, shares: FloatArray, place: object, floor: float, height: float
) -> list[tuple[float, float]]:
    """The outline of a histogram."""
    at = place if callable(place) else float
    points = [(at(edges[0]), floor)]
    for left, right, share in zip(edges, edges[1:], shares, strict=False):
        points += [(at(left), floor - height * share), (at(right), floor - height * share)]
    return [*points, (at(edges[-1]), floor)]


def coverage() -> str:
    """Simulated: how often three intervals for a mean hold the truth."""
    found = {size: _covered(size) for size in SIZES}
    figure = Drawing(
        "Simulated: share of 95 % intervals that hold the true mean of a skewed population, for 5 "
        "to 80 clusters; percentile intervals, BCa, and BCa expanded for few clusters.",
        330,
    )
    across = scale(np.log(4.6), np.log(87), 55, 450)
    up = scale(0.70, 1.0, 270, 50)
    for level in (0.70, 0.75, 0.80, 0.85, 0.90, 0.95, 1.0):
        main = level == 0.95
        figure.line(55, up(level), 450, up(level), "line" if main else "faint", 1.5 if main else 1)
        figure.text(48, up(level) + 5, f"{level:.0%}", "strong" if main else "muted", "end", 13)
    names = {"expanded BCa (ours)": "one", "BCa": "three", "percentile": "two"}
    for n, (name, kind) in enumerate(names.items()):
        points = [(across(np.log(size)), up(found[size][name])) for size in SIZES]
        figure.path(points, kind)
        for x, y in points:
            figure.dot(x, y, kind)
        left = (55, 225, 305)[n]
        figure.dot(left + 5, 25, kind)
        figure.text(left + 15, 30, name, kind)
    for size in SIZES:
        figure.text(across(np.log(size)), 290, str(size), "muted", "middle", 13)
    figure.text(252, 312, "clusters", "muted", "middle", 13)
    return figure.svg()


def _covered(size: int) -> dict[str, float]:
    """Coverage of the mean of exponential values (truth 1) with so many clusters."""
    rng = np.random.default_rng(seed_of("figure coverage", str(size)))
    plan = PerturbedPlan.of(ResamplingPlan(tuple(map(str, range(size))), size, RESAMPLES))
    values = rng.exponential(size=(size, REPETITIONS))
    draws = resampled_mean(values, plan.counts).T
    resamples, without, twice = plan.split(draws)
    means, members = values.mean(axis=0), np.ones((REPETITIONS, size), bool)
    # As a board does it: contributions of blocks, the influence they have, its skewness.
    shares = intervals.contributions(means, without, twice, members)
    speed = intervals.acceleration(intervals.influence(shares, means, members))
    many = np.full(REPETITIONS, size)
    ways = {
        "percentile": percentile(resamples),
        "BCa": bca(means, resamples, speed),
        "expanded BCa (ours)": bca(means, resamples, speed, n_clusters=many),
    }
    return {
        name: float(((way.low <= 1.0) & (way.high >= 1.0)).mean()) for name, way in ways.items()
    }


def missing_scores() -> str:
    """What leaving out one's worst images would do to a value."""
    scores, ratings = _rated(METRIC)
    wrong = np.abs(_ranks(scores) - _ranks(ratings))
    order = np.argsort(wrong)
    values = [
        spearman(scores[kept], ratings[kept])
        for share in MISSING
        for kept in [order[: len(order) - round(share * len(order))]]
    ]
    figure = Drawing(
        f"The rank correlation of {METRIC} on demo_evalmuse if it gave no score for the images "
        "that it gets most wrong: it rises with every image left out.",
        270,
    )
    across, up = scale(0, 0.2, 60, 450), scale(0.5, 0.9, 205, 40)
    figure.rectangle(across(0), 40, across(MAX_MISSING) - across(0), 165, "band")
    figure.text(across(MAX_MISSING) + 6, 55, f"up to {MAX_MISSING:.0%}: ranked", "one", size=13)
    for level in (0.5, 0.6, 0.7, 0.8, 0.9):
        figure.line(60, up(level), 450, up(level), "faint")
        figure.text(52, up(level) + 5, f"{level:.1f}", "muted", "end", 13)
    points = [(across(share), up(value)) for share, value in zip(MISSING, values, strict=True)]
    figure.path(points, "two")
    for x, y in points:
        figure.dot(x, y, "two")
    figure.axis(across, 205, (0, 0.05, 0.1, 0.15, 0.2), "share of images left out", ".0%")
    return figure.svg()


_ranks = partial(lambda values: np.argsort(np.argsort(values, kind="stable"), kind="stable"))
