"""Better, tied, worse or undecided: values against an independent implementation, and error rates."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import stats

from benchmarks.arrays import FloatArray
from benchmarks.statistics.better_or_tied import (
    MIN_PROMPTS,
    Outcome,
    corrected,
    equivalence,
    joint_outcome,
    paired_outcome,
)

NAN = math.nan


def models(
    shift: float, n: int = 200, seed: int = 0, sd: float = 0.3
) -> tuple[FloatArray, FloatArray]:
    """Scores of two models on prompts of spread 1, the second better by `shift`."""
    rng = np.random.default_rng((27, seed))
    prompt = rng.normal(size=n)
    return prompt + rng.normal(0, sd, n), prompt + shift + rng.normal(0, sd, n)


def test_figures_are_those_of_the_paired_t_and_of_two_one_sided_tests() -> None:
    first, second = models(0.02)
    found = paired_outcome(first, second)
    d = second - first
    t = stats.ttest_rel(second, first)
    assert (found.n, found.n_missing) == (200, 0)
    assert found.difference == pytest.approx(d.mean())
    assert found.p == pytest.approx(t.pvalue)
    assert (found.ci_low, found.ci_high) == pytest.approx(tuple(t.confidence_interval(0.95)))
    spread = np.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2)
    assert (found.spread, found.margin) == pytest.approx((spread, 0.1 * spread))
    sides = [
        stats.ttest_1samp(d, found.margin, alternative="less").pvalue,
        stats.ttest_1samp(d, -found.margin, alternative="greater").pvalue,
    ]
    assert found.p_tied == pytest.approx(max(sides))
    assert (found.wins, found.losses) == ((d > 0).mean(), (d < 0).mean())


@pytest.mark.parametrize(
    ("shift", "n", "outcome"),
    [
        (0.3, 200, Outcome.BETTER),
        (-0.3, 200, Outcome.WORSE),
        (0.0, 2000, Outcome.TIED),
        (0.05, 60, Outcome.UNDECIDED),
        (0.05, 4000, Outcome.BETTER),  # told apart, though it is less than the margin
        (0.3, MIN_PROMPTS - 1, Outcome.UNDECIDED),
    ],
)
def test_planted_models_are_told(shift: float, n: int, outcome: Outcome) -> None:
    found = paired_outcome(*models(shift, n))
    assert found.outcome is outcome
    if outcome is not Outcome.UNDECIDED:
        assert (found.n_to_differ, found.n_to_tie) == (None, None)


def test_a_prompt_without_one_of_the_scores_is_left_out_and_counted() -> None:
    first, second = models(0.3)
    first[:3], second[2:5] = NAN, NAN
    found = paired_outcome(first, second)
    assert (found.n, found.n_missing) == (195, 5)
    assert found.difference == pytest.approx((second - first)[5:].mean())


def test_equal_scores_are_not_tested_and_tied_where_the_images_are_the_same_alone() -> None:
    """Equal scores of other images are a sample: where one in twenty differs, so may twenty not."""
    first, _ = models(0.0)
    for same, n, outcome in (
        (True, 200, Outcome.TIED), (False, 200, Outcome.UNDECIDED), (True, 5, Outcome.UNDECIDED),
    ):  # fmt: skip
        found = paired_outcome(first[:n], first[:n], same=same)
        assert (found.identical, found.outcome, found.difference) == (True, outcome, 0.0)
        assert np.isnan([found.p, found.p_tied]).all()
        assert (found.n_to_differ, found.n_to_tie) == (None, None)
    assert not paired_outcome(*models(0.3), same=True).same


@pytest.mark.parametrize(
    ("differing", "n", "decided", "needed"), [(19, 40, False, 43), (20, 40, True, None)]
)
def test_where_few_prompts_differ_nothing_is_decided(
    differing: int, n: int, decided: bool, needed: int | None
) -> None:
    first = np.arange(n) / 10
    second = first + np.where(np.arange(n) < differing, 0.5, 1e-16)
    found = paired_outcome(first, second)
    assert found.n_differing == differing
    assert (found.outcome is Outcome.BETTER) == decided
    assert np.isfinite([found.p, found.p_tied]).all() == decided
    assert found.n_to_differ == needed


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("n", [20, 40, 100, 200])
def test_rare_large_failures_among_equal_scores_are_seldom_a_difference(
    n: int, share: float
) -> None:
    """Three wins of 1 to a failure of 3; a standard error is .006. t alone has up to .16."""
    rng, claimed = np.random.default_rng(27), 0
    for _ in range(2000):
        d = np.where(rng.random(n) < share, rng.choice([1.0, 1.0, 1.0, -3.0], n), 0.0)
        claimed += paired_outcome(np.zeros(n), d).outcome in (Outcome.BETTER, Outcome.WORSE)
    assert claimed / 2000 <= (0.11 if n * share == 20 else 0.07) + 0.018


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "accuracy", "difference"),
    [(20, 0.9, 0.045), (40, 0.9, 0.036), (100, 0.9, 0.033), (200, 0.9, 0.033)],
)
def test_scores_of_two_values_are_not_tied_falsely(
    n: int, accuracy: float, difference: float
) -> None:
    rng, tied = np.random.default_rng(27), 0
    for _ in range(1000):
        first = (rng.random(n) < accuracy).astype(float)
        second = np.where(rng.random(n) < difference / accuracy, 0.0, first)
        tied += paired_outcome(first, second).outcome is Outcome.TIED
    assert tied / 1000 <= 0.07


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_prompts_have_no_figures(n: int) -> None:
    found = paired_outcome(np.ones(n), np.zeros(n))
    assert found.outcome is Outcome.UNDECIDED
    assert np.isnan([found.p, found.ci_low, found.spread, found.sd]).all()
    assert (found.n_to_differ, found.n_to_tie) == (None, None)


def test_scores_of_other_prompts_are_refused() -> None:
    with pytest.raises(ValueError, match="same prompts"):
        paired_outcome(np.ones(3), np.ones(4))


@pytest.mark.parametrize(("value", "p"), [(0.05, 0.0), (0.2, 1.0)])
def test_differences_without_spread_are_equivalent_within_the_margin(
    value: float, p: float
) -> None:
    assert equivalence(np.full(30, value), 0.1) == p


def test_both_families_are_corrected_by_holm() -> None:
    found = [paired_outcome(*models(shift, seed=n)) for n, shift in enumerate((0.1, 0.05, 0.0))]
    few = paired_outcome(np.ones(3), np.zeros(3))
    after = corrected([*found, few])
    for name in ("p", "p_tied"):
        p = sorted(getattr(one, name) for one in found)
        steps = np.minimum(np.maximum.accumulate(np.array(p) * [3, 2, 1]), 1.0)
        assert sorted(getattr(one, f"{name}_corrected") for one in after[:3]) == pytest.approx(
            list(steps)
        )
    assert {one.n_tests for one in after} == {3}
    assert np.isnan(after[3].p_corrected)


B, T, W, U = Outcome.BETTER, Outcome.TIED, Outcome.WORSE, Outcome.UNDECIDED


@pytest.mark.parametrize(
    ("said", "together"),
    [
        ([B], B), ([B, U, T], B), ([W, T], W), ([B, W], U), ([B, W, T], U), ([T, T], T),
        ([T, U], U), ([U], U), ([], U),
    ],
)  # fmt: skip
def test_metrics_are_joined_as_on_boards(said: list[Outcome], together: Outcome) -> None:
    assert joint_outcome(said) is together


@cache
def rates(shift: float, n: int, runs: int = 1000) -> dict[Outcome, float]:
    """Shares of outcomes over simulated pairs of models, two skills of two metrics each."""
    counts = dict.fromkeys(Outcome, 0)
    for run in range(runs):
        found = corrected(
            [paired_outcome(*models(shift, n, seed=4 * run + one)) for one in range(4)]
        )
        for outcome in {one.outcome for one in found}:
            counts[outcome] += 1
    return {outcome: count / runs for outcome, count in counts.items()}


@pytest.mark.slow
def test_no_difference_is_claimed_falsely_and_no_tie() -> None:
    """Any of four tests, at .05; a standard error is .007."""
    null, edge = rates(0.0, 50), rates(0.1044, 100)  # the spread is sqrt(1.09), the margin .1044
    assert null[Outcome.BETTER] + null[Outcome.WORSE] <= 0.065
    assert edge[Outcome.TIED] <= 0.065


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.08, 0.02, 0.0])
def test_so_many_prompts_as_are_named_decide_with_the_power_that_is_named(shift: float) -> None:
    """If what was seen is so; .8, less .02 for chance and for t in place of the normal."""
    few = replace(
        paired_outcome(*models(0.0, 25)), difference=shift, sd=0.3, margin=0.1, p_corrected=0.5,
        p_tied_corrected=0.5,
    )  # fmt: skip
    ways = [n for n in (few.n_to_differ, few.n_to_tie) if n is not None]
    assert len(ways) == (1 if shift == 0.0 else 2)
    needed, rng, decided = min(ways), np.random.default_rng(27), 0
    for _ in range(1000):
        prompt = rng.normal(0, 0.977, needed)  # so that the margin is .1 of the spread
        decided += paired_outcome(prompt, prompt + rng.normal(shift, 0.3, needed)).outcome is not U
    assert 0.78 <= decided / 1000 <= 0.97
