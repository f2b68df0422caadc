"""A selection ranked from its own draws and known tests is the one ranked from everybody's."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from benchmarks.schema import Card, MeasureInfo, Selector
from benchmarks.statistics.resampling import seed_of
from benchmarks.statistics.sign_flips import flip_tests, pair_tests
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.draws import draws_files, read_draws
from leaderboard.ranking.orders import Orders
from leaderboard.ranking.pairs import Pairs, pairs_file, pairs_path
from leaderboard.ranking.slices import Ranked, Slice, mean_over_skills, ranked
from leaderboard.store.interface import Store
from leaderboard.store.memory import memory_store

SKILLS = (None, "colour", "count")
N_DRAWS, N_BLOCKS = 60, 24


@pytest.fixture
def card() -> Card:
    return Card(
        name="toss", title="Toss", family="toss", summary="Made up.", description="Made up.",
        revision="1", simulated=True, cluster="prompt", headline=Selector(measure="srcc"),
        measures={"srcc": MeasureInfo(title="ρ", meaning="Agreement.", chance=0.0)},
        skills={"colour": "Colour", "count": "Count"}, licence="", links={},
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Made:
    """A board of random runs, ranked as it is published, and its store."""

    store: Store
    skills: tuple[tuple[Cell, ...], ...]


def board(card: Card, seed: int, *, odd: bool, published: bool = True) -> Made:
    """Random runs; the odd ones among them lack draws, have those of another plan, or are unfit."""
    rng = np.random.default_rng(seed)
    store = memory_store()
    files: dict[str, bytes] = {}
    found: list[list[Cell]] = [[] for _ in SKILLS]
    for run in range(14):
        kind = run if odd else -1
        n_draws = 40 if kind == 1 else N_DRAWS
        shares = (
            rng.normal(0.02 * run, 0.3, (len(SKILLS), N_BLOCKS)).round(1 if run < 6 else 6)
            / N_BLOCKS
        )
        values = shares.sum(axis=1) + (0.5 if kind == 2 else 0.0)
        draws = values[:, None] + rng.normal(0, 0.05, (len(SKILLS), n_draws))
        if kind != 3:
            files.update(draws_files(f"results/run-{run}/{card.name}", draws, shares))
        for row, skill in enumerate(SKILLS):
            found[row].append(
                Cell(
                    entry_id=f"run-{run}/m", measure="srcc", variant=None, split=None, facet=None,
                    skill=skill, value=None if kind == 4 else float(values[row]), ci_low=None,
                    ci_high=None, n_items=90, n_clusters=3 if kind == 5 else 90, n_missing=0,
                    note="", row=row,
                )
            )  # fmt: skip
    store.public.commit(files, parent=store.public.head(), message="draws")
    whole = [everybody(store, card, [cells]) for cells in found]
    if published:
        head = whole[0]
        kept = Pairs(
            card.revision,
            tuple(c.entry_id for c in head.cells),
            head.ordering.tests or pytest.fail(),
        )
        store.public.commit(
            {pairs_path(card.name): pairs_file(card.name, kept)},
            parent=store.public.head(),
            message="pairs",
        )
    return Made(store, tuple(one.cells for one in whole))


def everybody(store: Store, card: Card, skills: list[list[Cell]]) -> Ranked:
    """All entries of a slice, from all draws, every pair tested now."""
    slices = []
    for cells in skills:
        draws = read_draws(store, card, cells)
        values = np.array([np.nan if c.value is None else c.value for c in cells])
        stale = np.abs(draws.contributions.sum(axis=1) - values) > 1e-3
        draws.contributions[stale], draws.resamples[stale] = np.nan, np.nan
        slices.append(Slice(tuple(cells), draws))
    one = mean_over_skills(slices)
    fit = np.array([cell.fit and cell.value is not None for cell in one.cells])
    shares = np.where(fit[:, None], one.draws.contributions, np.nan)
    tests = flip_tests(shares, seed_of(card.name, card.revision))
    return ranked(one, card, tests=tests).best_first(card)


def selected(whole: Ranked, card: Card, chosen: set[str]) -> Ranked:
    """A part of a whole ranking, ranked and corrected anew."""
    kept = np.array([i for i, c in enumerate(whole.cells) if c.entry_id in chosen], np.intp)
    one = Slice(tuple(whole.cells[i] for i in kept), whole.draws.of(kept))
    tests = whole.ordering.tests
    return ranked(one, card, tests=tests.of(kept) if tests else None).best_first(card)


def assert_same(found: Ranked, expected: Ranked) -> None:
    """Down to the last bit."""
    assert found.cells == expected.cells
    assert found.ordering.ranges == expected.ordering.ranges
    assert found.ordering.tiers == expected.ordering.tiers
    np.testing.assert_array_equal(found.ordering.corrected, expected.ordering.corrected)
    np.testing.assert_array_equal(found.ordering.p_best, expected.ordering.p_best)
    np.testing.assert_array_equal(found.draws.resamples, expected.draws.resamples)
    np.testing.assert_array_equal(found.draws.contributions, expected.draws.contributions)
    assert found.ordering.tests is not None and expected.ordering.tests is not None
    for field in dataclasses.fields(found.ordering.tests):
        one, other = (getattr(of.ordering.tests, field.name) for of in (found, expected))
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("skills", [(0,), (1,), (1, 2)])
def test_random_selections_are_ranked_as_parts_of_the_whole(
    card: Card, odd: bool, skills: tuple[int, ...]
) -> None:
    for seed in range(3):
        made = board(card, seed, odd=odd)
        cells = [list(made.skills[i]) for i in skills]
        whole = everybody(made.store, card, cells)
        orders, rng = Orders(made.store), np.random.default_rng(seed)
        ids = sorted(cell.entry_id for cell in cells[0])
        for size in (1, 2, 7, 13, 14):
            chosen = set(rng.choice(ids, size, replace=False).tolist())
            assert_same(orders.ranked(card, cells, chosen), selected(whole, card, chosen))
        assert_same(orders.ranked(card, cells), whole)


@pytest.mark.parametrize("published", [False, True])
def test_a_selection_of_nobody_is_empty(card: Card, published: bool) -> None:
    made = board(card, 1, odd=False, published=published)
    found = Orders(made.store).ranked(card, [made.skills[0]], set())
    assert found.cells == ()


def test_a_headline_with_published_tests_is_ranked_without_making_any(
    card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = board(card, 1, odd=False)
    tested: list[int] = []
    inner = pair_tests

    def counted(shares: Any, first: np.ndarray, *rest: Any, **more: Any) -> Any:
        tested.append(first.size)
        return inner(shares, first, *rest, **more)

    monkeypatch.setattr("leaderboard.ranking.pairs.pair_tests", counted)
    orders = Orders(made.store)
    orders.ranked(card, [made.skills[0]], {"run-1/m", "run-2/m", "run-3/m"})
    orders.ranked(card, [made.skills[0]])
    assert tested == [0, 0]
    orders.ranked(card, [made.skills[1]], {"run-1/m", "run-2/m", "run-3/m"})
    orders.ranked(card, [made.skills[1]], {"run-2/m", "run-3/m", "run-4/m"})
    assert tested[2:] == [3, 2], "a pair of a slice is tested once"


def test_a_selection_reads_the_draws_of_its_entries_alone_and_each_once(
    card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = board(card, 1, odd=False)
    read: list[str] = []
    inner = type(made.store.public).read

    def watched(self: object, path: str) -> bytes:
        read.append(path)
        return inner(self, path)  # type: ignore[arg-type]

    monkeypatch.setattr(type(made.store.public), "read", watched)
    orders = Orders(made.store)
    orders.ranked(card, [made.skills[0]], {"run-1/m", "run-2/m"})
    orders.ranked(card, [made.skills[0]], {"run-2/m", "run-3/m"})
    runs = sorted(path.split("/")[1] for path in read if path.startswith("results/"))
    assert runs == ["run-1"] * 2 + ["run-2"] * 2 + ["run-3"] * 2


def test_what_is_remembered_is_counted_with_its_tests(card: Card) -> None:
    made = board(card, 1, odd=False)
    orders = Orders(made.store)
    assert orders.nbytes == 0
    one = orders.ranked(card, [made.skills[0]])
    assert one.ordering.tests is not None
    assert orders.nbytes > one.draws.nbytes + 2 * one.ordering.tests.nbytes


def test_a_selection_with_somebody_whose_draws_are_lost_asks_for_the_whole(card: Card) -> None:
    made = board(card, 2, odd=True)
    # Run 3 has no draws. With too few items it has no rank, so no chance to be best either.
    cells = [
        c.model_copy(update={"n_clusters": 3}) if c.entry_id == "run-3/m" else c
        for c in made.skills[0]
    ]
    whole = everybody(made.store, card, [cells])
    ranks = {c.entry_id: c for c in whole.cells}
    published = [ranks[c.entry_id] for c in cells]
    chosen = {"run-3/m", "run-7/m", "run-9/m"}
    assert_same(Orders(made.store).ranked(card, [published], chosen), selected(whole, card, chosen))
