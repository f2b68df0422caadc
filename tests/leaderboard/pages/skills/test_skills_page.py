"""Which metric for a skill: the list, its costs, and what is said where benchmarks differ."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import timedelta

import numpy as np
import pytest

from leaderboard.pages.reading import View
from leaderboard.pages.shown.charts import said
from leaderboard.pages.skills.answer import answer_view
from leaderboard.pages.skills.base import NO_SCALE, TOO_FEW, skills_base
from leaderboard.pages.skills.costs import affordable, spent
from leaderboard.pages.skills.found import Found, found_for
from leaderboard.pages.skills.query import SkillsChoice, SkillsQuery, resolve
from leaderboard.pages.skills.rows import skills_table
from leaderboard.pages.skills.scatter import cost_chart
from leaderboard.pages.skills.view import (
    chooser_view,
    front_view,
    list_view,
    parts_view,
    skill_links,
)
from leaderboard.tables import to_csv
from tests.leaderboard.pages.skills.skills_fixture import FLOPS, NASTY, skills_view_of


@pytest.fixture(scope="module")
def view() -> View:
    return skills_view_of()


def chosen(view: View, **asked: str) -> tuple[SkillsChoice, Found]:
    choice = resolve(SkillsQuery(**asked), view.boards)
    return choice, found_for(choice, skills_base(view, choice.parts))


def names(found: Found) -> list[str]:
    return [one.who.metric for one in found.ranked]


# The list -------------------------------------------------------------------------------------


def test_the_mean_of_a_metric_is_that_of_its_rescaled_values(view: View) -> None:
    _, found = chosen(view, skill="counting", weights="croc:3,gecko:1,evalmuse:0,closed:0")
    one = next(one for one in found.ranked if one.who.metric == "VQAScore")
    croc = found.base.values["croc/counting"][one.who].value
    gecko = found.base.values["gecko/count"][one.who].value
    assert one.standing.index.value == pytest.approx((3 * croc + gecko) / 4)
    board = view.boards["croc"]
    cell = next(
        cell for cell in board.cells(board.selectors("counting")[0], "counting")
        if view.entries[cell.entry_id].metric == "VQAScore"
    )  # fmt: skip
    assert cell.value is not None
    assert croc == pytest.approx(cell.value / 0.8)


def test_the_interval_is_of_joint_resamples(view: View) -> None:
    _, found = chosen(view, skill="counting", weights="croc:1,gecko:1,evalmuse:0,closed:0")
    one = found.ranked[0]
    drawn = []
    for name in ("croc/counting", "gecko/count"):
        who, draws = found.base.draws[name]
        drawn.append(draws[who.index(one.who)])
    low, high = np.quantile(np.mean(drawn, axis=0), [0.025, 0.975])
    assert one.standing.index.low == pytest.approx(low, abs=1e-3)
    assert one.standing.index.high == pytest.approx(high, abs=1e-3)


def test_a_metric_that_lacks_a_benchmark_has_no_rank(view: View) -> None:
    _, found = chosen(view, skill="counting")
    assert "PickScore" not in names(found)
    assert [one.who.metric for one in found.placed if one.standing.rank is None] == ["PickScore"]
    _, without = chosen(view, skill="counting", weights="gecko:0")
    assert "PickScore" in names(without)


def test_simulated_ratings_weigh_nothing_beside_real_ones(view: View) -> None:
    choice, found = chosen(view, skill="counting")
    assert found.weights["demo/counting"] == 0.0
    assert "Simulated ratings" not in answer_view(choice, found)
    choice, found = chosen(view, skill="counting", weights="demo:1")
    assert "Simulated ratings are in this list (Demo)" in answer_view(choice, found)


def test_a_skill_on_too_few_items_orders_nobody(view: View) -> None:
    choice, found = chosen(view, skill="negation")
    assert found.base.measured["croc/negation"].why_out == TOO_FEW
    assert list(found.weights) == ["gecko/lang_complexity:complexity_negation"]
    assert f"not in the list: {TOO_FEW}" in parts_view(choice, found, view)


def test_a_measure_without_chance_is_shown_and_not_averaged(view: View) -> None:
    choice, found = chosen(view, skill="spatial")
    assert found.base.measured["evalmuse/spatial"].why_out == NO_SCALE
    below = parts_view(choice, found, view)
    assert "Element accuracy" in below
    assert NO_SCALE in below


def test_contradicting_benchmarks_are_said_with_an_example(view: View) -> None:
    choice, found = chosen(view, skill="counting")
    told = answer_view(choice, found)
    assert "The benchmarks disagree" in told
    assert re.search(r"is above <bdi>\S+</bdi> on \w+ and below on Gecko", told)
    _, alone = chosen(view, skill="counting", weights="gecko:0,evalmuse:0,closed:0")
    assert alone.disagreement.n_pairs == 0


def test_two_opposite_orders_are_opposed_and_one_order_is_not(view: View) -> None:
    from dataclasses import replace

    from leaderboard.pages.skills.disagreement import disagreement

    base = skills_base(view, resolve(SkillsQuery(skill="spatial"), view.boards).parts)
    who, _ = base.draws["croc/spacial_relation"]
    pair = who[:2]
    rng = np.random.default_rng(1)
    up = np.stack([1 + 0.01 * rng.standard_normal(200), 0.01 * rng.standard_normal(200)])
    draws = {
        "croc/spacial_relation": (pair, up.astype(np.float32)),
        "gecko/spatial": (pair, up[::-1].astype(np.float32)),
    }
    parts = tuple(draws)
    (one,) = disagreement(replace(base, draws=draws), parts, pair).opposed
    assert (one.by_first, one.by_second) == parts
    same = {name: (pair, up.astype(np.float32)) for name in parts}
    found = disagreement(replace(base, draws=same), parts, pair)
    assert (found.opposed, found.n_pairs) == ((), 1)


# Cost -----------------------------------------------------------------------------------------


def test_the_front_is_what_nothing_cheaper_beats(view: View) -> None:
    _, found = chosen(view, skill="counting")
    front = found.front
    assert [p.cost for p in front] == sorted(p.cost for p in front)
    for point in (p for p in found.points if p.whole):
        beaten = any(
            other.cost <= point.cost and other.value > point.value for other in found.points
            if other.whole
        )  # fmt: skip
        assert (point in front) is not beaten


def test_a_budget_buys_the_best_within_it(view: View) -> None:
    _, found = chosen(view, skill="counting")
    best = affordable(found.front, 5.0)
    assert best is not None and best.cost <= 5.0
    assert best.value == max(p.value for p in found.points if p.cost <= 5.0 and p.whole)
    assert affordable(found.front, 0.01) is None
    choice, found = chosen(view, skill="counting", budget="0.01")
    assert "Nothing within" in answer_view(choice, found)


def test_seconds_are_for_a_thousand_pairs_of_the_chosen_benchmarks(view: View) -> None:
    _, found = chosen(view, skill="counting")
    point = next(p for p in found.points if p.placed.who.metric == "CLIPScore")
    assert point.cost == pytest.approx(2.1)
    _, memory = chosen(view, skill="counting", cost="memory")
    point = next(p for p in memory.points if p.placed.who.metric == "CLIPScore")
    assert point.cost == pytest.approx(0.4 + 2.1 / 40)


def test_scores_files_have_no_cost_and_the_page_says_so(view: View) -> None:
    choice, found = chosen(view, skill="counting")
    assert "Closed-API" in names(found)
    assert "Closed-API" not in [p.placed.who.metric for p in found.points]
    assert "1 metric has no recorded cost" in front_view(choice, found)


def test_flops_are_those_that_authors_declare_and_are_said_to_be(view: View) -> None:
    choice, found = chosen(view, skill="counting", cost="flops")
    assert choice.cost == "flops" and choice.query.cost == "flops" and choice.remarks == ()
    costs = {point.placed.who.metric: point.cost for point in found.points}
    assert costs == pytest.approx({name: flops / 1e9 for name, flops in FLOPS.items()})
    assert {point.placed.who.metric for point in found.front} <= set(FLOPS)
    front = front_view(choice, found)
    assert "declared by the authors, not measured" in front
    assert "GFLOPs per pair (declared)" in front and "16.0 GFLOPs" in front
    assert "per pair (declared, not measured)" in answer_view(choice, found)


def test_a_budget_of_flops_is_in_thousands_of_millions(view: View) -> None:
    _, found = chosen(view, skill="counting", cost="flops", budget="1000")
    best = found.affordable(1000.0)
    assert best is not None and best.placed.who.metric == "BLIP2-ITM"


def test_metrics_without_declared_flops_are_named_and_stay_in_the_list(view: View) -> None:
    choice, found = chosen(view, skill="counting", cost="flops")
    silent = [one for one in found.placed if one.who.metric not in FLOPS]
    assert {"PickScore", "ImageReward", "always-half"} <= {one.who.metric for one in silent}
    said = front_view(choice, found).partition("FLOPs not declared:")[2]
    assert "PickScore" in said and "ImageReward" in said and "CLIPScore" not in said
    assert list_view(choice, found).count("not declared") == len(silent)
    rows = skills_table(choice, found).rows
    declared = {row["metric"]: row["flops_per_pair_declared"] for row in rows}
    assert declared["PickScore"] is None
    assert declared["CLIPScore"] == pytest.approx(1.6e10)


def test_of_several_versions_the_latest_that_declares_flops_counts(view: View) -> None:
    entry = next(e for e in view.entries.values() if e.metric == "CLIPScore")
    later = {"published_at": entry.published_at + timedelta(days=1), "entry_id": "b/CLIPScore"}
    other = entry.model_copy(update={**later, "flops_per_pair": 2e10})
    silent = entry.model_copy(update={**later, "flops_per_pair": None})
    of = [spent(pair, ["croc"]) for pair in ((other, entry), (entry, silent), (silent,))]
    assert [one.gigaflops for one in of if one is not None] == [20.0, 16.0, None]


def test_the_chart_draws_every_point_and_runs_nothing(view: View) -> None:
    _, found = chosen(view, skill="counting")
    figure = cost_chart(found.points, found.front, "seconds")
    assert figure is not None
    drawn = json.loads(figure.to_json())
    assert sum(len(trace["x"]) for trace in drawn["data"]) == len(found.points)
    assert {trace["marker"]["symbol"] for trace in drawn["data"]} == {
        "circle", "square-open", "diamond"
    }  # fmt: skip
    hover = [line for trace in drawn["data"] for line in trace["customdata"]]
    assert not any("<img" in line for line in hover)
    assert any("&lt;img" in line for line in hover)


def test_text_in_a_chart_can_be_neither_tag_nor_formula_nor_reverse() -> None:
    shown = said("<a href='https://x'>$x$</a>\u202e")
    assert "<" not in shown and "$" not in shown and "\u202e" not in shown


# Links, words and files -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked",
    [
        {"skill": "counting"},
        {"skill": "counting,spatial", "weights": "counting:2,spatial:1"},
        {"skill": "counting", "weights": "gecko:0", "cost": "memory", "budget": "12.5"},
    ],
)
def test_a_link_restores_what_is_shown(view: View, asked: dict[str, str]) -> None:
    choice, found = chosen(view, **asked)
    again = resolve(SkillsQuery.from_link(choice.query.to_query()), view.boards)
    assert again.query == choice.query
    assert again.parts == choice.parts
    weights = [again.weight(part) for part in again.parts]
    assert weights == [choice.weight(part) for part in choice.parts]
    assert found.placed


def test_what_a_link_cannot_have_is_said(view: View) -> None:
    choice, _ = chosen(
        view, skill="counting,qqqq", weights="gecko:nan,<b>:1", cost="gold", budget="-1"
    )
    assert len(choice.remarks) == 5
    assert [skill.key for skill in choice.skills] == ["counting"]
    assert choice.budget is None


def test_without_a_skill_all_are_offered(view: View) -> None:
    choice = resolve(SkillsQuery(), view.boards)
    shown = chooser_view(choice, view)
    assert './skills?skill=counting"' in shown
    assert "2 skills of single benchmarks" in shown


def test_an_empty_installation_invites() -> None:
    assert "No skill has results yet" in chooser_view(
        resolve(SkillsQuery(), {}),
        View({}, {}, None),  # type: ignore[arg-type]
    )


def test_every_row_leads_to_its_metric_and_to_the_images_where_it_fails(view: View) -> None:
    choice, found = chosen(view, skill="counting")
    shown = list_view(choice, found)
    assert 'href="./metric?id=made-up-0000/VQAScore"' in shown
    assert (
        "./items?benchmark=gecko&amp;skill=count&amp;a=made-up-0000/VQAScore&amp;show=failures"
        in shown
    )
    assert "benchmark=closed" not in shown


def test_the_first_page_can_lead_here(view: View) -> None:
    assert '<a href="./skills?skill=spatial">Spatial relations</a>' in skill_links(view)
    assert skill_links(View({}, {}, None)) == ""  # type: ignore[arg-type]


def test_nothing_submitted_is_markup(view: View) -> None:
    choice, found = chosen(view, skill="counting")
    every = answer_view(choice, found) + list_view(choice, found) + parts_view(choice, found, view)
    assert "<img src=x" not in every
    assert "&lt;img src=x" in every
    assert NASTY not in every


def test_the_file_has_every_metric_with_its_parts(view: View) -> None:
    choice, found = chosen(view, skill="counting")
    lines = list(csv.DictReader(io.StringIO(to_csv(skills_table(choice, found)))))
    assert lines[0]["metric"] == found.placed[0].who.metric
    assert len(lines) == len(found.placed)
    assert float(lines[0]["gecko/count weight"]) == 1.0
    assert lines[0]["mean"] == str(found.placed[0].standing.index.value)
