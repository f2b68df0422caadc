"""Three and four metrics side by side: each two as the page of two shows them."""

from __future__ import annotations

import html as escaping
import re
from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pytest

from benchmarks.schema import Card
from benchmarks.statistics.correlation import kendall
from leaderboard.pages.boards.query import BoardQuery
from leaderboard.pages.compare.agreement import MOST_CLUSTERS, Behind, agreement_view
from leaderboard.pages.compare.clusters import ClusterReader
from leaderboard.pages.compare.pair_scores import PairScoreReader
from leaderboard.pages.compare.query import CompareQuery, Opponents, opponents
from leaderboard.pages.compare.rows import shown
from leaderboard.pages.compare.several import several
from leaderboard.pages.compare.view import compare_view
from leaderboard.pages.items.reading import ItemReader
from leaderboard.pages.reading import View, view_of
from leaderboard.ranking.orders import Orders
from leaderboard.store.interface import Store
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.synthetic import NASTY, cards, fill, snapshot


@pytest.fixture(scope="module")
def store() -> Store:
    return fill(memory_store())


@pytest.fixture(scope="module")
def view(store: Store) -> View:
    return view_of(snapshot(), cards(), Orders(store), "one")


@pytest.fixture(scope="module")
def behind(store: Store) -> Behind:
    return behind_of(store)


def behind_of(store: Store, here: Mapping[str, Card] | None = None) -> Behind:
    public = store.public
    return Behind(
        ClusterReader(public), ItemReader(public), PairScoreReader(public),
        cards() if here is None else here, dict,
    )  # fmt: skip


def chosen(view: View, *metrics: str, board: str = "ratings", skill: str = "") -> Opponents:
    ids = [next(e for e, of in view.entries.items() if of.metric == name) for name in metrics]
    query = CompareQuery(BoardQuery(board, skill), ids[0], ids[1], tuple(ids[2:]))
    return opponents(query, view)


# The choice.


def test_a_link_holds_a_third_and_a_fourth_metric() -> None:
    query = CompareQuery.from_link("?benchmark=b&a=1/x&b=2/y&c=3/z&d=4/w")
    assert query.further == ("3/z", "4/w")
    assert CompareQuery.from_link(query.to_query()) == query
    # A gap closes: who comes fourth without a third is the third.
    assert CompareQuery.from_link("?d=4/w").to_query() == "?c=4%2Fw"


def test_a_metric_that_comes_again_counts_once_and_one_that_is_not_there_is_said(
    view: View,
) -> None:
    pair = chosen(view, "CLIPScore", "DSG", "CLIPScore", "DSG")
    assert pair.further == ()
    absent = opponents(CompareQuery(BoardQuery("ratings"), further=("nobody/x",)), view)
    assert absent.remarks == ("There is no metric with the id “nobody/x” here.",)


# Each two.


@pytest.mark.parametrize("skill", ["", "counting", "counting,colour"])
def test_each_two_of_four_are_compared_as_the_page_of_two_compares_them(
    view: View, skill: str
) -> None:
    names = ("CLIPScore", "VQAScore", "PickScore", "TIFA")
    pair = chosen(view, *names, skill=skill)
    found = several(pair.choice, pair.chosen, view)
    assert found.pairs == tuple(combinations(pair.chosen, 2))
    assert len(found.rows) == 6
    for (a, b), row in zip(found.pairs, found.rows, strict=True):
        assert row == shown(pair.choice, a, b, view).chosen


def test_the_page_shows_each_two_with_interval_corrected_p_and_dominance(view: View) -> None:
    html = compare_view(chosen(view, "CLIPScore", "VQAScore", "PickScore"), view)
    rows = html.split("Each two", 1)[1].split("<tr ")[2:]
    assert len(rows) == 3
    for row in rows:
        assert re.search(r'class="as-c-value"><b>[^<]+</b> <span class="as-ci">\[', row)
        assert re.search(r'data-label="p \(Holm\)"><span[^>]*>[<&\d.]', row)
        assert re.search(r"R \d\.\d\d and \d\.\d\d", row)
    assert "corrected by Holm over 45 pairs of the whole board" in html


def test_names_of_strangers_are_harmless_among_several(view: View, behind: Behind) -> None:
    pair = chosen(view, "CLIPScore", NASTY, "TIFA", board="graphs")
    pair = pair if len(pair.chosen) > 2 else chosen(view, "CLIPScore", NASTY, "HPSv2")
    html = compare_view(pair, view) + agreement_view(pair, view, behind)
    assert "<img" not in html
    assert "${" not in html
    assert "\u202e" not in html


