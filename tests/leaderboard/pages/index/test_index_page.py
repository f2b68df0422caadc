"""The index page: what it shows, how a link restores it, what is said of what is missing."""

from __future__ import annotations

import csv
import io
import math
import re
from urllib.parse import parse_qsl

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaderboard.pages.index.base import IndexBase, index_base
from leaderboard.pages.index.boards import index_boards, plain_index, rescaled
from leaderboard.pages.index.csv import INDEX, index_csv
from leaderboard.pages.index.index_page import chosen, order_options
from leaderboard.pages.index.marks import Strips
from leaderboard.pages.index.prepared import Prepared
from leaderboard.pages.index.query import HEAVIEST, IndexChoice, IndexQuery, resolve_index
from leaderboard.pages.index.view import how_made, index_view
from leaderboard.pages.reading import View, view_of
from leaderboard.pages.shown.identities import Identity
from leaderboard.publication.snapshot import build_snapshot
from leaderboard.ranking.orders import Orders
from leaderboard.records import Kind
from leaderboard.store.memory import memory_store
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

WEIGHTED = tuple(name for name in REAL if name != "genai_527")


@pytest.fixture(scope="module")
def view() -> View:
    return index_view_of()


@pytest.fixture(scope="module")
def base(view: View) -> IndexBase:
    return index_base(view)


def choice_of(base: IndexBase, weights: str = "", order: str = "") -> IndexChoice:
    return resolve_index(IndexQuery(weights, order), base.boards, base.left_out)


def shown(base: IndexBase, weights: str = "", order: str = "") -> str:
    return index_view(base, Strips.of(base), choice_of(base, weights, order))


def metrics_in(html: str) -> list[str]:
    return re.findall(r'class="as-name"[^>]*><bdi>(.*?)</bdi>', html)


def ranked_part(html: str) -> str:
    return html.split("Without a rank", maxsplit=1)[0]


def partial_part(html: str) -> str:
    return html.split("Without a rank")[1].split("On no benchmark", maxsplit=1)[0]


# What takes part, and with what weight to begin with.


def test_a_benchmark_without_a_scale_or_without_results_is_left_out_and_it_is_said_why(
    base: IndexBase,
) -> None:
    assert set(base.boards) == set(REAL)
    html = how_made(base)
    assert "Without a scale: its card states no chance level and ceiling." in html
    assert "No metric published yet, so not in the index: Unused." in html


def test_prompts_that_would_count_twice_begin_with_no_weight(base: IndexBase) -> None:
    weights = {name: board.weight for name, board in base.boards.items()}
    assert weights == {**dict.fromkeys(WEIGHTED, 1.0), "genai_527": 0.0}
    assert "Weight 0: its prompts are inside GenAI-Bench (1,600 prompts)" in how_made(base)


def test_simulated_boards_are_weighed_with_each_other_alone(view: View, base: IndexBase) -> None:
    apart = index_base(view.group(simulated=True))
    assert set(apart.boards) == {"demo"} and set(base.boards).isdisjoint(apart.boards)
    of_demo = {entry.metric for _, entry in apart.entries.values()}
    assert "only simulated" in of_demo
    assert "only simulated" not in {entry.metric for _, entry in base.entries.values()}
    assert "Simulated ratings are in this index (all)" in shown(apart)


def test_simulated_boards_count_where_there_is_nothing_else() -> None:
    boards, _ = index_boards(index_view_of({"a": ("demo",), "b": ("demo",)}))
    assert {name: board.weight for name, board in boards.items()} == {"demo": 1.0}


def test_the_smaller_set_of_prompts_counts_where_the_larger_has_no_results() -> None:
    boards, _ = index_boards(index_view_of({"a": ("genai_527", "graphs")}))
    assert boards["genai_527"].weight == 1.0


def test_the_chance_the_ceiling_and_their_source_are_stated_as_on_the_card(
    base: IndexBase,
) -> None:
    html = how_made(base)
    for name, board in base.boards.items():
        scale = SCALES[name]
        assert scale is not None
        row = next(r for r in html.split("<tr>") if f"benchmark={name}" in r)
        assert f">{scale[1]:.6g}<" in row
        assert f">{scale[2]:.6g}<" in row
        assert board.scale.ceiling_is in row
        assert board.scale.source in row
    assert "Values are not clipped" in html
    assert "<details" in html


# Values.


