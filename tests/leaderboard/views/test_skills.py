"""Skills over benchmarks: the list, its costs, what is recommended, and where benchmarks differ."""

from __future__ import annotations

import csv
import gc
import io
import math
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks.prompt_sets.prompt_set import load_prompt_sets, with_prompt_sets
from benchmarks.registry import load_registry
from leaderboard.publication.reader import View
from leaderboard.publication.skill_names import common_key, common_names, found_by, skills_of
from leaderboard.tables import to_csv
from leaderboard.views import skills as found_module
from leaderboard.views.addresses import params_of
from leaderboard.views.metrics import MetricsQuery, SkillView, fails_at
from leaderboard.views.rankings import cost_words, skill_ranking
from leaderboard.views.skills import (
    MOST_BUDGET,
    NO_SCALE,
    Placed,
    Prepared,
    SkillData,
    SkillsBase,
    SkillsChoice,
    SkillsQuery,
    disagreement,
    found_for,
    resolve,
    skills_base,
    skills_table,
    spent,
)
from leaderboard.web.skill_tab import answers_of
from tests.kit import boards as synthetic
from tests.leaderboard.web.skills_fixture import FLOPS, PRICE, cards, skills_view_of


@pytest.fixture(scope="module")
def view() -> View:
    return skills_view_of()


def chosen(view: View, **asked: str) -> tuple[SkillsChoice, SkillData]:
    choice = resolve(SkillsQuery(**{"skill": "counting", **asked}), view.boards)
    return choice, found_for(choice, skills_base(view, choice.parts))


def names(found: SkillData) -> list[str]:
    return [one.who.metric for one in found.ranked]


def costs(found: SkillData) -> dict[str, float]:
    known = ((one.who.metric, one.cost(found.by)) for one in found.placed)
    return {name: cost for name, cost in known if cost is not None}


def answers(choice: SkillsChoice, found: SkillData) -> dict[str, str]:
    """Each question to who answers it and by what."""
    ranking = skill_ranking(found, choice.title)
    shown = SkillView(
        MetricsQuery(cost=choice.bound), choice, found, ranking, found.placed, (), choice.cost,
        len(found.placed),
    )  # fmt: skip
    return {one.question: f"{one.name} {one.figure}" for one in answers_of(shown)}


# Skills of different benchmarks under one name.


def test_every_key_of_the_table_is_a_skill_of_a_card_of_its_family_and_has_one_name() -> None:
    of_family: dict[str, set[str]] = {}
    for benchmark in with_prompt_sets(load_registry(), load_prompt_sets()).values():
        of_family.setdefault(benchmark.card.family, set()).update(benchmark.card.skills)
    keys = [
        (family, key)
        for common in common_names().values()
        for family, of in common.keys.items()
        for key in of
    ]
    assert [(family, key) for family, key in keys if key not in of_family[family]] == []
    assert len(keys) == len(set(keys))


def test_skills_that_cards_name_differently_stand_together_and_unknown_ones_alone(
    view: View,
) -> None:
    skills = skills_of(view.boards)
    found = {(part.benchmark, part.key) for part in skills["counting"].parts}
    assert {("croc", "counting"), ("gecko", "count"), ("evalmuse", "counting")} <= found
    assert [part.key for part in skills["evalmuse.a.-h."].parts] == ["a./h."]
    assert common_key(cards()["evalmuse"], "a./h.") is None
    for words, key in (
        ("how many", "counting"), ("Numbers", "counting"), ("count", "counting"), ("zzz", None),
        ("left of", "spatial"), ("spatial relations", "spatial"), ("not", "negation"), ("", None),
    ):  # fmt: skip
        one = found_by(words, skills)
        assert (one and one.key) == key, words


# The list.


