"""How long a scorer would take on each benchmark: arithmetic, and what cards say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.registry import load_registry
from evaluator.isolation.limits import Limits
from evaluator.submission.checking.costs import Costs, Rates
from evaluator.submission.checking.projection import (
    Pace,
    Ran,
    Size,
    fits_into,
    pace_of,
    projections,
    size_of,
    span_s,
    trust_span_s,
)

COSTS = Costs(
    small=(Rates(0.1, 0.0, 0.0), Rates(0.2, 0.0, 0.0)),
    medium=Rates(1.0, 0.5, 0.1),
    large=Rates(2.0, 0.5, 0.2),
    small_side=128,
)
SIZE = Size((10, 10), (4, 4), (20, 20), elements=False, small=False, from_card=True)


def test_each_image_text_and_pair_is_paid_once() -> None:
    assert span_s(COSTS, SIZE) == pytest.approx((10 + 2 + 2, 20 + 2 + 4))


def test_small_pictures_are_paid_as_small_ones() -> None:
    assert span_s(COSTS, replace(SIZE, small=True)) == pytest.approx((1.0, 2.0))


def test_elements_are_paid_by_the_pair() -> None:
    with_elements = replace(COSTS, medium=Rates(0.0, 0.0, 0.0, elements=0.5))
    low, _ = span_s(with_elements, replace(SIZE, elements=True))
    assert low == pytest.approx(10.0)


def test_a_span_that_is_not_in_order_is_put_in_order() -> None:
    low, high = span_s(replace(COSTS, large=Rates(0.1, 0.0, 0.0)), SIZE)
    assert low < high


@pytest.mark.parametrize(
    ("low", "high", "said"), [(1.0, 5.0, "yes"), (5.0, 15.0, "perhaps"), (11.0, 15.0, "no")]
)
def test_a_limit_is_held_against_both_ends(low: float, high: float, said: str) -> None:
    assert fits_into(low, high, 10.0) == said


def test_sizes_are_counted_where_the_data_are_and_read_from_the_card_elsewhere() -> None:
    registry = load_registry()
    here, card = size_of(registry["demo_croc"], None), size_of(registry["croc_hum"], None)
    assert here is not None
    assert card is not None
    assert (here.images, here.texts, here.pairs) == ((384, 384), (140, 140), (768, 768))
    assert (here.small, here.from_card) == (True, False)
    counts = registry["croc_hum"].card.counts
    assert card.images == (counts["images"],) * 2
    assert card.pairs == (2 * counts["images"],) * 2
    assert card.texts == (2 * counts["prompt pairs"],) * 2


def test_a_card_that_knows_bounds_gives_bounds() -> None:
    size = size_of(load_registry()["evalmuse"], None)
    assert size is not None
    assert size.images[0] < size.images[1]
    assert size.texts == (1, size.images[1])


def test_every_benchmark_has_a_line_and_none_is_guessed() -> None:
    registry = load_registry()
    found = {
        one.benchmark: one
        for one in projections(
            registry, None, COSTS, once_s=3.0, limits=Limits(job_s=61.0), wanted=["demo_ts2"]
        )
    }
    assert set(found) == set(registry)
    unknown = found["croc_syn"]
    assert (unknown.size, unknown.low_s, unknown.fits) == (None, None, None)
    demo = found["demo_ts2"]
    assert demo.low_s == pytest.approx(29.5)
    assert (demo.fits, demo.wanted) == ("perhaps", True)
    assert found["croc_hum"].fits == "no"
    assert not found["croc_hum"].wanted


def test_the_least_is_what_reading_alone_takes_where_a_scorer_is_faster() -> None:
    slow_to_read = replace(COSTS, reading=(20.0, 30.0))
    low, high = span_s(slow_to_read, SIZE)
    assert low == pytest.approx(10 * 20.0 / 2)
    assert high == pytest.approx(26 + 10 * 30.0)


def test_the_most_has_scorer_waiting_and_measures_one_after_the_other() -> None:
    pace = Pace((0.5, 3.0), waiting=0.25, measuring={"ts2": 0.125, "croc": 2.0})
    assert span_s(COSTS, SIZE, pace, "ts2") == pytest.approx((7.0, 78 + 2.5 + 2.5))
    assert span_s(COSTS, SIZE, pace, "never asked")[1] == pytest.approx(78 + 2.5 + 40)


@pytest.mark.parametrize("scorer_s", [0.01, 1.5, 400.0])
@pytest.mark.parametrize("waited_s", [0.0, 50.0])
@pytest.mark.parametrize("small", [True, False])
def test_what_the_check_itself_took_lies_within_what_it_expects(
    scorer_s: float, waited_s: float, small: bool
) -> None:
    size = replace(SIZE, small=small)
    other = Ran("croc", replace(SIZE, small=True), 1.2, 1.3, 0.1)
    one = Ran("ts2", size, scorer_s, scorer_s + waited_s, 7.0)
    low, high = span_s(COSTS, size, pace_of(COSTS, [other, one]), "ts2")
    assert low - 1e-9 <= one.scorer_s
    assert one.asking_s + one.measuring_s <= high + 1e-9


def test_without_runs_nothing_is_added_to_the_costs() -> None:
    assert pace_of(COSTS, []) == Pace()
    assert span_s(COSTS, SIZE, pace_of(COSTS, [])) == span_s(COSTS, SIZE)


def test_trust_checks_are_those_seen_or_as_long_as_larger_pictures_make_them() -> None:
    assert trust_span_s(COSTS, 3.0, small=True) == (3.0, 3.0)
    low, high = trust_span_s(COSTS, 3.0, small=False)
    assert low == 3.0
    assert high == pytest.approx(108 * 2.0 + 108 * 0.5 + 252 * 0.2)
