"""How long a scorer would take on each benchmark: arithmetic, and what cards say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.registry import load_registry
from evaluator.isolation.limits import Limits
from evaluator.submission.costs import Costs, Rates
from evaluator.submission.projection import Size, fits_into, projections, size_of, span_s

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
            registry, None, COSTS, start_s=3.0, limits=Limits(job_s=61.0), wanted=["demo_ts2"]
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
