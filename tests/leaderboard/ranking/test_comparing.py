"""Cells against cells: every number against scipy, all patterns of signs, or a count by hand."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks.arrays import FloatArray
from benchmarks.comparison import Compared
from benchmarks.inference import IN_STEPS
from benchmarks.schema import MeasureInfo, Selector
from benchmarks.statistics.intervals import MAX_BLOCKS
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.comparing import (
    NO_CONTRIBUTIONS,
    TOO_FEW,
    Match,
    compare_cells,
    flipped_unit,
    why_uncounted,
    why_untested,
)
from leaderboard.ranking.draws import Draws
from leaderboard.ranking.slices import Slice
from tests.leaderboard.models.made_up_models import cell, metric_card

N, B = 12, 400
NAMES = {"x/a": "A", "y/b": "B"}
COUNTS = np.random.default_rng(9).multinomial(N, np.full(N, 1 / N), B)
CARD = metric_card(
    headline=Selector(measure="hits"),
    measures={
        "hits": MeasureInfo(title="Hits", meaning="Share."),
        "error": MeasureInfo(title="Error", meaning="Distance.", higher_is_better=False),
    },
)


def clusters_of(seed: int = 0) -> FloatArray:
    """Values of two metrics on N clusters, shape (2, N); on two clusters they agree."""
    rng = np.random.default_rng(seed)
    values: FloatArray = rng.normal(0.5, 0.2, (2, N)) + np.array([[0.08], [0.0]])
    values[1, :2] = values[0, :2]
    return values


def cells_of(values: FloatArray, **changes: Any) -> list[Cell]:
    """Of both metrics; 60 items, all with scores."""
    fields: dict[str, Any] = {
        "measure": "hits",
        "split": "all",
        "skill": "color",
        "n_items": 60,
        "n_clusters": N,
    }
    return [
        cell(name, **(fields | {"value": float(mean)} | changes))
        for name, mean in zip(NAMES, values.mean(axis=1), strict=True)
    ]


def slice_of(values: FloatArray, cells: list[Cell]) -> Slice:
    """Means of the values of clusters, with their resamples and contributions."""
    return Slice(tuple(cells), Draws(values @ COUNTS.T / N, values / N))


def compared(values: FloatArray, cells: list[Cell] | None = None, **changes: Any) -> Compared:
    one = slice_of(values, cells or cells_of(values, **changes))
    (found,) = compare_cells([Match(one, 0, 1)], CARD, NAMES)
    return found


def test_every_number_is_that_of_the_difference_of_the_contributions() -> None:
    a, b = values = clusters_of()
    found, d = compared(values), a - b
    sums = [abs((np.array(s) * d).sum()) for s in itertools.product((1, -1), repeat=N)]
    assert found.p_value == pytest.approx(np.mean(np.array(sums) >= abs(d.sum()) - 1e-12))
    assert (found.exact, found.n_patterns, found.n_differing) == (True, 2 ** (N - 2), N - 2)
    assert found.tally == (int((a > b).sum()), 2, int((a < b).sum()))
    t, w = stats.ttest_rel(a, b), stats.wilcoxon(a, b, zero_method="wilcox", method="exact")
    tests = found.t, found.t_p, found.wilcoxon_w, found.wilcoxon_p
    assert tests == pytest.approx((t.statistic, t.pvalue, w.statistic, w.pvalue))
    assert found.difference == pytest.approx(d.mean())
    assert found.effect == pytest.approx(d.mean() / d.std(ddof=1))
    assert found.effect_low < found.effect < found.effect_high
    ends = np.quantile(d @ COUNTS.T / N, [0.025, 0.975])
    assert (found.percentile_low, found.percentile_high) == pytest.approx(tuple(ends))
    assert found.ci_low < found.difference < found.ci_high
    told = found.metric_a, found.metric_b, found.measure, found.split, found.skill, found.unit
    assert told == ("A", "B", "hits", "all", "color", "prompt")
    assert (found.n_units, found.untested, found.ci_method) == (N, "", "bca")
    bare = Slice(tuple(cells_of(values)), Draws(np.empty((2, 0)), values / N))
    (without,) = compare_cells([Match(bare, 0, 1)], CARD, NAMES)
    assert (without.ci_method, without.p_value) == (None, found.p_value)
    assert math.isnan(without.ci_low)


def test_the_other_way_round_or_where_less_is_better_it_is_the_same_test() -> None:
    values = clusters_of()
    one, falling, turned = (
        compared(values),
        compared(values, measure="error"),
        compared(values[::-1]),
    )
    assert one.p_value == falling.p_value == turned.p_value
    assert one.tally and falling.tally == turned.tally == one.tally[::-1]
    assert falling.difference == one.difference == pytest.approx(-turned.difference)
    assert falling.higher_is_better is False and falling.advantage[0] == -one.advantage[0]


def test_several_matches_are_those_of_each_alone() -> None:
    slices = [slice_of(values, cells_of(values)) for values in map(clusters_of, (0, 1))]
    matches = [Match(slices[0], 0, 1), Match(slices[1], 1, 0)]
    assert [one.entry_id for one in matches[1].cells] == ["y/b", "x/a"]
    for match, found in zip(matches, compare_cells(matches, CARD, NAMES), strict=True):
        (alone,) = compare_cells([match], CARD, NAMES)
        assert found.to_json() == pytest.approx(alone.to_json())
    assert compare_cells([], CARD, NAMES) == ()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"value": None, "note": "Undefined: no scores."}, "value undefined: no scores"),
        ({"value": None}, "value undefined"),
        ({"n_clusters": 3}, TOO_FEW),
        ({"distrust": "file names"}, "B: file names"),
        ({"n_items": 58, "n_missing": 2}, "B lacks 2 of 60 scores; the limit is 2 %"),
    ],
)
def test_who_does_not_rank_is_not_tested_for_a_reason(changes: dict[str, Any], why: str) -> None:
    values = clusters_of()
    a, b = cells_of(values)
    b = b.model_copy(update=changes)
    assert why_untested([a, b], NAMES) == why
    found = compared(values, [a, b])
    assert (found.untested, found.n_patterns) == (why, 0)
    tests = found.p_value, found.t, found.t_p, found.wilcoxon_w, found.wilcoxon_p
    assert np.isnan(tests).all()


@pytest.mark.parametrize(
    ("note", "why"), [("", NO_CONTRIBUTIONS), (f"a note; {IN_STEPS}", IN_STEPS)]
)
def test_values_without_contributions_are_not_tested(note: str, why: str) -> None:
    values = clusters_of()
    values[1] = np.nan
    cells = [cell(name, value=of, note=note) for name, of in zip(NAMES, (0.6, 0.4), strict=True)]
    found = compared(values, [one.model_copy(update={"measure": "hits"}) for one in cells])
    assert found.untested == why and found.difference == pytest.approx(0.2)
    assert math.isnan(found.p_value)


def test_a_missing_score_leaves_the_test_and_takes_the_count() -> None:
    values = clusters_of()
    a, b = cells_of(values)
    b = b.model_copy(update={"n_items": 59, "n_missing": 1})
    found = compared(values, [a, b])
    assert found.uncounted == why_uncounted([a, b], NAMES) and "1 score of B" in found.uncounted
    assert (found.p_value, found.tally) == (compared(values).p_value, None)
    tests = found.t, found.t_p, found.wilcoxon_w, found.wilcoxon_p
    assert np.isnan([*tests, found.effect, found.effect_low, found.effect_high]).all()
    both = why_uncounted([a.model_copy(update={"n_missing": 3}), b], NAMES)
    assert "3 scores of A and 1 of B" in both
    assert why_uncounted([a, a], NAMES) == ""


@pytest.mark.parametrize(
    ("blocks", "clusters", "block"),
    [
        (40, [40, 12], False), (40, [41], True), (MAX_BLOCKS, [MAX_BLOCKS], True),
        (0, [500], False), (40, [], False),
    ],
)  # fmt: skip
def test_with_more_clusters_a_unit_is_a_block(
    blocks: int, clusters: list[int], block: bool
) -> None:
    assert flipped_unit(CARD, blocks, clusters) == ("block of prompts" if block else "prompt")