def test_a_headline_is_rescaled_with_its_interval_and_turned_round_where_lower_is_better(
    base: IndexBase,
) -> None:
    board = base.boards["errors"]
    cell = next(iter(board.cells.values()))
    assert cell.value is not None
    assert cell.ci_low is not None
    found = rescaled(cell, board.scale)
    assert found.value == pytest.approx((1.2 - cell.value) / 1.1)
    assert found.high == pytest.approx((1.2 - cell.ci_low) / 1.1)
    assert found.low < found.value < found.high


def test_the_index_is_the_mean_of_the_rescaled_headlines(base: IndexBase) -> None:
    weights = choice_of(base, "graphs:2").weights
    for row in base.standings(weights):
        own = {n: base.values[n][row.who].value for n in row.standing.present}
        if own:
            mean = np.average(list(own.values()), weights=[weights[n] for n in own])
            assert row.standing.index.value == pytest.approx(mean)


def test_the_index_without_resamples_is_the_same(view: View, base: IndexBase) -> None:
    quick = plain_index(index_boards(view.group())[0])
    for row in base.standings(choice_of(base).weights):
        if row.standing.present:
            assert quick[row.who].value == pytest.approx(row.standing.index.value)
            assert sorted(quick[row.who].boards) == sorted(row.standing.present)


def test_submissions_of_one_metric_are_joined_and_those_of_others_are_not() -> None:
    runs = runs_of({"one": ("graphs", "ratings")})
    own = runs[1].submission.model_copy(update={"submission_id": "made-up-9999"})
    again = runs[1].result.model_copy(update={"submission_id": "made-up-9999"})
    split = [runs[0], type(runs[1])(own, again, runs[1].draws)]
    for submitter, expected in (("A group", 1), ("Another group", 2)):
        other = own.model_copy(update={"submitter": submitter})
        snapshot = build_snapshot(
            [split[0], type(runs[1])(other, again, runs[1].draws)], cards(), NOW
        )
        found = index_base(view_of(snapshot, cards(), Orders(memory_store())))
        assert len(found.entries) == expected


def test_without_stored_resamples_there_are_values_without_intervals_and_a_warning() -> None:
    snapshot = build_snapshot(runs_of(), cards(), NOW)
    found = index_base(view_of(snapshot, cards(), Orders(memory_store())))
    assert set(found.unjoined) == set(found.boards)
    first = found.standings(choice_of(found).weights)[0].standing
    assert math.isfinite(first.index.value)
    assert math.isnan(first.index.low)
    html = shown(found)
    assert "No joint resamples of Error graphs" in html
    assert "no interval" in html


# What is missing.


def test_metrics_with_every_weighted_benchmark_are_ranked_and_the_others_stand_below(
    base: IndexBase,
) -> None:
    html = shown(base)
    whole = [name for name, on in METRICS.items() if set(WEIGHTED) <= set(on)]
    # A metric without a defined value somewhere lacks that benchmark.
    assert len(metrics_in(ranked_part(html))) == len(whole) - 1
    assert metrics_in(html)[0] == "VQAScore"
    assert metrics_in(partial_part(html)) == ["HPSv2", "always-half", "TIFA"]
    assert "8 metrics on all 5 benchmarks" in html


def test_it_is_said_which_benchmarks_a_metric_lacks_and_nothing_is_zero(base: IndexBase) -> None:
    rows = partial_part(shown(base)).split("<tr>")
    lacking = next(row for row in rows if "HPSv2" in row)
    assert ">4 of 5<" in lacking
    assert 'title="not run there">Contrast pairs<' in lacking
    assert "0.000" not in lacking
    undefined = next(row for row in rows if "always-half" in row)
    assert "no correlation is defined" in undefined
    assert ">Ratings of prompts</span></td>" in undefined


def test_metrics_without_any_weighted_benchmark_are_named(base: IndexBase) -> None:
    html = shown(base, "graphs:0,errors:0,genai_1600:0,accuracy:0,genai_527:0")
    assert "VQAScore" not in html.split("On no benchmark that has a weight")[1]


def test_a_metric_gets_a_rank_when_what_it_lacks_has_no_weight(base: IndexBase) -> None:
    html = shown(base, "accuracy:0")
    assert "HPSv2" in metrics_in(ranked_part(html))


def test_where_nobody_has_everything_it_is_said_what_to_do() -> None:
    found = index_base(index_view_of({"a": ("graphs",), "b": ("ratings",)}))
    html = shown(found)
    assert "No metric has results on all 2 benchmarks" in html
    assert sorted(metrics_in(partial_part(html))) == ["a", "b"]


def test_a_board_on_which_nobody_is_ranked_is_left_out() -> None:
    found = index_base(index_view_of({"always-half": ("ratings", "graphs")}))
    assert set(found.boards) == {"graphs"}
    assert "no metric has a rank" in found.left_out["ratings"]


