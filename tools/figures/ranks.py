"""Figures of ranks: the paired test, joint tests, rank ranges, tiers, the index."""

from __future__ import annotations

import numpy as np

from benchmarks.statistics.joint_tests import LEVEL
from benchmarks.statistics.resampling import seed_of
from benchmarks.statistics.sign_flips import pair_tests
from evaluator.drawing import Drawing, scale
from leaderboard.ranking.rank_ranges import Ordering, draw_ranks, ordering
from tools.figures.demo import DEMO, Board, board

PATTERNS = 10_000
PAIR = ("colour-count-reader", "colour-reader")


def ordered(shown: Board) -> Ordering:
    """Ranks, tests and tiers of a board, as its page has them."""
    card = shown.benchmark.card
    able = np.ones(len(shown.metrics), bool)
    seed = seed_of(card.name, card.revision)
    return ordering(shown.values, shown.resamples, shown.contributions, able, seed=seed)


def paired_test() -> str:
    """The difference of two metrics under flipped signs."""
    shown = board("demo_gecko")
    first, second = (shown.metrics.index(name) for name in PAIR)
    moved = shown.contributions[first] - shown.contributions[second]
    seed = seed_of(shown.benchmark.card.name, shown.benchmark.card.revision)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (PATTERNS, moved.size))
    sums, real = signs @ moved, float(moved.sum())
    pair = np.array([first]), np.array([second])
    p_value = float(pair_tests(shown.contributions, *pair, seed).p_value[0])
    figure = Drawing(
        f"The difference of {PAIR[0]} and {PAIR[1]} on demo_gecko beside the differences that "
        f"come out when signs of prompts are flipped at random: p = {p_value:.2f}.",
        285,
    )
    widest = 0.2
    place = scale(-widest, widest, 30, 450)
    edges = np.linspace(-widest, widest, 41)
    counts = np.histogram(sums, edges)[0] / PATTERNS
    for left, right, share in zip(edges, edges[1:], counts, strict=False):
        beyond = min(abs(left), abs(right)) >= abs(real) - 1e-9
        height = 1500 * share
        kind = "two" if beyond else "grey"
        figure.rectangle(
            place(left) + 0.5, 220 - height, place(right) - place(left) - 1, height, kind
        )
    for end in (-abs(real), abs(real)):
        figure.line(place(end), 48, place(end), 220, "two", 2)
    figure.text(place(abs(real)) + 6, 60, f"observed: {real:.3f}", "two strong")
    figure.text(30, 30, "as far out by chance, on either side:", "muted")
    figure.text(450, 30, f"p = {p_value:.2f}", "two strong", "end")
    figure.axis(place, 220, (-0.2, -0.1, 0.0, 0.1, 0.2), "difference with signs flipped", ".1f")
    return figure.svg()


def joint_tests() -> str:
    """The p-values of all pairs of a board, each alone and of all together."""
    shown = board("demo_gecko")
    tests = ordered(shown).tests
    assert tests is not None
    first, second = np.triu_indices(len(shown.metrics), 1)
    seed = seed_of(shown.benchmark.card.name, shown.benchmark.card.revision)
    alone = pair_tests(shown.contributions, first, second, seed).p_value
    together = tests.p_value[first, second]
    order = np.lexsort((alone, together))
    figure = Drawing(
        "The p-values of all ten pairs of metrics on demo_gecko, smallest first: each pair alone, and "
        "all pairs tested together.",
        330,
    )
    place = scale(-5.0, 0.0, 235, 440)
    figure.text(235, 30, "alone", "muted")
    figure.text(300, 30, "all together", "one strong")
    figure.line(place(np.log10(LEVEL)), 44, place(np.log10(LEVEL)), 298, "two", 2)
    figure.text(place(np.log10(LEVEL)) + 5, 56, "0.05", "two strong", size=12)
    for row, pair in enumerate(order):
        y = 56 + 25 * row
        clear = bool(together[pair] < LEVEL)
        names = " / ".join(_short(shown.metrics[side[pair]]) for side in (first, second))
        figure.text(225, y + 5, names, "" if clear else "muted", "end", 13)
        figure.line(235, y, 440, y, "faint")
        figure.dot(place(np.log10(max(alone[pair], 1e-5))), y, "grey", 4)
        figure.dot(place(np.log10(together[pair])), y, "one", 5)
    y = 56 + 25 * len(order) - 8
    for power in (-5, -3, -2, -1, 0):
        label = f"{10.0**power:.5f}".rstrip("0").rstrip(".")
        figure.text(place(power), y + 14, label, "muted", "middle", 13)
    figure.line(235, y, 440, y)
    return figure.svg()


def _short(name: str) -> str:
    known = {"colour-count-reader": "count", "colour-reader": "colour"}
    return known.get(
        name, name.removesuffix("-tower").removesuffix("-floor").removesuffix("-prior")
    )


