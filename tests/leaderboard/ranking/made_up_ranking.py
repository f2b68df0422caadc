"""Rows of a board, and a ranking of made-up entries with their tests."""

from __future__ import annotations

import numpy as np

from leaderboard.ranking.cells import Cell
from leaderboard.ranking.draws import Draws
from leaderboard.ranking.slices import Ranked, Slice, ranked
from tests.kit.boards import METRICS, cards

CARD = cards()["ratings"]


def cell(name: str, rank: int | None = 1, tier: int | None = 1, **more: object) -> Cell:
    """A row with a value of 0.5, or with what is given."""
    given = {
        "entry_id": name, "measure": "srcc", "value": 0.5, "n_items": 9, "n_clusters": 9,
        "n_missing": 0, "note": "", "rank": rank, "rank_low": rank, "rank_high": rank,
        "tier": tier, **dict.fromkeys(("variant", "split", "facet", "skill", "ci_low", "ci_high")),
    }  # fmt: skip
    return Cell.model_validate({**given, **more})


def ranking_of(values: list[float], noise: float) -> Ranked:
    """A ranking of so many entries, whose differences have that noise over blocks."""
    rng = np.random.default_rng(5)
    shares = rng.normal(size=(len(values), 60)) * noise
    shares += (np.array(values) / 60 - shares.mean(axis=1))[:, None]
    draws = np.array(values)[:, None] + 0.02 * rng.normal(size=(len(values), 50))
    cells = tuple(
        cell(f"made-up-{i:04d}/{METRICS[i]}", None, None, value=value, variant="paper")
        for i, value in enumerate(values)
    )
    return ranked(Slice(cells, Draws(draws, shares)), CARD).best_first(CARD)
