"""Tab of a skill: its answers, the images where they fail, its table, and what benchmarks contradict."""

from __future__ import annotations

import pytest
from starlette.datastructures import QueryParams

from leaderboard.text import clean
from leaderboard.views.metrics import MetricsQuery, skill_view
from leaderboard.web.metric_parts import metric_tabs
from leaderboard.web.page import Context
from leaderboard.web.skill_tab import skill_parts, skill_tab
from tests.kit.boards import site_of
from tests.kit.html import Node, named, parse, read
from tests.kit.store import memory_store
from tests.leaderboard.web import skills_fixture
from tests.leaderboard.web.skills_fixture import NASTY


@pytest.fixture(scope="module")
def site() -> Context:
    return site_of(skills_fixture.fill(memory_store()), cards_=skills_fixture.cards())


def query_of(address: str) -> MetricsQuery:
    return MetricsQuery.from_params(QueryParams(address))


def shown(context: Context, address: str = "tab=skill:counting") -> Node:
    html = skill_tab(context, query_of(address)).html
    return parse(html)


def names(page: Node) -> list[str]:
    return [row.one("bdi").text for row in page.all(".as-board tr[data-row]")]


def answers(page: Node) -> dict[str, Node]:
    return {one.one("dt").text: one for one in page.all(".as-picks div")}


def test_every_skill_with_results_is_a_tab_or_in_the_list_of_all(site: Context) -> None:
    tabs = metric_tabs(site.reader.view(), "skill:counting")
    assert [tab.title for tab in tabs if tab.current] == ["Counting"]
    titles = {tab.title for tab in tabs}
    assert {"Counting", "Spatial relations", "All skills", "Croc", "Gecko"} <= titles
    page = shown(site, "tab=skill:")
    assert "./?tab=skill:counting" in page.links() and page.one("form input[name=skill]")
    assert "Skills of single benchmarks (2)" in page
    nothing = shown(site_of(memory_store()), "tab=skill:")
    assert nothing.links("./submit") and not nothing.links("./?tab=skill:c")


def test_words_find_a_skill_and_unknown_ones_are_said(site: Context) -> None:
    assert skill_tab(site, query_of("skill=how many")).query == "?tab=skill:counting"
    both = skill_tab(site, query_of("tab=skill:counting,spatial&w=counting:2")).query
    assert both.startswith("?tab=skill:counting,spatial") and "counting:2" in both
    assert "qqqq" in shown(site, "tab=skill:counting,qqqq").one(".as-note")


def test_the_table_has_mean_parts_and_costs_and_says_who_is_at_chance(site: Context) -> None:
    page = shown(site)
    named(page)
    heads = page.texts(".as-board thead button")
    assert heads[:2] == ["Rank range · Metric", "Weighted mean"]
    assert heads[-4:] == ["Seconds", "FLOPs", "Memory", "USD"]
    rows = page.all("tr[data-row]")
    chance = [r.one("bdi").text for r in rows if "at chance" in r.texts(".as-tag")]
    assert chance == ["always-half"] and clean(NASTY) in names(page)
    assert page.texts("tr.as-tier b") == ["Without a rank"] and names(page)[-1] == "PickScore"
    assert "PickScore" in names(shown(site, "tab=skill:counting&w=gecko:0"))[:8]
    data = [link for link in page.links("./v1/skills") if "format=csv" in link]
    assert data == ["./v1/skills?skill=counting&format=csv"]
    (fails,) = answers(page)["Best affordable"].links("./compare")
    for part in ("view=examples", "skill=", "show=failures", "a=made-up-"):
        assert part in fails


@pytest.mark.parametrize(
    "sort", ["-seconds", "seconds", "-gecko/count", "name", "mean", "best_share"]
)
def test_a_heading_sorts_and_what_has_no_value_is_last(site: Context, sort: str) -> None:
    found = skill_view(query_of(f"tab=skill:counting&sort={sort}"), site.reader.view(),
                       site.skills)  # fmt: skip
    assert found.query.sort == sort
    order = [row.who.metric for row in found.ranked]
    if sort.endswith("seconds"):
        costs = [row.cost("seconds") for row in found.ranked]
        known = [cost for cost in costs if cost is not None]
        assert costs[len(known) :] == [None] * (len(costs) - len(known))
        assert known == sorted(known, reverse=sort.startswith("-"))
    elif sort == "name":
        assert order == sorted(order, key=str.casefold)
    elif sort in {"mean", "best_share"}:
        values = [row.value if sort == "mean" else row.standing.best_share for row in found.ranked]
        assert values == sorted(values) and values[0] < values[-1]
    plain = skill_view(query_of("tab=skill:counting&sort=-mean"), site.reader.view(),
                       site.skills)  # fmt: skip
    assert plain.query.sort == ""


def test_a_bound_that_nobody_above_chance_meets_buys_nothing(site: Context) -> None:
    none = answers(shown(site, "tab=skill:counting&cost=0.5"))["Best under 0.50 s per 1,000 pairs"]
    assert "above chance" in none and "CLIPScore" in none and not none.links("./compare")
    flops = shown(site, "tab=skill:counting&by=flops&cost=1e12")
    assert "BLIP2-ITM" in answers(flops)["Best under 1 TFLOPs a pair"]
    assert "FLOPs not declared" in flops and "PickScore" in flops.one("figcaption").text


def test_a_filter_by_name_leaves_ranks_and_answers_alone(site: Context) -> None:
    whole, some = shown(site), shown(site, "tab=skill:counting&q=clip")
    rank = {r.one("bdi").text: r.one(".as-rk").text for r in whole.all("tr[data-row]")}
    assert names(some) == ["CLIPScore"] and some.one(".as-rk").text == rank["CLIPScore"]
    assert [a.text for a in answers(some).values()] == [a.text for a in answers(whole).values()]


def test_contradictions_simulated_ratings_and_double_prompts_are_said(site: Context) -> None:
    notes = " ".join(shown(site).texts(".as-note"))
    assert "disagree" in notes and "below on Gecko" in notes
    assert "Simulated ratings" in shown(site, "tab=skill:counting&ratings=simulated").told
    assert "Simulated ratings are in" not in shown(site).told


def test_each_benchmark_by_itself_has_tiers_its_measure_and_why_it_does_not_count(
    site: Context,
) -> None:
    html = skill_parts(site, query_of("tab=skill:negation")).html
    page = parse(html)
    assert "6; at least 8" in page and page.links("./?tab=benchmark:croc")
    counting = read(skill_parts(site, query_of("tab=skill:counting")).html)
    named(counting)
    assert len(counting.all("article")) == 4 and counting.links("./compare?benchmark=gecko")
    assert not counting.links("./compare?benchmark=closed")
    (row,) = (
        r for r in counting.one(".as-how").all("tbody tr") if r.links("./?tab=benchmark:croc")
    )
    assert {"0", "0.8"} <= set(row.texts("td"))
    assert skill_parts(site, query_of("tab=skill:")).html == ""
