"""The first page: its order by the index, tiers in its cells, and who is significantly ahead."""

from __future__ import annotations

import re

import pytest

from leaderboard.pages.overview.leaders import tier_badge
from leaderboard.pages.overview.over_boards import standings
from leaderboard.pages.overview.overview_page import overview
from leaderboard.pages.overview.standings import leader_cards, matrix
from leaderboard.pages.reading import View
from leaderboard.ranking.cells import Cell
from tests.leaderboard.pages.index.index_fixture import NOW, index_view_of


@pytest.fixture(scope="module")
def view() -> View:
    return index_view_of().group()


def cell(tier: int | None, rank: int | None = 1) -> Cell:
    return Cell(
        entry_id="e", measure="srcc", variant=None, split=None, facet=None, skill=None, value=0.5,
        ci_low=None, ci_high=None, n_items=9, n_clusters=9, n_missing=0, note="", rank=rank,
        rank_low=rank, rank_high=rank, tier=tier,
    )  # fmt: skip


def row_of(html: str, metric: str) -> str:
    return next(row for row in html.split("<tr>") if f"<bdi>{metric}</bdi>" in row)


def test_metrics_with_every_benchmark_of_the_index_come_first_the_best_index_on_top(
    view: View,
) -> None:
    rows = [row for row in standings(view) if row.index is not None]
    whole = [row for row in rows if row.index is not None and len(row.index.boards) == 5]
    assert rows[: len(whole)] == whole
    values = [row.index.value for row in whole if row.index is not None]
    assert values == sorted(values, reverse=True)
    # A board outside the index moves nobody: VQAScore alone is on one.
    assert whole[0].entry.metric == "VQAScore"
    assert "unscaled" in whole[0].cells


def test_metrics_that_lack_benchmarks_stand_below_by_how_many_they_have(view: View) -> None:
    rows = standings(view)
    has = [len(row.index.boards) if row.index else 0 for row in rows]
    assert has == sorted(has, reverse=True)
    assert "only simulated" not in {row.entry.metric for row in rows}


def test_the_matrix_shows_the_index_and_says_where_it_is_not_over_everything(view: View) -> None:
    html = matrix(view)
    assert re.search(r'<td class="as-m-index"><b>0\.\d{3}</b></td>', row_of(html, "VQAScore"))
    assert "<small>4 of 5</small>" in row_of(html, "HPSv2")
    assert 'Ordered by the <a href="./index">index</a>' in html


def test_without_any_scale_there_is_no_index_column() -> None:
    html = matrix(index_view_of({"a": ("unscaled",), "b": ("unscaled",)}))
    assert "as-m-index" not in html
    assert "best mean place first" in html


def test_a_rank_range_has_its_tier_beside_it(view: View) -> None:
    html = row_of(matrix(view), "VQAScore")
    assert html.count('<span class="as-m-tier">T1</span>') == 7
    assert ", tier 1" in html


@pytest.mark.parametrize(
    ("tiers", "said"),
    [
        ((1, 2, 2), "tier 1 alone"),
        ((1, 1, 2), "tier 1 with 1 other<"),
        ((1, 1, 1, None), "tier 1 with 2 others"),
    ],
)
def test_a_card_says_whether_the_leader_is_significantly_ahead(
    tiers: tuple[int | None, ...], said: str
) -> None:
    assert said in tier_badge([cell(tier) for tier in tiers])


@pytest.mark.parametrize("tiers", [(1,), (None, None), (1, None)])
def test_where_nothing_was_tested_nothing_is_said(tiers: tuple[int | None, ...]) -> None:
    assert tier_badge([cell(tier) for tier in tiers]) == ""


def test_every_leader_with_tests_has_its_tier_on_the_card(view: View) -> None:
    cards = leader_cards(view).split("<article")[1:]
    assert [("tier 1" in card) for card in cards] == [True] * 6 + [False]


def test_the_whole_page_is_built_with_simulated_boards_apart() -> None:
    above, _, below = overview(index_view_of(), NOW).partition('id="try-it-yourself"')
    assert "All metrics, all boards" in above
    assert "Demo · simulated" not in above and "only simulated" not in above
    assert "Demo · simulated" in below and "Contrast pairs" not in below
