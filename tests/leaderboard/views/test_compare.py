"""State of the Compare place: its address, another benchmark, lists to choose from, the verdict."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

import pytest

from benchmarks.comparison import Compared
from leaderboard.publication.reader import BoardIndex, View, view_of
from leaderboard.publication.snapshot import Board
from leaderboard.ranking.orders import Orders
from leaderboard.store.interface import Store
from leaderboard.views.addresses import compare_address, items_address, query_string
from leaderboard.views.compare import (
    entry_options,
    moved_along,
    resolve_place,
    tab_links,
    verdict_of,
)
from leaderboard.views.comparison import VIEWS, CompareQuery
from tests.leaderboard.views.example_fixture import entry_id, filled
from tests.leaderboard.web.synthetic import cards, snapshot

FIRST, SECOND, THIRD, FOURTH = map(entry_id, range(4))


@pytest.fixture(scope="module")
def view() -> View:
    store: Store = filled()
    return view_of(snapshot(), cards(), Orders(store), "one")


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
def test_a_link_restores_the_state_it_was_made_from(state: CompareQuery) -> None:
    assert read_back(state.to_link()) == state


def test_what_is_the_default_is_left_out_of_the_address() -> None:
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


def test_addresses_of_before_have_the_same_parameters() -> None:
    """What led to the item browser, and to the page that compared, is a state of the place."""
    items = {"benchmark": "b", "skill": "s", "split": "x", "a": "1/m", "b": "2/n", "show": "all",
             "case": "c", "page": "2", "view": "examples"}  # fmt: skip
    found = CompareQuery.from_params(items)
    assert {name: str(getattr(found, name)) for name in items} == items
    compared = {
        "benchmark": "b",
        "skill": "s,t",
        "measure": "m",
        **dict(zip("abcd", "1234", strict=True)),
    }
    found = CompareQuery.from_params(compared)
    assert {name: getattr(found, name) for name in compared} == compared


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
        p_value=0.01, p_corrected=0.02, correction="holm", n_tests=66, n_differing=9,
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
    assert (found.outcome, found.ahead) == (outcome, ahead)
    assert (found.by, found.interval, found.p, found.corrected) == figures
    assert found.n_tests == 66
