"""Tiers of the index where they are shown: with what they mean, or why there are none."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import numpy as np
import pytest

from leaderboard.pages.index.base import IndexBase, index_base
from leaderboard.pages.index.csv import INDEX, index_csv, index_table
from leaderboard.pages.index.marks import Strips
from leaderboard.pages.index.query import IndexQuery, resolve_index
from leaderboard.pages.index.view import index_view
from leaderboard.pages.overview.index_first import index_first
from leaderboard.pages.overview.still import still_page
from leaderboard.pages.reading import View
from leaderboard.publication.boards import Board, Snapshot
from leaderboard.ranking.draws import Draws
from leaderboard.ranking.orders import Orders
from leaderboard.ranking.slices import Slice
from tests.leaderboard.pages.index.index_fixture import NOW, index_view_of


@pytest.fixture(scope="module")
def view() -> View:
    return index_view_of()


@pytest.fixture(scope="module")
def base(view: View) -> IndexBase:
    return index_base(view)


@pytest.fixture(scope="module")
def untested(view: View) -> IndexBase:
    """The same store without the contributions that metrics are tested with."""

    class WithoutContributions(Orders):
        def slice(self, card, cells):  # type: ignore[no-untyped-def]
            found = view.orders.slice(card, cells)
            n = len(found.cells)
            return Slice(found.cells, Draws(found.draws.resamples, np.full((n, 0), np.nan)))

    orders = WithoutContributions.__new__(WithoutContributions)
    return index_base(View(view.entries, view.boards, orders))


def shown(base: IndexBase, weights: str = "") -> str:
    choice = resolve_index(IndexQuery(weights), base.boards, base.left_out)
    return index_view(base, Strips.of(base), choice)


def tiers_in(html: str) -> list[str]:
    return re.findall(r'<td class="as-i-tier">(?:<span[^>]*>)?([^<]+)<', html)


def test_every_ranked_row_has_its_tier_beside_its_rank_range(base: IndexBase) -> None:
    found = [one.standing for one in base.standings({n: b.weight for n, b in base.boards.items()})]
    expected = [str(one.tier) for one in found if one.rank is not None]
    assert expected[0] == "1" and len(set(expected)) > 2
    assert tiers_in(shown(base)) == expected
    assert "Holm’s correction over the 28 pairs" in shown(base)


def test_the_first_page_shows_tiers_and_says_what_they_mean(base: IndexBase) -> None:
    html = index_first(base)
    assert tiers_in(html)[0] == "1"
    assert "Within a <b>tier</b> no two metrics differ significantly" in html


def test_without_contributions_both_pages_say_why_there_are_none(untested: IndexBase) -> None:
    for html in (shown(untested), index_first(untested)):
        assert "<b>No tiers:</b>" in html
        assert set(tiers_in(html)) == {"—"}


def test_other_weights_make_other_tiers(base: IndexBase) -> None:
    assert "on the 1 benchmark" in shown(
        base, "graphs:1,ratings:0,errors:0,genai_1600:0,accuracy:0"
    )
    one = base.standings({name: float(name == "graphs") for name in base.boards})
    whole = base.standings(dict.fromkeys(base.boards, 1.0))
    assert [s.standing.tier for s in one] != [s.standing.tier for s in whole]


def test_the_data_hold_tiers_of_the_index_and_of_each_board(view: View, base: IndexBase) -> None:
    choice = resolve_index(IndexQuery(), base.boards, base.left_out)
    rows = list(csv.DictReader(io.StringIO(index_csv(base, choice, view.entries))))
    whole = [row for row in rows if row["benchmark"] == INDEX]
    found = {one.who.metric: one.standing.tier for one in base.standings(choice.weights)}
    named = [row for row in whole if row["metric"] in found]
    assert len(named) == len(whole) - 1  # One name is not written as it was given.
    assert [row["tier"] for row in named] == [str(found[row["metric"]] or "") for row in named]
    graphs = next(row for row in rows if row["benchmark"] == "graphs")
    cell = next(
        c for who, c in base.boards["graphs"].cells.items() if who.metric == graphs["metric"]
    )
    assert graphs["tier"] == str(cell.tier)
    column = next(c for c in index_table(base, choice, view.entries).columns if c.name == "tier")
    assert "Empty: not tested" in column.meaning


def snapshot_of(view: View) -> Snapshot:
    boards = {
        name: Board(one.card, () if one.empty else one.cells(one.card.headline, None))
        for name, one in view.boards.items()
    }
    return Snapshot(built_at=NOW, entries=view.entries, boards=boards)


def test_the_still_page_begins_with_the_index_and_says_what_it_could_not_read(
    view: View, base: IndexBase
) -> None:
    snapshot = snapshot_of(view)
    plain, drawn = still_page(snapshot).decode(), still_page(snapshot, base).decode()
    for page in (plain, drawn):
        assert page.index('id="index"') < page.index("Benchmarks by their headline")
    assert "Without intervals, rank ranges and tiers" in plain
    assert "Without intervals" not in drawn and "<b>Tiers:</b>" in drawn
    best = base.standings({n: b.weight for n, b in base.boards.items()})[0]
    value = f"{best.standing.index.value:.3f}"
    for page in (plain, drawn):
        row = (
            page.partition('<section id="index">')[2].partition("<tbody>")[2].partition("</tr>")[0]
        )
        assert "VQAScore" in row and value in row


def test_a_store_without_a_scale_has_no_index_on_the_still_page(view: View) -> None:
    unscaled = snapshot_of(index_view_of({"a": ("unscaled",), "b": ("unscaled",)}))
    assert 'id="index"' not in still_page(unscaled).decode()
    assert 'id="index"' not in still_page(replace(snapshot_of(view), boards={})).decode()
