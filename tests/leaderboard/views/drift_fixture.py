"""A made-up store of metrics whose validity by generator is planted."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.generators import find_generator
from benchmarks.schema import BY_GENERATOR, Card, MeasureInfo, Scale, Selector
from leaderboard.publication.reader import View
from leaderboard.publication.results import Published
from leaderboard.store.interface import Store
from tests.kit.boards import (
    NASTY_NAME,
    card_of,
    measured,
    publish,
    run_of,
    submission,
    view_over,
)
from tests.kit.store import memory_store

SLOPES = {"Falls": -0.12, "Level": 0.0, "Rises": 0.12}
"""Metric to the change of its correlation a year."""
MANY = ("sd_v2-1", "SDXL", "DALLE3", "LWM", "Kolors", "omnigen", "NOVA")
GENERATORS: Mapping[str, tuple[str, ...]] = {
    "many": (*MANY, "a model of nobody", NASTY_NAME),
    "others": ("sd1.5", "DeepFloyd_I_XL_v1", "SDXL_Turbo", "Midjourney_6", "DALLE_3"),
    "few": ("SDXL", "DALLE3"),
    "demo": ("demo-alpha", "demo-beta", "demo-gamma", "demo-delta"),
}
"""Benchmark to the models that made its images."""
UNDEFINED = ("many", "LWM")
IDS = {name: f"made-up-{place:04d}/{name}" for place, name in enumerate(SLOPES)}


def cards(scale: bool = True) -> dict[str, Card]:
    """Three benchmarks and one with simulated ratings."""
    chance = 0.0 if scale else None
    info = MeasureInfo(title="Spearman ρ", meaning="How far.", low=-1.0, high=1.0, chance=chance)
    ceiling = Scale(chance=0.0, ceiling=0.8, ceiling_is="People.", source="A table")
    return {
        name: card_of(
            name, name.capitalize(), {"srcc": info}, Selector(measure="srcc", variant="assay"),
            simulated=name == "demo", headline_scale=ceiling if scale else None,
        )
        for name in GENERATORS
    }  # fmt: skip


def runs() -> list[Published]:
    """Every metric on every benchmark."""
    rng, found = np.random.default_rng(4), []
    for place, (name, slope) in enumerate(SLOPES.items()):
        own = submission(place, name, tuple(GENERATORS), same_content_as=())
        for board, generators in GENERATORS.items():
            whole = Selector(measure="srcc", variant="assay")
            values = [measured(own, board, whole, 0.5, rng)]
            for at, generator in enumerate(generators):
                known = find_generator(generator)
                year = known.year if known else 2024.0
                values.append(
                    measured(
                        own, board,
                        Selector(measure=BY_GENERATOR, variant="assay", facet=generator),
                        0.5 + slope * (year - 2023.5) + 0.01 * (-1) ** at, rng, spread=0.02,
                        defined=(board, generator) != UNDEFINED,
                    )
                )  # fmt: skip
            found.append(run_of(own, board, values))
    return found


def filled() -> Store:
    """Everything, published."""
    return publish(memory_store(), runs(), cards())


def view(boards: tuple[str, ...] = tuple(GENERATORS), *, scale: bool = True) -> View:
    """What pages see of some of the benchmarks."""
    kept = [one for one in runs() if one.result.benchmark in boards]
    shown = {name: card for name, card in cards(scale).items() if name in boards}
    return view_over(publish(memory_store(), kept, shown), shown, kept)
