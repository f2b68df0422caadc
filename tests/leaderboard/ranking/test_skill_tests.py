"""Tests between the metrics of each skill: corrected together, against the best, and remembered."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from benchmarks.statistics.sign_flips import pair_tests
from leaderboard.publication.reader import View, view_of
from leaderboard.ranking import skill_tests
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.orders import Orders
from leaderboard.ranking.skill_tests import SkillTests
from tests.kit import boards as synthetic
from tests.kit.boards import cards, fill, keep, snapshot
from tests.kit.store import memory_store

CARD = cards()["ratings"]


@pytest.fixture(scope="module")
def view() -> View:
    return synthetic.view()


def headline(view: View) -> tuple[Cell, ...]:
    return view.boards["ratings"].cells(CARD.headline, None)


def test_each_column_has_its_best_and_what_the_corrected_tests_leave_beside_it(view: View) -> None:
    board = view.boards["ratings"]
    columns = [headline(view)] + [
        board.cells(next(s for s in board.selectors(skill) if s.measure == "srcc"), skill)
        for skill in board.skills()
    ]
    found = view.skill_tests.columns(view.orders, CARD, columns)
    seed = snapshot().boards["ratings"].seed
    p_values: list[float] = []
    keys: list[tuple[int, set[str]]] = []
    for place, cells in enumerate(columns):
        able = [c for c in cells if c.rank is not None]
        if not able:
            assert found[place].best is None
            continue
        shares = view.orders.slice(CARD, cells).draws.contributions
        row = {c.entry_id: i for i, c in enumerate(cells)}
        best = max(able, key=lambda c: c.value or 0.0)
        assert found[place].best == best.entry_id
        pairs = list(combinations(able, 2))
        first, second = (
            np.array([row[c.entry_id] for c in side]) for side in zip(*pairs, strict=True)
        )
        p_values += pair_tests(shares, first, second, seed).p_value.tolist()
        keys += [
            (place, {c.entry_id for c in pair} - {best.entry_id} if best in pair else set())
            for pair in pairs
        ]
    corrected = false_discovery_control(p_values)
    for (place, others), p in zip(keys, corrected, strict=True):
        for entry_id in others:
            assert found[place].corrected[entry_id] == pytest.approx(p, abs=1e-12)
            assert found[place].as_good_as_best(entry_id) == (p >= 0.05)


def test_a_filter_names_another_best_only_where_it_takes_the_best_away(view: View) -> None:
    cells = headline(view)
    every = {c.entry_id for c in cells}

    def column(kept: set[str] | frozenset[str] | None = None) -> skill_tests.TestedColumn:
        return view.skill_tests.columns(view.orders, CARD, [cells], kept)[0]

    everybody = column()
    assert everybody.best is not None
    kept = every - {next(iter(everybody.corrected))}
    fewer = column(kept)
    assert fewer.best == everybody.best
    assert set(fewer.corrected) == set(everybody.corrected) & kept
    assert column(every - {everybody.best}).best not in {None, everybody.best}
    nobody = column(frozenset())
    assert (nobody.best, dict(nobody.corrected)) == (None, {})


def test_where_the_best_has_no_contributions_nobody_else_is_called_best() -> None:
    store = fill(memory_store())
    keep(store, {"results/made-up-0000/ratings.influence.parquet": None})
    bare = view_of(snapshot(), cards(), Orders(store))
    cells = headline(bare)
    assert cells[0].entry_id.startswith("made-up-0000")
    column = bare.skill_tests.columns(bare.orders, CARD, [cells])[0]
    assert (column.best, dict(column.corrected)) == (None, {})


# What is remembered.


@pytest.fixture(scope="module")
def large() -> View:
    return synthetic.view(24)


def columns_of(view: View) -> list[tuple[Cell, ...]]:
    board = view.boards["ratings"]
    skills = board.skills()[:3]
    return [board.cells(selector, skill) for skill in skills for selector in board.selectors(skill)]


def test_many_large_columns_are_remembered_within_bounds(
    large: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = columns_of(large)
    entries = len(columns[0])
    largest = 3 * 8 * entries**2
    monkeypatch.setattr(skill_tests, "_BYTES", largest)
    kept = SkillTests()
    assert len(columns) > 4 and entries > 15
    for column in columns:
        kept.columns(large.orders, CARD, [column])
        assert 0 < kept.nbytes <= largest
    free = SkillTests().columns(large.orders, CARD, columns)
    assert kept.columns(large.orders, CARD, columns) == free
    # One column larger than all that may be kept is tested all the same, and stays till the next.
    monkeypatch.setattr(skill_tests, "_BYTES", 10)
    one = SkillTests()
    for column in columns[:2]:
        (found,) = one.columns(large.orders, CARD, [column])
        assert 0 < one.nbytes <= largest and found.n_tests
    assert all(np.isfinite(list(found.corrected.values())))


def test_what_is_counted_is_what_is_held(large: View) -> None:
    kept, columns = SkillTests(), columns_of(large)
    kept.columns(large.orders, CARD, columns)
    matrices = sum(8 * len(column) ** 2 for column in columns)
    assert matrices <= kept.nbytes <= 2 * matrices
    before = kept.nbytes
    kept.columns(large.orders, CARD, columns, [columns[0][0].entry_id])
    assert kept.nbytes == before  # A filter needs no tests of its own.


def test_tests_that_another_visitor_made_meanwhile_are_not_made_again(
    view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, columns = SkillTests(), [headline(view)]
    made = kept.columns(view.orders, CARD, columns)
    known, asked = kept._kept.get, 0

    def late(key: object) -> object:
        nonlocal asked
        asked += 1
        return known(key) if asked > 1 else None

    monkeypatch.setattr(kept._kept, "get", late)
    monkeypatch.setattr(skill_tests, "pair_tests", None)
    assert kept.columns(view.orders, CARD, columns) == made and asked == 2
