"""Which metrics earned trust on which skill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.schema import Card
from leaderboard.ledger.judge_pins import Pin, Pins
from leaderboard.models.board_types import Judge
from leaderboard.models.judges import BLIND, NO_BOARD, Judging, least_clusters
from leaderboard.models.reading import BoardCache
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.rank_ranges import MIN_CLUSTERS
from tests.leaderboard.models.made_up_models import (
    CLIP,
    VQA,
    World,
    cell,
    metric_card,
    prompt_set,
    prompts_of,
)

Board = tuple[Card, Sequence[Cell]]
SUBSKILLS = {"count": "Count", "count:two": "Two"}


def judges(
    boards: Sequence[Board],
    skill: str | None = "count",
    pins: Sequence[Pin] = (),
    templates: Mapping[str, str] | None = None,
    blind: Sequence[str] = (),
    **card: Any,
) -> dict[str, Judge]:
    boards_by_name = {own.name: (own, cells) for own, cells in boards}
    known = prompt_set(prompts_of(4), **card)
    made = World(known, boards_by_name, templates=templates or {}, blind=blind)
    judging = Judging(made.view, made.known.card, Pins(pins=tuple(pins)), BoardCache())
    return {one.entry_id: one for one in judging.of(skill, [VQA, CLIP, "gone/gone"])}


def trusted(*args: Any, **more: Any) -> list[str]:
    """Those of both metrics that are."""
    return [name for name, judge in judges(*args, **more).items() if judge.trusted]


def on(*cells: Cell, name: str = "rated", **card: Any) -> Board:
    return metric_card(name, **card), cells


def stands(
    entry_id: str, tier: int | None, low: float = 0.4, skill: str | None = "count", **more: Any
) -> Cell:
    return cell(entry_id, skill, tier, low, **more)


FIRST = stands(VQA, 1), stands(CLIP, 2)


# What boards of metrics say
def test_the_first_tier_above_chance_earns_trust() -> None:
    found = judges([on(*FIRST)])
    assert [(name, judge.trusted) for name, judge in found.items()] == [(VQA, True), (CLIP, False)]
    assert [one.speaks for one in found[VQA].evidence] == ["for"] and "Rated" in found[VQA].why
    near = judges([on(stands(VQA, 1, -0.1))])[VQA]
    assert not near.trusted and "chance" in near.why


@pytest.mark.parametrize(
    ("second", "said"),
    [(stands(VQA, 1, -0.3), "Two"), (stands(VQA, None, distrust="file names"), "file names")],
)
def test_one_board_at_chance_or_of_distrust_takes_trust_away(second: Cell, said: str) -> None:
    one = on(stands(VQA, 1), stands(CLIP, 1), name="one")
    found = judges([one, on(second, stands(CLIP, 2), name="two")])
    assert not found[VQA].trusted and said in found[VQA].why
    assert found[CLIP].trusted


def test_the_measure_says_which_way_is_up_and_what_a_guess_gets() -> None:
    falling = {"title": "t", "meaning": "m", "higher_is_better": False, "chance": 0.5}
    cells = stands(VQA, 1, 0.1), stands(CLIP, 1, 0.6)
    found = judges([on(*cells, measures={"srcc": falling})])
    assert found[VQA].trusted and found[CLIP].evidence[0].speaks == "against"
    (vqa, *_) = judges([on(*cells, measures={"srcc": {"title": "t", "meaning": "m"}})]).values()
    assert (vqa.trusted, vqa.evidence[0].speaks) == (False, "undecided")  # without chance


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.floats(-0.9, 0.0) | st.floats(0.2, 0.7)),
        min_size=1,
        max_size=4,
    )
)
def test_trust_is_what_the_rule_says(found: list[tuple[int, float]]) -> None:
    boards = [on(stands(VQA, tier, low), name=f"b{i}") for i, (tier, low) in enumerate(found)]
    expected = any(tier == 1 and low > 0 for tier, low in found) and not any(
        low + 0.2 <= 0 for _, low in found
    )
    assert judges(boards)[VQA].trusted == expected


def test_an_interval_has_to_be_above_chance_for_all_metrics_boards_and_skills_together() -> None:
    assert trusted([on(stands(VQA, 1, 0.03))]) == [VQA]
    many = [on(stands(VQA, 2, 0.4), stands(CLIP, 2, 0.4), name=f"b{i}") for i in range(12)]
    assert trusted([on(stands(VQA, 1, 0.03)), *many]) == []
    assert trusted([on(stands(VQA, 1, 0.2)), *many]) == [VQA]


def test_tests_that_can_tell_no_two_metrics_apart_put_nobody_in_the_first_tier() -> None:
    least = least_clusters(2)
    for n_clusters, expected in ((least - 1, []), (least, [CLIP, VQA])):
        cells = [stands(one, 1, n_clusters=n_clusters) for one in (VQA, CLIP)]
        assert sorted(trusted([on(*cells)])) == expected
    assert [least_clusters(n) for n in (1, 2, 10, 15, 30)] == [8, 8, 11, 13, 15]


# Which boards speak
def test_skills_meet_under_their_common_names_and_kinds_of_models_apart() -> None:
    evalmuse = on(stands(VQA, 1, skill="counting"), family="evalmuse", skills={"counting": "C"})
    assert trusted([evalmuse]) == [VQA]
    assert judges([evalmuse], "color")[VQA].why == NO_BOARD
    for board_simulated in (False, True):
        for models_simulated in (False, True):
            board = on(*FIRST, simulated=board_simulated)
            own = [VQA] if board_simulated == models_simulated else []
            assert trusted([board], simulated=models_simulated) == own


def test_all_prompts_are_judged_by_the_boards_of_the_family_if_there_are_any() -> None:
    own = on(stands(VQA, 1, skill=None), stands(CLIP, 2, skill=None), name="own")
    cells = stands(VQA, 2, -0.5, skill=None), stands(CLIP, 1, skill=None)
    other = on(*cells, name="other", family="ts2")
    assert trusted([own, other], None) == [VQA]
    assert trusted([other], None) == [CLIP]


def test_a_sub_skill_that_no_board_orders_is_judged_as_its_skill() -> None:
    found = judges([on(*FIRST)], "count:two")[VQA]
    assert found.trusted and "Count" in found.why
    two = stands(VQA, 2, skill="count:two"), stands(CLIP, 1, skill="count:two")
    assert trusted([on(stands(VQA, 1), *two, skills=SUBSKILLS)], "count:two") == [CLIP]


# Too few clusters
FEW = MIN_CLUSTERS - 2
SAID = f"too few graphs to order metrics ({FEW}; at least {MIN_CLUSTERS} needed)"


def few(entry_id: str, tier: int = 1, low: float = 0.4, skill: str | None = "count") -> Cell:
    return stands(entry_id, tier, low, skill, n_clusters=FEW)


@pytest.mark.parametrize("low", [0.4, -0.1, -0.5])
def test_too_few_clusters_speak_neither_for_nor_against(low: float) -> None:
    small = on(few(VQA, low=low), name="small", cluster="graph")
    alone = judges([small])[VQA]
    (evidence,) = alone.evidence
    assert (evidence.speaks, evidence.tier, evidence.too_few) == ("undecided", None, SAID)
    assert not alone.trusted and SAID in alone.why and "Small" in alone.why
    both = judges([small, on(stands(VQA, 1), name="large")])[VQA]
    assert both.trusted and "Large" in both.why and "Small" not in both.why
    assert trusted([small, on(stands(VQA, 2), name="beaten")]) == []


@pytest.mark.parametrize(("clusters", "enough"), [(MIN_CLUSTERS - 1, False), (MIN_CLUSTERS, True)])
def test_a_board_that_says_too_few_is_one_that_does_not_speak(clusters: int, enough: bool) -> None:
    own = stands(VQA, 1, n_clusters=clusters)
    assert own.orderable is enough
    assert judges([on(own)])[VQA].trusted is enough


def test_a_sub_skill_with_too_few_clusters_is_judged_as_its_skill_and_says_why() -> None:
    two = few(VQA, 2, skill="count:two"), few(CLIP, 1, skill="count:two")
    own = on(*FIRST, *two, cluster="graph", skills=SUBSKILLS)
    found = judges([own], "count:two")
    assert found[VQA].trusted and not found[CLIP].trusted
    assert SAID in found[VQA].why and "Count" in found[VQA].why
    another = on(stands(CLIP, 1, skill="count:two"), name="another", skills=SUBSKILLS)
    assert trusted([own, another], "count:two") == [CLIP]


def test_a_headline_of_too_few_clusters_leaves_all_prompts_to_other_families() -> None:
    own = on(few(CLIP, skill=None), name="own", cluster="graph")
    cells = stands(VQA, 1, skill=None), stands(CLIP, 2, skill=None)
    assert trusted([own, on(*cells, name="other", family="ts2")], None) == [VQA]
    assert SAID in judges([own], None)[CLIP].why


# Operators and templates
def test_an_operator_decides_with_a_reason() -> None:
    pins = [
        Pin(metric="vqa", verdict="distrust", reason="in the loop"),
        Pin(metric=CLIP, skill="count", verdict="trust", reason="known"),
    ]
    found = judges([on(*FIRST)], pins=pins)
    assert (found[VQA].trusted, found[VQA].pinned) == (False, True)
    assert (found[CLIP].trusted, found[CLIP].pinned) == (True, True)
    assert pins[0].reason in found[VQA].why
    assert not judges([on(*FIRST)], None, pins)[CLIP].pinned


@pytest.mark.parametrize(("verdict", "pinned"), [("", False), ("trust", False), ("distrust", True)])
def test_an_unchanged_template_judges_nothing_whoever_decides(verdict: Any, pinned: bool) -> None:
    pins = [Pin(metric=VQA, verdict=verdict, reason="known")] if verdict else []
    boards = [on(stands(VQA, 1), stands(CLIP, 1))]
    found = judges(boards, pins=pins, templates={VQA: "plain"})
    assert (found[VQA].trusted, found[VQA].pinned) == (False, pinned)
    assert ("known" if pinned else "template") in found[VQA].why
    assert [one.speaks for one in found[VQA].evidence] == ["for"]
    assert found[CLIP].trusted


@pytest.mark.parametrize(("verdict", "pinned"), [("", False), ("trust", False), ("distrust", True)])
def test_what_is_blind_to_the_prompt_judges_no_alignment_whoever_decides(
    verdict: Any, pinned: bool
) -> None:
    pins = [Pin(metric=VQA, verdict=verdict, reason="known")] if verdict else []
    boards = [on(stands(VQA, 1), stands(CLIP, 1))]
    found = judges(boards, pins=pins, blind=[VQA])
    assert (found[VQA].trusted, found[VQA].pinned) == (False, pinned)
    assert found[VQA].why == (BLIND if not pinned else "An operator decided: known")
    assert [one.speaks for one in found[VQA].evidence] == ["for"]
    assert found[CLIP].trusted
    assert judges(boards, blind=[VQA], kind="quality")[VQA].trusted


def test_what_no_board_speaks_for_keeps_its_reason_where_it_is_blind() -> None:
    assert judges([on(*FIRST)], blind=[CLIP])[CLIP].why == judges([on(*FIRST)])[CLIP].why


@pytest.mark.parametrize("turned", [False, True])
def test_the_pin_that_names_most_holds(turned: bool) -> None:
    pins = [
        Pin(metric="vqa", verdict="distrust", reason="in general"),
        Pin(metric="vqa", prompt_set="drawn", verdict="trust", reason="here"),
        Pin(metric=VQA, verdict="distrust", reason="this entry"),
    ]
    found = Pins(pins=tuple(reversed(pins) if turned else pins))
    asked = [("drawn", None, VQA), ("drawn", "count", "other/vqa"), ("else", "count", "other/vqa")]
    assert [found.of(*each) for each in asked] == pins[::-1]
    assert found.of("drawn", None, CLIP) is None
    again = Pin(metric="vqa", verdict="trust", reason="after all")
    assert again in found.with_pin(again).pins and pins[0] not in found.with_pin(again).pins
