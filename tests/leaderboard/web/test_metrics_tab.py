"""First tab of the Metrics place: who leads, in which order, what a filter may change, what is said."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from starlette.datastructures import QueryParams

from benchmarks.released.bundle import FOLDER
from benchmarks.schema import Benchmark
from benchmarks.scores import read_scores
from benchmarks.tifa160.protocol import TIFA160
from benchmarks.ts2.protocol import Ts2
from leaderboard.publication.entries import RankCount, count_ranked
from leaderboard.publication.metric_facts import facts_of, metric_in_words, metric_name
from leaderboard.publication.reader import SIMULATED, BoardIndex, View, headline_cells
from leaderboard.publication.results import Published
from leaderboard.publication.snapshot import Board
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.draws import Draws
from leaderboard.records import RunResult
from leaderboard.text import clean, number
from leaderboard.views.boards import BoardQuery, resolve
from leaderboard.views.compare import entry_options, named_metric
from leaderboard.views.metric import MetricOnBoards, MetricQuery, on_boards
from leaderboard.views.metric_table import MetricTable, metric_rows
from leaderboard.views.metrics import PAGE_ROWS, MetricsQuery, metrics_view
from leaderboard.views.rankings import board_ranking, flops_text, picks, verdict
from leaderboard.web.benchmark_tab import board_html
from leaderboard.web.metric_parts import MOST_POINTS, cost_chart, place_words
from leaderboard.web.metrics_tab import board_of, legend_of, metrics_tab
from leaderboard.web.page import Context
from leaderboard.web.pages.metric_page import metric_html
from leaderboard.web.skill_tab import skill_tab
from tests.kit import boards as synthetic
from tests.kit.html import Node, parse, read
from tests.kit.store import memory_store
from tests.leaderboard.web import index_fixture, skills_fixture

WEIGHTED = tuple(name for name in index_fixture.REAL if name != "genai_527")
ZERO = ",".join(f"{name}:0" for name in index_fixture.REAL)


@pytest.fixture(scope="module")
def indexed() -> Context:
    return synthetic.site_of(index_fixture.fill(memory_store()), cards_=index_fixture.cards())


@pytest.fixture(scope="module")
def boards() -> Context:
    return synthetic.site_of()


def query_of(address: str = "") -> MetricsQuery:
    return MetricsQuery.from_params(QueryParams(address))


def shown(context: Context, address: str = "") -> Node:
    html = metrics_tab(context, query_of(address)).html
    return parse(html)


def names(page: Node) -> list[str]:
    return [row.one("bdi").text for row in page.all(".as-board tr[data-row]")]


def tiers(page: Node) -> list[str]:
    return page.texts("tr.as-tier b")


def ranks(page: Node) -> dict[str, str]:
    rows = page.all(".as-board tbody tr[data-row]")
    return {row.one("bdi").text: row.one(".as-rk").text for row in rows}


def cell(page: Node, name: str, column: str) -> Node:
    heads = [one.text for one in page.one(".as-board thead tr").all("th")]
    place = next(k for k, head in enumerate(heads) if head.startswith(column))
    row = next(r for r in page.all(".as-board tr[data-row]") if r.one("bdi").text == name)
    return [n for n in row.nodes if n.tag in {"th", "td"}][place]


def released(*benchmarks: tuple[Benchmark, str]) -> Context:
    """A site of released scores files."""
    runs = []
    for place, (benchmark, paper) in enumerate(benchmarks):
        answers = benchmark.answers(None)
        table = read_scores(FOLDER / benchmark.name / "scores.parquet", benchmark, answers)
        measured = benchmark.evaluate(table, answers, n_resamples=60)
        own = synthetic.submission(
            place, "released", (benchmark.name,), metrics=table.metrics, released_with=paper
        )
        result = RunResult(
            submission_id=own.submission_id, benchmark=benchmark.name,
            revision=benchmark.card.revision, rows=tuple(row.to_json() for row in measured.rows),
            resampling_seed=1, n_resamples=60, isolation=("scores as submitted",), versions={},
            judged_at=synthetic.NOW,
        )  # fmt: skip
        runs.append(Published(own, result, Draws(measured.resamples, measured.contributions)))
    known = {benchmark.name: benchmark.card for benchmark, _ in benchmarks}
    return synthetic.site_of(synthetic.publish(memory_store(), runs, known), cards_=known)


@pytest.fixture(scope="module")
def papers() -> Context:
    from benchmarks.published import papers as known

    return released((Ts2(), known()["ts2"].citation), (TIFA160, known()["tifa"].citation))


# Which boards are compared: those of real data with each other, simulated ones apart.


@pytest.mark.parametrize(
    ("metrics", "simulated", "found"),
    [({"a": ("graphs",), "b": ("demo",)}, False, "a"), ({"a": ("graphs",), "b": ("demo",)}, True, "b"),
     ({"a": ("graphs",)}, False, "a"), ({"b": ("demo",)}, False, "b"), ({"b": ("demo",)}, True, "b")],
)  # fmt: skip
def test_a_group_is_of_one_kind_and_the_real_one_where_both_have_results(
    metrics: dict[str, tuple[str, ...]], simulated: bool, found: str
) -> None:
    whole = index_fixture.index_view_of(metrics)
    group = whole.group(SIMULATED if simulated else "")
    assert {board.card.simulated for board in group.boards.values()} == {found == "b"}
    assert {entry.metric for entry in group.entries.values()} == {found}
    assert (
        group is whole.group(SIMULATED if simulated else "")
        and whole.group() is whole.group().group()
    )
    assert (len(whole.groups) == 2) is (len(metrics) == 2)


def test_simulated_boards_stand_apart_and_an_empty_site_leads_to_the_form(indexed: Context) -> None:
    real, apart = shown(indexed), shown(indexed, "ratings=simulated")
    assert "only simulated" not in names(real) and "only simulated" in names(apart)
    assert "./?ratings=simulated" in real.links() and "./" in apart.links()
    empty = shown(synthetic.site_of(memory_store()))
    assert not empty.all(".as-board") and "./submit" in empty.links()


# The index and its weights.


def test_metrics_with_every_weighted_benchmark_are_ranked_in_tiers_and_the_others_stand_below(
    indexed: Context,
) -> None:
    base = indexed.prepared.of(indexed.reader.view().group())
    weights = {name: board.weight for name, board in base.boards.items()}
    found = [one.standing for one in base.index_ranks(weights) if one.standing.rank]
    page = shown(indexed)
    assert [number(one.index.value) for one in found] == [
        cell(page, clean(one.metric.split("\x1f")[1]), "Index").one("b").text for one in found
    ]
    levels = list(dict.fromkeys(one.tier for one in found))
    assert tiers(page)[:-1] == [f"Tier {tier}" for tier in levels] and len(levels) > 2
    whole = [name for name, on in index_fixture.METRICS.items() if set(WEIGHTED) <= set(on)]
    # A metric without a defined value somewhere lacks that benchmark.
    assert sum(rank != "–" for rank in ranks(page).values()) == len(whole) - 1 == len(found)
    assert ranks(page)["HPSv2"] == ranks(page)["TIFA"] == "–"
    for name, lacks in (("HPSv2", "accuracy"), ("always-half", "ratings")):
        assert lacks in cell(page, name, "Index")["title"]
    assert ranks(shown(indexed, "w=accuracy:0"))["HPSv2"] != "–"
    other = "w=graphs:1,ratings:0,errors:0,genai_1600:0,accuracy:0"
    assert tiers(shown(indexed, other)) != tiers(page)


def test_weights_come_from_an_address_or_from_the_fields_of_the_form_and_go_into_the_link(
    indexed: Context,
) -> None:
    fields = "&".join(f"w.{name}={1 if name in WEIGHTED else 0}" for name in index_fixture.REAL)
    assert metrics_tab(indexed, query_of(fields)).query == ""
    asked = fields.replace("w.graphs=1", "w.graphs=2.5").replace("w.accuracy=1", "w.accuracy=")
    query = metrics_tab(indexed, query_of(asked)).query
    assert "graphs:2.5" in query and "accuracy:0" in query
    assert metrics_tab(indexed, query_of(query.removeprefix("?"))).query == query
    page = shown(indexed, query.removeprefix("?"))
    (field,) = page.all("input[name=w.graphs]")
    assert field["value"] == "2.5" and "./" in [one["href"] for one in page.all("a[data-go=equal]")]
    data = [link for link in page.links("./v1/index") if "format=csv" in link]
    assert data == [f"./v1/index{query}&format=csv"]


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("address", "said"),
    [("w=nope:1", "nope"), (f"w={ZERO}", "weights are 0"), ("cols=nope,graphs", "nope"),
     ("sort=-nope", "nope"), ("access=open", "open"), ("w=genai_527:1", "shares its images")],
)  # fmt: skip
def test_what_cannot_be_shown_or_misleads_is_said(
    indexed: Context, address: str, said: str
) -> None:
    page = shown(indexed, address)
    assert said in " ".join(page.texts(".as-note")) and page.all(".as-board")
    assert not shown(indexed).all(".as-note")


def test_weights_that_no_metric_fulfils_are_said_to_give_no_index() -> None:
    apart = index_fixture.fill(memory_store(), {"a": ("graphs",), "b": ("ratings",)})
    context = synthetic.site_of(apart, cards_=index_fixture.cards())
    (note,) = shown(context, "w=graphs:2").texts(".as-note")
    assert "Error graphs, Ratings of prompts" in note and "no index" in note
    assert not shown(context).all(".as-note")


# Rows and their order.


def test_a_metric_that_was_sent_twice_counts_once() -> None:
    *_, again = index_fixture.runs_of(dict.fromkeys(("p", "q", "r", "s", "a"), ("graphs",)))
    own = again.submission.model_copy(update={"version": "1.0"})
    runs = index_fixture.runs_of(dict.fromkeys(("a", "b", "c", "d"), ("graphs",)))
    runs.append(replace(again, submission=own))
    store = synthetic.publish(memory_store(), runs, index_fixture.cards())
    page = shown(synthetic.site_of(store, cards_=index_fixture.cards()), "sort=-graphs")
    ranked = [name for name, rank in ranks(page).items() if rank != "–"]
    assert sorted(ranked) == ["a", "b", "c", "d"]
    assert "4 metrics · 4 ranked" in page.texts("[role=status]")
    counts = [int(tier.text.split(" metric")[0].split()[-1]) for tier in page.all("tr.as-tier")]
    assert sum(counts) == 4 and not any(" of " in tier.text for tier in page.all("tr.as-tier"))
    some = shown(synthetic.site_of(store, cards_=index_fixture.cards()), "q=a, b, c, d")
    within = [cell(some, name, "Rank in filter").text for name in ranked]
    assert sorted(within) == ["1", "2", "3", "4"]
    # Each of its entries has a rank of its own, so a rank is of more than there are metrics.
    view = synthetic.view_over(store, index_fixture.cards(), runs)
    ranking = board_ranking(view.boards["graphs"], view.entries)
    assert ranking.n_ranked == RankCount(4, 5)
    assert count_ranked(headline_cells(view.boards["graphs"]), view.entries) == ranking.n_ranked
    first = place_words(ranking.ranked_metrics[0], ranking.n_ranked)
    assert f"rank {ranking.ranked_metrics[0].range} of 5 entries" in first
    (on,) = on_boards(MetricOnBoards(ranking.places[0].entry, None, ()), view)
    assert on.ranked == ranking.n_ranked


@pytest.mark.parametrize(("count", "text"), [((19, 19), "19"), ((19, 20), "20 entries")])
def test_what_a_rank_is_of_says_what_it_counts(count: tuple[int, int], text: str) -> None:
    assert str(RankCount(*count)) == text


def test_metrics_with_every_benchmark_of_the_index_come_first_the_best_on_top(
    indexed: Context,
) -> None:
    rows = metric_rows(indexed.reader.view().group())
    has = [len(row.index.boards) if row.index else 0 for row in rows]
    assert has == sorted(has, reverse=True)
    values = [row.index.value for row in rows if row.index and len(row.index.boards) == 5]
    assert values == sorted(values, reverse=True) and len(values) > 3
    # A board outside the index moves nobody: VQAScore alone is on one.
    assert rows[0].entry.metric == "VQAScore" and "unscaled" in rows[0].cells


def test_without_an_index_metrics_on_the_same_boards_stand_together_best_mean_place_first(
    boards: Context,
) -> None:
    every = metric_rows(boards.reader.view())
    rows = [row for row in every if row.relative is not None]
    assert every[: len(rows)] == rows and len(rows) < len(every)  # The unranked come last.
    groups = [frozenset(row.cells) for row in rows]
    assert sum(one != other for one, other in pairwise(groups)) == len(set(groups)) - 1
    for one, other in pairwise(rows):
        if one.cells.keys() == other.cells.keys():
            assert (one.relative or 0) <= (other.relative or 0)


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("sort", "column"),
    [("-errors", "Squared errors"), ("errors", "Squared errors"), ("-graphs", "Error graphs"),
     ("graphs", "Error graphs"), ("-borda", "Borda"), ("-index", "Index")],
)  # fmt: skip
def test_a_heading_sorts_and_what_has_no_value_is_last_in_both_directions(
    indexed: Context, sort: str, column: str
) -> None:
    key = sort.removeprefix("-")
    page = shown(indexed, f"sort={sort}&cols=index,borda,errors,graphs")
    rows = page.all(".as-board tr[data-row]")
    values = [
        (row.one("bdi").text, cell(page, row.one("bdi").text, column)["data-v"]) for row in rows
    ]
    known = [float(value) for _, value in values if value]
    assert all(not value for _, value in values[len(known) :])
    tested = (key, sort.startswith("-")) in {("errors", False), ("graphs", True), ("index", True)}
    # By a tested ranking, best first, rows stand in its tiers; else plainly by the column.
    assert bool(tiers(page)) is tested
    if not tested:
        assert known == sorted(known, reverse=sort.startswith("-"))
    (head,) = (one for one in page.all("thead th") if one["aria-sort"])
    assert head["aria-sort"] == ("descending" if sort.startswith("-") else "ascending")
    assert head.one("button")["data-key"] == key
    by_name = names(shown(indexed, "sort=name"))
    assert len(by_name) > 3 and by_name == sorted(by_name, key=str.casefold)


def test_only_columns_that_hold_something_are_offered_and_those_chosen_are_shown(
    indexed: Context, papers: Context
) -> None:
    offered = {box["value"] for box in shown(indexed).all("input[name=cols]")}
    assert "seconds" not in offered and "backbone" not in offered and "graphs" in offered
    page = shown(papers)
    assert {"backbone", "access", "flops", "year", "paper"} <= {
        box["value"] for box in page.all("input[name=cols]")
    }
    fewer = shown(papers, "cols=tifa160,paper")
    heads = fewer.texts(".as-board thead button")
    assert heads == ["Rank range · Metric", "TIFA160", "Paper"]
    every = ",".join(box["value"] for box in page.all("input[name=cols]") if "checked" in box.attrs)
    assert metrics_tab(papers, query_of(f"cols={every}")).query == ""


# A filter changes no rank, no tier and no p-value of the whole board.


def test_a_filter_leaves_ranks_and_tiers_those_of_the_whole_board(papers: Context) -> None:
    whole, some = shown(papers), shown(papers, "q=clipscore, alignscore&access=open")
    before, after = ranks(whole), ranks(some)
    assert set(after) == {"CLIPScore", "ALIGNScore"}
    assert after["ALIGNScore"] == before["ALIGNScore"]
    levels = [label for label in tiers(some) if label.startswith("Tier")]
    assert set(levels) <= set(tiers(whole))
    assert some.one("h1").text == whole.one("h1").text
    assert [cell(some, "ALIGNScore", "Rank in filter").text, "of 2" in some] == ["1", True]
    assert not any(head.startswith("Rank in filter") for head in whole.texts("thead th"))


def test_filters_are_chips_that_lead_to_the_state_without_them(papers: Context) -> None:
    page = shown(papers, "q=dsg&access=open&method=Questions&cost=1e15")
    chips = page.all(".as-fchip")
    assert [chip["data-go"] for chip in chips] == ["un-q", "un-method", "un-access", "un-cost"]
    assert "q=dsg" not in chips[0]["href"] and "access=open" in chips[0]["href"]
    assert all("DSG" in name for name in names(page)) and "of 29 metrics" in page
    # Who does not state a cost may have any.
    assert set(names(shown(papers, "cost=1e12"))) == {"ALIGNScore", "CLIPScore"}
    none = shown(papers, "q=nobody-has-this-name")
    assert not none.all(".as-board") and none.one(".as-empty").links("./")


# The verdict and the picks.


def test_the_verdict_on_released_scores_is_a_tested_fact(papers: Context) -> None:
    page = shown(papers)
    ranking = board_ranking(papers.reader.view().boards["ts2"], papers.reader.view().entries)
    best = ranking.leading[0]
    assert sum(one.tier == 1 for one in ranking.ranked) > 2
    assert "not significantly worse" in verdict(ranking).sentence
    assert metric_in_words(best.entry) in page.one("h1").text and "ts2" not in page.one("h1").text
    assert page.texts(".as-picks dt") == [
        "Highest", "With open weights", "Under 1 TFLOP a pair", "Cheapest of tier 1"
    ]  # fmt: skip
    assert page.texts(".as-picks dd b")[-1] == "CLIPScore"
    first = names(page)[0], cell(page, names(page)[0], "T2IScoreScore").one("b").text
    assert first == (facts_of(best.entry).title, number(best.value))
    skill = read(skill_tab(papers, query_of("tab=skill:tifa160.coco")).html)
    assert "COCO captions (TIFA160)" in skill.one("h1")


def test_a_metric_of_a_release_has_one_name_on_every_page(papers: Context) -> None:
    view = papers.reader.view()
    entry = next(one for one in view.entries.values() if one.metric == "gpt4v_dsg")
    about = read(metric_html(papers, MetricQuery(entry.entry_id)))
    assert about.one(".as-crumbs [aria-current]").text == "DSG · GPT-4V"
    assert "gpt4v_dsg" in about.one("dl dd").text  # as the release has it
    board = read(board_html(resolve(BoardQuery("ts2"), view.boards), view))
    titles = [row.one("th.as-first").text for row in board.all("tbody tr") if row.all("td")]
    assert any("DSG" in title and "GPT-4V" in title for title in titles)
    assert not any("gpt4v_dsg" in title for title in titles)
    assert named_metric("a", entry).name == metric_name(entry) == "DSG · GPT-4V"
    assert entry_options([entry.entry_id], (), view)[0].label == "DSG · GPT-4V"


def cells_of(*given: tuple[int | None, float | None]) -> tuple[Cell, ...]:
    return tuple(
        Cell(
            entry_id=f"e{place}", measure="rank", variant="paper", split="all", facet=None, skill=None,
            value=0.5 - 0.01 * place, ci_low=low, ci_high=None if low is None else 0.6, n_items=90,
            n_clusters=90, n_missing=0, note="", rank=place, rank_low=place, rank_high=place, tier=tier,
        )
        for place, (tier, low) in enumerate(given, 1)
    )  # fmt: skip


def board_with(
    *given: tuple[int | None, float | None], **entry: Any
) -> tuple[BoardIndex, dict[str, Any]]:
    made = cells_of(*given)
    some = next(iter(synthetic.view().entries.values()))
    entries = {
        one.entry_id: some.model_copy(update={"entry_id": one.entry_id, "metric": one.entry_id,
                                              "template": "", "trained_on": (), **entry})
        for one in made
    }  # fmt: skip
    return BoardIndex(Board(card=synthetic.cards()["graphs"], cells=made)), entries


@pytest.mark.parametrize(
    ("tiers_of", "said"),
    [((1, 2, 2), "The next metric is significantly worse"), ((1, 1, 2), "One other metric of its tier is"),
     ((1, 1, 1, None), "Two others of its tier are"), ((1,), ""), ((None, None), ""), ((1, None), "")],
)  # fmt: skip
def test_the_verdict_says_whether_the_leader_is_significantly_ahead(
    tiers_of: tuple[int | None, ...], said: str
) -> None:
    found = verdict(board_ranking(*board_with(*((tier, 0.2) for tier in tiers_of)))).sentence
    assert "e1 ranks highest" in found and said in found
    assert ("significantly" in found) is bool(said)


@pytest.mark.parametrize(
    ("lows", "entry", "leader"),
    [((-0.1, -0.1), {}, None), ((0.0, 0.0), {}, None), ((None, None), {}, None),
     ((-0.1, 0.3, 0.3), {}, "e2"), ((0.2,), {"template": "plain"}, None), ((0.2,), {}, "e1"),
     ((0.2,), {"trained_on": ("graphs",)}, None)],
)  # fmt: skip
def test_only_what_beats_chance_and_is_neither_template_nor_trained_there_leads(
    lows: tuple[float | None, ...], entry: dict[str, Any], leader: str | None
) -> None:
    ranking = board_ranking(*board_with(*((1, low) for low in lows), **entry))
    assert [one.entry.metric for one in ranking.leading[:1]] == ([leader] if leader else [])
    found = verdict(ranking).sentence
    assert (f"{leader} ranks highest" in found) is (leader is not None)
    assert picks(ranking, {}, "flops") == () or leader
    if leader is None:
        assert "No metric" in found and "ranks highest" not in found


def test_too_few_clusters_order_nobody(boards: Context) -> None:
    view = boards.reader.view()
    few = board_ranking(view.boards["tiny"], view.entries)
    assert "5; at least" in verdict(few).sentence and picks(few, {}, "flops") == ()


def test_a_stranger_gets_no_facts_by_a_name() -> None:
    entry = next(iter(synthetic.view().entries.values()))
    mine = entry.model_copy(update={"metric": "clipscore", "released_with": ""})
    assert facts_of(mine).backbone == "" and facts_of(mine).flops_per_pair is None


@pytest.mark.parametrize(
    ("value", "said"), [(604e6, "604 M"), (2.24e14, "224 T"), (1.6e10, "16 G"), (12, "12 ")]
)
def test_operations_are_shown_in_three_digits(value: float, said: str) -> None:
    assert flops_text(value) == said


# Charts.


def test_the_chart_has_every_ranked_metric_those_without_a_cost_in_a_band(papers: Context) -> None:
    view = papers.reader.view().group()
    table = MetricTable.of(view)
    ranking = table.ranking("ts2")
    chart = cost_chart(ranking, table.costs("flops"), "flops")
    assert len(chart.points) == len(ranking.places) and chart.gutter and chart.front
    assert sum(point.x is None for point in chart.points) == 4
    front = {point.name for point in chart.points if point.kind == "front"}
    assert {"CLIPScore", "ALIGNScore"} <= front
    empty = cost_chart(None, {}, "seconds")
    assert empty.empty and not empty.points


@pytest.mark.slow
def test_a_chart_of_many_metrics_shows_the_first_and_the_front() -> None:
    ranking = MetricTable.of(synthetic.view(MOST_POINTS + 40).group(SIMULATED)).ranking("ratings")
    costs = {one.who: 1.0 / k for k, one in enumerate(ranking.places, 1)}
    chart = cost_chart(ranking, costs, "seconds")
    assert MOST_POINTS <= len(chart.points) < len(ranking.places) + 1


@pytest.mark.parametrize(
    ("chart", "kind"), [("", "pareto"), ("ranks", "bump"), ("skills", "parallel")]
)
def test_the_chart_is_switched_by_the_address(chart: str, kind: str) -> None:
    context = synthetic.site_of(skills_fixture.fill(memory_store()), cards_=skills_fixture.cards())
    page = shown(context, f"chart={chart}")
    assert len(page.all(f"figure svg.as-chart-{kind}")) == 1 and not page.all(".as-why")
    links = {link["data-go"] for link in page.all("figcaption a")}
    assert links == {"chart-cost", "chart-ranks", "chart-skills"} - {f"chart-{chart or 'cost'}"}


def test_without_skills_their_chart_says_why_it_is_empty(indexed: Context) -> None:
    page = shown(indexed, "chart=skills")
    assert page.one("svg.as-chart-parallel .as-why").text and not page.all("line.as-chance[x2=626]")


# What is said of a row.


def test_a_row_unfolds_to_its_places_source_and_where_it_fails(indexed: Context) -> None:
    entry = next(e for e in indexed.reader.view().entries.values() if e.metric == "VQAScore")
    page = shown(indexed, f"open={entry.entry_id}")
    row = next(r for r in page.all("tr.is-open") if r["class"] == "as-detail is-open")
    assert "best in" in row and "Squared errors" in row and "run by Assay" in row
    assert row.links("./metric?id=") and row.links("./compare?benchmark=")
    assert any("show=failures" in link for link in row.links("./compare"))


def test_a_row_says_whose_it_is_and_what_is_flagged() -> None:
    found = index_fixture.index_view_of()
    name = next(e for e, entry in found.entries.items() if entry.metric == "BLIP2-ITM")
    own = {"account": "hub:ada", "same_scores_as": {"ratings": ("sent-0001",)}, "template": "plain"}
    entries = {**found.entries, name: found.entries[name].model_copy(update=own)}
    view = View(entries, found.boards, found.orders).group()
    parts = board_of(metrics_view(query_of(), MetricTable.of(view), None))
    (row,) = (r for _, rows in parts.groups for r in rows if r.name == "BLIP2-ITM")
    assert {tag.label for tag in row.tags} == {"same scores", "template"}
    assert "./submit?id=sent-0001" in [link.href for link in row.links]
    assert "hub:ada" in dict(row.facts[1])["Submitter"]
    ranked = metrics_view(query_of("q=hub:ada"), MetricTable.of(view), None)
    assert [r.entry.metric for group in ranked.groups for r in group.rows] == ["BLIP2-ITM"]
    assert any(said.startswith("same scores") for said in legend_of(ranked))


def test_trained_on_and_hostile_names_are_marked_and_harmless(indexed: Context) -> None:
    page = shown(
        indexed, f"q={index_fixture.NASTY}&w={index_fixture.NASTY}:1&sort={index_fixture.NASTY}"
    )
    assert clean(index_fixture.NASTY) in names(shown(indexed)) and page.all(".as-note")
    marked = [
        r.one("bdi").text for r in shown(indexed).all("tr[data-row]") if "T" in r.texts("sup")
    ]
    assert marked == ["PickScore"]


@pytest.mark.slow
def test_a_page_holds_so_many_rows_and_leads_to_the_others() -> None:
    context = synthetic.site_of(synthetic.fill(memory_store(), PAGE_ROWS + 8))
    first, second = (shown(context, f"ratings=simulated&rows_page={n}") for n in (1, 2))
    assert len(names(first)) == PAGE_ROWS and not set(names(first)) & set(names(second))
    assert first.one(".as-pages").links() and len(names(second)) == 8
    assert (
        query_of(
            metrics_tab(context, query_of("rows_page=99&ratings=simulated")).query.removeprefix("?")
        ).page
        == 2
    )


def test_the_whole_is_computed_once_for_a_view(indexed: Context) -> None:
    view = indexed.reader.view().group()
    table = indexed.prepared_metrics.of(view)
    assert indexed.prepared_metrics.of(view) is table
    assert indexed.prepared_metrics.of(replace(view)) is not table
    base = indexed.prepared.of(view)
    weights = dict.fromkeys(base.boards, 1.0)
    assert table.weighed(base, weights) is table.weighed(base, dict(weights))


def test_an_address_of_before_still_says_what_it_said() -> None:
    assert query_of("order=borda&w=graphs:2").sort == "-borda"
    assert query_of("skill=how many").tab == "skill:how many"
    assert query_of("skill=text&by=flops&budget=98.6").cost == pytest.approx(98.6e9)
    assert query_of("cost=-1&rows_page=x&chart=pie&by=gold") == MetricsQuery()


def test_every_state_of_an_address_comes_back() -> None:
    asked = "tab=skill:counting&ratings=simulated&sort=-ts2&q=a,b&by=seconds&cost=12.5&chart=ranks&rows_page=3"
    query = query_of(asked)
    assert query_of(query.to_query().removeprefix("?")) == query
    comma = MetricsQuery(columns=("ts2/a~b,c", "year"))
    assert query_of(comma.to_query().removeprefix("?")) == comma