def test_an_empty_store_has_an_index_page_too() -> None:
    found = index_base(view_of(None, cards(), Orders(memory_store())))
    assert found.comparison is None
    assert "No index yet" in shown(found)
    assert index_csv(found, choice_of(found), {}).count("\n") == 1
    assert "Left out" in how_made(found) or "not in the index" in how_made(found)


def test_with_all_weights_at_zero_the_page_asks_for_one(base: IndexBase) -> None:
    html = shown(base, ",".join(f"{name}:0" for name in base.boards))
    assert "All weights are 0" in html
    assert "<table" not in html


def test_weights_that_mislead_are_warned_of(base: IndexBase) -> None:
    assert "shares its images with another benchmark" in shown(base, "genai_527:1")
    assert "as-notice" not in shown(base)


def test_a_metric_that_was_trained_on_a_weighted_benchmark_is_marked(base: IndexBase) -> None:
    rows = shown(base).split("<tr>")
    marked = [row for row in rows if "trained on 1 benchmark of these" in row]
    assert len(marked) == 1
    assert "all or a part of Ratings of prompts." in marked[0]
    assert "trained on" not in shown(base, "ratings:0")


# Pictures.


def test_every_metric_has_a_bar_for_every_benchmark_with_its_value_on_hover(
    base: IndexBase,
) -> None:
    html = shown(base)
    first = html.split("<tbody>")[1].split("</tr>")[0]
    assert first.count("<g") == len(base.boards)
    assert first.count('class="as-bar"') == len(base.boards)
    assert re.search(r"<title>Error graphs: 0\.\d{3} \[.*?\] \(Spearman ρ 0\.\d{3} \[", first)
    lacking = next(r for r in html.split("<tr>") if "TIFA" in r)
    assert lacking.count('class="as-bar"') == 2
    assert "<title>Contrast pairs: not run there</title>" in lacking


def test_bars_of_benchmarks_without_a_weight_are_faint(base: IndexBase) -> None:
    first = shown(base, "graphs:0").split("<tbody>")[1].split("</tr>")[0]
    assert first.count('<g role="img" class="as-faint">') == 2


def test_drawings_have_names_and_headers_a_scope(base: IndexBase) -> None:
    html = shown(base) + how_made(base)
    assert all("aria-" in svg for svg in re.findall(r"<svg[^>]*", html))
    assert all('scope="' in th for th in re.findall(r"<th[ >][^>]*", html))


def test_a_hostile_name_is_text(base: IndexBase) -> None:
    html = shown(base) + shown(base, f"{NASTY}:1", NASTY)
    assert "<img" not in html
    assert "\u202e" not in html
    assert "{{" not in html
    assert "${" not in html


# Links and controls.


def test_the_start_has_no_query_string(base: IndexBase) -> None:
    assert choice_of(base).to_query(base.boards) == ""


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_link_restores_the_weights_and_the_order_it_was_made_from(data: st.DataObject) -> None:
    boards = index_boards(_VIEW)[0]
    weight = st.decimals(0, 5, places=6).map(float)
    weights = {name: data.draw(weight) for name in boards}
    order = data.draw(st.sampled_from(["index", "borda", "name", *boards]))
    link = IndexChoice(weights, order).to_query(boards)
    again = IndexQuery.from_params(dict(parse_qsl(link.removeprefix("?"))))
    assert resolve_index(again, boards, {}) == IndexChoice(weights, order)


_VIEW = index_view_of({"a": ("graphs", "ratings", "demo")})


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ("nope:1", "There is no benchmark “nope” here"),
        ("unscaled:1", "unscaled is not in the index: its card states no chance"),
        ("unused:1", "no metric published yet"),
        ("graphs", "is no weight for Error graphs"),
        ("graphs:", "is no weight for Error graphs"),
        ("graphs:-1", "“-1” is no weight"),
        ("graphs:nan", "“nan” is no weight"),
        ("graphs:inf", "“inf” is no weight"),
        ("graphs:1e3", "“1e3” is no weight"),
        ("graphs:1_0", "“1_0” is no weight"),
        ("graphs:١", "is no weight"),
        ("graphs:1:2", "“1:2” is no weight"),
        ("graphs:1,graphs:2", "“graphs” has several weights"),
        (f"{NASTY}:1", "There is no benchmark"),
        (":", "There is no benchmark “”"),
        ("x" * 100_000, "There is no benchmark"),
    ],
)
def test_what_a_link_asks_for_in_vain_is_said_and_changes_nothing(
    base: IndexBase, weights: str, said: str
) -> None:
    found = choice_of(base, weights)
    assert said in found.remarks[0]
    assert found.weights == choice_of(base).weights
    assert len(shown(base, weights)) < len(shown(base)) + 1000


