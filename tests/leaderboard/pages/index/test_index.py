"""The index page: what is weighed, who is ranked, what is missing, and the link to all of it."""

from __future__ import annotations

import csv
import io
import math
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.pages.index.index_page import chosen, order_options
from leaderboard.pages.index.marks import Strips
from leaderboard.pages.index.view import how_made, index_view
from leaderboard.pages.overview.index_first import index_first
from leaderboard.publication.index import (
    IndexBase,
    Prepared,
    index_base,
    index_boards,
    plain_index,
    rescaled,
)
from leaderboard.publication.reader import View, view_of
from leaderboard.publication.snapshot import build_snapshot
from leaderboard.ranking.draws import Draws
from leaderboard.ranking.orders import Orders
from leaderboard.ranking.slices import Slice
from leaderboard.store.memory import memory_store
from leaderboard.text import clean
from leaderboard.views.index import (
    HEAVIEST,
    INDEX,
    IndexChoice,
    IndexQuery,
    index_csv,
    index_table,
    resolve_index,
)
from tests.leaderboard.pages.index.index_fixture import (
    METRICS,
    NASTY,
    NOW,
    REAL,
    SCALES,
    cards,
    index_view_of,
    runs_of,
)
from tests.leaderboard.pages.parsed import Node, harmless, named, read

WEIGHTED = tuple(name for name in REAL if name != "genai_527")
ZERO = ",".join(f"{name}:0" for name in REAL)
_SMALL = index_boards(index_view_of({"a": ("graphs", "ratings", "demo")}))[0]


@pytest.fixture(scope="module")
def view() -> View:
    return index_view_of()


@pytest.fixture(scope="module")
def base(view: View) -> IndexBase:
    return index_base(view)


def choice_of(base: IndexBase, weights: str = "", order: str = "") -> IndexChoice:
    return resolve_index(IndexQuery(weights, order), base.boards, base.left_out)


def html_of(base: IndexBase, weights: str = "", order: str = "") -> str:
    return index_view(base, Strips.of(base), choice_of(base, weights, order))


def shown(base: IndexBase, weights: str = "", order: str = "") -> Node:
    return read(html_of(base, weights, order))


def parts(base: IndexBase, weights: str = "", order: str = "") -> tuple[Node, Node]:
    """Those with a rank, and those without."""
    ranked, _, rest = html_of(base, weights, order).partition("Without a rank")
    return read(ranked), read(rest.split("On no benchmark", maxsplit=1)[0])


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
    page = read(how_made(base))
    named(page)
    assert "Without a scale" in page and "Unused" in page and "Weight 0" in page
    for name, board in base.boards.items():
        scale = SCALES[name]
        assert scale is not None
        (row,) = (r for r in page.all("tbody tr") if r.links(f"./boards?benchmark={name}"))
        assert {f"{scale[1]:.6g}", f"{scale[2]:.6g}"} <= set(row.texts("td"))
        assert board.scale.ceiling_is in row and board.scale.source in row


@pytest.mark.parametrize(
    ("metrics", "weights"),
    [({"a": ("demo",), "b": ("demo",)}, {"demo": 1.0}),  # Where there is nothing else.
     ({"a": ("genai_527", "graphs")}, {"genai_527": 1.0, "graphs": 1.0}),
     ({"always-half": ("ratings", "graphs")}, {"graphs": 1.0})],  # Nobody is ranked on ratings.
)  # fmt: skip
def test_what_weighs_depends_on_what_there_is(
    metrics: dict[str, tuple[str, ...]], weights: dict[str, float]
) -> None:
    boards, left_out = index_boards(index_view_of(metrics))
    assert {name: board.weight for name, board in boards.items()} == weights
    assert ("ratings" in left_out) is True