# Agreement.


def test_the_heatmap_holds_kendalls_tau_over_the_clusters_of_each_two(
    view: View, behind: Behind
) -> None:
    pair = chosen(view, "CLIPScore", "VQAScore", board="graphs")
    pair = pair if len(pair.chosen) == 2 else chosen(view, "CLIPScore", "BLIP2-ITM", board="graphs")
    cells = {cell.entry_id: cell for cell in pair.choice.slices()[0]}
    card = pair.choice.board.card
    found = behind.clusters.values(card, [cells[e] for e in pair.options], "one")
    assert found is not None
    taus = found.taus()
    np.testing.assert_allclose(taus, taus.T)
    assert taus[0, 1] == kendall(found.values[:, 0], found.values[:, 1])
    html = agreement_view(pair, view, behind)
    assert f">{taus[0, 1]:.2f}</td>" in html
    assert "Agreement between metrics" in html


def test_metrics_that_share_only_some_clusters_are_compared_on_those() -> None:
    from leaderboard.pages.compare.clusters import ClusterValues

    values = np.array([[1.0, 2.0], [2.0, 3.0], [3.0, np.nan], [np.nan, 9.0], [4.0, 1.0]])
    found = ClusterValues(("a", "b"), ("p", "q", "r", "s", "t"), values)
    assert found.of("a", "b").clusters == ("p", "q", "t")
    assert found.taus()[0, 1] == kendall([1, 2, 4], [2, 3, 1])


def test_the_largest_disagreements_come_first_and_lead_to_the_items(
    view: View, behind: Behind
) -> None:
    pair = chosen(view, "CLIPScore", "BLIP2-ITM", board="graphs")
    html = agreement_view(pair, view, behind)
    part = html.split("Where they disagree", 1)[1]
    gaps = [
        abs(float(gap.replace("−", "-"))) for gap in re.findall(r"<td><b>([^<]+)</b></td>", part)
    ]
    assert len(gaps) == MOST_CLUSTERS
    assert gaps == sorted(gaps, reverse=True)
    assert part.count('class="as-ringed"') == MOST_CLUSTERS
    links = {escaping.unescape(link) for link in re.findall(r'href="(\./items[^"]*)"', part)}
    (whole,) = {link for link in links if "case=" not in link}
    assert "show=disagreements" in whole
    assert "&a=made-up-0000/CLIPScore&b=made-up-0001/BLIP2-ITM" in whole


def test_a_measure_without_values_of_single_clusters_says_so(view: View, behind: Behind) -> None:
    html = agreement_view(chosen(view, "CLIPScore", "VQAScore"), view, behind)
    assert "has no value for a single prompt pair" in html
    assert "no scores of pairs are published" in html
    assert "<table" not in html


def test_where_answers_are_not_public_nothing_is_read(view: View, behind: Behind) -> None:
    pair = chosen(view, "CLIPScore", "BLIP2-ITM", board="graphs")
    card = pair.choice.board.card.model_copy(update={"answers_public": False})
    assert behind.clusters.values(card, pair.choice.slices()[0], "one") is None
    entries = [view.entries[entry] for entry in pair.options]
    assert behind.scores.values(card, entries, {}) is None


def test_what_the_card_of_this_server_withholds_is_not_shown_either(
    view: View, store: Store
) -> None:
    pair = chosen(view, "CLIPScore", "BLIP2-ITM", board="graphs")
    here = {**cards(), "graphs": cards()["graphs"].model_copy(update={"answers_public": False})}
    html = agreement_view(pair, view, behind_of(store, here))
    assert "the answers of this benchmark are not" in html
    assert "<table" not in html and "<svg" not in html and "./items" not in html


def test_the_clusters_of_a_run_are_read_once_for_one_version(view: View) -> None:
    class Counting:
        def __init__(self, store: Store) -> None:
            self.public, self.read_paths = store.public, list[str]()

        def read(self, path: str) -> bytes:
            self.read_paths.append(path)
            return self.public.read(path)

    counting = Counting(fill(memory_store()))
    reader = ClusterReader(counting)  # type: ignore[arg-type]
    pair = chosen(view, "CLIPScore", "BLIP2-ITM", board="graphs")
    cells, card = pair.choice.slices()[0][:3], pair.choice.board.card
    first = reader.values(card, cells, "one")
    assert len(counting.read_paths) == 3
    again = reader.values(card, cells, "one")
    assert len(counting.read_paths) == 3
    assert first is not None
    assert again is not None
    np.testing.assert_array_equal(first.values, again.values)
    reader.values(card, cells, "two")
    assert len(counting.read_paths) == 6
