"""Figure of a choice of prompts: shares of categories in a pool, and in what was chosen of it."""

from __future__ import annotations

import numpy as np

from evaluator.drawing import Drawing, scale
from evaluator.prompts.classification import DIMENSIONS, read_dimensions
from evaluator.prompts.selection import Dimension, select

POOL, CHOSEN, SEED = 10_000, 500, 40


def balanced() -> str:
    """Shares before and after, in the three dimensions of EvalMuse-40K and clusters."""
    pool = simulated_pool()
    found = select(pool, CHOSEN, SEED, 60.0)
    rows = sum(len(one.categories) for one in pool)
    figure = Drawing(
        f"Shares of {rows} categories in a simulated pool of {POOL:,} prompts, which are steep, and "
        f"in the {CHOSEN} chosen of it, which are even; labels off their targets: "
        f"{found.balance.l1:.0f}, against {found.random.l1:.0f} at random.",
        70 + 17 * rows + 30 * len(pool),
    )
    figure.rectangle(16, 17, 10, 10, "grey")
    figure.text(32, 26, f"pool of {POOL:,} prompts", "strong")
    figure.rectangle(222, 17, 10, 10, "one")
    figure.text(238, 26, f"{CHOSEN} chosen", "one strong")
    figure.text(
        16, 46, f"off target: {found.balance.l1:.0f} labels; greedy {found.greedy.l1:.0f}, "
        f"at random {found.random.l1:.0f}", "muted", size=13,
    )  # fmt: skip
    y = 66.0
    for one in pool:
        y += 24
        figure.text(16, y - 4, one.name, "strong", size=13)
        shares = one.labels.mean(axis=0), found.counts[one.name] / CHOSEN
        wide = scale(0.0, float(np.max(shares)), 0.0, 270.0)
        for place, category in enumerate(one.categories):
            figure.text(176, y + 11, category, "", "end", 12)
            figure.rectangle(182, y + 1, max(wide(float(shares[0][place])), 1.0), 6, "grey")
            figure.rectangle(182, y + 8, max(wide(float(shares[1][place])), 1.0), 6, "one")
            y += 17
        y += 6
    return figure.svg()


def simulated_pool() -> tuple[Dimension, ...]:
    """Labels drawn independently, the k-th category of a dimension in a share of 1/k of the first."""
    draw = np.random.default_rng(SEED)
    found = []
    for name, categories in (
        *((one.name, one.categories) for one in read_dimensions(DIMENSIONS)),
        ("cluster", tuple("1234567")),
    ):
        steep = 1.0 / np.arange(1, len(categories) + 1)
        if name == "cluster":  # each prompt is in one
            drawn = draw.choice(len(categories), POOL, p=steep / steep.sum())
            labels = np.eye(len(categories), dtype=bool)[drawn]
        else:
            labels = draw.random((POOL, len(categories))) < 0.6 * steep
        found.append(Dimension(name, tuple(categories), labels))
    return tuple(found)