def rank_ranges() -> str:
    """In how many joint draws each metric takes each rank."""
    shown = board("demo_gecko")
    found = ordered(shown)
    places = draw_ranks(-shown.resamples).low
    size = len(shown.metrics)
    figure = Drawing(
        "Share of 1,000 joint draws of demo_gecko in which each metric takes each rank; the "
        "underlined ranks are its rank range.",
        270,
    )
    for rank in range(1, size + 1):
        figure.text(180 + 54 * (rank - 0.5), 32, f"rank {rank}", "muted", "middle", 13)
    for row, name in enumerate(shown.metrics):
        y = 44 + 40 * row
        figure.text(170, y + 23, name, "", "end", 13)
        span = found.ranges[row]
        for rank in range(1, size + 1):
            share = float((places[row] == rank).mean())
            x = 180 + 54 * (rank - 1)
            figure.line(x + 2, y + 33, x + 50, y + 33, "faint")
            figure.rectangle(x + 6, y + 32 - 28 * share, 40, 28 * share, "one")
            if share >= 0.01:
                inside = share > 0.75
                figure.text(
                    x + 26, y + (2 if inside else 28 - 28 * share), f"{share:.0%}", "muted",
                    "middle", 12,
                )  # fmt: skip
        assert span is not None
        left, right = 180 + 54 * (span.low - 1), 180 + 54 * span.high
        figure.line(left + 2, y + 36, right - 2, y + 36, "two", 3)
    figure.text(240, 262, "orange: rank range, by the tests", "two", "middle", 13)
    return figure.svg()


def tiers() -> str:
    """Values, intervals, rank ranges and tiers of one board."""
    shown = board("demo_gecko")
    found = ordered(shown)
    figure = Drawing(
        "The board of demo_gecko: values with intervals, rank ranges, and tiers of metrics that "
        "the tests do not tell apart.",
        290,
    )
    place = scale(-0.2, 0.6, 165, 380)
    figure.line(place(0.0), 40, place(0.0), 225, "line")
    figure.text(place(0.0), 32, "chance", "muted", "middle", 13)
    figure.text(440, 32, "rank", "muted", "middle", 13)
    last = None
    for row, name in enumerate(shown.metrics):
        y = 62 + 36 * row
        tier, span = found.tiers[row], found.ranges[row]
        if tier != last and last is not None:
            figure.line(10, y - 18, 470, y - 18, "three", 2)
        if tier != last:
            figure.text(12, y - 4, f"tier {tier}", "three strong", size=12)
        last = tier
        figure.text(157, y + 10, name, "", "end", 13)
        figure.interval(place, y + 5, shown.low[row], shown.values[row], shown.high[row], "one")
        assert span is not None
        said = str(span.low) if span.low == span.high else f"{span.low}–{span.high}"
        figure.text(440, y + 10, said, "", "middle")
    figure.axis(place, 240, (-0.2, 0.0, 0.2, 0.4, 0.6), "Spearman’s ρ", ".1f")
    return figure.svg()


def index() -> str:
    """Headlines of four benchmarks on one scale, and their mean."""
    boards = [board(name) for name in DEMO]
    names = boards[0].metrics
    places = {
        name: [_rescaled(one, float(one.values[one.metrics.index(name)])) for one in boards]
        for name in names
    }
    order = sorted(names, key=lambda name: -float(np.mean(places[name])))
    figure = Drawing(
        "The index of the bundled scorers: the headline of each demo benchmark rescaled so that 0 "
        "is chance and 1 the ceiling, and the mean with equal weights.",
        300,
    )
    place = scale(-1.0, 1.0, 165, 455)
    for value in (0.0, 1.0):
        figure.line(place(value), 40, place(value), 240)
    figure.text(place(0.0), 32, "chance", "muted", "middle", 13)
    figure.text(place(1.0), 32, "ceiling", "muted", "end", 13)
    for row, name in enumerate(order):
        y = 62 + 37 * row
        figure.text(157, y + 5, name, "", "end", 13)
        figure.line(place(-1.0), y, place(1.0), y, "faint")
        for value in places[name]:
            figure.dot(place(value), y, "grey", 4)
        mean = float(np.mean(places[name]))
        figure.line(place(mean), y - 11, place(mean), y + 11, "one", 4)
        figure.text(place(mean), y - 14, f"{mean:.2f}", "one", "middle", 12)
    figure.axis(place, 246, (-1.0, -0.5, 0.0, 0.5, 1.0), form=".1f")
    figure.text(240, 290, "grey: one benchmark each; blue: the index", "muted", "middle", 13)
    return figure.svg()


def _rescaled(shown: Board, value: float) -> float:
    known = shown.benchmark.card.headline_scale
    assert known is not None
    return (value - known.chance) / (known.ceiling - known.chance)
