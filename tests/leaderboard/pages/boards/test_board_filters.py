"""Filters of a board: who is shown, and that everything said of them is about them alone."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from leaderboard.pages.boards.filters import KINDS, MOST_SEARCHED, Filters
from leaderboard.pages.boards.query import BoardQuery, Choice, resolve
from leaderboard.pages.boards.view import board_view, skills_placeholder, skills_view
from leaderboard.pages.reading import View, view_of
from leaderboard.pages.shown.markup import clean
from leaderboard.ranking.orders import Orders
from leaderboard.records import Kind
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.synthetic import NASTY, cards, fill, snapshot

HOSTILE = [NASTY, "\x00", "'; drop table", "%", "\\", "," * 5000, "a" * 100_000, "\u202e", "(.*"]


@pytest.fixture(scope="module")
def view() -> View:
    return view_of(snapshot(), cards(), Orders(fill(memory_store())))


def chosen(view: View, query: BoardQuery) -> Choice:
    return resolve(query, view.boards)


def shown(view: View, query: BoardQuery) -> str:
    return board_view(chosen(view, query), view)


def ranking_of(html: str) -> list[str]:
    ranking = html.split("Metric against metric", maxsplit=1)[0]
    return re.findall(r'class="as-name"[^>]*><bdi>(.*?)</bdi>', ranking)


# Who is kept.


def test_a_search_finds_any_of_its_terms_in_names_of_metrics_whatever_the_case(view: View) -> None:
    html = shown(view, BoardQuery("ratings", filters=Filters("clip, hps")))
    assert ranking_of(html) == ["CLIPScore", "HPSv2"]
    assert "<b>2 of 12 metrics</b> shown, ranked among themselves" in html


def test_a_search_looks_at_submitters_too(view: View) -> None:
    assert len(ranking_of(shown(view, BoardQuery("ratings", filters=Filters("a GROUP"))))) == 11


def test_entries_are_told_apart_by_whether_they_were_run_here(view: View) -> None:
    for kind in map(Kind, KINDS):
        html = shown(view, BoardQuery("ratings", filters=Filters(kind=kind.value)))
        kept = [e for e in view.entries.values() if e.kind is kind]
        assert len(ranking_of(html)) == len(kept)
    assert "not re-run" not in shown(view, BoardQuery("ratings", filters=Filters(kind="metric")))


def test_entries_trained_on_the_benchmark_can_be_left_out_there_and_stay_elsewhere(
    view: View,
) -> None:
    hidden = Filters(untrained=True)
    assert "PickScore" not in ranking_of(shown(view, BoardQuery("ratings", filters=hidden)))
    assert "PickScore" in ranking_of(shown(view, BoardQuery("graphs", filters=hidden)))


def test_a_filter_that_nobody_fits_says_so_and_leads_back(view: View) -> None:
    html = shown(view, BoardQuery("ratings", "counting", filters=Filters("zzz")))
    assert "No metric fits the filter" in html
    assert "None of 12 metrics" in html
    assert './boards?benchmark=ratings&amp;skill=counting&amp;measure=srcc~assay"' in html
    assert "<table" not in html


# Ranks are those of the selection.


def test_ranks_ranges_chances_and_tests_are_made_anew_inside_a_filter(view: View) -> None:
    html = shown(view, BoardQuery("ratings", filters=Filters("tifa,dsg,siglip")))
    assert re.findall(r'title="Rank (\d) of (\d)', html) == [("1", "3"), ("2", "3"), ("3", "3")]
    chances = [int(x) for x in re.findall(r'class="as-c-best">(?:&lt;)?(\d+) %', html)]
    assert sum(chances) == pytest.approx(100, abs=2)
    assert "over the 3 pairs shown" in html
    assert "Tier 1" in html


def test_a_filter_that_keeps_everybody_changes_no_rank(view: View) -> None:
    board = view.boards["ratings"]
    cells = [board.cells(board.card.headline, None)]
    everybody = view.orders.ranked(board.card, cells)
    kept = view.orders.ranked(board.card, cells, {cell.entry_id for cell in cells[0]})
    assert kept.cells == everybody.cells
    np.testing.assert_array_equal(kept.ordering.corrected, everybody.ordering.corrected)


def test_the_heatmap_has_the_rows_of_the_filter_and_tests_them_alone(view: View) -> None:
    choice = chosen(view, BoardQuery("ratings", filters=Filters("tifa,dsg,siglip")))
    html = skills_view(choice, view)
    assert html.count('<th scope="row"') == 3
    assert "in all columns (15 tests)" in html  # three pairs in each of five tested columns
    alone = skills_view(chosen(view, BoardQuery("ratings", filters=Filters("tifa"))), view)
    assert "A single metric is shown" in alone
    assert "as-best" not in alone


# Several skills.


def test_of_several_skills_the_mean_is_ranked(view: View) -> None:
    choice = chosen(view, BoardQuery("ratings", "counting,spatial"))
    html = board_view(choice, view)
    assert "mean of Counting and Spatial relations" in html
    assert "Unweighted mean over 2 skills" in html
    found = view.orders.ranked(choice.board.card, choice.slices())
    of = [{c.entry_id: c.value for c in cells} for cells in choice.slices()]
    for cell in found.cells:
        one, other = (values[cell.entry_id] for values in of)
        if one is None or other is None:
            assert cell.value is None
        else:
            assert cell.value == pytest.approx((one + other) / 2)


def test_a_skill_may_be_repeated_or_joined_and_unknown_ones_are_named_once(view: View) -> None:
    repeated = BoardQuery.from_params(QueryParams("benchmark=ratings&skill=counting&skill=colour"))
    joined = BoardQuery("ratings", "counting,colour,counting,")
    assert chosen(view, repeated).skills == chosen(view, joined).skills == ("counting", "colour")
    choice = chosen(view, BoardQuery("ratings", f"counting,{','.join('abcdefgh')}"))
    assert choice.skills == ("counting",)
    assert choice.remarks == ("No results by the skills “a”, “b”, “c”, … on Ratings.",)


def test_many_skills_are_counted_in_the_title_instead_of_named(view: View) -> None:
    choice = chosen(view, BoardQuery("ratings", "counting,spatial,text,colour,style"))
    assert choice.title == "mean of 5 skills"
    # One of them has too few clusters, and a mean is no better founded than its parts.
    assert "Too few items to order" in board_view(choice, view)


# Links.


@given(
    search=st.text(max_size=MOST_SEARCHED),
    kind=st.sampled_from(["", "metric", "scores"]),
    untrained=st.booleans(),
    skill=st.sampled_from(["", "counting", "counting,colour"]),
)
def test_a_link_restores_filters_and_skills(
    view: View, search: str, kind: str, untrained: bool, skill: str
) -> None:
    filters = Filters(clean(search).strip(), kind, untrained)
    choice = chosen(view, BoardQuery("ratings", skill, filters=filters))
    query = choice.query.to_query()
    assert BoardQuery.from_link(query) == choice.query
    assert BoardQuery.from_params(dict(parse_qsl(query[1:]))) == choice.query
    assert choice.filters == filters


def test_an_old_link_with_one_skill_still_works_also_with_a_sub_skill() -> None:
    query = BoardQuery.from_params({"benchmark": "b", "skill": "count:exact", "measure": "m~v"})
    assert query == BoardQuery("b", "count:exact", "m~v")
    assert query.to_query() == "?benchmark=b&skill=count:exact&measure=m~v"


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("name", ["benchmark", "skill", "measure", "search", "kind", "untrained"])
def test_whatever_a_link_holds_the_page_is_whole_and_harmless(
    view: View, name: str, value: str
) -> None:
    choice = chosen(view, BoardQuery.from_params({"benchmark": "ratings", name: value}))
    html = board_view(choice, view) + skills_placeholder(choice) + skills_view(choice, view)
    assert "<h1>Ratings</h1>" in html
    assert "<img" not in html
    assert "${" not in html
    assert "\u202e" not in html
    assert len(html) < 200_000
    assert len(choice.query.to_query()) < 2000


def test_a_kind_that_does_not_exist_is_said_and_shows_all(view: View) -> None:
    choice = chosen(view, BoardQuery("ratings", filters=Filters(kind="model")))
    assert choice.remarks == ("There is no kind of entry “model”; all kinds are shown.",)
    assert not choice.filters.active


# The second step.


def test_until_the_heatmap_is_made_something_stands_in_its_place(view: View) -> None:
    assert "Testing the metrics within each skill" in skills_placeholder(
        chosen(view, BoardQuery("ratings"))
    )
    for without in ("graphs", "unused"):
        choice = chosen(view, BoardQuery(without))
        assert skills_placeholder(choice) == skills_view(choice, view) == ""
