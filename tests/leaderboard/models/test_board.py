"""Boards of models: ranks by consensus, filters, missing scores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import SetElement, SetPrompt
from leaderboard.ledger.judge_pins import PATH as PINS
from leaderboard.ledger.judge_pins import Pin, Pins
from leaderboard.models.board import NO_ORDER, NOBODY, NOTHING_TESTS, model_board, too_few_prompts
from leaderboard.models.selection import BLIND
from leaderboard.store.interface import transact
from tests.leaderboard.models.made_up_models import (
    CLIP,
    QUERY,
    VQA,
    World,
    cell,
    metric_card,
    prompt_set,
    prompts_of,
    trusting,
    world,
)


def filled(made: World, **means: float | dict[str, float]) -> World:
    """Models around their means, by VQA or by several metrics."""
    for name, mean in means.items():
        by_metric = mean if isinstance(mean, dict) else {VQA: mean}
        made.add(name, {metric: made.drawn(of) for metric, of in by_metric.items()})
    return made


def at_odds(*trusted: str) -> World:
    """Two models that two metrics order in opposite ways."""
    return filled(world(200, *trusted), first={VQA: 0.7, CLIP: 0.3}, second={VQA: 0.3, CLIP: 0.7})


# Orders
def test_many_prompts_recover_the_true_order() -> None:
    means = {"low": 0.3, "high": 0.7, "middle": 0.5}
    board = filled(world(), **{m: {VQA: of, CLIP: of} for m, of in means.items()}).board()
    assert list(board.skills) == [None, "count", "color"]
    for found in board.skills.values():
        assert [one.partition("-")[0] for one in found.standings] == ["high", "middle", "low"]
        ranks = [(s.rank_low, s.rank_high, s.tier) for s in found.standings.values()]
        assert ranks == [(1, 1, 1), (2, 2, 2), (3, 3, 3)]
        assert (found.note, found.disagreements) == ("", ())
    assert board.skills["count"].n_prompts == 100


def test_few_prompts_give_no_order_and_say_so() -> None:
    overall, count, _ = filled(world(60), a=0.50, b=0.51, c=0.52).board().skills.values()
    assert (overall.note, count.note) == (NO_ORDER, too_few_prompts(3))
    assert {(s.rank_low, s.rank_high) for s in overall.standings.values()} == {(1, 3)}
    assert all(s.rank_low is None for s in count.standings.values())


def test_trusted_metrics_that_contradict_each_other_leave_a_pair_without_an_order() -> None:
    found = at_odds().overall()
    (one,) = found.disagreements
    assert {one.first[:5]: one.for_first, one.second[:5]: one.for_second} == {
        "first": (VQA,), "secon": (CLIP,),
    }  # fmt: skip
    assert {(s.rank_low, s.rank_high, s.tier) for s in found.standings.values()} == {(1, 2, 1)}


def test_a_metric_without_trust_is_shown_and_ranks_when_it_is_asked_for() -> None:
    made = at_odds(VQA)
    first, second = made.entries
    found = made.overall()
    assert next(iter(found.standings)) == first and not found.disagreements
    assert [(j.entry_id, j.trusted) for j in found.judges] == [(VQA, True), (CLIP, False)]
    means = found.standings[first].means
    assert (means[VQA].rank, means[CLIP].rank) == (1, 2)
    alone = made.overall(judge=CLIP)
    assert (next(iter(alone.standings)), alone.lead) == (second, CLIP)


@pytest.mark.parametrize("asked", [{"judge": "gone/gone"}, {"prompt_set": "other"}])
def test_what_is_not_there_cannot_be_asked_for(asked: dict[str, str]) -> None:
    with pytest.raises(SubmitterError, match=next(iter(asked.values()))):
        at_odds().board(**asked)


def test_without_a_trusted_metric_nothing_is_ranked() -> None:
    made = World(prompt_set(prompts_of(200)), trusting())
    found = filled(made, first=0.7).overall()
    (standing,) = found.standings.values()
    assert NOBODY in found.note and found.lead is None
    assert standing.unranked and standing.means[VQA].value is not None
    few = [cell(VQA, skill, 1, n_clusters=6) for skill in (None, "count", "color")]
    made = World(prompt_set(prompts_of(200)), {"rated": (metric_card(cluster="graph"), few)})
    for found in filled(made, first=0.7, second=0.3).board().skills.values():
        assert found.lead is None and all(one.unranked for one in found.standings.values())
        assert "graphs" in found.note and "(6;" in found.note  # and how many were needed


def test_a_metric_blind_to_the_models_judges_none() -> None:
    made = world()
    of_prompts = made.drawn(0.5)
    for name, mean in (("low", 0.3), ("high", 0.7)):
        made.add(name, {VQA: made.drawn(mean), CLIP: of_prompts})
    found = made.overall()
    assert [judge.entry_id for judge in found.trusted] == [VQA]
    assert [judge.why for judge in found.judges if not judge.trusted] == [BLIND]
    alone = made.overall(models=("low-0123456789",))
    assert CLIP not in {judge.entry_id for judge in alone.trusted}


def test_one_metric_under_two_names_is_one_witness_and_a_unit_has_no_say() -> None:
    one, two, large, small = world(100, VQA), world(100), world(100, VQA), world(100, VQA)
    for i, name in enumerate("abcd"):
        scores = one.drawn(0.5 + i / 50)
        one.add(name, {VQA: scores})
        two.add(name, {VQA: scores, CLIP: scores})
        large.add(name, {VQA: 2.0**900 * scores})
        small.add(name, {VQA: 2.0**-700 * scores})
    found = two.overall()
    assert len(found.trusted) == 2
    for other in (two, large, small):
        pairs = zip(*(w.overall().standings.values() for w in (one, other)), strict=True)
        assert all((a.better_than, a.tier) == (b.better_than, b.tier) for a, b in pairs)


def test_the_order_of_submission_has_no_say() -> None:
    one, other = world(), world()
    scores = {name: {VQA: one.drawn(0.5 + i / 30)} for i, name in enumerate("abcdef")}
    for made, order in ((one, scores), (other, dict(reversed(scores.items())))):
        for name, of in order.items():
            made.add(name, of)
    boards = [made.overall().standings for made in (one, other)]
    assert list(boards[0]) == list(boards[1])
    for a, b in zip(*(board.values() for board in boards), strict=True):
        assert replace(a, means={}) == replace(b, means={})
        assert astuple(a.means[VQA]) == pytest.approx(astuple(b.means[VQA]), rel=1e-12)


# Missing scores
def test_a_model_with_too_many_missing_scores_has_no_rank() -> None:
    made = world()
    whole, gaps = made.add("whole", {VQA: made.drawn(0.3)}), made.drawn(0.7)
    gaps[0, :5] = np.nan
    holed = made.add("holed", {VQA: gaps}, withheld={"nsfw": 5})
    found = made.overall().standings
    assert list(found) == [whole, holed]
    assert "1.3 %" in found[holed].unranked and "withheld 5" in found[holed].unranked
    assert (found[whole].rank_low, found[whole].rank_high) == (1, 1)
    assert found[holed].means[VQA].rank is None


def test_scores_missing_within_one_skill_cost_the_rank_there_alone() -> None:
    skills = ("count",) * 19 + ("color",)
    made = World(prompt_set(prompts_of(400, skills)), trusting(VQA))
    gaps = made.drawn(0.7)
    gaps[:, 19:80:20] = np.nan  # 4 of the 20 prompts of one skill: a hundredth of the set
    made.add("whole", {VQA: made.drawn(0.3)})
    holed = made.add("holed", {VQA: gaps})
    overall, _, color = (skill.standings[holed] for skill in made.board().skills.values())
    assert (overall.rank_low, bool(overall.unranked)) == (1, False)
    assert color.rank_low is None and color.unranked


# Filters
def test_filters_take_only_their_prompts_seeds_and_models() -> None:
    made = world(60)
    scores = made.drawn(0.5, seeds=3)
    three, two = made.add("three", {VQA: scores}), made.add("two", {VQA: scores[:2]})
    mean = made.overall(split="real").standings[three].means[VQA]
    assert (mean.n_prompts, mean.value) == pytest.approx((20, scores[:, ::3].mean()))
    assert made.overall(words="CAT count").n_prompts == 30
    nothing = made.overall(words="unicorn")
    assert nothing.note == NOTHING_TESTS and nothing.standings[three].means[VQA].value is None
    second = made.overall(seed=2).standings  # by place
    assert second[three].means[VQA].value == pytest.approx(scores[2].mean())
    assert second[two].unranked and second[two].means[VQA].value is None
    one = made.board(models=(two,))
    assert set(one.entries) == set(one.skills[None].standings) == {two}


def test_models_and_metrics_that_left_are_left_out() -> None:
    made = world(60)
    one = made.add("a", {VQA: made.drawn(0.5), "gone/gone": made.drawn(0.5)})
    made.add("old", {VQA: made.drawn(0.5)}, revision="r0")
    board = made.board()
    assert (board.left_out, list(board.entries)) == (("old",), [one])
    assert [judge.entry_id for judge in board.skills[None].judges] == [VQA]


def test_hostile_names_and_words_are_only_text() -> None:
    nasty = "<b>\u202e'\"{}%s\\"
    prompts = [SetPrompt(f"p{i}/{nasty}", nasty, skills=(nasty,)) for i in range(12)]
    made = filled(World(prompt_set(prompts), trusting(VQA)), a=0.5)
    assert made.board(words=nasty).skills[nasty].n_prompts == 12
    assert made.overall(words="(" * 5000).n_prompts == 0


# Element scores
def elements_frame(made: World, values: dict[str, np.ndarray]) -> pd.DataFrame:
    rows = [
        (f"{prompt.prompt_id}/1", element.element_id, values[element.element_id][i])
        for i, prompt in enumerate(made.prompts)
        for element in prompt.elements
    ]
    return pd.DataFrame(rows, columns=["pair_id", "element_id", "score"])


def test_element_scores_stand_for_a_skill_where_a_metric_gives_them() -> None:
    both = SetElement("e0", "cat", "count"), SetElement("e1", "red", "color")
    more = SetElement("e2", "two", "count")
    prompts = [
        SetPrompt(f"p{i}", "x", skills=("count",), elements=(*both, more) if i % 2 else both)
        for i in range(40)
    ]
    made = World(prompt_set(prompts), trusting(VQA, CLIP))
    frame = elements_frame(made, {name: made.rng.uniform(size=40) for name in ("e0", "e1", "e2")})
    scores = made.drawn(0.5, seeds=1)
    one = made.add("one", {VQA: scores, CLIP: scores}, elements={VQA: frame})
    skills = made.board().skills
    vqa, clip = (skills["count"].standings[one].means[judge] for judge in (VQA, CLIP))
    counting = frame[frame["element_id"].isin(["e0", "e2"])]["score"]
    assert (vqa.value, clip.value) == pytest.approx((counting.mean(), scores.mean()))
    assert (vqa.ci_low or 9.0) < (vqa.value or 0.0) < (vqa.ci_high or 0.0)
    color = skills["color"].standings[one].means
    assert (color[VQA].n_prompts, color[CLIP].value) == (40, None)


def test_a_metric_with_few_prompts_of_a_skill_tells_no_models_apart() -> None:
    parts = (SetElement("e0", "red", "color"),)
    prompts = [
        SetPrompt(f"p{i}", "x", skills=("color",) if i < 7 else (), elements=parts)
        for i in range(40)
    ]
    made = World(prompt_set(prompts), trusting(VQA, CLIP))
    for name, mean in (("a", 0.2), ("b", 0.8)):
        frame = elements_frame(made, {"e0": 0.5 + 0.1 * made.rng.standard_normal(40)})
        scores = mean + 0.05 * made.drawn(0.0, seeds=1)
        made.add(name, {VQA: scores, CLIP: scores + 0.1}, elements={VQA: frame})
    found = made.board().skills["color"]
    assert (found.n_prompts, found.note) == (40, NO_ORDER)
    for standing in found.standings.values():
        assert (standing.means[CLIP].n_prompts, standing.means[CLIP].rank) == (7, None)
        assert standing.means[VQA].rank is not None


# What is kept
def test_what_was_asked_for_is_kept_until_something_changes() -> None:
    made = filled(world(60), a=0.5)
    view = made.view
    board = model_board(made.reader, view, QUERY)
    assert model_board(made.reader, view, QUERY) is board
    (one,) = made.entries
    made.add("a", {VQA: made.drawn(0.5), CLIP: made.drawn(0.5)})
    later = model_board(made.reader, view, QUERY)
    assert [CLIP in each.skills[None].standings[one].means for each in (board, later)] == [
        False,
        True,
    ]
    pins = Pins(pins=tuple(Pin(metric=m, verdict="distrust", reason="r") for m in (VQA, CLIP)))
    transact(made.store.public, lambda: {PINS: pins.model_dump_json().encode()}, "pins")
    assert model_board(made.reader, view, QUERY).skills[None].lead is None


def test_those_who_ask_at_once_get_one_board() -> None:
    made = filled(world(100), **dict.fromkeys("abcdef", 0.5))
    view, asked = made.view, ["", "cats", "", "cats", "color", "", "color", "cats"]
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda w: model_board(made.reader, view, replace(QUERY, words=w)), asked)
        assert len({id(board) for board in list(found)}) == 3