def test_the_mean_is_that_of_rescaled_values_and_its_interval_of_joint_resamples(
    view: View,
) -> None:
    _, found = chosen(view, weights="croc:3,gecko:1,evalmuse:0,closed:0")
    one = next(one for one in found.ranked if one.who.metric == "VQAScore")
    values = [found.base.values[part][one.who].value for part in ("croc/counting", "gecko/count")]
    assert one.standing.index.value == pytest.approx((3 * values[0] + values[1]) / 4)
    board = view.boards["croc"]
    cells = board.cells(board.selectors("counting")[0], "counting")
    (value,) = (c.value for c in cells if view.entries[c.entry_id].metric == "VQAScore")
    assert value is not None and values[0] == pytest.approx(value / 0.8)
    drawn = []
    for name, weight in (("croc/counting", 3), ("gecko/count", 1)):
        who, draws = found.base.draws[name]
        drawn.append(weight * draws[who.index(one.who)] / 4)
    gecko = view.boards["gecko"]
    few = min(c.n_clusters for c in (*cells, *gecko.cells(gecko.selectors("count")[0], "count")))
    index = one.standing.index
    z = math.sqrt(few / (few - 1)) * stats.t.ppf([0.025, 0.975], few - 1)
    ends = np.quantile(np.sum(drawn, axis=0), stats.norm.cdf(z))
    assert (index.low, index.high) == pytest.approx(tuple(ends), abs=1e-3)


def test_a_metric_that_lacks_a_benchmark_has_no_rank(view: View) -> None:
    _, found = chosen(view)
    assert "PickScore" not in names(found)
    assert [one.who.metric for one in found.placed if one.standing.rank is None] == ["PickScore"]
    assert "PickScore" in names(chosen(view, weights="gecko:0")[1])


def test_simulated_ratings_are_weighed_with_each_other_alone(view: View) -> None:
    for asked, weighed in (({}, False), ({"weights": "demo:1"}, False),
                           ({"ratings": "simulated"}, True)):  # fmt: skip
        choice, found = chosen(view, **asked)
        assert ("demo/counting" in found.weights) is weighed
        assert bool(choice.remarks) is ("weights" in asked)
    assert list(found.weights) == ["demo/counting"]
    assert choice.query.to_query() == "?skill=counting&ratings=simulated"


@pytest.mark.parametrize(
    ("skill", "part", "why"),
    [("negation", "croc/negation", "6; at least 8"), ("spatial", "evalmuse/spatial", NO_SCALE)],
)
def test_what_rests_on_too_little_or_has_no_chance_is_shown_and_not_averaged(
    view: View, skill: str, part: str, why: str
) -> None:
    _, found = chosen(view, skill=skill)
    assert part not in found.weights and why in found.base.measured[part].why_out


def test_two_opposite_orders_are_opposed_and_one_order_is_not(view: View) -> None:
    base = chosen(view, skill="spatial")[1].base
    pair = base.draws["croc/spacial_relation"][0][:2]
    rng = np.random.default_rng(1)
    up: Any = np.stack([1 + 0.01 * rng.standard_normal(200), 0.01 * rng.standard_normal(200)])
    up = up.astype(np.float32)
    draws = {"croc/spacial_relation": (pair, up), "gecko/spatial": (pair, up[::-1])}
    parts = tuple(draws)
    (one,) = disagreement(replace(base, draws=draws), parts, pair).opposed
    assert (one.by_first, one.by_second) == parts
    same = dict.fromkeys(parts, (pair, up))
    found = disagreement(replace(base, draws=same), parts, pair)
    assert (found.opposed, found.n_pairs) == ((), 1)


# Cost.


def test_the_front_is_what_nothing_cheaper_beats_and_a_budget_buys_the_best_within_it(
    view: View,
) -> None:
    _, found = chosen(view)
    spent_by = {one.who: one.cost("seconds") or math.inf for one in found.placed}
    assert [spent_by[p.who] for p in found.front] == sorted(spent_by[p.who] for p in found.front)
    able = [p for p in found.placed if p.recommended and p.cost("seconds")]
    for one in able:
        beaten = any(spent_by[p.who] <= spent_by[one.who] and p.value > one.value for p in able)
        assert (one in found.front) is not beaten
    assert set(map(id, found.front)) <= set(map(id, able))
    best = found.affordable(5.0)
    assert best is not None and spent_by[best.who] <= 5.0
    assert best.value == max(p.value for p in found.placed if spent_by[p.who] <= 5.0 and p.whole)
    assert found.affordable(0.01) is None


def test_costs_are_for_a_thousand_pairs_and_scores_files_have_none(view: View) -> None:
    _, found = chosen(view)
    assert costs(found)["CLIPScore"] == pytest.approx(2.1)
    assert costs(chosen(view, cost="memory")[1])["CLIPScore"] == pytest.approx(0.4 + 2.1 / 40)
    assert costs(chosen(view, cost="usd")[1]) == PRICE
    assert "Closed-API" in names(found) and "Closed-API" not in costs(found)