def test_simulated_boards_are_weighed_with_each_other_alone(view: View, base: IndexBase) -> None:
    apart = index_base(view.group(simulated=True))
    assert set(apart.boards) == {"demo"} and "demo" not in base.boards
    of_each = [{entry.metric for _, entry in one.entries.values()} for one in (apart, base)]
    assert ["only simulated" in metrics for metrics in of_each] == [True, False]
    assert "Simulated" in shown(apart)


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
    for row in base.standings(weights):
        if own := {n: base.values[n][row.who].value for n in row.standing.present}:
            mean = np.average(list(own.values()), weights=[weights[n] for n in own])
            assert row.standing.index.value == pytest.approx(mean)
    quick = plain_index(index_boards(view.group())[0])
    for row in base.standings(choice_of(base).weights):
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
    first = found.standings(choice_of(found).weights)[0].standing
    assert math.isfinite(first.index.value) and math.isnan(first.index.low)
    page = shown(found)
    assert "Error graphs" in page.one(".as-notice") and "no interval" in page


# Who is ranked, and what is missing.


def test_metrics_with_every_weighted_benchmark_are_ranked_and_the_others_stand_below(
    base: IndexBase,
) -> None:
    ranked, rest = parts(base)
    whole = [name for name, on in METRICS.items() if set(WEIGHTED) <= set(on)]
    # A metric without a defined value somewhere lacks that benchmark.
    assert len(ranked.names) == len(whole) - 1 and ranked.names[0] == "VQAScore"
    assert rest.names == ["HPSv2", "always-half", "TIFA"]
    assert f"{len(whole) - 1} metrics on all 5" in ranked
    lacking, undefined = rest.row("HPSv2"), rest.row("always-half")
    assert "4 of 5" in lacking and "0.000" not in lacking
    assert [(one.text, one["title"]) for one in lacking.all("[title=not run]")] == [
        ("Contrast pairs", "not run there")
    ]
    assert "no correlation" in undefined and "Ratings of prompts" in undefined.text
    assert "HPSv2" in parts(base, "accuracy:0")[0].names
    none = html_of(base, "graphs:0,errors:0,genai_1600:0,accuracy:0,genai_527:0")
    assert "VQAScore" not in none.split("On no benchmark")[1]


def test_where_nobody_has_everything_or_nothing_weighs_it_is_said(base: IndexBase) -> None:
    found = index_base(index_view_of({"a": ("graphs",), "b": ("ratings",)}))
    ranked, rest = parts(found)
    assert "on all 2 benchmarks" in ranked and sorted(rest.names) == ["a", "b"]
    assert not shown(base, ZERO).all("table") and "weights are 0" in shown(base, ZERO)
    empty = index_base(view_of(None, cards(), Orders(memory_store())))
    assert empty.comparison is None and not shown(empty).all("table")
    assert index_csv(empty, choice_of(empty), {}).count("\n") == 1 and how_made(empty)


def test_weights_that_mislead_and_training_on_a_benchmark_are_marked(base: IndexBase) -> None:
    assert shown(base, "genai_527:1").all(".as-notice") and not shown(base).all(".as-notice")
    marked = [row for row in shown(base).all("tbody tr") if "trained on" in row]
    assert [row.names[0] for row in marked] == ["PickScore"]
    assert "Ratings of prompts" in marked[0] and "trained on" not in shown(base, "ratings:0")


def test_every_metric_has_a_bar_for_every_benchmark_with_its_value_on_hover(
    base: IndexBase,
) -> None:
    page = shown(base)
    named(page)
    first, lacking = page.row("VQAScore"), page.row("TIFA")
    bars = [len(row.all("g")) for row in (first, lacking)], len(first.all(".as-bar"))
    assert bars == ([len(base.boards)] * 2, len(base.boards)) and len(lacking.all(".as-bar")) == 2
    titles = first.texts("svg title")
    assert titles[0].startswith("Error graphs: 0.") and "(Spearman ρ 0." in titles[0]
    assert "Contrast pairs: not run there" in lacking.texts("svg title")
    assert len(shown(base, "graphs:0").row("VQAScore").all("g.as-faint")) == 2


def test_a_hostile_name_is_text(base: IndexBase) -> None:
    harmless(html_of(base), html_of(base, f"{NASTY}:1", NASTY), how_made(base))
    assert clean(NASTY) in shown(base).names


# Tiers.


def tiers_in(page: Node) -> list[str]:
    return [cell.text.split()[0] for cell in page.all("td.as-i-tier")]


