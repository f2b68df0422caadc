"""Tab of a benchmark: dense rows, what a filter and a click change, and what must be known."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.schema import Card
from leaderboard.publication.measure_names import info
from leaderboard.publication.reader import View, view_of
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.draws import Draws
from leaderboard.ranking.orders import Orders
from leaderboard.ranking.slices import Basis, Slice, ranked
from leaderboard.rendering import environment
from leaderboard.views.addresses import params_of
from leaderboard.views.boards import Arrangement, BoardQuery, Filters, columns_of, values_of
from leaderboard.web.benchmark_below import below_of
from leaderboard.web.benchmark_tab import benchmark_tab, board_html
from leaderboard.web.board_table import board_table, legend
from leaderboard.web.metric_parts import metric_tabs
from leaderboard.web.metric_parts import share as share_text
from leaderboard.web.page import Context
from tests.kit import boards as synthetic
from tests.kit.html import Node, harmless, named, parse, read
from tests.kit.store import memory_store
from tests.leaderboard.ranking.made_up_ranking import cell, ranking_of

CARD = synthetic.cards()["ratings"]
PLCC, COUNTING, SECONDS = "plcc~paper", "srcc~assay@counting", "cost:seconds"
HOSTILE = [
    synthetic.NASTY,
    "\x00",
    "'; drop table",
    "%",
    "-1",
    "9" * 400,
    "," * 5000,
    "a" * 100_000,
    "(.*",
]
FIRST = "made-up-0000/CLIPScore"


def body(view: View, arranged: Arrangement | None = None, filters: Filters | None = None,
         benchmark: str = "ratings", skill: str = "") -> Node:  # fmt: skip
    choice = synthetic.chosen(view, benchmark, skill, filters=filters or Filters(),
                    arranged=arranged or Arrangement())  # fmt: skip
    return read(board_html(choice, view))


def opened(view: View, metric: str) -> Node:
    """The details of a metric, unfolded."""
    page = body(view, Arrangement(opened=(synthetic.entry_of(view, metric),)))
    (details,) = page.all("tr.as-detail")
    return details


def queries(page: Node, path: str) -> list[BoardQuery]:
    return [BoardQuery.from_params(params_of(one)) for one in page.links("./?tab=benchmark:", path)]


def said(cells: Any, basis: Basis, card: Card = CARD) -> str:
    return " ".join(" ".join(line) for line in legend(cells, card, basis))


def table_of(view: View, cells: list[Cell]) -> str:
    table = board_table(cells, view.entries, CARD, info(CARD, "srcc"), "")
    macros = environment().get_template("metrics/board_table.html").module
    return str(macros.board_table(table))  # type: ignore[attr-defined]


# Rows.


def test_rows_stand_below_their_tier_with_rank_range_value_interval_share_of_the_best_and_clusters(
    view: View,
) -> None:
    page = body(view)
    named(page)
    first = page.rows[0]
    heads = {head.split()[0]: head for head in first}
    assert list(heads) == ["Rank", "Pin", "Spearman", "Best", "Prompt", "Missing", "Pairs/s"]
    texts = {name: first[head].text for name, head in heads.items()}
    assert texts["Rank"] == "1–6 CLIPScore 1.0" and texts["Spearman"] == "0.720 [0.632, 0.812]"
    assert (texts["Best"], texts["Prompt"], texts["Pairs/s"]) == ("69%", "120", "38.4")
    assert len(first[heads["Spearman"]].one("svg").all("line")) == 2  # chance and interval
    labels = list(page.groups)
    assert labels == [*(f"Tier {n}" for n in range(1, len(labels))), "Without a rank"]
    assert len(labels) > 2 and page.groups["Tier 1"][0] == "CLIPScore"
    assert page.groups["Without a rank"][-1] == "always-half" and len(page.names) == len(
        synthetic.METRICS
    )
    assert page.row("always-half").one(".as-rk")["title"] == "ran without isolation"


@pytest.mark.parametrize(
    ("metric", "words"),
    [("CLIPScore", "not isolated"), ("BLIP2-ITM", "not re-run"), ("PickScore", "trained on"),
     ("ImageReward", "12 missing"), ("CLIPScore", "A group")],
)  # fmt: skip
def test_what_must_be_known_stands_in_the_details_that_a_link_opens_and_folds(
    view: View, metric: str, words: str
) -> None:
    folded = body(view)
    assert not folded.all("tr.as-detail") and words not in folded.row(metric).text
    own = (synthetic.entry_of(view, metric),)
    (query,) = {q for q in queries(folded, ".as-row-open") if q.arranged.opened == own}
    page = body(view, query.arranged)
    details = page.one("tr.as-detail")
    assert words in details
    assert details.links("./metric?id=") and details.links("./compare")
    link = page.row(metric).one(".as-row-open")
    assert link["aria-expanded"] == "true"
    assert BoardQuery.from_params(params_of(link["href"])).arranged.opened == ()


def test_marks_say_what_was_trained_on_it_and_what_is_not_above_chance(view: View) -> None:
    assert body(view).row("PickScore").all("sup[title=Trained on this benchmark]")
    low = {"ci_low": -0.2, "ci_high": 0.4, "value": 0.1}
    rows = [cell(FIRST, **low), cell("made-up-0001/BLIP2-ITM", 2, ci_low=0.3, ci_high=0.6)]  # type: ignore[arg-type]
    card = CARD.model_copy(update={"headline_scale": None})
    measure = info(card, "srcc").model_copy(update={"chance": 0.0})
    card = card.model_copy(update={"measures": {**card.measures, "srcc": measure}})
    table = board_table(rows, view.entries, card, measure, "")
    values = [row["value"] for _, found in table["parts"] for row in found]
    assert [(v.not_significant, v.below) for v in values] == [(True, False), (False, False)]
    below = board_table([cell(FIRST, ci_low=-0.5, ci_high=-0.1)], view.entries, card, measure, "")
    assert below["parts"][0][1][0]["value"].below


def test_too_few_items_are_shown_without_an_order_the_better_value_first(view: View) -> None:
    page = body(view, benchmark="tiny")
    assert "Too few" in page and not page.all(".as-rk b")
    assert page.names[-1] == "CLIPScore"  # the largest error, where lower is better
    assert "lower is better" in page


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0%"), (0.001, "< 1%"), (0.5, "50%"), (0.999, "> 99%"), (1.0, "100%")]
)
def test_a_chance_is_never_rounded_to_none_or_all(share: float, text: str) -> None:
    assert share_text(share) == text


# Filters.


def test_a_filtered_board_keeps_its_ranks_until_tests_within_are_asked_for_and_marked(
    view: View,
) -> None:
    filters = Filters("tifa,dsg,siglip")
    whole, page = body(view), body(view, filters=filters)
    for name in ("TIFA", "DSG", "SigLIP-2"):
        assert page.row(name).one(".as-rk")["title"] == whole.row(name).one(".as-rk")["title"]
    assert set(page.groups) <= set(whole.groups) and "45 pairs" in page
    assert [row["Rank in filter"].text for row in page.rows] == ["1", "2", "3"]
    (asked,) = queries(page, "a[data-go=within]")
    assert asked.filters == replace(filters, within=True)
    within = body(view, filters=asked.filters)
    ranks = [re.match(r"Rank (\d) of (\d)", one["title"]) for one in within.all("tbody .as-rk")]
    assert [one and one.groups() for one in ranks] == [("1", "3"), ("2", "3"), ("3", "3")]
    assert "3 pairs" in within and "Rank in filter" not in within.texts("th")
    note = within.one(".as-note.as-warn[role=status]")
    assert note.text.startswith("Chosen after seeing the data.")
    assert [q.filters for q in queries(note, "a")] == [filters]
    assert "after seeing the data" in read(
        below_of(synthetic.chosen(view, filters=asked.filters), view)
    )


def test_each_active_filter_is_a_chip_that_leads_to_the_view_without_it(view: View) -> None:
    filters = Filters("clip, hps", "metric", True)
    bar = body(view, Arrangement((PLCC,)), filters).one("[aria-label=Filters]")
    found = queries(bar, "a.as-fchip")
    assert [one.filters for one in found] == [left for _, left in filters.parts()]
    assert all(one.arranged.columns == (PLCC,) for one in found)
    assert not body(view).all("[aria-label=Filters]")
    nobody = body(view, filters=Filters("zzz"), skill="counting")
    assert "None of 12" in nobody and not nobody.all("table")
    assert "./?tab=benchmark:ratings&skill=counting&measure=srcc~assay" in nobody.links()


# Columns, sorting, pins.


def test_chosen_columns_have_direction_and_values_of_their_own_slice_that_lead_to_examples(
    view: View,
) -> None:
    keys = (PLCC, COUNTING, SECONDS, "meta:kind")
    page = body(view, Arrangement(keys))
    heads = [head.text for head in page.all("thead th")]
    titles = ["Pearson r higher is better", "Spearman ρ · summary by Assay, Counting higher is better",
              "Seconds lower is better", "Scores"]  # fmt: skip
    assert [title for title in heads if title in titles] == titles
    board, entry = view.boards["ratings"], synthetic.entry_of(view, "VQAScore")
    values = values_of(board, columns_of(board, [COUNTING])[0], view.entries)
    found = page.row("VQAScore").all("td.as-fig")
    assert [one.text for one in found[1:]] == [f"{values.of(entry):.3f}", "14.5", "run by Assay"]
    examples = f"./compare?benchmark=ratings&a={entry}"
    assert found[1].links() == [f"{examples}&skill=counting&view=examples"]
    (chips,) = page.all("[aria-label=Columns]")
    assert next(q.arranged.columns for q in queries(chips, "a")) == keys[1:]
    offered = {one["value"] for one in page.all("#as-columns option")}
    assert "meta:version" in offered and not offered & set(keys)


def test_where_answers_are_not_public_no_value_leads_to_items(view: View) -> None:
    choice = synthetic.chosen(view)
    choice.board.card = choice.board.card.model_copy(update={"answers_public": False})
    try:
        assert not read(board_html(choice, view)).links("./compare")
    finally:
        choice.board.card = synthetic.cards()["ratings"]


def test_every_heading_sorts_and_rows_keep_their_ranks(view: View) -> None:
    page = body(view, Arrangement((PLCC,)))
    sorts = [q.arranged.sort for q in queries(page, "thead a.as-sort")]
    assert sorts == ["", "metric", "value", "best_share", "n", PLCC, "cost:pairs_per_s"]
    plain, by_plcc = body(view), body(view, Arrangement((PLCC,), sort=PLCC))
    ranks = [sorted(one["title"] for one in p.all("tbody .as-rk")) for p in (plain, by_plcc)]
    assert ranks[0] == ranks[1] and not by_plcc.groups
    assert [h.text for h in by_plcc.all("[aria-sort=descending]")] == ["Pearson r higher is better"]
    again = [q.arranged.sort for q in queries(by_plcc, "[aria-sort=descending] a")]
    assert again == [f"-{PLCC}"]
    assert plain.one("th.as-first")["aria-sort"] == "ascending"  # by rank


def test_pinned_rows_stand_on_top_and_two_lead_to_a_comparison(view: View) -> None:
    links = queries(body(view, Arrangement((PLCC,))), "a.as-pin")
    assert [view.entries[q.arranged.pins[0]].metric for q in links][:3] == body(view).names[:3]
    assert len({q.arranged.pins for q in links}) == len(synthetic.METRICS)
    assert {q.arranged.columns for q in links} == {(PLCC,)}
    pins = (synthetic.entry_of(view, "DSG"), synthetic.entry_of(view, "TIFA"))
    page = body(view, Arrangement(pins=pins))
    assert page.names[:2] == ["DSG", "TIFA"] and len(page.names) == len(synthetic.METRICS)
    ranked = "./compare?benchmark=ratings&measure=srcc~paper"
    assert page.links(ranked) == [f"{ranked}&a={pins[0]}&b={pins[1]}"]
    assert not body(view, Arrangement(pins=pins[:1])).links(ranked)
    filtered = body(view, Arrangement(pins=pins), Filters("tifa, clip"))
    assert "DSG" not in filtered.names and "Unpin DSG" in filtered.one("[aria-label=Pinned]")


def test_a_form_keeps_what_it_has_no_control_for_and_drops_tests_within(view: View) -> None:
    arranged = Arrangement((PLCC,), (FIRST,), PLCC, 2, (FIRST,))
    page = body(view, arranged, Filters("clip", "metric", True, within=True))
    form = page.one("form[data-go]")
    hidden = {one["name"]: one["value"] for one in form.all("input[type=hidden]")}
    assert hidden == {"tab": "benchmark:ratings", "pin": FIRST, "sort": PLCC, "open": FIRST,
                      "columns": PLCC}  # fmt: skip
    assert form.one("input[name=search]")["value"] == "clip"
    assert "checked" in form.one("input[name=untrained]").attrs
    chosen_ = [o["value"] for o in form.all("option") if "selected" in o.attrs]
    assert chosen_ == ["srcc~paper", "metric"]
    skills = {o["value"] for o in form.all("input[name=skill]")}
    assert skills == set(view.boards["ratings"].skills())


# What is said around the table.


def test_the_legend_counts_tests_and_resamples(view: View) -> None:
    words = body(view).text
    for figure in ("45 pairs", "α = 0.05", "200 bootstrap resamples", "joint", "permutation"):
        assert figure in words  # ten of twelve are ranked
    assert "simulated" in body(view).one("[role=note]")
    assert "simulated" not in body(view, benchmark="graphs")


def test_without_contributions_there_are_no_tiers_and_the_page_says_why() -> None:
    store = synthetic.fill(memory_store())
    gone = [path for path in store.public.list("results") if ".influence." in path]
    synthetic.keep(store, dict.fromkeys(gone))
    bare = view_of(synthetic.snapshot(), synthetic.cards(), Orders(store))
    page = body(bare)
    assert "No tiers:" in page and not page.groups
    below = read(below_of(synthetic.chosen(bare), bare))
    assert "All pairs" not in below
    assert "Nothing could be tested" in below and below.all("td.is-best")


def test_the_share_of_missing_scores_has_a_column_where_any_is_missing(view: View) -> None:
    cells = list(ranking_of([0.9, 0.5], 0.1).cells)
    lacking = [cells[0], cells[1].model_copy(update={"n_items": 47, "n_missing": 3})]
    for of, shares in ((cells, []), (lacking, ["", "6%"])):
        page = read(table_of(view, of))
        heads = page.texts("thead th")
        at = [i for i, head in enumerate(heads) if head.startswith("Missing")]
        rows = [row for row in page.all("tbody tr") if row.all("td")]
        assert [row.all("td")[at[0] - 1].text for row in rows if at] == shares


def test_an_entry_without_contributions_is_ranked_untested_and_counted(view: View) -> None:
    base = ranking_of([0.9, 0.5, 0.1], 0.001)
    shares = base.draws.contributions.copy()
    shares[1] = np.nan
    part = ranked(Slice(base.cells, Draws(base.draws.resamples, shares)), CARD).best_first(CARD)
    page = read(table_of(view, list(part.cells)))
    assert "without a tier" in page
    words = said(part.cells, Basis.of(part))
    assert "1 metric has no stored" in words and "the 1 pair" in words
    alone = ranking_of([0.5], 0.1)
    assert "a single metric" in said(alone.cells, Basis.of(alone))


def test_an_empty_board_says_so_and_how_to_submit(view: View) -> None:
    page = body(view, benchmark="unused")
    assert not page.all("table") and "./submit" in page.links()
    nothing = view_of(None, synthetic.cards(), Orders(memory_store()))
    assert not body(nothing).all("table")
    assert below_of(synthetic.chosen(view, "unused"), view) == ""


# The tab.


@pytest.mark.first_quick
@pytest.mark.parametrize(
    "name",
    ["benchmark", "tab", "skill", "measure", "search", "kind", "untrained", "within", "columns",
     "pin", "sort", "rows_page", "open", "view"],
)  # fmt: skip
def test_whatever_a_link_holds_the_tab_is_whole_and_harmless(site: Context, name: str) -> None:
    layout = name in {"columns", "pin", "sort", "rows_page", "open"}
    for value in HOSTILE:
        found = benchmark_tab(site, {"benchmark": "ratings", name: value})
        assert len(parse(found.html).all("h1")) == 1 and len(found.html) < 200_000
        assert len(found.query) < (200 if layout else 2000)


@pytest.fixture(scope="module")
def site() -> Context:
    return synthetic.site_of(synthetic.fill(memory_store()))


def test_the_tab_of_a_benchmark_is_its_board_by_either_name(site: Context) -> None:
    by_tab = benchmark_tab(site, {"tab": "benchmark:graphs", "skill": ""})
    assert by_tab == benchmark_tab(site, {"benchmark": "graphs"})
    assert by_tab.title == "Error graphs: Rank order · all splits · as in the paper, All skills"
    assert by_tab.query == "?tab=benchmark:graphs&measure=rank~paper~all"


def test_every_benchmark_is_a_tab_that_keeps_the_filter_but_not_tests_within_it(view: View) -> None:
    every = metric_tabs(view, "benchmark:graphs", filters=Filters(kind="metric", within=True))
    tabs = [tab for tab in every if tab.group == "Benchmark"]
    assert [tab.title for tab in tabs if tab.current] == ["Error graphs"]
    asked = [BoardQuery.from_params(params_of(tab.href)) for tab in tabs]
    assert {one.benchmark for one in asked} == set(view.group().boards)
    assert {one.filters for one in asked} == {Filters(kind="metric")}


@pytest.mark.parametrize("part", [board_html, below_of])
def test_a_hostile_name_is_text(view: View, part: Any) -> None:
    html = part(synthetic.chosen(view), view)
    harmless(html)
    assert any(name.startswith("<img src=x") for name in read(html).names)
