"""Boards of models: ranks by consensus, filters, missing scores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import SetElement, SetPrompt
from leaderboard.models.board import NO_ORDER, NOBODY, NOTHING_TESTS, TOO_FEW, model_board
from leaderboard.models.board_selection import BLIND
from leaderboard.models.board_types import BoardQuery
from leaderboard.models.pins import PATH as PINS
from leaderboard.models.pins import Pin, Pins
from leaderboard.store.interface import transact
from tests.leaderboard.models.made_up_models import (
    World,
    cell,
    metric_card,
    prompt_set,
    prompts_of,
    trusting,
)

VQA, CLIP = "vqa/vqa", "clip/clip"
QUERY = BoardQuery("drawn")


def drawn(rng: np.random.Generator, mean: float, n: int, seeds: int = 2) -> np.ndarray:
    return mean + 0.2 * rng.standard_normal((seeds, n))


def world(n: int = 200, trusted: tuple[str, ...] = (VQA, CLIP)) -> World:
    return World(prompt_set(prompts_of(n)), trusting(*trusted))


def test_many_prompts_recover_the_true_order() -> None:
    rng = np.random.default_rng(1)
    made = world()
    for name, mean in (("low", 0.3), ("high", 0.7), ("middle", 0.5)):
        made.add(name, {VQA: drawn(rng, mean, 200), CLIP: drawn(rng, mean, 200)})
    board = model_board(made.reader, made.view, QUERY)
    for skill in (None, "count", "color"):
        found = board.skills[skill]
        assert [one.partition("-")[0] for one in found.standings] == ["high", "middle", "low"]
        ranks = [(s.rank_low, s.rank_high, s.tier) for s in found.standings.values()]
        assert ranks == [(1, 1, 1), (2, 2, 2), (3, 3, 3)]
        assert found.note == "" and found.disagreements == ()
    assert list(board.skills) == [None, "count", "color"]
    assert board.skills["count"].n_prompts == 100


def test_few_prompts_give_no_order_and_say_so() -> None:
    rng = np.random.default_rng(2)
    made = world(10)
    for name, mean in (("a", 0.50), ("b", 0.51), ("c", 0.52)):
        made.add(name, {VQA: drawn(rng, mean, 10)})
    board = model_board(made.reader, made.view, QUERY)
    assert board.skills[None].note == NO_ORDER
    assert {(s.rank_low, s.rank_high) for s in board.skills[None].standings.values()} == {(1, 3)}
    assert board.skills["count"].note == TOO_FEW
    assert all(s.rank_low is None for s in board.skills["count"].standings.values())


def test_trusted_metrics_that_contradict_each_other_leave_a_pair_without_an_order() -> None:
    rng = np.random.default_rng(3)
    made = world()
    first = made.add("first", {VQA: drawn(rng, 0.7, 200), CLIP: drawn(rng, 0.3, 200)})
    second = made.add("second", {VQA: drawn(rng, 0.3, 200), CLIP: drawn(rng, 0.7, 200)})
    found = model_board(made.reader, made.view, QUERY).skills[None]
    assert len(found.disagreements) == 1
    one = found.disagreements[0]
    by_model = dict(zip((one.first, one.second), (one.for_first, one.for_second), strict=True))
    assert by_model == {first: (VQA,), second: (CLIP,)}
    assert {(s.rank_low, s.rank_high, s.tier) for s in found.standings.values()} == {(1, 2, 1)}


def test_a_metric_without_trust_is_shown_and_does_not_rank() -> None:
    rng = np.random.default_rng(4)
    made = world(trusted=(VQA,))
    first = made.add("first", {VQA: drawn(rng, 0.7, 200), CLIP: drawn(rng, 0.3, 200)})
    made.add("second", {VQA: drawn(rng, 0.3, 200), CLIP: drawn(rng, 0.7, 200)})
    found = model_board(made.reader, made.view, QUERY).skills[None]
    assert next(iter(found.standings)) == first and not found.disagreements
    assert [(j.entry_id, j.trusted) for j in found.judges] == [(VQA, True), (CLIP, False)]
    assert found.standings[first].means[CLIP].rank == 2
    assert found.standings[first].means[VQA].rank == 1


def test_one_metric_alone_ranks_when_it_is_asked_for() -> None:
    rng = np.random.default_rng(4)
    made = world(trusted=(VQA,))
    made.add("first", {VQA: drawn(rng, 0.7, 200), CLIP: drawn(rng, 0.3, 200)})
    second = made.add("second", {VQA: drawn(rng, 0.3, 200), CLIP: drawn(rng, 0.7, 200)})
    found = model_board(made.reader, made.view, replace(QUERY, judge=CLIP)).skills[None]
    assert next(iter(found.standings)) == second and found.lead == CLIP
    with pytest.raises(SubmitterError, match="no metric on the boards"):
        model_board(made.reader, made.view, replace(QUERY, judge="gone/gone"))


def test_without_a_trusted_metric_nothing_is_ranked() -> None:
    rng = np.random.default_rng(5)
    made = world(trusted=())
    made.add("first", {VQA: drawn(rng, 0.7, 200)})
    found = model_board(made.reader, made.view, QUERY).skills[None]
    assert NOBODY in found.note and found.lead is None
    (standing,) = found.standings.values()
    assert standing.unranked and standing.means[VQA].value is not None


def test_boards_of_metrics_with_too_few_clusters_rank_no_model_and_the_board_says_so() -> None:
    rng = np.random.default_rng(5)
    card = metric_card(cluster="graph")
    cells = [cell(VQA, skill, 1, n_clusters=6) for skill in (None, "count", "color")]
    made = World(prompt_set(prompts_of(200)), {card.name: (card, cells)})
    made.add("first", {VQA: drawn(rng, 0.7, 200)})
    made.add("second", {VQA: drawn(rng, 0.3, 200)})
    for found in model_board(made.reader, made.view, QUERY).skills.values():
        assert found.lead is None and all(one.unranked for one in found.standings.values())
        assert "too few graphs to order metrics (6; at least 8 needed)" in found.note


def test_a_model_with_too_many_missing_scores_has_no_rank() -> None:
    rng = np.random.default_rng(6)
    made = world()
    whole = made.add("whole", {VQA: drawn(rng, 0.3, 200)})
    gaps = drawn(rng, 0.7, 200)
    gaps[0, :5] = np.nan
    holed = made.add("holed", {VQA: gaps}, withheld={"nsfw": 5})
    found = model_board(made.reader, made.view, QUERY).skills[None]
    assert list(found.standings) == [whole, holed]
    assert "1.3 %" in found.standings[holed].unranked
    assert "withheld 5" in found.standings[holed].unranked
    assert (found.standings[whole].rank_low, found.standings[whole].rank_high) == (1, 1)
    assert found.standings[holed].means[VQA].rank is None


def test_scores_missing_within_one_skill_cost_the_rank_there_alone() -> None:
    rng = np.random.default_rng(7)
    skills = ("count",) * 19 + ("color",)
    made = World(prompt_set(prompts_of(400, skills)), trusting(VQA))
    gaps = drawn(rng, 0.7, 400)
    gaps[:, 19:80:20] = np.nan  # 4 of the 20 prompts of one skill: a hundredth of the set
    made.add("whole", {VQA: drawn(rng, 0.3, 400)})
    holed = made.add("holed", {VQA: gaps})
    board = model_board(made.reader, made.view, QUERY)
    assert board.skills[None].standings[holed].rank_low == 1
    assert "these prompts" in board.skills["color"].standings[holed].unranked


def test_filters_take_only_their_prompts() -> None:
    rng = np.random.default_rng(8)
    made = world(60)
    scores = drawn(rng, 0.5, 60)
    one = made.add("one", {VQA: scores})
    board = model_board(made.reader, made.view, replace(QUERY, split="real"))
    mean = board.skills[None].standings[one].means[VQA]
    assert mean.n_prompts == 20 and mean.value == pytest.approx(scores[:, ::3].mean())
    words = model_board(made.reader, made.view, replace(QUERY, words="CAT count"))
    assert words.skills[None].n_prompts == 30
    nothing = model_board(made.reader, made.view, replace(QUERY, words="unicorn"))
    assert nothing.skills[None].note == NOTHING_TESTS
    assert nothing.skills[None].standings[one].means[VQA].value is None


def test_seeds_are_taken_by_place() -> None:
    rng = np.random.default_rng(9)
    made = world(60)
    scores = drawn(rng, 0.5, 60, seeds=3)
    three = made.add("three", {VQA: scores})
    two = made.add("two", {VQA: scores[:2]})
    found = model_board(made.reader, made.view, replace(QUERY, seed=2)).skills[None]
    assert found.standings[three].means[VQA].value == pytest.approx(scores[2].mean())
    assert found.standings[two].unranked and found.standings[two].means[VQA].value is None


def test_only_the_models_that_were_asked_for_are_compared() -> None:
    rng = np.random.default_rng(10)
    made = world(60)
    ids = [made.add(name, {VQA: drawn(rng, 0.5, 60)}) for name in "abc"]
    board = model_board(made.reader, made.view, replace(QUERY, models=tuple(ids[:2])))
    assert set(board.entries) == set(board.skills[None].standings) == set(ids[:2])


def test_element_scores_stand_for_a_skill_where_a_metric_gives_them() -> None:
    prompts = [
        SetPrompt(
            f"p{i}",
            "x",
            skills=("count",),
            elements=(SetElement("e0", "cat", "count"), SetElement("e1", "red", "color"))
            + ((SetElement("e2", "two", "count"),) if i % 2 else ()),
        )
        for i in range(40)
    ]
    made = World(prompt_set(prompts), trusting(VQA, CLIP))
    rng = np.random.default_rng(11)
    rows = [
        (f"p{i}/1", e.element_id, rng.uniform()) for i, p in enumerate(prompts) for e in p.elements
    ]
    frame = pd.DataFrame(rows, columns=["pair_id", "element_id", "score"])
    scores = drawn(rng, 0.5, 40, seeds=1)
    one = made.add("one", {VQA: scores, CLIP: scores}, elements={VQA: frame})
    board = model_board(made.reader, made.view, QUERY)
    means = board.skills["count"].standings[one].means
    counting = frame[frame["element_id"].isin(["e0", "e2"])]["score"]
    assert means[VQA].value == pytest.approx(counting.mean())
    assert means[CLIP].value == pytest.approx(scores.mean())
    mean = means[VQA]
    assert (mean.ci_low or 9.0) < (mean.value or 0.0) < (mean.ci_high or 0.0)
    assert board.skills["color"].standings[one].means[VQA].n_prompts == 40
    assert board.skills["color"].standings[one].means[CLIP].value is None


def test_a_metric_with_few_prompts_of_a_skill_tells_no_models_apart() -> None:
    parts = (SetElement("e0", "red", "color"),)
    prompts = [
        SetPrompt(f"p{i}", "x", skills=("color",) if i < 7 else (), elements=parts)
        for i in range(40)
    ]
    made = World(prompt_set(prompts), trusting(VQA, CLIP))
    rng = np.random.default_rng(11)
    for name, mean in (("a", 0.2), ("b", 0.8)):
        elements = [(f"p{i}/1", "e0", 0.5 + 0.1 * rng.standard_normal()) for i in range(40)]
        frame = pd.DataFrame(elements, columns=["pair_id", "element_id", "score"])
        scores = mean + 0.01 * rng.standard_normal((1, 40))
        made.add(name, {VQA: scores, CLIP: scores + 0.1}, elements={VQA: frame})
    found = model_board(made.reader, made.view, QUERY).skills["color"]
    assert found.n_prompts == 40 and found.note == NO_ORDER
    for standing in found.standings.values():
        assert standing.means[CLIP].n_prompts == 7 and standing.means[CLIP].rank is None
        assert standing.means[VQA].rank is not None


def test_models_of_another_revision_are_named_and_left_out() -> None:
    rng = np.random.default_rng(12)
    made = world(60)
    made.add("old", {VQA: drawn(rng, 0.5, 60)}, revision="r0")
    board = model_board(made.reader, made.view, QUERY)
    assert board.left_out == ("old",) and not board.entries
    assert board.skills[None].standings == {}


def test_the_order_of_submission_has_no_say() -> None:
    rng = np.random.default_rng(13)
    scores = {name: {VQA: drawn(rng, 0.5 + i / 30, 200)} for i, name in enumerate("abcdef")}
    one, other = world(), world()
    for name, of_model in scores.items():
        one.add(name, of_model)
    for name, of_model in reversed(scores.items()):
        other.add(name, of_model)
    boards = [model_board(w.reader, w.view, QUERY).skills[None] for w in (one, other)]
    assert list(boards[0].standings) == list(boards[1].standings)
    assert boards[0].standings == boards[1].standings


def test_a_metric_that_left_the_boards_judges_no_longer() -> None:
    rng = np.random.default_rng(14)
    made = world(60)
    made.add("a", {VQA: drawn(rng, 0.5, 60), "gone/gone": drawn(rng, 0.5, 60)})
    found = model_board(made.reader, made.view, QUERY).skills[None]
    assert [judge.entry_id for judge in found.judges] == [VQA]


def test_a_later_score_is_seen_at_once() -> None:
    rng = np.random.default_rng(15)
    made = world(60)
    view = made.view
    one = made.add("a", {VQA: drawn(rng, 0.5, 60)})
    assert CLIP not in model_board(made.reader, view, QUERY).skills[None].standings[one].means
    made.add("a", {VQA: drawn(rng, 0.5, 60), CLIP: drawn(rng, 0.5, 60)})
    assert CLIP in model_board(made.reader, view, QUERY).skills[None].standings[one].means


def test_an_unknown_set_and_absent_prompts_are_said() -> None:
    made = World(prompt_set(prompts_of(5)), {"rated": (metric_card(), [])})
    with pytest.raises(SubmitterError, match="no prompt set"):
        model_board(made.reader, made.view, BoardQuery("other"))


def test_one_metric_under_two_names_is_one_witness() -> None:
    rng = np.random.default_rng(16)
    scores = {name: drawn(rng, 0.5 + i / 50, 100) for i, name in enumerate("abcd")}
    one = World(prompt_set(prompts_of(100)), trusting(VQA))
    two = World(prompt_set(prompts_of(100)), trusting(VQA, CLIP))
    for name, of in scores.items():
        one.add(name, {VQA: of})
        two.add(name, {VQA: of, CLIP: of})
    boards = [model_board(w.reader, w.view, QUERY).skills[None] for w in (one, two)]
    for first, second in zip(*(b.standings.values() for b in boards), strict=True):
        assert first.better_than == second.better_than and first.tier == second.tier
    assert len(boards[1].trusted) == 2


@pytest.mark.parametrize("unit", [1e200, 1e-200, 1e280])
def test_the_unit_of_a_score_has_no_say(unit: float) -> None:
    rng = np.random.default_rng(17)
    made = world(60)
    for i, name in enumerate("abc"):
        made.add(name, {VQA: unit * (i + rng.uniform(0.1, 0.4, (2, 60)))})
    found = model_board(made.reader, made.view, QUERY).skills[None]
    assert [one.tier for one in found.standings.values()] == [1, 2, 3]
    assert next(iter(found.standings)).startswith("c-")


def test_what_was_asked_for_is_kept_until_something_changes() -> None:
    rng = np.random.default_rng(18)
    made = world(60)
    made.add("a", {VQA: drawn(rng, 0.5, 60)})
    view = made.view
    board = model_board(made.reader, view, QUERY)
    assert model_board(made.reader, view, QUERY) is board
    pins = Pins(pins=(Pin(metric=VQA, verdict="distrust", reason="r"),))
    transact(made.store.public, lambda: {PINS: pins.model_dump_json().encode()}, "pins")
    assert model_board(made.reader, view, QUERY).skills[None].lead is None


def test_those_who_ask_at_once_get_one_board() -> None:
    rng = np.random.default_rng(19)
    made = world(100)
    for name in "abcdef":
        made.add(name, {VQA: drawn(rng, 0.5, 100)})
    view = made.view
    with ThreadPoolExecutor(8) as pool:
        words = ["", "cats", "", "cats", "color", "", "color", "cats"]
        found = list(
            pool.map(lambda w: model_board(made.reader, view, replace(QUERY, words=w)), words)
        )
    assert len({id(board) for board in found}) == 3


def test_hostile_names_and_words_are_only_text() -> None:
    nasty = "<b>\u202e'\"{}%s\\"
    prompts = [SetPrompt(f"p{i}/{nasty}", nasty, skills=(nasty,)) for i in range(12)]
    made = World(prompt_set(prompts), trusting(VQA))
    made.add("a", {VQA: np.random.default_rng(1).uniform(size=(1, 12))})
    board = model_board(made.reader, made.view, replace(QUERY, words=nasty))
    assert board.skills[nasty].n_prompts == 12
    board = model_board(made.reader, made.view, replace(QUERY, words="(" * 5000))
    assert board.skills[None].n_prompts == 0


def test_a_metric_that_gives_all_models_the_same_scores_judges_none() -> None:
    rng = np.random.default_rng(3)
    made, of_prompts = world(), drawn(rng, 0.5, 200)
    for name, mean in (("low", 0.3), ("high", 0.7)):
        made.add(name, {VQA: drawn(rng, mean, 200), CLIP: of_prompts})
    board = model_board(made.reader, made.view, QUERY).skills[None]
    assert [judge.entry_id for judge in board.trusted] == [VQA]
    (blind,) = [judge for judge in board.judges if not judge.trusted]
    assert blind.why == BLIND
    alone = model_board(made.reader, made.view, replace(QUERY, models=("low-0123456789",)))
    assert CLIP not in {judge.entry_id for judge in alone.skills[None].trusted}