def test_flops_are_those_that_authors_declare_and_the_silent_are_named(view: View) -> None:
    choice, found = chosen(view, cost="flops", budget="1000")
    assert choice.cost == "flops" and choice.query.cost == "flops" and choice.remarks == ()
    assert costs(found) == FLOPS
    best = found.affordable(choice.bound)
    assert best is not None and best.who.metric == "BLIP2-ITM"
    assert cost_words(1.6e10, "flops") == "16 GFLOPs a pair"
    rows = {row["metric"]: row for row in skills_table(choice, found).rows}
    assert rows["PickScore"]["flops_per_pair_declared"] is None
    assert rows["CLIPScore"]["flops_per_pair_declared"] == pytest.approx(1.6e10)


def test_of_several_versions_the_latest_that_declares_flops_counts(view: View) -> None:
    entry = next(e for e in view.entries.values() if e.metric == "CLIPScore")
    later = {"published_at": entry.published_at + timedelta(days=1), "entry_id": "b/CLIPScore"}
    other = entry.model_copy(update={**later, "flops_per_pair": 2e10})
    silent = entry.model_copy(update={**later, "flops_per_pair": None})
    of = [spent(pair, ["croc"]) for pair in ((other, entry), (entry, silent), (silent,))]
    assert [one.flops for one in of if one is not None] == [2e10, 1.6e10, None]


# What is recommended.


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


def guessing(view: View, *metrics: str, low: float = 0.0) -> tuple[SkillsChoice, SkillData]:
    choice, found = chosen(view)
    at_chance = frozenset(metrics or (who.metric for who, _ in found.base.entries.values()))
    return choice, found_for(choice, Guessing(**vars(found.base), at_chance=at_chance, low=low))


def with_template(view: View, *metrics: str) -> View:
    entries = {
        name: one.model_copy(update={"template": "plain"}) if one.metric in metrics else one
        for name, one in view.entries.items()
    }
    return View(entries, view.boards, view.orders)


@pytest.mark.parametrize("low", [0.0, -0.1, math.nan])
def test_a_metric_that_does_not_beat_chance_is_never_recommended(view: View, low: float) -> None:
    choice, found = guessing(view, "Closed-API", "VQAScore", "SigLIP-2", low=low)
    assert names(found)[:2] == ["VQAScore", "Closed-API"]
    said = answers(choice, found)
    assert "BLIP2-ITM" in said["Highest"]
    for name in ("Closed-API", "VQAScore", "SigLIP-2", "always-half"):
        assert name not in " ".join(said.values())
    assert {p.who.metric for p in found.front} <= {"CLIPScore", "ImageReward", "BLIP2-ITM"}


def test_where_nobody_beats_chance_or_all_are_templates_nothing_is_recommended(view: View) -> None:
    choice, found = guessing(view)
    assert found.ranked and not found.recommended and not found.front
    assert found.affordable(None) is None and "Highest" not in answers(choice, found)
    choice, found = chosen(with_template(view, "Closed-API", "VQAScore"))
    assert names(found)[:2] == ["VQAScore", "Closed-API"]  # They stay in the list.
    said = " ".join(answers(choice, found).values())
    assert "Closed-API" not in said and "VQAScore" not in said
    every = chosen(with_template(view, *(one.metric for one in view.entries.values())))
    assert answers(*every) == {}


def test_a_budget_that_only_a_guess_meets_buys_nothing(view: View) -> None:
    choice, found = chosen(view, budget="0.5")
    assert [name for name, cost in costs(found).items() if cost <= 0.5] == ["always-half"]
    none = answers(choice, found)["Best under 0.50 s per 1,000 pairs"]
    assert "above chance" in none and "CLIPScore" in none and "always-half" not in none
    more = chosen(view, budget="3")
    assert more[1].front[0].who.metric == "CLIPScore"
    assert "CLIPScore" in answers(*more)[
        "Best under 3.00 s per 1,000 pairs"
    ] and "For less" not in answers(*more)


