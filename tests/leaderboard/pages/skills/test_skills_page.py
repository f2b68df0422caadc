"""Which metric for a skill: the list, its costs, and what is said where benchmarks differ."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
import pytest

from leaderboard.pages.reading import View
from leaderboard.pages.shown.charts import said
from leaderboard.pages.skills.answer import answer_view
from leaderboard.pages.skills.base import NO_SCALE, Placed, SkillsBase, skills_base
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


def test_simulated_ratings_are_weighed_with_each_other_alone(view: View) -> None:
    choice, found = chosen(view, skill="counting")
    assert "demo/counting" not in found.weights
    assert "Simulated ratings" not in answer_view(choice, found)
    choice, found = chosen(view, skill="counting", weights="demo:1")
    assert "demo/counting" not in found.weights and choice.remarks
    choice, found = chosen(view, skill="counting", ratings="simulated")
    assert list(found.weights) == ["demo/counting"]
    assert "Simulated ratings are in this list (all)" in answer_view(choice, found)
    assert choice.query.to_query() == "?skill=counting&ratings=simulated"


def test_a_skill_on_too_few_items_orders_nobody(view: View) -> None:
    choice, found = chosen(view, skill="negation")
    few = "too few prompts to order metrics (6; at least 8 needed)"
    assert found.base.measured["croc/negation"].why_out == few
    assert list(found.weights) == ["gecko/lang_complexity:complexity_negation"]
    assert f"not in the list: {few}" in parts_view(choice, found, view)


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
    recommended = [p for p in found.points if p.placed.recommended]
    for point in recommended:
        beaten = any(
            other.cost <= point.cost and other.value > point.value for other in recommended
        )
        assert (point in front) is not beaten
    assert all(point in recommended for point in front)


def test_a_budget_buys_the_best_within_it(view: View) -> None:
    _, found = chosen(view, skill="counting")
    best = affordable(found.front, 5.0)
    assert best is not None and best.cost <= 5.0
    assert best.value == max(p.value for p in found.points if p.cost <= 5.0 and p.whole)
    assert affordable(found.front, 0.01) is None


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
        "circle", "circle-open", "square-open", "diamond"
    }  # fmt: skip
    hover = [line for trace in drawn["data"] for line in trace["customdata"]]
    assert not any("<img" in line for line in hover)
    assert any("&lt;img" in line for line in hover)


def test_text_in_a_chart_can_be_neither_tag_nor_formula_nor_reverse() -> None:
    shown = said("<a href='https://x'>$x$</a>\u202e")
    assert "<" not in shown and "$" not in shown and "\u202e" not in shown


# What is recommended --------------------------------------------------------------------------


@dataclass(frozen=True)
class Guessing(SkillsBase):
    """Parts on which some metrics are at chance: with an interval that reaches 0, or with none."""

    at_chance: frozenset[str] = frozenset()
    low: float = 0.0

    def placed(self, weights: Mapping[str, float]) -> tuple[Placed, ...]:
        return tuple(
            replace(one, standing=replace(one.standing, index=index._replace(low=self.low)))
            if one.who.metric in self.at_chance
            else one
            for one in super().placed(weights)
            for index in [one.standing.index]
        )


def guessing(
    view: View, *metrics: str, low: float = 0.0, **asked: str
) -> tuple[SkillsChoice, Found]:
    choice = resolve(SkillsQuery(**{"skill": "counting", **asked}), view.boards)
    base = skills_base(view, choice.parts)
    at_chance = frozenset(metrics or (who.metric for who, _ in base.entries.values()))
    return choice, found_for(choice, Guessing(**vars(base), at_chance=at_chance, low=low))


def with_template(view: View, *metrics: str) -> View:
    entries = {
        name: one.model_copy(update={"template": "plain"}) if one.metric in metrics else one
        for name, one in view.entries.items()
    }
    return View(entries, view.boards, view.orders)


def cards(choice: SkillsChoice, found: Found) -> dict[str, str]:
    """Heading of each card of the answer to what it names."""
    shown = answer_view(choice, found)
    return {
        part.partition("</h3>")[0].partition("<h3>")[2]: part.partition("</header>")[2].partition(
            "</article>"
        )[0]
        for part in shown.split("<article")[1:]
    }


@pytest.mark.parametrize("low", [0.0, -0.1, math.nan])
def test_a_metric_that_does_not_beat_chance_is_never_recommended(view: View, low: float) -> None:
    choice, found = guessing(view, "Closed-API", "VQAScore", "SigLIP-2", low=low)
    assert names(found)[:2] == ["VQAScore", "Closed-API"]
    named = " ".join(cards(choice, found).values())
    assert "BLIP2-ITM" in cards(choice, found)["Most accurate"]
    assert not any(name in named for name in ("Closed-API", "VQAScore", "SigLIP-2", "always-half"))
    assert {p.placed.who.metric for p in found.front} <= {"CLIPScore", "ImageReward", "BLIP2-ITM"}


def test_where_nobody_beats_chance_nothing_is_recommended(view: View) -> None:
    choice, found = guessing(view)
    assert found.ranked and not found.recommended and not found.front
    assert found.affordable(None) is None
    told = answer_view(choice, found)
    assert "No metric is significantly above chance on this skill." in told
    assert "Most accurate" not in told and "Best affordable" not in told
    assert "No metric of known cost is significantly above chance." in front_view(choice, found)


def test_a_budget_that_only_a_guess_meets_buys_nothing(view: View) -> None:
    choice, found = chosen(view, skill="counting", budget="0.5")
    assert [p.placed.who.metric for p in found.points if p.cost <= 0.5] == ["always-half"]
    none = cards(choice, found)["Best within 0.50 s"]
    assert "No metric under 0.50 s is significantly above chance." in none
    assert "CLIPScore" in none and "always-half" not in none


def test_less_is_never_bought_from_who_only_guesses(view: View) -> None:
    choice, found = chosen(view, skill="counting", budget="3")
    assert found.front[0].placed.who.metric == "CLIPScore"
    assert "CLIPScore" in cards(choice, found)["Best within 3.00 s"]
    assert "For less" not in cards(choice, found)


def test_a_template_is_never_recommended_and_stays_in_the_list(view: View) -> None:
    choice, found = chosen(with_template(view, "Closed-API", "VQAScore"), skill="counting")
    assert names(found)[:2] == ["VQAScore", "Closed-API"]
    named = " ".join(cards(choice, found).values())
    assert "Closed-API" not in named and "VQAScore" not in named
    every = with_template(view, *(one.metric for one in view.entries.values()))
    choice, found = chosen(every, skill="counting")
    told = answer_view(choice, found)
    assert (
        "No metric but an unchanged template is significantly above chance on this skill." in told
    )


def test_the_list_marks_who_is_at_chance(view: View) -> None:
    choice, found = chosen(view, skill="counting")
    rows = list_view(choice, found).split("<tr>")
    marked = [row for row in rows if ">at chance<" in row]
    assert len(marked) == sum(not one.above_chance for one in found.placed) == 1
    assert "always-half" in marked[0]


def test_the_file_says_who_may_be_recommended(view: View) -> None:
    choice, found = chosen(view, skill="counting")
    rows = {row["metric"]: row for row in skills_table(choice, found).rows}
    assert rows["VQAScore"]["recommended"] is True
    for name in ("always-half", "PickScore"):  # at chance; lacks a benchmark
        assert rows[name]["recommended"] is False and rows[name]["on_front"] is False


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
