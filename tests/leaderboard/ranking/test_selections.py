"""A selection ranked from its own draws is the one ranked from everybody's."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pytest

from benchmarks.statistics.joint_tests import JointTests
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.draws import draws_files, read_draws
from leaderboard.ranking.orders import Orders
from leaderboard.ranking.slices import Ranked, Slice, mean_over_skills, ranked
from leaderboard.store.interface import Store
from tests.kit.store import memory_store
from tests.leaderboard.models.made_up_models import cell, metric_card

SKILLS = (None, "count", "color")
CARD = metric_card("toss", simulated=True)
N_DRAWS, N_BLOCKS = 60, 24


@dataclasses.dataclass(frozen=True)
class Made:
    """A board of random runs, ranked as it is published, and its store."""

    store: Store
    skills: tuple[tuple[Cell, ...], ...]

    def ranked(self, *runs: int, skill: int = 0, orders: Orders | None = None) -> Ranked:
        ids = {f"run-{run}/m" for run in runs} or None
        return (orders or Orders(self.store)).ranked(CARD, [self.skills[skill]], ids)


def board(seed: int, *, odd: bool = False) -> Made:
    """Random runs; the odd ones among them lack draws, have those of another plan, or are unfit."""
    rng = np.random.default_rng(seed)
    public = (store := memory_store()).public
    files: dict[str, bytes] = {}
    found: list[list[Cell]] = [[] for _ in SKILLS]
    for run in range(14):
        kind = run if odd else -1
        digits, n_draws = (1 if run < 6 else 6), (40 if kind == 1 else N_DRAWS)
        raw = rng.normal(0.02 * run, 0.3, (len(SKILLS), N_BLOCKS))
        shares = raw.round(digits) / N_BLOCKS
        values = shares.sum(axis=1) + (0.5 if kind == 2 else 0.0)
        draws = values[:, None] + rng.normal(0, 0.05, (len(SKILLS), n_draws))
        if kind != 3:
            files.update(draws_files(f"results/run-{run}/{CARD.name}", draws, shares))
        for row, skill in enumerate(SKILLS):
            value = None if kind == 4 else float(values[row])
            clusters = 3 if kind == 5 else 90
            one = cell(f"run-{run}/m", skill, value=value, ci_low=None, ci_high=None, row=row)
            found[row].append(one.model_copy(update={"n_clusters": clusters}))
    public.commit(files, parent=public.head(), message="draws")
    whole = [everybody(store, [cells]) for cells in found]
    return Made(store, tuple(one.cells for one in whole))


def everybody(store: Store, skills: Sequence[Sequence[Cell]]) -> Ranked:
    """All entries of a slice, from all draws, every pair tested now."""
    slices = []
    for cells in skills:
        draws = read_draws(store, CARD, cells)
        values = np.array([np.nan if c.value is None else c.value for c in cells])
        stale = np.abs(draws.contributions.sum(axis=1) - values) > 1e-3
        draws.contributions[stale], draws.resamples[stale] = np.nan, np.nan
        slices.append(Slice(tuple(cells), draws))
    return ranked(mean_over_skills(slices), CARD).best_first(CARD)


def selected(whole: Ranked, ids: Collection[str]) -> Ranked:
    """A part of a whole ranking, ranked and corrected anew."""
    kept = np.array([i for i, c in enumerate(whole.cells) if c.entry_id in ids], np.intp)
    one = Slice(tuple(whole.cells[i] for i in kept), whole.draws.of(kept))
    return ranked(one, CARD).best_first(CARD)


def assert_same(found: Ranked, expected: Ranked) -> None:
    """Down to the last bit."""
    one, other = found.ordering, expected.ordering
    assert (found.cells, one.ranges, one.tiers) == (expected.cells, other.ranges, other.tiers)
    arrays = [(getattr(one, name), getattr(other, name)) for name in ("corrected", "best_share")]
    draws, tests = (found.draws, expected.draws), (one.tests, other.tests)
    for both, names in (
        (draws, ["resamples", "contributions"]),
        (tests, [field.name for field in dataclasses.fields(JointTests)]),
    ):
        arrays += [(getattr(both[0], name), getattr(both[1], name)) for name in names]
    for a, b in arrays:
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("skills", [(0,), (1,), (1, 2)])
def test_selections_are_ranked_as_parts_of_the_whole(odd: bool, skills: tuple[int, ...]) -> None:
    for seed in range(3):
        made = board(seed, odd=odd)
        cells = [list(made.skills[i]) for i in skills]
        whole = everybody(made.store, cells)
        orders, rng = Orders(made.store), np.random.default_rng(seed)
        ids = sorted(cell.entry_id for cell in cells[0])
        for size in (1, 2, 7, 13, 14):
            some = set(rng.choice(ids, size, replace=False).tolist())
            assert_same(orders.ranked(CARD, cells, some), selected(whole, some))
        assert_same(orders.ranked(CARD, cells), whole)


def test_a_selection_of_nobody_is_empty() -> None:
    made = board(1)
    assert Orders(made.store).ranked(CARD, [made.skills[0]], set()).cells == ()


def test_a_selection_with_somebody_whose_draws_are_lost_asks_for_the_whole() -> None:
    made = board(2, odd=True)
    # Run 3 has no draws. With too few items it has no rank, so it is never the best either.
    cells = [
        c.model_copy(update={"n_clusters": 3}) if c.entry_id == "run-3/m" else c
        for c in made.skills[0]
    ]
    whole = everybody(made.store, [cells])
    ranks = {c.entry_id: c for c in whole.cells}
    published = [ranks[c.entry_id] for c in cells]
    some = {"run-3/m", "run-7/m", "run-9/m"}
    assert_same(Orders(made.store).ranked(CARD, [published], some), selected(whole, some))


def test_a_selection_reads_its_own_draws_and_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, read = board(1), list[str]()
    inner = type(made.store.public).read

    def watched(self: Any, path: str) -> bytes:
        read.append(path)
        return inner(self, path)

    monkeypatch.setattr(type(made.store.public), "read", watched)
    orders = Orders(made.store)
    assert orders.nbytes == 0
    made.ranked(1, 2, orders=orders)
    made.ranked(2, 3, orders=orders)
    runs = sorted(path.split("/")[1] for path in read if path.startswith("results/"))
    assert runs == ["run-1"] * 2 + ["run-2"] * 2 + ["run-3"] * 2
    whole = made.ranked(orders=orders)
    assert whole.ordering.tests is not None
    assert orders.nbytes > whole.draws.nbytes + whole.ordering.tests.nbytes