def test_list_and_file_say_who_is_at_chance_and_who_may_be_recommended(view: View) -> None:
    choice, found = chosen(view)
    assert [one.who.metric for one in found.placed if not one.above_chance] == ["always-half"]
    (best,) = (one for one in found.placed if one.who.metric == "VQAScore")
    fails = [to for _, to in fails_at(best, found)]
    items = (
        "./compare?benchmark=gecko&a=made-up-0000/VQAScore&skill=count&show=failures"
        "&view=examples&seek=1"
    )
    assert items in fails
    assert not any("closed" in one for one in fails)
    lines = list(csv.DictReader(io.StringIO(to_csv(skills_table(choice, found)))))
    first = found.placed[0]
    assert (lines[0]["metric"], lines[0]["mean"], lines[0]["gecko/count weight"]) == (
        first.who.metric, str(first.standing.index.value), "1.0"
    )  # fmt: skip
    may = {row["metric"]: (row["recommended"], row["on_front"]) for row in lines}
    assert len(may) == len(found.placed) and may["VQAScore"][0] == "true"
    assert may["always-half"] == may["PickScore"] == ("false", "false")  # at chance; lacks one


# Links and words.


@pytest.mark.parametrize(
    "asked",
    [{}, {"skill": "counting,spatial", "weights": "counting:2,spatial:1"},
     {"weights": "gecko:0", "cost": "memory", "budget": "12.5"}],
)  # fmt: skip
def test_a_link_restores_what_is_shown(view: View, asked: dict[str, str]) -> None:
    choice, _ = chosen(view, **asked)
    again = resolve(SkillsQuery.from_params(params_of(choice.query.to_query())), view.boards)
    assert (again.query, again.parts) == (choice.query, choice.parts)
    assert [again.weight(p) for p in again.parts] == [choice.weight(p) for p in choice.parts]


def test_what_a_link_cannot_have_is_said(view: View) -> None:
    choice, _ = chosen(view, skill="counting,qqqq", weights="gecko:nan,<b>:1", cost="gold",
                       budget="-1")  # fmt: skip
    assert len(choice.remarks) == 5
    assert [skill.key for skill in choice.skills] == ["counting"] and choice.budget is None


@pytest.mark.parametrize(
    ("given", "read"),
    [("1e9", 1e9), ("1e3", 1000.0), ("1e-9", 1e-9), (f"{MOST_BUDGET}", MOST_BUDGET), ("1e13", None),
     ("0", None), ("nan", None), ("inf", None), ("x", None), ("1_000", None)],
)  # fmt: skip
def test_a_budget_is_any_number_within_its_bound_and_comes_back(
    view: View, given: str, read: float | None
) -> None:
    choice, _ = chosen(view, budget=given)
    assert choice.budget == read and len(choice.remarks) == (read is None)
    assert all(f"{MOST_BUDGET:g}" in one for one in choice.remarks)
    again = resolve(SkillsQuery.from_params(params_of(choice.query.to_query())), view.boards)
    assert again.budget == read


# What is kept.


ASKED = ("counting", "spatial", "text", "colour", "counting,text", "spatial,text,colour")


@pytest.fixture(scope="module")
def large() -> View:
    return synthetic.view(48)


def base_of(view: View, asked: str) -> SkillsBase:
    choice = resolve(SkillsQuery(skill=asked, ratings="simulated"), view.boards)
    return skills_base(view, choice.parts)


@pytest.mark.slow
def test_what_is_counted_is_about_what_is_taken(large: View) -> None:
    base_of(large, ASKED[-1])  # Fills what the view itself keeps.
    gc.collect()
    tracemalloc.start()
    try:
        base = base_of(large, ASKED[-1])
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.6 * taken < base.nbytes < 2 * taken


def test_what_was_looked_at_first_makes_way_and_the_last_always_stays(
    large: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = base_of(large, ASKED[0])
    assert first.comparison is not None
    assert replace(first, draws={}).nbytes >= first.comparison.nbytes > 0
    one = first.nbytes
    monkeypatch.setattr(found_module, "_KEPT_BYTES", int(2.5 * one))
    prepared = Prepared()
    every = [resolve(SkillsQuery(skill=a, ratings="simulated"), large.boards).parts for a in ASKED]
    for parts in every:
        base = prepared.of(large, parts)
        assert prepared.of(large, parts) is base
        assert base.nbytes <= prepared.nbytes <= max(int(2.5 * one), base.nbytes)
    monkeypatch.setattr(found_module, "_KEPT_BYTES", 1)
    prepared = Prepared()
    for parts in every[:2]:
        assert prepared.of(large, parts).nbytes == prepared.nbytes >= one
