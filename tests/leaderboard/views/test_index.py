"""The index: what is weighed, who is ranked, what is missing, and the link to all of it."""

from __future__ import annotations

import csv
import io
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.schema import Kind
from leaderboard.publication.index import (
    IndexBase,
    IndexBoard,
    index_base,
    index_boards,
    plain_index,
    rescaled,
)
from leaderboard.publication.publisher import build_snapshot
from leaderboard.publication.reader import (
    SIMULATED,
    View,
    boards_of_one_kind,
    view_of,
)
from leaderboard.ranking.orders import Orders
from leaderboard.tables import to_csv
from leaderboard.text import clean
from leaderboard.views.index import HEAVIEST, INDEX, IndexChoice, index_table, resolve_index
from tests.kit.boards import publish, view_over
from tests.kit.store import memory_store
from tests.leaderboard.web.index_fixture import NASTY, NOW, REAL, cards, index_view_of, runs_of

WEIGHTED = tuple(name for name in REAL if name != "genai_527")


def boards_of(view: View) -> tuple[dict[str, IndexBoard], dict[str, str]]:
    return index_boards(view.boards, view.entries)


_SMALL = boards_of(index_view_of({"a": ("graphs", "ratings", "demo")}))[0]


@pytest.fixture(scope="module")
def view() -> View:
    return index_view_of()


@pytest.fixture(scope="module")
def base(view: View) -> IndexBase:
    return index_base(view)


def choice_of(base: IndexBase, weights: str = "", order: str = "") -> IndexChoice:
    return resolve_index(weights, base.boards, base.left_out, order)


def without_draws(view: View) -> IndexBase:
    return index_base(
        view_of(build_snapshot(runs_of(), cards(), NOW), cards(), Orders(memory_store()))
    )


# What takes part, and with what weight to begin with.


def test_boards_without_a_scale_or_results_are_left_out_and_double_prompts_weigh_nothing(
    base: IndexBase,
) -> None:
    weights = {name: board.weight for name, board in base.boards.items()}
    assert weights == {**dict.fromkeys(WEIGHTED, 1.0), "genai_527": 0.0}
    assert set(base.left_out) == {"unscaled", "unused"}


@pytest.mark.parametrize(
    ("metrics", "weights"),
    [({"a": ("demo",), "b": ("demo",)}, {"demo": 1.0}),  # Where there is nothing else.
     ({"a": ("genai_527", "graphs")}, {"genai_527": 1.0, "graphs": 1.0}),
     ({"always-half": ("ratings", "graphs")}, {"graphs": 1.0})],  # Nobody is ranked on ratings.
)  # fmt: skip
def test_what_weighs_depends_on_what_there_is(
    metrics: dict[str, tuple[str, ...]], weights: dict[str, float]
) -> None:
    boards, left_out = boards_of(index_view_of(metrics))
    assert {name: board.weight for name, board in boards.items()} == weights
    assert ("ratings" in left_out) is True


def test_simulated_boards_are_weighed_with_each_other_alone(view: View, base: IndexBase) -> None:
    apart = index_base(view.group(SIMULATED))
    assert set(apart.boards) == {"demo"} and "demo" not in base.boards
    of_each = [{entry.metric for _, entry in one.entries.values()} for one in (apart, base)]
    assert ["only simulated" in metrics for metrics in of_each] == [True, False]


@pytest.mark.parametrize(
    ("kinds", "ratings", "weighed", "groups"),
    [({}, "", {"ratings", "graphs", "errors"}, ("",)),
     ({"graphs": "preference"}, "", {"ratings", "errors"}, ("", "preference")),
     ({"graphs": "preference"}, "preference", {"graphs"}, ("", "preference")),
     ({"graphs": "preference", "errors": "quality"}, "", {"ratings"}, ("", "preference", "quality")),
     (dict.fromkeys(("ratings", "graphs", "errors"), "preference"), "",
      {"ratings", "graphs", "errors"}, ("",))],
)  # fmt: skip
def test_boards_of_unlike_kinds_never_share_an_index(
    kinds: dict[str, Kind], ratings: str, weighed: set[str], groups: tuple[str, ...]
) -> None:
    """Nor do skills of theirs; alignment comes first, and each other kind is a group of its own."""
    made = {
        name: card.model_copy(update={"kind": kinds.get(name, "alignment")})
        for name, card in cards().items()
    }
    runs = runs_of({"a": ("ratings", "graphs", "errors"), "b": ("ratings", "graphs", "errors")})
    view = view_over(publish(memory_store(), runs, made), made, runs)
    base = index_base(view.group(ratings))
    assert set(base.boards) == weighed and view.groups == groups
    others = {
        name for name in ("ratings", "graphs", "errors") if name in view.group(ratings).boards
    }
    assert others - weighed <= set(base.left_out)
    assert set(boards_of_one_kind(view.group(ratings).boards)) >= weighed


# Values.


def test_a_headline_is_rescaled_and_turned_round_where_lower_is_better(base: IndexBase) -> None:
    board = base.boards["errors"]
    cell = next(iter(board.cells.values()))
    assert cell.value is not None and cell.ci_low is not None
    found = rescaled(cell, board.scale)
    assert found.value == pytest.approx((1.2 - cell.value) / 1.1)
    assert found.high == pytest.approx((1.2 - cell.ci_low) / 1.1)
    assert found.low < found.value < found.high