def test_a_weight_beyond_the_heaviest_is_that_and_it_is_said(base: IndexBase) -> None:
    found = choice_of(base, "graphs:999")
    assert found.weights["graphs"] == HEAVIEST
    assert "Weights go up to 5, so Error graphs has that." in found.remarks


def test_a_link_full_of_mistakes_does_not_fill_the_page(base: IndexBase) -> None:
    found = choice_of(base, ",".join(f"bad{i}:1" for i in range(5000)))
    assert len(found.remarks) <= 6
    assert "more parts of the link could not be used" in found.remarks[-1]


def test_an_unknown_order_is_said_and_the_index_is_taken(base: IndexBase) -> None:
    found = choice_of(base, "", NASTY)
    assert found.order == "index"
    assert len(found.remarks) == 1


@pytest.mark.parametrize("order", ["index", "borda", "name", "errors"])
def test_rows_come_in_the_chosen_order(base: IndexBase, order: str) -> None:
    names = metrics_in(ranked_part(shown(base, "", order)))
    rows = {row.who.metric: row for row in base.standings(choice_of(base).weights)}
    if order == "name":
        shown_names = [name for name in names if "img" not in name]
        assert shown_names == sorted(shown_names, key=str.casefold)
        return
    of = base.values["errors"]
    keys = {
        "index": lambda row: row.standing.index.value,
        "borda": lambda row: row.standing.borda.value,
        "errors": lambda row: of[row.who].value,
    }
    values = [keys[order](rows[name]) for name in names if name in rows]
    assert values == sorted(values, reverse=True)
    assert (order in {value for _, value in order_options(base)}) is True


def test_the_controls_give_the_choice_they_show_and_an_emptied_field_is_zero(
    base: IndexBase,
) -> None:
    found = chosen(base, ["graphs", "ratings", "unused"], [2.5, None, 1.0], "borda")
    assert found.weights["graphs"] == 2.5
    assert found.weights["ratings"] == 0.0
    assert found.order == "borda"
    assert found.remarks == ()


def test_what_no_weight_changes_is_made_once_per_view(view: View) -> None:
    prepared = Prepared()
    assert prepared.of(view)[0] is prepared.of(view)[0]
    other = View(view.entries, view.boards, view.orders)
    assert prepared.of(other)[0] is not prepared.of(view)[0]


# The download.


def test_the_csv_holds_weights_scales_and_what_each_figure_is_computed_again_from(
    view: View, base: IndexBase
) -> None:
    choice = choice_of(base, "graphs:2")
    rows = list(csv.DictReader(io.StringIO(index_csv(base, choice, view.entries))))
    assert len(rows) == len(base.entries) * (1 + len(base.boards))
    whole = [row for row in rows if row["benchmark"] == INDEX]
    assert whole[0]["metric"] == "VQAScore"
    assert (whole[0]["rank_low"], whole[0]["rank"]) == ("1", "1")
    assert float(whole[0]["rescaled"]) == base.standings(choice.weights)[0].standing.index.value
    graphs = next(row for row in rows if row["benchmark"] == "graphs")
    assert (graphs["weight"], graphs["chance"], graphs["ceiling"]) == ("2.0", "0.0", "0.993902")
    assert (graphs["seed"], graphs["n_resamples"]) == ("7", "200")
    assert (graphs["plan"], graphs["versions"]) == ("0123abcd", "assay 1; numpy 2")


def test_in_the_csv_a_missing_benchmark_is_an_empty_field_with_the_reason(
    view: View, base: IndexBase
) -> None:
    rows = list(csv.DictReader(io.StringIO(index_csv(base, choice_of(base), view.entries))))
    of = {(row["metric"], row["benchmark"]): row for row in rows}
    assert of["TIFA", "graphs"]["value"] == of["TIFA", "graphs"]["rescaled"] == ""
    assert of["TIFA", "graphs"]["note"] == "not run on this benchmark"
    assert "no correlation is defined" in of["always-half", "ratings"]["note"]
    assert of["TIFA", INDEX]["rank"] == ""
    assert "it has none on" in of["TIFA", INDEX]["note"]


def test_an_identity_is_submitter_metric_version_kind_and_account(view: View) -> None:
    entry = next(iter(view.entries.values()))
    assert Identity.of(entry) == ("A group", "VQAScore", "1.0", Kind.METRIC, "")
