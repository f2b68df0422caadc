"""Effect of changes that leave the content: its unit, its intervals, its verdicts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.arrays import FloatArray
from benchmarks.statistics.content_effect import (
    LIMIT,
    ChangeEffect,
    ContentEffect,
    content_effect,
)
from benchmarks.statistics.prompt_effect import MIN_SIZE

NAN = math.nan
N, CHANGES = 24, 7


def table(rng: np.random.Generator, n: int = N, match: float = 2.0) -> FloatArray:
    """Scores of an honest metric: a right prompt adds `match`, everything else is noise of sd 1."""
    scores: FloatArray = rng.standard_normal((n, n)) + match * np.eye(n)
    return scores


def found_in(
    scores: FloatArray, changes: FloatArray, signs: FloatArray | None = None, rounding: float = 0.0
) -> ContentEffect:
    """With changes (K, n) that are added to the scores of the right pairs."""
    turned = np.ones_like(changes) if signs is None else signs
    after = scores.diagonal() + turned * changes
    return content_effect(scores, np.arange(len(scores)), after, turned, rounding)


def test_the_spread_is_that_of_a_score_whose_prompt_is_right_or_wrong_at_even_odds() -> None:
    rng = np.random.default_rng(1)
    scores = table(rng)
    right, wrong = scores.diagonal(), scores[~np.eye(N, dtype=bool)]
    even = np.concatenate([np.repeat(right, len(wrong)), np.repeat(wrong, len(right))])
    found = found_in(scores, np.full((1, N), 0.3))
    assert found.spread == pytest.approx(even.std())
    assert found.changes[0].value == pytest.approx(0.3 / even.std())


def test_the_interval_is_that_of_the_jackknife_over_prompts_shared_among_changes() -> None:
    import scipy

    rng = np.random.default_rng(2)
    scores, changes = table(rng), rng.standard_normal((3, N))
    found = found_in(scores, changes)

    def ratio(kept: list[int], change: int) -> float:
        part = scores[np.ix_(kept, kept)]
        own = np.eye(len(kept), dtype=bool)
        right, wrong = part[own], part[~own]
        gap = right.mean() - wrong.mean()
        return float(
            changes[change, kept].mean() / math.sqrt((right.var() + wrong.var() + gap**2 / 2) / 2)
        )

    for change, effect in enumerate(found.changes):
        left_out = np.array([ratio([k for k in range(N) if k != j], change) for j in range(N)])
        error = math.sqrt((N - 1) * left_out.var())
        reach = scipy.stats.t.ppf(1 - 0.05 / 3 / 2, N - 1) * error
        value = ratio(list(range(N)), change)
        assert (effect.value, effect.low, effect.high) == pytest.approx(
            (value, value - reach, value + reach)
        )


def test_directions_are_turned_so_that_opposite_changes_have_one_slope() -> None:
    rng = np.random.default_rng(3)
    scores = table(rng)
    signs = np.where(np.arange(N) % 2, 1.0, -1.0)[None]
    turned, plain = (found_in(scores, np.full((1, N), 0.4), of).changes[0] for of in (signs, None))
    assert vars(turned) == pytest.approx(vars(plain))


@pytest.mark.parametrize(
    ("scale", "shift"), [(1e-3, 1e6), (1e-300, 0.0), (1e300, 0.0), (3e307, 0.0), (-2.0, 1.0)]
)
def test_effects_are_the_same_in_any_unit_of_the_score(scale: float, shift: float) -> None:
    rng = np.random.default_rng(4)
    scores, after = table(rng) / 10, rng.standard_normal((2, N)) / 10
    signs, own = np.ones((2, N)), np.arange(N)
    plain = content_effect(scores, own, after, signs)
    other = content_effect(shift + scale * scores, own, shift + scale * after, signs)
    assert other.spread == pytest.approx(abs(scale) * plain.spread)
    values = [one.value * math.copysign(1.0, scale) for one in other.changes]
    assert values == pytest.approx([one.value for one in plain.changes], rel=1e-6)


def test_missing_scores_are_counted_and_too_few_have_no_figures() -> None:
    rng = np.random.default_rng(5)
    scores, changes = table(rng), rng.standard_normal((3, N))
    changes[1, : N - MIN_SIZE] = NAN
    changes[2, : N - MIN_SIZE + 1] = NAN
    scores[3, 4] = NAN
    found = found_in(scores, changes).changes
    assert [(one.n_images, one.n_missing) for one in found] == [(24, 0), (20, 4), (19, 5)]
    assert [math.isnan(one.value) for one in found] == [False, False, True]
    assert found[2].verdict == "undecided"
    few = found_in(table(rng, MIN_SIZE - 1), np.zeros((1, MIN_SIZE - 1))).changes[0]
    assert math.isnan(few.value)


def test_images_of_one_prompt_are_left_out_together() -> None:
    rng = np.random.default_rng(6)
    scores, own = rng.standard_normal((N, 2 * N)), np.repeat(np.arange(N), 2)
    once = content_effect(scores[:, ::2], own[::2], rng.standard_normal((1, N)), np.ones((1, N)))
    moved = np.repeat(rng.standard_normal((1, N)), 2, axis=1)
    after = scores[own, np.arange(2 * N)] + moved
    twice = content_effect(scores, own, after, np.ones((1, 2 * N)))
    assert (once.changes[0].n_images, twice.changes[0].n_images) == (N, 2 * N)
    width = twice.changes[0].high - twice.changes[0].low
    # As of N independent ones, not of 2 N.
    assert width == pytest.approx(
        2 * 2.0687 * moved.std(ddof=1) / math.sqrt(N) / twice.spread, rel=0.1
    )


@pytest.mark.parametrize(
    ("scores", "spread"),
    [
        (np.full((N, N), 0.1), 0.0), (np.full((N, N), NAN), NAN), (np.zeros((N, N)), 0.0),
        (np.where(np.eye(N) > 0, 1.0, NAN), NAN),
    ],
)  # fmt: skip
def test_scores_that_are_all_alike_or_missing_have_no_effects(
    scores: FloatArray, spread: float
) -> None:
    found = found_in(scores, np.ones((2, N)))
    assert found.spread == pytest.approx(spread, abs=1e-12, nan_ok=True)
    assert all(math.isnan(one.value) and one.verdict == "undecided" for one in found.changes)


def test_a_spread_up_to_rounding_is_none() -> None:
    rng = np.random.default_rng(7)
    scores, changes = 1e-6 * table(rng), np.ones((1, N))
    assert not math.isnan(found_in(scores, changes).changes[0].value)
    assert math.isnan(found_in(scores, changes, rounding=1e-5).changes[0].value)


def test_where_one_prompt_makes_the_whole_spread_nothing_is_sure() -> None:
    scores = np.zeros((N, N))
    scores[0] = scores[:, 0] = 1.0
    effect = found_in(scores, np.ones((1, N))).changes[0]
    assert (effect.verdict, math.isnan(effect.low)) == ("undecided", True)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (LIMIT + 0.01, 2.0, "moved"), (-2.0, -LIMIT - 0.01, "moved"), (LIMIT, 2.0, "undecided"),
        (-0.49, 0.49, "steady"), (-0.2, LIMIT, "undecided"), (-1.0, 1.0, "undecided"),
        (NAN, NAN, "undecided"),
    ],
)  # fmt: skip
def test_the_verdict_is_by_the_whole_interval(low: float, high: float, verdict: str) -> None:
    assert ChangeEffect(24, 0, (low + high) / 2, low, high).verdict == verdict


@pytest.mark.parametrize(
    ("scores", "own", "after", "signs"),
    [((3,), 3, (1, 3), (1, 3)), ((3, 3), 2, (1, 3), (1, 3)), ((3, 3), 3, (1, 2), (1, 2)),
     ((3, 3), 3, (1, 3), (2, 3)), ((3, 3), 3, (3,), (3,))],
)  # fmt: skip
def test_shapes_that_do_not_fit_are_refused(
    scores: tuple[int, ...], own: int, after: tuple[int, ...], signs: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match="need"):
        content_effect(np.zeros(scores), np.zeros(own, int), np.zeros(after), np.ones(signs))


# Simulated metrics


def simulated(effect: float, seed: int, n: int = 200, noise: float = 0.5) -> list[str]:
    """Verdicts of so many metrics that every change moves by `effect`; noise is of single images."""
    rng = np.random.default_rng(seed)
    # The spread of table(): sqrt(1 + match^2 / 4).
    spread, verdicts = math.sqrt(2.0), []
    for _ in range(n):
        changes = spread * (effect + noise * rng.standard_normal((CHANGES, N)))
        found = found_in(table(rng), changes)
        verdicts.append("moved" if any(c.verdict == "moved" for c in found.changes) else "")
    return verdicts


@pytest.mark.parametrize(
    ("slope", "seed"), [(0.2, 9), pytest.param(0.0, 8, marks=pytest.mark.slow)]
)
def test_none_of_200_honest_metrics_is_said_to_be_moved(slope: float, seed: int) -> None:
    assert simulated(slope, seed).count("moved") == 0


@pytest.mark.slow
def test_at_the_limit_itself_at_most_a_twentieth_is_and_well_beyond_it_nearly_all() -> None:
    assert simulated(LIMIT, 10).count("moved") <= 10
    assert simulated(2 * LIMIT, 11).count("moved") >= 195
