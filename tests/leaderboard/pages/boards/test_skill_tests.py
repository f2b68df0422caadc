"""Bold figures of the heatmap: the best of a skill, and what the tests do not tell apart from it."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from benchmarks.statistics.sign_flips import pair_tests
from leaderboard.pages.boards.heatmap import heatmap
from leaderboard.pages.reading import View, view_of
from leaderboard.ranking.orders import Orders
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.synthetic import cards, fill, snapshot


@pytest.fixture(scope="module")
def view() -> View:
    return view_of(snapshot(), cards(), Orders(fill(memory_store())))


def test_bold_is_the_best_of_a_column_and_what_the_corrected_tests_leave_beside_it(
    view: View,
) -> None:
    board = view.boards["ratings"]
    columns = [board.cells(board.card.headline, None)] + [
        board.cells(next(s for s in board.selectors(skill) if s.measure == "srcc"), skill)
        for skill in board.skills()
    ]
    found = view.skill_tests.columns(view.orders, board.card, columns)
    seed = snapshot().boards["ratings"].seed
    p_values: list[float] = []
    keys: list[tuple[int, set[str]]] = []
    for place, cells in enumerate(columns):
        able = [c for c in cells if c.rank is not None]
        shares = view.orders.slice(board.card, cells).draws.contributions
        row = {c.entry_id: i for i, c in enumerate(cells)}
        if not able:
            assert found[place].best is None
            continue
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


def test_the_heatmap_names_its_correction_and_marks_columns_without_tests(view: View) -> None:
    board = view.boards["ratings"]
    html = heatmap(board, board.card.headline, view)
    assert re.search(r"Benjamini and Hochberg's correction over all pairs .* \(\d+ tests\)", html)
    assert html.count('<span class="as-note">not tested</span>') == 1  # six clusters only
    assert "1 column marked “not tested”" in html


def test_a_filter_names_another_best_only_where_it_takes_the_best_away(view: View) -> None:
    board = view.boards["ratings"]
    cells = board.cells(board.card.headline, None)
    everybody = view.skill_tests.columns(view.orders, board.card, [cells])[0]
    assert everybody.best is not None
    kept = {c.entry_id for c in cells} - {next(iter(everybody.corrected))}
    fewer = view.skill_tests.columns(view.orders, board.card, [cells], kept)[0]
    assert fewer.best == everybody.best
    assert set(fewer.corrected) == set(everybody.corrected) & kept
    without = view.skill_tests.columns(
        view.orders, board.card, [cells], {c.entry_id for c in cells} - {everybody.best}
    )[0]
    assert without.best not in {None, everybody.best}


def test_where_the_best_has_no_contributions_nobody_else_is_called_best() -> None:
    store = fill(memory_store())
    path = "results/made-up-0000/ratings.influence.parquet"
    for repository in (store.public, store.private):
        if path in repository.list("results"):
            repository.commit({path: None}, parent=repository.head(), message="drop")
    bare = view_of(snapshot(), cards(), Orders(store))
    board = bare.boards["ratings"]
    cells = board.cells(board.card.headline, None)
    assert cells[0].entry_id.startswith("made-up-0000")
    column = bare.skill_tests.columns(bare.orders, board.card, [cells])[0]
    assert column.best is None
    assert not column.corrected


def test_a_column_without_anybody_has_no_tests(view: View) -> None:
    board = view.boards["ratings"]
    cells = board.cells(board.card.headline, None)
    column = view.skill_tests.columns(view.orders, board.card, [cells], frozenset())[0]
    assert (column.best, dict(column.corrected)) == (None, {})