def test_every_ranked_row_has_its_tier_and_other_weights_make_other_tiers(base: IndexBase) -> None:
    found = [one.standing for one in base.standings(choice_of(base).weights)]
    expected = [str(one.tier) for one in found if one.rank is not None]
    assert expected[0] == "1" and len(set(expected)) > 2
    page = shown(base)
    assert tiers_in(page) == expected and "28 pairs" in page
    first = read(index_first(base))
    assert tiers_in(first)[0] == "1" and "tier" in first
    one = base.standings({name: float(name == "graphs") for name in base.boards})
    assert [s.standing.tier for s in one] != [one.tier for one in found]


def test_without_contributions_both_pages_say_why_there_are_no_tiers(view: View) -> None:
    class WithoutContributions(Orders):
        def slice(self, card, cells):  # type: ignore[no-untyped-def]
            found = view.orders.slice(card, cells)
            none = np.full((len(found.cells), 0), np.nan)
            return Slice(found.cells, Draws(found.draws.resamples, none))

    orders = WithoutContributions.__new__(WithoutContributions)
    untested = index_base(View(view.entries, view.boards, orders))
    for page in (shown(untested), read(index_first(untested))):
        assert "No tiers:" in page and set(tiers_in(page)) == {"—"}


# Links and controls.


def test_the_start_has_no_query_string(base: IndexBase) -> None:
    assert choice_of(base).to_query(base.boards) == ""


@given(st.data())
def test_a_link_restores_the_weights_and_the_order_it_was_made_from(data: st.DataObject) -> None:
    weight = st.decimals(0, 5, places=6).map(float)
    weights = {name: data.draw(weight) for name in _SMALL}
    order = data.draw(st.sampled_from(["index", "borda", "name", *_SMALL]))
    link = IndexChoice(weights, order).to_query(_SMALL)
    again = IndexQuery.from_params(dict(parse_qsl(link.removeprefix("?"))))
    assert resolve_index(again, _SMALL, {}) == IndexChoice(weights, order)


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
    assert len(html_of(base, weights)) < len(html_of(base)) + 1000


def test_too_much_in_a_link_is_cut_and_it_is_said(base: IndexBase) -> None:
    heavy = choice_of(base, "graphs:999")
    assert heavy.weights["graphs"] == HEAVIEST and "5" in heavy.remarks[0]
    many = choice_of(base, ",".join(f"bad{i}:1" for i in range(5000)))
    assert 1 < len(many.remarks) <= 6
    unknown = choice_of(base, "", NASTY)
    assert (unknown.order, len(unknown.remarks)) == ("index", 1)


@pytest.mark.parametrize("order", ["index", "borda", "name", "errors"])
def test_rows_come_in_the_chosen_order(base: IndexBase, order: str) -> None:
    names = [name for name in parts(base, "", order)[0].names if "img" not in name]
    rows = {row.who.metric: row for row in base.standings(choice_of(base).weights)}
    keys: dict[str, Any] = {
        "index": lambda name: -rows[name].standing.index.value,
        "borda": lambda name: -rows[name].standing.borda.value,
        "errors": lambda name: -base.values["errors"][rows[name].who].value,
        "name": str.casefold,
    }
    assert names == sorted(names, key=keys[order])
    assert order in {value for _, value in order_options(base)}


def test_the_controls_give_the_choice_they_show_and_an_emptied_field_is_zero(
    base: IndexBase,
) -> None:
    found = chosen(base, ["graphs", "ratings", "unused"], [2.5, None, 1.0], "borda")
    assert (found.weights["graphs"], found.weights["ratings"]) == (2.5, 0.0)
    assert (found.order, found.remarks) == ("borda", ())


def test_what_no_weight_changes_is_made_once_per_view(view: View) -> None:
    prepared = Prepared()
    assert prepared.of(view) is prepared.of(view)
    other = View(view.entries, view.boards, view.orders)
    assert prepared.of(other) is not prepared.of(view)


# The download.


def test_the_csv_holds_weights_scales_tiers_and_what_figures_are_computed_again_from(
    view: View, base: IndexBase
) -> None:
    choice = choice_of(base, "graphs:2")
    rows = list(csv.DictReader(io.StringIO(index_csv(base, choice, view.entries))))
    assert len(rows) == len(base.entries) * (1 + len(base.boards))
    standings = {clean(one.who.metric): one.standing for one in base.standings(choice.weights)}
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