def test_the_index_is_the_mean_of_the_rescaled_headlines_also_without_resamples(
    view: View, base: IndexBase
) -> None:
    weights = choice_of(base, "graphs:2").weights
    for row in base.index_ranks(weights):
        if own := {n: base.values[n][row.who].value for n in row.standing.present}:
            mean = np.average(list(own.values()), weights=[weights[n] for n in own])
            assert row.standing.index.value == pytest.approx(mean)
    quick = plain_index(boards_of(view.group())[0])
    for row in base.index_ranks(choice_of(base).weights):
        if row.standing.present:
            assert quick[row.who].value == pytest.approx(row.standing.index.value)
            assert sorted(quick[row.who].boards) == sorted(row.standing.present)


def test_submissions_of_one_metric_are_joined_and_those_of_others_are_not() -> None:
    first, second = runs_of({"one": ("graphs", "ratings")})
    again = second.result.model_copy(update={"submission_id": "made-up-9999"})
    for submitter, expected in (("A group", 1), ("Another group", 2)):
        other = second.submission.model_copy(
            update={"submission_id": "made-up-9999", "submitter": submitter}
        )
        snapshot = build_snapshot([first, type(second)(other, again, second.draws)], cards(), NOW)
        found = index_base(view_of(snapshot, cards(), Orders(memory_store())))
        assert len(found.entries) == expected


def test_without_stored_resamples_there_are_values_without_intervals_and_a_warning(
    view: View,
) -> None:
    found = without_draws(view)
    assert set(found.unjoined) == set(found.boards)
    first = found.index_ranks(choice_of(found).weights)[0].standing
    assert math.isfinite(first.index.value) and math.isnan(first.index.low)


# Links and controls.


@given(st.data())
def test_a_link_restores_the_weights_it_was_made_from_and_names_none_at_the_start(
    data: st.DataObject,
) -> None:
    weights = {name: data.draw(st.decimals(0, 5, places=6).map(float)) for name in _SMALL}
    link = IndexChoice(weights, "index").changed_weights(_SMALL)
    assert resolve_index(link, _SMALL, {}) == IndexChoice(weights, "index")
    start = {name: board.weight for name, board in _SMALL.items()}
    assert IndexChoice(start, "index").changed_weights(_SMALL) == ""


@pytest.mark.parametrize(
    ("weights", "named"),
    [("nope:1", "nope"), ("unscaled:1", "unscaled"), ("unused:1", "unused"), ("graphs", "graphs"),
     ("graphs:", "graphs"), ("graphs:-1", "“-1”"), ("graphs:nan", "“nan”"), ("graphs:inf", "“inf”"),
     ("graphs:1e3", "“1e3”"), ("graphs:1_0", "“1_0”"), ("graphs:١", "“١”"), ("graphs:1:2", "“1:2”"),
     ("graphs:1,graphs:2", "several"), (f"{NASTY}:1", "img"), (":", "“”"), ("x" * 100_000, "xx")],
    ids=lambda value: value[:12],
)  # fmt: skip
def test_what_a_link_asks_for_in_vain_is_said_and_changes_nothing(
    base: IndexBase, weights: str, named: str
) -> None:
    found = choice_of(base, weights)
    assert named.casefold() in found.remarks[0].casefold()
    assert found.weights == choice_of(base).weights
    assert sum(map(len, found.remarks)) < 1000 or "x" in weights


def test_too_much_in_a_link_is_cut_and_it_is_said(base: IndexBase) -> None:
    heavy = choice_of(base, "graphs:999")
    assert heavy.weights["graphs"] == HEAVIEST and "5" in heavy.remarks[0]
    many = choice_of(base, ",".join(f"bad{i}:1" for i in range(5000)))
    assert 1 < len(many.remarks) <= 6
    unknown = choice_of(base, "", NASTY)
    assert (unknown.order, len(unknown.remarks)) == ("index", 1)


# The download.


def test_the_csv_holds_weights_scales_tiers_and_what_figures_are_computed_again_from(
    view: View, base: IndexBase
) -> None:
    choice = choice_of(base, "graphs:2")
    rows = list(csv.DictReader(io.StringIO(to_csv(index_table(base, choice, view.entries)))))
    assert len(rows) == len(base.entries) * (1 + len(base.boards))
    standings = {clean(one.who.metric): one.standing for one in base.index_ranks(choice.weights)}
    whole = [row for row in rows if row["benchmark"] == INDEX and row["metric"] in standings]
    assert [(row["metric"], row["rank_low"], row["rank"]) for row in whole][:1] == [
        ("VQAScore", "1", "1")
    ]
    assert float(whole[0]["rescaled"]) == standings["VQAScore"].index.value
    tiers = [str(standings[row["metric"]].tier or "") for row in whole]
    assert [row["tier"] for row in whole] == tiers
    of = {(row["metric"], row["benchmark"]): row for row in rows}
    graphs = of["VQAScore", "graphs"]
    names = ("weight", "chance", "ceiling", "seed", "n_resamples", "plan", "versions", "tier")
    cells = {who.metric: cell for who, cell in base.boards["graphs"].cells.items()}
    assert [graphs[name] for name in names] == [
        "2.0", "0.0", "0.993902", "7", "200", "0123abcd", "assay 1; numpy 2",
        str(cells["VQAScore"].tier),
    ]  # fmt: skip
    missing, none = of["TIFA", "graphs"], of["TIFA", INDEX]
    assert (missing["value"], missing["rescaled"], none["rank"]) == ("", "", "")
    assert "not run" in missing["note"] and "none on" in none["note"]
    assert "no correlation" in of["always-half", "ratings"]["note"]
    column = next(c for c in index_table(base, choice, view.entries).columns if c.name == "tier")
    assert "not tested" in column.meaning
