"""Compare: addresses, lists and verdicts; figures, their tests, and what stays unread."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pandas as pd
import pytest

from benchmarks.comparison import Compared, figures
from benchmarks.parquet import write_stored
from benchmarks.schema import ScoreTable
from benchmarks.statistics.correlation import kendall
from leaderboard.publication.reader import BoardIndex, View, view_of
from leaderboard.publication.snapshot import Board
from leaderboard.ranking.comparing import NO_CONTRIBUTIONS, TOO_FEW
from leaderboard.ranking.orders import Orders
from leaderboard.store.interface import Store
from leaderboard.views import comparison as pair_scores
from leaderboard.views.addresses import compare_address, items_address, params_of, query_string
from leaderboard.views.compare import (
    entry_options,
    moved_along,
    resolve_place,
    several_compared,
    skill_values,
    tab_links,
    two_compared,
    verdict_of,
)
from leaderboard.views.compare_query import VIEWS, CompareQuery
from leaderboard.views.comparison import (
    MOST_CLUSTERS,
    ClusterReader,
    ClusterValues,
    Opponents,
    PairScoreReader,
    agreement,
    compare_clusters,
    comparison_page,
    opponents,
    sampled,
)
from tests.kit.boards import METRICS, cards, keep, snapshot
from tests.kit.store import Counting, memory_store
from tests.leaderboard.views import example_fixture
from tests.leaderboard.views.example_fixture import (
    LACKS,
    NOISY,
    RIGHT,
    TURNED,
    behind_of,
    entry_id,
    filled,
    withheld,
)

FIRST, SECOND, THIRD, FOURTH = map(entry_id, range(4))
LAST, STRANGER, CONSTANT = map(entry_id, (9, 10, 11))


@pytest.fixture(scope="module")
def store() -> Store:
    return filled()


@pytest.fixture(scope="module")
def view(store: Store) -> View:
    return view_of(snapshot(), cards(), Orders(store), "one")


def asked(view: View, *metrics: str, board: str = "ratings", **more: Any) -> Opponents:
    sides: dict[str, Any] = dict(zip("abcd", metrics, strict=False))
    return opponents(CompareQuery(benchmark=board, **sides, **more), view)


def with_cells(view: View, store: Store, change: Any) -> View:
    """The view with other cells on the board of ratings."""
    board = snapshot().boards["ratings"]
    cells = tuple(cell for cell in map(change, board.cells) if cell is not None)
    index = BoardIndex(Board(card=board.card, cells=cells))
    return View(view.entries, {"ratings": index}, Orders(store))


# Two: the numbers are the board's.


@pytest.mark.parametrize("skill", ["", "counting", "counting,colour"])
def test_each_two_have_the_test_of_the_board(view: View, skill: str) -> None:
    pair = asked(view, FIRST, THIRD, FOURTH, entry_id(8), skill=skill)
    ranked = view.orders.ranked(pair.choice.board.card, pair.choice.slices())
    at = {cell.entry_id: place for place, cell in enumerate(ranked.cells)}
    corrected = ranked.ordering.corrected
    found = several_compared(pair, view)
    assert found["pairs"] == tuple(combinations(pair.chosen, 2)) and len(found["rows"]) == 6
    assert found["n_significant"] == sum(bool(row.better) for row in found["table"].rows)
    for (a, b), row in zip(found["pairs"], found["rows"], strict=True):
        assert row == comparison_page(pair.choice, a, b, view).chosen
        assert row.p_corrected == corrected[at[a], at[b]]
        values = [ranked.cells[at[entry]].value or 0.0 for entry in (a, b)]
        assert row.difference == values[0] - values[1]


def test_skills_are_corrected_over_the_skills_and_measures_over_the_measures(view: View) -> None:
    pair = asked(view, FIRST, SECOND)
    rows = comparison_page(pair.choice, FIRST, SECOND, view)
    assert [row.skill for row in rows.skills] == list(pair.choice.board.card.skills)
    assert {row.measure for row in rows.measures} == {"plcc", "accuracy"}
    assert {row.correction for row in (*rows.skills, *rows.measures)} == {"benjamini_hochberg"}
    assert rows.chosen.correction == "joint"
    assert all(row.p_corrected >= row.p_value for row in rows.measures)
    style = rows.skills[-1]
    assert (style.skill, style.untested) == ("style", TOO_FEW) and math.isnan(style.p_value)


def test_rows_of_a_table_are_the_comparisons_in_words_and_on_one_axis(view: View) -> None:
    pair = asked(view, FIRST, LAST)
    rows, found = comparison_page(pair.choice, FIRST, LAST, view), two_compared(pair, view)
    skills = found["by_skill"].rows
    first, of_first = skills[0], rows.skills[0]
    assert (first.part, first.what) == ("skill", "Counting") and len(skills) == len(rows.skills)
    value, low, high = figures(of_first.difference, of_first.ci_low, of_first.ci_high)
    assert (first.difference, first.interval) == (value, f"[{low}, {high}]")
    assert first.better == "a" and first.tested
    assert found["by_skill"].low <= 0.0 <= found["by_skill"].high
    assert [row.drawn[0] for row in found["by_measure"].rows] == [
        row.effect for row in rows.measures
    ]
    assert found["by_skill"].n_corrected == sum(math.isfinite(row.p_value) for row in rows.skills)
    tested = {row.what for row in skills if row.better == "a"}
    assert set(found["better_on"][0]) == tested and tested
    turned = two_compared(asked(view, LAST, FIRST), view)
    assert turned["by_skill"].rows[0].better == "b"
    assert turned["by_skill"].rows[0].drawn[0] == -first.drawn[0]


def test_where_less_is_better_a_mark_stands_in_favour_of_the_smaller_value(view: View) -> None:
    pair = asked(view, FIRST, FOURTH, board="tiny")
    row = comparison_page(pair.choice, FIRST, FOURTH, view).chosen
    assert row.difference > 0 and row.advantage[0] == -row.difference
    (shown,) = several_compared(pair, view)["table"].rows
    assert (shown.ahead, shown.lower_is_better) == ("b", True)
    assert shown.drawn[0] == row.advantage[0] < 0


def test_missing_scores_leave_no_count_of_clusters(view: View, store: Store) -> None:
    lacking = with_cells(
        view, store, lambda c: c.model_copy(update={"n_missing": 1}) if c.entry_id == SECOND else c
    )
    found, whole = (two_compared(asked(one, FIRST, SECOND), one) for one in (lacking, view))
    assert found["counted"] is None and whole["counted"] is not None
    assert found["chosen"].p_value == whole["chosen"].p_value
    assert "1 score of BLIP2-ITM" in found["uncounted"]
    assert found["by_measure"].rows[0].tally is None and found["by_measure"].rows[0].notes


def test_without_published_draws_there_are_values_and_no_test() -> None:
    bare = view_of(snapshot(), cards(), Orders(memory_store()))
    found = two_compared(asked(bare, FIRST, SECOND), bare)
    assert found["unpublished"] and found["chosen"].value_a == pytest.approx(0.72, abs=1e-3)
    assert found["evidence"] == NO_CONTRIBUTIONS
    (row, *_) = found["by_measure"].rows
    assert (row.p, row.interval, row.better, row.tested) == ("", "", "", False)


def test_values_by_skill_are_those_of_the_board(view: View) -> None:
    pair = asked(view, FIRST, SECOND, THIRD)
    found = {one.skill: one for one in skill_values(pair)}
    card = pair.choice.board.card
    assert list(found) == list(card.skills)
    for cell, entry in zip(found["counting"].cells, pair.chosen, strict=True):
        assert cell is not None
        assert (cell.entry_id, cell.skill) == (entry, "counting")
        assert found["counting"].n_items >= cell.n_items
    assert skill_values(asked(view, FIRST, SECOND, board="graphs")) == ()


# Links and states.


def test_a_link_restores_the_state_it_was_made_from(view: View) -> None:
    pair = asked(view, SECOND, STRANGER, measure="accuracy~assay", skill="counting")
    query = pair.query.to_data().removeprefix("./v1/compare")
    again = opponents(CompareQuery.from_params(dict(parse_qsl(query[1:]))), view)
    assert (again.a, again.b, again.remarks) == (SECOND, STRANGER, ())
    assert again.query == CompareQuery.from_params(params_of(query)) == pair.query
    many = CompareQuery.from_params(params_of("?benchmark=b&a=1/x&b=2/y&c=3/z&d=4/w"))
    assert many.named == ("3/z", "4/w")
    assert CompareQuery.from_params(params_of(many.to_data())) == many
    # A gap closes: who comes fourth without a third is the third.
    gap = opponents(CompareQuery(benchmark="ratings", a=FIRST, b=SECOND, d=FOURTH), view).query
    assert (gap.c, gap.d) == (FOURTH, "")


def test_what_a_link_leaves_open_is_filled_in(view: View) -> None:
    pair = asked(view, board="")
    assert (pair.a, pair.b) == pair.options[:2] and pair.choice.board.card.name == "ratings"
    assert asked(view, "", FIRST).a == SECOND and asked(view, SECOND).b == FIRST
    assert asked(view, FIRST, LAST, FIRST, LAST).further == ()
    absent = asked(view, FIRST, SECOND, "nobody/x")
    assert len(absent.remarks) == 1 and "nobody/x" in absent.remarks[0]


def test_a_metric_that_lacks_one_of_several_skills_cannot_be_chosen(
    view: View, store: Store
) -> None:
    partly = with_cells(
        view, store, lambda c: None if (c.entry_id, c.skill) == (SECOND, "colour") else c
    )
    lacking = asked(partly, FIRST, SECOND, skill="counting,colour")
    assert SECOND not in lacking.options and "“BLIP2-ITM”" in lacking.remarks[0]
    one = asked(partly, FIRST, SECOND, skill="counting")
    skills = [row.what for row in two_compared(one, partly)["by_skill"].rows]
    assert "Colour" not in skills and "Counting" in skills


# Agreement.


def test_agreement_is_kendalls_tau_over_the_clusters_of_each_two(view: View, store: Store) -> None:
    pair = asked(view, FIRST, SECOND, board="graphs")
    cells = {cell.entry_id: cell for cell in pair.choice.slices()[0]}
    card, behind = pair.choice.board.card, behind_of(store)
    found = behind.clusters.values(card, [cells[e] for e in pair.options], "one")
    assert found is not None
    taus = found.taus()
    np.testing.assert_allclose(taus, taus.T)
    assert taus[0, 1] == kendall(found.values[:, 0], found.values[:, 1])
    shown_ = agreement(pair, view, behind)
    assert shown_.taus[0][1] == taus[0, 1] and shown_.taus[0][0] is None
    assert shown_.entries[:2] == (FIRST, SECOND) and not shown_.of_scores
    values = np.array([[1.0, 2.0], [2.0, 3.0], [3.0, np.nan], [np.nan, 9.0], [4.0, 1.0]])
    some = ClusterValues(("a", "b"), ("p", "q", "r", "s", "t"), values)
    assert some.of("a", "b").clusters == ("p", "q", "t")
    assert some.taus()[0, 1] == kendall([1, 2, 4], [2, 3, 1])


def test_the_largest_differences_of_clusters_come_first(view: View, store: Store) -> None:
    found = compare_clusters(asked(view, FIRST, SECOND, board="graphs"), view, behind_of(store))
    gaps = [abs(one.gap) for one in found.gaps]
    assert gaps == sorted(gaps, reverse=True) and len(gaps) == MOST_CLUSTERS and gaps[-1] > 0
    assert len(found.points) == found.n_clusters > MOST_CLUSTERS
    assert {(one.a, one.b) for one in found.gaps} <= set(found.points)


def test_a_mean_over_skills_has_no_clusters(view: View, store: Store) -> None:
    pair = asked(view, FIRST, SECOND, skill="counting,colour")
    behind = behind_of(store)
    assert compare_clusters(pair, view, behind).missing == "several_skills"
    assert agreement(pair, view, behind).missing == "several_skills"


@pytest.mark.parametrize("board", ["graphs", "ratings"])
@pytest.mark.parametrize("where", ["snapshot", "server"])
def test_nothing_of_clusters_is_read_where_either_card_withholds_answers(
    store: Store, board: str, where: str
) -> None:
    view = view_of(snapshot(), cards(), Orders(store), "one")
    here = None if where == "snapshot" else withheld()
    if where == "snapshot":
        view.boards[board].card = withheld()[board]
    pair = asked(view, FIRST, SECOND, board=board)
    behind, card = behind_of(store, here), withheld()[board]
    clusters, taus = compare_clusters(pair, view, behind), agreement(pair, view, behind)
    assert (clusters.missing, clusters.points, clusters.gaps) == ("withheld", (), ())
    assert (taus.missing, taus.entries, taus.taus) == ("withheld", (), ())
    assert behind.clusters.values(card, pair.choice.slices()[0], "one") is None
    assert behind.scores.values(card, [view.entries[e] for e in pair.options], {}) is None


def test_the_clusters_of_a_run_are_read_once_for_one_version(view: View, store: Store) -> None:
    files: Any = Counting(store.public)
    reader = ClusterReader(files)
    choice = asked(view, FIRST, SECOND, board="graphs").choice
    cells, card = choice.slices()[0][:3], choice.board.card
    first, again = (reader.values(card, cells, "one") for _ in range(2))
    assert first is not None and again is not None and len(files.paths) == 3
    np.testing.assert_array_equal(first.values, again.values)
    reader.values(card, cells, "two")
    assert len(files.paths) == 6


# By a measure without values of clusters, agreement is that of the published scores of pairs.


def tau(one: int, other: int) -> float:
    cases = example_fixture.rated()
    both = pd.concat([example_fixture.scores_of(cases, k) for k in (one, other)], axis=1).dropna()
    return kendall(both.iloc[:, 0].to_numpy(), both.iloc[:, 1].to_numpy())


def taus_of(
    view: View, store: Any, pair: Opponents, lower: Mapping[str, Any] | None = None
) -> dict[tuple[str, str], float | None]:
    found = agreement(pair, view, behind_of(store, lower=lower))
    return {
        (a, b): found.taus[i][j]
        for i, a in enumerate(found.entries)
        for j, b in enumerate(found.entries)
    }


def test_metrics_are_compared_over_the_pairs_that_both_scored(view: View, store: Store) -> None:
    places = (NOISY, RIGHT, LACKS)
    pair = asked(view, *map(entry_id, places))
    found = taus_of(view, store, pair)
    for one, other in combinations(places, 2):
        assert found[entry_id(one), entry_id(other)] == pytest.approx(tau(one, other))
    assert 0 < tau(NOISY, RIGHT) < 1
    shown_ = agreement(pair, view, behind_of(store))
    assert shown_.of_scores and shown_.over == "120 pairs of an image and a prompt"
    assert set(shown_.entries) == {entry_id(k) for k in (RIGHT, NOISY, TURNED, LACKS)}
    # Scores of two metrics have no common scale.
    assert compare_clusters(pair, view, behind_of(store)).missing == "no_clusters"
    none = agreement(asked(view, FIRST, THIRD), view, behind_of(memory_store()))
    assert none.missing == "no_clusters"


def test_a_metric_whose_smaller_scores_are_better_is_turned_first(view: View, store: Store) -> None:
    a, b = entry_id(RIGHT), entry_id(TURNED)
    whose, metric = b.split("/")
    assert taus_of(view, store, asked(view, a, b))[a, b] == pytest.approx(-1.0)
    turned = taus_of(view, store, asked(view, a, b), lower={whose: (metric,)})
    assert turned[a, b] == pytest.approx(1.0)


def test_of_very_many_pairs_the_same_are_taken_of_every_metric_and_read_once(
    view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_scores, "MOST_PAIRS", 50)
    stored: dict[str, bytes] = {}
    for place in (RIGHT, NOISY):
        own, metric = entry_id(place).split("/")
        pairs = pd.Index([f"pair {k}" for k in range(500)], name="pair_id")
        table = pd.DataFrame({metric: [float(k * 7919 % (500 + place)) for k in range(500)]}, pairs)
        stored[f"results/{own}/ratings.scores.parquet"] = write_stored(
            ScoreTable(table), submission_id=own, benchmark="ratings",
            revision=example_fixture.REVISION,
        )  # fmt: skip
    store = memory_store()
    keep(store, stored)
    files: Any = Counting(store.public)
    reader = PairScoreReader(files)
    entries = [view.entries[entry_id(place)] for place in (RIGHT, NOISY)]
    found, again = (reader.values(cards()["ratings"], entries, {}) for _ in range(2))
    assert found is not None and again is not None and again.clusters == found.clusters
    assert found.values.shape == (50, 2) and not np.isnan(found.values).any()
    numbers = sorted(int(pair.split()[1]) for pair in found.clusters)
    assert numbers[0] < 100 and numbers[-1] > 400 and len(files.paths) == 2  # From everywhere.
    every = {f"p{k}": 0 for k in range(500)}
    lacks = dict.fromkeys(list(every)[5:], 0)  # A sample of what some lack is still the same.
    assert len(set(sampled(every)) & set(sampled(lacks))) >= 45
    assert {METRICS[RIGHT], METRICS[NOISY]} == {e.metric for e in entries}


def read_back(link: str) -> CompareQuery:
    return CompareQuery.from_params(dict(parse_qsl(query_string(link)[1:])))


# The address.


@pytest.mark.parametrize(
    "state",
    [
        CompareQuery(),
        CompareQuery(benchmark="ts2", a="s/m", b="t/n", c="u/o", d="v/p", measure="rank~paper~all",
                   skill="counting,colour"),
        CompareQuery("examples", benchmark="ts2", a="s/m", skill="a b&c", split="real",
                   show="disagreements", case="p 1&2", page=3),
        CompareQuery("pairs", benchmark="ts2"), CompareQuery("skills", of="models"),
    ],
)  # fmt: skip
def test_a_link_of_the_place_restores_its_state_and_leaves_out_what_is_the_default(
    state: CompareQuery,
) -> None:
    assert read_back(state.to_link()) == state
    assert CompareQuery().to_link() == "./compare"
    assert CompareQuery(benchmark="b", before="x", seek=True).to_link() == "./compare?benchmark=b"


@pytest.mark.parametrize(
    ("params", "state"),
    [
        ({"view": "nothing"}, CompareQuery()), ({"of": "metrics"}, CompareQuery()),
        ({"page": "-1"}, CompareQuery()), ({"unknown": "x"}, CompareQuery()),
        ({"seek": "1"}, CompareQuery(seek=True)), ({"seek": "yes"}, CompareQuery()),
    ],
)  # fmt: skip
def test_an_address_is_not_trusted(params: dict[str, str], state: CompareQuery) -> None:
    assert CompareQuery.from_params(params) == state


def test_links_from_other_pages_lead_to_the_place() -> None:
    fails = read_back(items_address("b", skill="s", a="1/m", show="failures"))
    assert (fails.view, fails.benchmark, fails.a, fails.seek) == ("examples", "b", "1/m", True)
    assert not read_back(items_address("b", a="1/m", show="all", case="c")).seek
    assert read_back(compare_address("b", "1/m", "2/n", "3/o")).c == "3/o"


# Tabs, and another benchmark.


def test_each_tab_keeps_what_its_view_can_have(view: View) -> None:
    asked = CompareQuery(benchmark="graphs", a=FIRST, b=SECOND, c=FOURTH)
    pair = resolve_place(asked, view)
    links = tab_links(pair.query, pair.choice)
    assert list(links) == list(VIEWS)
    states = {name: read_back(link) for name, link in links.items()}
    for name, state in states.items():
        assert (state.view, state.benchmark, state.a, state.b) == (name, "graphs", FIRST, SECOND)
    assert states["pairs"].c == FOURTH and states["pairs"].measure == pair.choice.query.measure
    assert states["examples"].split == "", "all splits are no split"
    many = CompareQuery(benchmark="ratings", a=FIRST, b=SECOND, skill="counting,colour")
    links = tab_links(many, resolve_place(many, view).choice)
    assert read_back(links["examples"]).skill == "", "examples have one skill or all"
    assert read_back(links["pairs"]).skill == "counting,colour"


def test_on_another_benchmark_the_same_metrics_are_compared_if_they_are_there(view: View) -> None:
    asked = CompareQuery(benchmark="tiny", a=FIRST, b=entry_id(9), skill="counting",
                       measure="srcc~paper", before="ratings")  # fmt: skip
    pair = resolve_place(asked, view)
    assert pair.choice.board.card.name == "tiny" and pair.a == FIRST
    assert pair.remarks == () and pair.b in pair.options
    stays = resolve_place(replace(asked, before="tiny"), view)
    assert stays.remarks, "a link that names what is not there is told so"


def test_a_metric_is_the_same_on_another_benchmark_whatever_its_submission(view: View) -> None:
    """A scores file is for one benchmark: the same metric has another entry on each."""
    board = snapshot().boards["tiny"]
    cells = tuple(
        cell.model_copy(update={"entry_id": "else/X"}) if cell.entry_id == FOURTH else cell
        for cell in board.cells
    )
    other = view.entries[FOURTH].model_copy(update={"entry_id": "else/X"})
    boards = {**view.boards, "tiny": BoardIndex(Board(card=board.card, cells=cells))}
    split = View({**view.entries, "else/X": other}, boards, view.orders)
    asked = CompareQuery(benchmark="tiny", a=FOURTH, b=FIRST, before="ratings")
    moved = moved_along(asked, split)
    assert (moved.a, moved.b, moved.before) == ("else/X", FIRST, "")
    assert moved_along(replace(asked, before="tiny"), split).a == FOURTH


# Lists to choose from.


def test_metrics_of_one_name_can_be_told_apart_in_the_list(view: View) -> None:
    same = {"metric": "same", "version": ""}
    entries = {e: view.entries[e].model_copy(update=same) for e in (FIRST, SECOND)}
    doubled = View({**view.entries, **entries}, view.boards, view.orders)
    found = entry_options((FIRST, SECOND, THIRD), (), doubled)
    labels = [one.label for one in found]
    assert len(set(labels)) == 3 and [one.value for one in found] == [FIRST, SECOND, THIRD]


def test_of_very_many_metrics_the_first_are_offered_and_those_chosen(
    view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leaderboard.views.compare.MOST_OPTIONS", 2)
    found = entry_options((FIRST, SECOND, THIRD, FOURTH), (FOURTH, None), view)
    assert [one.value for one in found] == [FIRST, SECOND, FOURTH]


# The verdict.


def row(**changes: Any) -> Compared:
    plain = Compared(
        "A", "B", "srcc", None, None, None, None, True, 0.5, 0.4, 0.1, 0.02, 0.18, "bca",
        p_value=0.01, p_corrected=0.02, correction="joint", n_tests=66, n_differing=9,
        n_units=9, n_better_a=6, n_tied=1, n_better_b=2,
    )  # fmt: skip
    return replace(plain, **changes)


@pytest.mark.parametrize(
    ("changes", "outcome", "ahead", "figures"),
    [
        ({}, "better", "a", ("0.100", "[0.020, 0.180]", "p = 0.010", "p = 0.020")),
        ({"difference": -0.1, "ci_low": -0.18, "ci_high": -0.02}, "better", "b",
         ("0.100", "[0.020, 0.180]", "p = 0.010", "p = 0.020")),
        ({"higher_is_better": False}, "better", "b",
         ("0.100", "[0.020, 0.180]", "p = 0.010", "p = 0.020")),
        ({"p_corrected": 0.333}, "not_significant", "a",
         ("0.100", "[0.020, 0.180]", "p = 0.010", "p = 0.33")),
        ({"difference": 0.0, "n_differing": 0, "p_value": 1.0, "p_corrected": 1.0}, "equal", "a",
         ("0.000", "[0.020, 0.180]", "p = 1", "p = 1")),
        ({"difference": 0.0, "p_value": 1.0, "p_corrected": 1.0}, "same_value", "a",
         ("0.000", "[0.020, 0.180]", "p = 1", "p = 1")),
        ({"p_value": math.nan, "p_corrected": math.nan, "ci_low": math.nan, "ci_high": math.nan},
         "untested", "a", ("0.100", "", "", "")),
        ({"value_b": math.nan, "difference": math.nan, "ci_low": math.nan, "ci_high": math.nan},
         "undefined", "a", ("", "", "p = 0.010", "p = 0.020")),
    ],
)  # fmt: skip
def test_a_verdict_says_who_is_ahead_by_how_much_and_how_sure_that_is(
    changes: dict[str, Any], outcome: str, ahead: str, figures: tuple[str, ...]
) -> None:
    found = verdict_of(row(**changes))
    assert (found["outcome"], found["ahead"]) == (outcome, ahead)
    assert (found["by"], found["interval"], found["p"], found["corrected"]) == figures
    assert found["n_tests"] == 66
