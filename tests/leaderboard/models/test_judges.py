"""Which metrics earned trust on which skill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.schema import Card
from leaderboard.models.board_memory import BoardMemory
from leaderboard.models.board_types import Judge
from leaderboard.models.judges import NO_BOARD, Judging
from leaderboard.models.pins import Pin, Pins
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.rank_ranges import MIN_CLUSTERS
from tests.leaderboard.models.made_up_models import World, cell, metric_card, prompt_set, prompts_of

VQA, CLIP = "vqa/vqa", "clip/clip"


def judges(
    boards: Sequence[tuple[Card, Sequence[Cell]]],
    skill: str | None = "count",
    pins: Sequence[Pin] = (),
    templates: Mapping[str, str] | None = None,
    **card: object,
) -> dict[str, Judge]:
    made = World(
        prompt_set(prompts_of(4), **card),  # type: ignore[arg-type]
        {own.name: (own, cells) for own, cells in boards},
        templates=templates or {},
    )
    judging = Judging(made.view, made.known.card, Pins(pins=tuple(pins)), BoardMemory())
    return {one.entry_id: one for one in judging.of(skill, [VQA, CLIP, "gone/gone"])}


def test_the_first_tier_above_chance_earns_trust() -> None:
    found = judges([(metric_card(), [cell(VQA, "count", 1), cell(CLIP, "count", 2)])])
    assert found[VQA].trusted and "Rated" in found[VQA].why
    assert not found[CLIP].trusted
    assert [one.speaks for one in found[VQA].evidence] == ["for"]
    assert list(found) == [VQA, CLIP]


def test_the_first_tier_is_not_enough_where_chance_is_not_excluded() -> None:
    found = judges([(metric_card(), [cell(VQA, "count", 1, low=-0.1)])])
    assert not found[VQA].trusted and "not clear of chance" in found[VQA].why


def test_one_board_at_chance_takes_the_trust_of_another_away() -> None:
    boards = [
        (metric_card("one"), [cell(VQA, "count", 1), cell(CLIP, "count", 1)]),
        (metric_card("two"), [cell(VQA, "count", 1, low=-0.3), cell(CLIP, "count", 2)]),
    ]
    found = judges(boards)
    assert not found[VQA].trusted and "Two" in found[VQA].why
    assert found[CLIP].trusted


def test_smaller_values_may_be_better() -> None:
    card = metric_card(
        measures={"srcc": {"title": "t", "meaning": "m", "higher_is_better": False, "chance": 0.5}}
    )
    found = judges([(card, [cell(VQA, "count", 1, low=0.1), cell(CLIP, "count", 1, low=0.6)])])
    assert found[VQA].trusted and found[CLIP].evidence[0].speaks == "against"


def test_a_board_without_a_chance_level_says_nothing() -> None:
    card = metric_card(measures={"srcc": {"title": "t", "meaning": "m"}})
    found = judges([(card, [cell(VQA, "count", 1)])])
    assert not found[VQA].trusted and found[VQA].evidence[0].speaks == "undecided"


def test_what_is_kept_from_ranking_earns_nothing() -> None:
    boards = [
        (metric_card("one"), [cell(VQA, "count", 1)]),
        (metric_card("two"), [cell(VQA, "count", None, distrust="scores depend on the batch")]),
    ]
    found = judges(boards)
    assert not found[VQA].trusted and "depend on the batch" in found[VQA].why


def test_skills_meet_under_their_common_names() -> None:
    card = metric_card("ev", "evalmuse", skills={"counting": "Counting"})
    assert judges([(card, [cell(VQA, "counting", 1)])])[VQA].trusted
    assert judges([(card, [cell(VQA, "counting", 1)])], "color")[VQA].why == NO_BOARD


def test_simulated_ratings_speak_for_simulated_models_only() -> None:
    card = metric_card(simulated=True)
    assert not judges([(card, [cell(VQA, "count", 1)])])[VQA].trusted
    assert judges([(card, [cell(VQA, "count", 1)])], simulated=True)[VQA].trusted
    assert not judges([(metric_card(), [cell(VQA, "count", 1)])], simulated=True)[VQA].trusted


def test_all_prompts_are_judged_by_the_boards_of_the_family_if_there_are_any() -> None:
    own = (metric_card("own"), [cell(VQA, None, 1), cell(CLIP, None, 2)])
    other = (metric_card("other", "ts2"), [cell(VQA, None, 2, low=-0.5), cell(CLIP, None, 1)])
    both = judges([own, other], None)
    assert both[VQA].trusted and not both[CLIP].trusted
    alone = judges([other], None)
    assert alone[CLIP].trusted and not alone[VQA].trusted


def test_a_sub_skill_that_no_board_orders_is_judged_as_its_skill() -> None:
    found = judges([(metric_card(), [cell(VQA, "count", 1)])], "count:two")
    assert found[VQA].trusted and found[VQA].why.startswith("As for Count:")
    own = [cell(VQA, "count", 1), cell(VQA, "count:two", 2), cell(CLIP, "count:two", 1)]
    card = metric_card(skills={"count": "Count", "count:two": "Two"})
    found = judges([(card, own)], "count:two")
    assert found[CLIP].trusted and not found[VQA].trusted


FEW = MIN_CLUSTERS - 2
"""Clusters that are too few to order metrics by."""
SAID = f"too few graphs to order metrics ({FEW}; at least {MIN_CLUSTERS} needed)"


def few(entry_id: str, skill: str | None, tier: int | None = 1, low: float = 0.4) -> Cell:
    return cell(entry_id, skill, tier, low, n_clusters=FEW)


@pytest.mark.parametrize("low", [0.4, -0.1, -0.5])
def test_too_few_clusters_speak_neither_for_nor_against(low: float) -> None:
    small = (metric_card("small", cluster="graph"), [few(VQA, "count", low=low)])
    alone = judges([small])[VQA]
    assert not alone.trusted and alone.why == f"Small: {SAID}."
    (evidence,) = alone.evidence
    assert (evidence.speaks, evidence.tier, evidence.too_few) == ("undecided", None, SAID)
    large = (metric_card("large"), [cell(VQA, "count", 1)])
    both = judges([small, large])[VQA]
    assert both.trusted and "Large" in both.why and "Small" not in both.why
    beaten = (metric_card("beaten"), [cell(VQA, "count", 2)])
    assert not judges([small, beaten])[VQA].trusted


@pytest.mark.parametrize(("clusters", "trusted"), [(MIN_CLUSTERS - 1, False), (MIN_CLUSTERS, True)])
def test_a_board_that_says_too_few_is_one_that_does_not_speak(clusters: int, trusted: bool) -> None:
    own = cell(VQA, "count", 1, n_clusters=clusters)
    assert own.orderable is trusted
    assert judges([(metric_card(), [own])])[VQA].trusted is trusted


def test_a_sub_skill_with_too_few_clusters_is_judged_as_its_skill_and_says_why() -> None:
    card = metric_card(cluster="graph", skills={"count": "Count", "count:two": "Two"})
    cells = [cell(VQA, "count", 1), cell(CLIP, "count", 2),
             few(VQA, "count:two", 2), few(CLIP, "count:two", 1)]  # fmt: skip
    found = judges([(card, cells)], "count:two")
    assert found[VQA].trusted and not found[CLIP].trusted
    assert found[VQA].why.startswith(f"Rated: {SAID}, so as for Count: ")
    another = (metric_card("another", skills=card.skills), [cell(CLIP, "count:two", 1)])
    ordered = judges([(card, cells), another], "count:two")
    assert ordered[CLIP].trusted and not ordered[VQA].trusted


def test_a_headline_of_too_few_clusters_leaves_all_prompts_to_other_families() -> None:
    own = (metric_card("own", cluster="graph"), [few(CLIP, None, 1)])
    other = (metric_card("other", "ts2"), [cell(VQA, None, 1), cell(CLIP, None, 2)])
    both = judges([own, other], None)
    assert both[VQA].trusted and not both[CLIP].trusted
    assert judges([own], None)[CLIP].why == f"Own: {SAID}."


def test_metrics_that_are_not_on_the_boards_do_not_judge() -> None:
    assert "gone/gone" not in judges([(metric_card(), [cell(VQA, "count", 1)])])


def test_an_operator_decides_with_a_reason() -> None:
    board = [(metric_card(), [cell(VQA, "count", 1), cell(CLIP, "count", 2)])]
    pins = [
        Pin(metric="vqa", verdict="distrust", reason="drawn with it in the loop"),
        Pin(metric=CLIP, skill="count", verdict="trust", reason="known from elsewhere"),
    ]
    found = judges(board, pins=pins)
    assert (found[VQA].trusted, found[VQA].pinned) == (False, True)
    assert "in the loop" in found[VQA].why
    assert found[CLIP].trusted and found[CLIP].pinned
    assert not judges(board, None, pins)[CLIP].pinned


@pytest.mark.parametrize(
    ("pins", "pinned"),
    [
        ([], False),
        ([Pin(metric=VQA, verdict="trust", reason="a good one")], False),
        ([Pin(metric=VQA, verdict="distrust", reason="no good one")], True),
    ],
)
def test_an_unchanged_template_judges_nothing_whoever_decides(
    pins: Sequence[Pin], pinned: bool
) -> None:
    board = [(metric_card(), [cell(VQA, "count", 1), cell(CLIP, "count", 1)])]
    found = judges(board, pins=pins, templates={VQA: "plain"})
    assert (found[VQA].trusted, found[VQA].pinned) == (False, pinned)
    assert ("no good one" if pinned else "plain template") in found[VQA].why
    assert [one.speaks for one in found[VQA].evidence] == ["for"]
    assert found[CLIP].trusted


@pytest.mark.parametrize("turned", [False, True])
def test_the_pin_that_names_most_holds(turned: bool) -> None:
    pins = [
        Pin(metric="vqa", verdict="distrust", reason="in general"),
        Pin(metric="vqa", prompt_set="drawn", verdict="trust", reason="here"),
        Pin(metric=VQA, verdict="distrust", reason="this entry"),
    ]
    found = Pins(pins=tuple(reversed(pins) if turned else pins))
    assert found.of("drawn", None, VQA) == pins[2]
    assert found.of("drawn", "count", "other/vqa") == pins[1]
    assert found.of("else", "count", "other/vqa") == pins[0]
    assert found.of("drawn", None, CLIP) is None
    again = Pin(metric="vqa", verdict="trust", reason="after all")
    assert again in found.with_pin(again).pins and pins[0] not in found.with_pin(again).pins


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(1, 3), st.floats(-0.9, 0.7)), min_size=1, max_size=4))
def test_trust_is_what_the_rule_says(stands: list[tuple[int, float]]) -> None:
    boards = [
        (metric_card(f"b{i}"), [cell(VQA, "count", tier, low=low)])
        for i, (tier, low) in enumerate(stands)
    ]
    expected = any(tier == 1 and low > 0 for tier, low in stands) and not any(
        low + 0.2 <= 0 for _, low in stands
    )
    assert judges(boards)[VQA].trusted == expected
