"""Cells against cells: every number against scipy, all patterns of signs, or a count by hand."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks.comparison import Compared
from benchmarks.inference import IN_STEPS
from benchmarks.schema import Card, MeasureInfo, Selector
from benchmarks.statistics.intervals import MAX_BLOCKS
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.comparing import (
    NO_CONTRIBUTIONS,
    TOO_FEW,
    Match,
    compare_cells,
    unit_of,
    why_uncounted,
    why_untested,
)
from leaderboard.ranking.draws import Draws
from leaderboard.ranking.slices import Slice

N, B = 12, 400
NAMES = {"x/a": "A", "y/b": "B"}


@pytest.fixture
def card() -> Card:
    return Card(
        name="toss", title="Toss", family="toss", summary="Made up.", description="Made up.",
        revision="1", simulated=True, cluster="prompt", headline=Selector(measure="hits"),
        measures={
            "hits": MeasureInfo(title="Hits", meaning="Share."),
            "error": MeasureInfo(title="Error", meaning="Distance.", higher_is_better=False),
        },
        licence="", links={},
    )  # fmt: skip


def cell(entry_id: str, value: float | None, **changes: Any) -> Cell:
    fields: dict[str, Any] = {
        "entry_id": entry_id, "measure": "hits", "variant": None, "split": "all", "facet": None,
        "skill": "colour", "value": value, "ci_low": None, "ci_high": None, "n_items": 5 * N,
        "n_clusters": N, "n_missing": 0, "note": "",
    }  # fmt: skip
    return Cell(**(fields | changes))


def clusters_of(seed: int = 0) -> np.ndarray:
    """Values of two metrics on N clusters, shape (2, N); on two clusters they agree."""
    rng = np.random.default_rng(seed)
    values: np.ndarray = rng.normal(0.5, 0.2, (2, N)) + np.array([[0.08], [0.0]])
    values[1, :2] = values[0, :2]
    return values


def slice_of(values: np.ndarray, *cells: Cell) -> Slice:
    """Means of the values of clusters, with their resamples and contributions."""
    counts = np.random.default_rng(9).multinomial(N, np.full(N, 1 / N), B)
    return Slice(cells, Draws(values @ counts.T / N, values / N))


def compared(card: Card, values: np.ndarray, **changes: Any) -> Compared:
    cells = [
        cell(name, float(mean), **changes)
        for name, mean in zip(NAMES, values.mean(axis=1), strict=True)
    ]
    (found,) = compare_cells([Match(slice_of(values, *cells), 0, 1)], card, NAMES)
    return found


def test_the_difference_is_tested_by_all_patterns_of_signs_of_the_clusters(card: Card) -> None:
    values = clusters_of()
    found = compared(card, values)
    d = values[0] - values[1]
    total = abs(d.sum())
    sums = [abs((np.array(s) * d).sum()) for s in itertools.product((1, -1), repeat=N)]
    assert found.p_value == pytest.approx(np.mean(np.array(sums) >= total - 1e-12))
    assert (found.exact, found.n_patterns, found.n_differing) == (True, 2 ** (N - 2), N - 2)
    assert found.difference == pytest.approx(d.mean())
    assert (found.metric_a, found.metric_b, found.untested) == ("A", "B", "")
    assert (found.measure, found.split, found.skill) == ("hits", "all", "colour")


def test_units_are_counted_and_tested_in_pairs(card: Card) -> None:
    values = clusters_of()
    found = compared(card, values)
    a, b = values
    assert found.tally == (int((a > b).sum()), 2, int((a < b).sum()))
    t = stats.ttest_rel(a, b)
    assert (found.t, found.t_p) == pytest.approx((t.statistic, t.pvalue))
    w = stats.wilcoxon(a, b, zero_method="wilcox", correction=False, method="exact")
    assert found.wilcoxon_w == w.statistic
    assert found.wilcoxon_p == pytest.approx(w.pvalue)
    assert found.effect == pytest.approx((a - b).mean() / (a - b).std(ddof=1))
    assert found.effect_low < found.effect < found.effect_high
    assert (found.unit, found.n_units) == ("prompt", N)


def test_the_interval_is_that_of_the_difference_in_shared_resamples(card: Card) -> None:
    values = clusters_of(3)
    found = compared(card, values)
    counts = np.random.default_rng(9).multinomial(N, np.full(N, 1 / N), B)
    resampled = (values[0] - values[1]) @ counts.T / N
    ends = np.quantile(resampled, [0.025, 0.975])
    assert (found.percentile_low, found.percentile_high) == pytest.approx(tuple(ends))
    assert found.ci_method == "bca"
    assert found.ci_low < found.difference < found.ci_high


def test_without_resamples_there_is_no_interval(card: Card) -> None:
    values = clusters_of()
    cells = [cell(name, float(v.mean())) for name, v in zip(NAMES, values, strict=True)]
    bare = Slice(tuple(cells), Draws(np.empty((2, 0)), values / N))
    (found,) = compare_cells([Match(bare, 0, 1)], card, NAMES)
    assert found.ci_method is None
    assert math.isnan(found.ci_low)
    assert found.p_value == compared(card, values).p_value


def test_where_less_is_better_the_lower_value_wins_its_units(card: Card) -> None:
    values = clusters_of()
    rising, falling = (compared(card, values, measure=name) for name in ("hits", "error"))
    assert falling.tally == (rising.n_better_b, rising.n_tied, rising.n_better_a)
    assert falling.higher_is_better is False
    assert falling.difference == rising.difference
    assert falling.p_value == rising.p_value
    assert falling.advantage[0] == -rising.advantage[0]


def test_the_other_way_round_is_the_same_test(card: Card) -> None:
    values = clusters_of()
    one, other = compared(card, values), compared(card, values[::-1])
    assert other.p_value == one.p_value
    assert other.difference == pytest.approx(-one.difference)
    assert other.tally == (one.n_better_b, one.n_tied, one.n_better_a)


def test_several_matches_are_those_of_each_alone(card: Card) -> None:
    slices = []
    for seed in (0, 1):
        values = clusters_of(seed)
        means = zip(NAMES, values.mean(axis=1), strict=True)
        slices.append(slice_of(values, *(cell(name, float(mean)) for name, mean in means)))
    matches = [Match(slices[0], 0, 1), Match(slices[1], 1, 0)]
    both = compare_cells(matches, card, NAMES)
    for match, found in zip(matches, both, strict=True):
        (alone,) = compare_cells([match], card, NAMES)
        assert found.to_json() == pytest.approx(alone.to_json())
    assert compare_cells([], card, NAMES) == ()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"value": None, "note": "Undefined: too few scores."}, "value undefined: too few scores"),
        ({"value": None}, "value undefined"),
        ({"n_clusters": 3}, TOO_FEW),
        ({"distrust": "ran without isolation"}, "B: ran without isolation"),
        ({"n_items": 58, "n_missing": 2}, "B lacks 2 of 60 scores; the limit is 2 %"),
    ],
)
def test_a_pair_that_a_board_does_not_rank_is_not_tested_and_the_reason_is_said(
    card: Card, changes: dict[str, Any], why: str
) -> None:
    values = clusters_of()
    a, b = (cell(name, float(v.mean())) for name, v in zip(NAMES, values, strict=True))
    b = b.model_copy(update=changes)
    assert why_untested([a, b], NAMES) == why
    (found,) = compare_cells([Match(slice_of(values, a, b), 0, 1)], card, NAMES)
    assert found.untested == why
    for name in ("p_value", "t", "t_p", "wilcoxon_w", "wilcoxon_p"):
        assert math.isnan(getattr(found, name))
    assert found.n_patterns == 0


@pytest.mark.parametrize(
    ("note", "why"), [("", NO_CONTRIBUTIONS), (f"a note; {IN_STEPS}", IN_STEPS)]
)
def test_values_without_contributions_are_not_tested(card: Card, note: str, why: str) -> None:
    values = clusters_of()
    values[1] = np.nan
    a, b = cell("x/a", 0.6, note=note), cell("y/b", 0.4, note=note)
    (found,) = compare_cells([Match(slice_of(values, a, b), 0, 1)], card, NAMES)
    assert found.untested == why
    assert math.isnan(found.p_value)
    assert found.difference == pytest.approx(0.2)


def test_a_missing_score_leaves_the_test_and_takes_the_count(card: Card) -> None:
    values = clusters_of()
    a, b = (cell(name, float(v.mean())) for name, v in zip(NAMES, values, strict=True))
    b = b.model_copy(update={"n_items": 59, "n_missing": 1})
    (found,) = compare_cells([Match(slice_of(values, a, b), 0, 1)], card, NAMES)
    assert (
        found.uncounted == why_uncounted([a, b], NAMES) == ("not counted: 1 score of B is missing")
    )
    assert found.p_value == compared(card, values).p_value
    assert found.tally is None
    for name in ("t", "t_p", "wilcoxon_w", "wilcoxon_p", "effect", "effect_low", "effect_high"):
        assert math.isnan(getattr(found, name))
    both = [a.model_copy(update={"n_missing": 3}), b]
    assert why_uncounted(both, NAMES) == "not counted: 3 scores of A and 1 of B are missing"
    assert why_uncounted([a, a], NAMES) == ""


def test_where_clusters_are_more_than_blocks_a_unit_is_a_block(card: Card) -> None:
    assert unit_of(card, 40, [40, 12]) == "prompt"
    assert unit_of(card, 40, [41]) == "block of prompts"
    assert unit_of(card, MAX_BLOCKS, [MAX_BLOCKS]) == "block of prompts"
    assert unit_of(card, 0, [500]) == "prompt"
    assert unit_of(card, 40, []) == "prompt"


def test_a_match_knows_its_cells(card: Card) -> None:
    a, b = cell("x/a", 0.5), cell("y/b", 0.4)
    match = Match(slice_of(clusters_of(), a, b), 1, 0)
    assert match.cells == (b, a)
    assert replace(match.of, cells=(b, a)).cells == match.cells
