"""Boards and rates of votes against loops and dense algebra, and what few or odd votes give."""

from __future__ import annotations

import math
from dataclasses import astuple, replace

import numpy as np
import pytest
import scipy

from benchmarks.statistics.bradley_terry import RIDGE, strengths
from benchmarks.statistics.votes import (
    VoteBoard,
    Votes,
    assisted_rate,
    both_bad_rates,
    hajek_rate,
    vote_board,
)


def votes_of(*rows: tuple[int, int, float]) -> Votes:
    """Votes of as many raters on as many prompts."""
    first, second, won = np.array(rows).reshape(-1, 3).T
    numbers = np.arange(len(rows))
    none = np.zeros(len(rows), bool)
    return Votes(
        first.astype(int), second.astype(int), won, none, numbers, numbers, np.ones(len(rows))
    )


def some_votes(seed: int, n: int = 300, models: int = 6, raters: int = 9) -> Votes:
    rng = np.random.default_rng(seed)
    strength = rng.normal(0, 0.7, models)
    first = rng.integers(0, models, n)
    second = (first + rng.integers(1, models, n)) % models
    won = (rng.random(n) < scipy.special.expit(strength[first] - strength[second])).astype(float)
    tied = rng.random(n) < 0.2
    prompts = rng.integers(0, 40, n)
    return Votes(
        first,
        second,
        np.where(tied, 0.5, won),
        tied & (rng.random(n) < 0.5),
        prompts,
        rng.integers(0, raters, n),
        rng.uniform(0.2, 2.0, 40)[prompts],
    )


def clustered_by_loops(slopes: np.ndarray, votes: Votes) -> np.ndarray:
    """Two-way clustered covariance of the sum of rows (v, k)."""
    total = np.zeros((slopes.shape[1],) * 2)
    for sign, names in (
        (1.0, list(votes.prompts)),
        (1.0, list(votes.raters)),
        (-1.0, list(zip(votes.prompts, votes.raters, strict=True))),
    ):
        members: dict[object, list[int]] = {}
        for line, name in enumerate(names):
            members.setdefault(name, []).append(line)
        for lines in members.values():
            summed = slopes[lines].sum(axis=0)
            total += sign * np.outer(summed, summed) * len(members) / (len(members) - 1)
    values, vectors = np.linalg.eigh(total)
    return np.asarray(vectors @ np.diag(np.maximum(values, 0)) @ vectors.T)


def freedom(votes: Votes) -> float:
    inverse = 1 / votes.chances
    shares = [
        np.array([inverse[names == name].sum() for name in np.unique(names)])
        for names in (votes.prompts, votes.raters)
    ]
    return float(min(share.sum() ** 2 / (share**2).sum() for share in shares) - 1)


@pytest.mark.parametrize("seed", range(3))
def test_a_board_has_the_intervals_of_dense_algebra(seed: int) -> None:
    votes, n = some_votes(seed), 6
    board = vote_board(votes, n)
    weights = 1 / votes.chances
    weights *= weights.sum() / (weights**2).sum()

    def loss(s: np.ndarray) -> float:
        d = s[votes.first] - s[votes.second]
        each = votes.won * np.logaddexp(0, -d) + (1 - votes.won) * np.logaddexp(0, d)
        return float(weights @ each) + RIDGE / 2 * float(s @ s)

    found = scipy.optimize.minimize(loss, np.zeros(n), tol=1e-12).x
    assert board.strengths == pytest.approx(found, abs=1e-5)

    design = np.eye(n)[votes.first] - np.eye(n)[votes.second]
    p = scipy.special.expit(design @ found)
    bread = np.linalg.inv((design.T * (weights * p * (1 - p))) @ design + RIDGE * np.eye(n))
    middle = clustered_by_loops(design * (weights * (votes.won - p))[:, None], votes)
    clustered = bread @ (middle + RIDGE * np.eye(n)) @ bread
    t = scipy.stats.t.isf(0.025, freedom(votes))

    def half(gradient: np.ndarray) -> float:
        alone = math.sqrt(gradient @ bread @ gradient)
        return max(1.959964 * alone, float(t * math.sqrt(gradient @ clustered @ gradient)))

    for i in range(n):
        for j in range(n):
            if i != j:
                assert board.differences[i, j] == pytest.approx(found[i] - found[j], abs=1e-5)
                assert board.half_widths[i, j] == pytest.approx(
                    half(np.eye(n)[i] - np.eye(n)[j]), rel=1e-4
                )
        centred = half(np.eye(n)[i] - 1 / n)
        assert board.strengths_high[i] - board.strengths[i] == pytest.approx(centred, rel=1e-4)
        assert board.strengths[i] - board.strengths_low[i] == pytest.approx(centred, rel=1e-4)

        def log_odds(s: np.ndarray, i: int = i) -> float:
            return float(scipy.special.logit(scipy.special.expit(s[i] - np.delete(s, i)).mean()))

        slope = scipy.optimize.approx_fprime(found, log_odds, 1e-6)
        ends = scipy.special.expit(log_odds(found) + half(slope) * np.array([-1, 0, 1]))
        assert [
            board.win_rates_low[i],
            board.win_rates[i],
            board.win_rates_high[i],
        ] == pytest.approx(ends, rel=1e-3)


def test_ranks_leave_open_what_the_corrected_tests_leave_open() -> None:
    board = vote_board(some_votes(1, n=900), 6)
    better = board.p_values <= 0.05
    assert board.ranks.tolist() == scipy.stats.rankdata(-board.strengths).tolist()
    for i in range(6):
        above = [j for j in range(6) if better[i, j] and board.strengths[j] > board.strengths[i]]
        below = [j for j in range(6) if better[i, j] and board.strengths[j] < board.strengths[i]]
        assert (board.ranks_low[i], board.ranks_high[i]) == (1 + len(above), 6 - len(below))
    assert 1 < better.sum() < 30


@pytest.mark.parametrize("planned", [None, 100, 1000])
def test_a_p_value_is_small_where_the_interval_leaves_out_zero(planned: int | None) -> None:
    outside, small = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        chance = rng.uniform(0.2, 0.8)
        votes = some_votes(seed, n=200, models=2)
        won = ((rng.random(200) < chance) == (votes.first == 0)).astype(float)
        votes = replace(votes, won=won, both_bad=np.zeros(200, bool))
        board = vote_board(votes, 2, planned=planned)
        outside.append(abs(board.differences[0, 1]) > board.half_widths[0, 1])
        small.append(board.p_values[0, 1] <= 0.05)
    assert outside == small
    assert 5 < sum(small) < 35


def test_looking_at_every_vote_needs_wider_intervals() -> None:
    votes = some_votes(0)
    once, always = vote_board(votes, 6), vote_board(votes, 6, planned=300)
    above = np.triu_indices(6, 1)
    # 3.035 standard errors at the planned number; Student's t of clustered errors needs more.
    assert (always.half_widths > 3.035 / 1.96 * once.half_widths * 0.999)[above].all()
    assert (always.p_values >= once.p_values)[above].all()


def test_models_that_never_met_are_not_ordered_and_one_without_votes_has_no_value() -> None:
    pairs = votes_of((0, 1, 1.0), (1, 0, 1.0), (0, 1, 1.0), (2, 3, 0.0), (3, 2, 0.0), (2, 3, 0.0))
    board = vote_board(pairs, 5)
    assert len({*board.groups[[0, 2, 4]]}) == 3
    assert (board.groups[0], board.groups[2]) == (board.groups[1], board.groups[3])
    assert np.isnan(board.differences[:2, 2:]).all()
    assert np.isnan(board.p_values[:2, 2:]).all()
    assert board.ranks[:4].tolist() == [1, 2, 2, 1]
    assert (board.ranks_low[:4].tolist(), board.ranks_high[:4].tolist()) == ([1] * 4, [2] * 4)
    assert board.win_rates[:2].sum() == pytest.approx(1.0)
    for field in ("strengths", "win_rates", "ranks", "ranks_low", "ranks_high", "win_rates_low"):
        values = getattr(board, field)
        assert (np.isnan(values[4]), np.isfinite(values[:4]).all()) == (True, True)


def test_a_model_that_won_everything_is_first_finite_and_named() -> None:
    rows = [(0, j, 1.0) for j in (1, 2) for _ in range(20)]
    rows += [(1, 2, 1.0), (2, 1, 1.0)] * 10
    rows += [(3, j, 0.0) for j in (1, 2) for _ in range(20)]
    board = vote_board(votes_of(*rows), 4)
    assert len({*board.groups}) == 1
    assert board.classes[1] == board.classes[2]
    assert len({*board.classes}) == 3
    assert board.ranks.tolist() == [1, 2, 2, 4]
    assert np.isfinite(board.half_widths[~np.eye(4, dtype=bool)]).all()
    # The penalty alone bounds it: the posterior is wide, and the clustered errors are too small.
    assert board.half_widths[0, 1] > 2 * board.half_widths[1, 2]


def test_no_votes_give_a_board_of_no_values() -> None:
    for planned in (None, 100):
        board = vote_board(votes_of(), 3, planned=planned)
        assert board.n_votes.tolist() == [0, 0, 0]
        assert np.isnan([board.strengths, board.ranks, board.win_rates, board.strengths_low]).all()
        assert np.isnan(board.p_values).all()


def test_a_prompt_of_half_the_chance_counts_twice() -> None:
    votes = some_votes(4)
    halved = replace(votes, chances=np.where(votes.prompts < 20, 0.5, 1.0))
    twice = np.where(votes.prompts < 20, 2, 1)
    expected = strengths(
        np.repeat(votes.first, twice),
        np.repeat(votes.second, twice),
        np.repeat(votes.won, twice),
        6,
        1e-6,
    )
    assert vote_board(halved, 6, ridge=1e-6).strengths == pytest.approx(expected, abs=1e-5)


def test_the_scale_of_the_chances_does_not_matter() -> None:
    votes = some_votes(5)
    one = vote_board(votes, 6)
    other = vote_board(replace(votes, chances=votes.chances * 1e-4), 6)
    assert other.half_widths == pytest.approx(one.half_widths, nan_ok=True)
    assert other.win_rates_low == pytest.approx(one.win_rates_low)


@pytest.mark.parametrize("alone", ["prompts", "raters", "both"])
def test_where_there_is_one_rater_or_prompt_the_other_alone_is_clustered(alone: str) -> None:
    votes = some_votes(6)
    same = np.zeros_like(votes.prompts)
    if alone != "raters":
        votes = replace(votes, prompts=same)
    if alone != "prompts":
        votes = replace(votes, raters=same)
    board = vote_board(votes, 6)
    assert (board.half_widths[np.triu_indices(6, 1)] > 0).all()


def test_raters_who_judge_alike_widen_the_intervals() -> None:
    rng = np.random.default_rng(0)
    n = 400
    raters = rng.integers(0, 8, n)
    won = (rng.random(n) < np.array([0.9, 0.1] * 4)[raters]).astype(float)
    first, second = np.zeros(n, int), np.ones(n, int)
    numbers = np.arange(n)
    votes = Votes(first, second, won, np.zeros(n, bool), numbers, raters, np.ones(n))
    alone = replace(votes, raters=numbers)
    assert vote_board(votes, 2).half_widths[0, 1] > 4 * vote_board(alone, 2).half_widths[0, 1]


@pytest.mark.parametrize(
    ("column", "values", "problem"),
    [
        ("second", [1, 1], "compared with itself"),
        ("won", [1.0, 0.7], "none of 0, 0.5 and 1"),
        ("won", [1.0, math.nan], "none of 0, 0.5 and 1"),
        ("both_bad", [True, False], "both are bad and one was preferred"),
        ("chances", [1.0, 0.0], "chance is not above 0"),
        ("chances", [1.0], "differ in shape"),
    ],
)
def test_votes_that_cannot_be_are_refused(column: str, values: list[float], problem: str) -> None:
    votes = votes_of((0, 1, 1.0), (1, 0, 0.0))
    with pytest.raises(ValueError, match=problem):
        replace(votes, **{column: np.array(values)})


def test_all_that_is_wrong_with_votes_is_said_at_once() -> None:
    with pytest.raises(ValueError, match=r"itself \(1 votes\).*0, 0.5 and 1 \(2 votes\)"):
        votes_of((0, 0, 2.0), (0, 1, 3.0))


def test_both_bad_is_a_tie_to_the_strengths_and_has_rates_of_its_own() -> None:
    votes = some_votes(2)
    ties = replace(votes, both_bad=np.zeros(votes.first.size, bool))
    assert np.array_equal(vote_board(votes, 6).strengths, vote_board(ties, 6).strengths)
    rates = both_bad_rates(votes, 7)
    assert rates[6].n_votes == 0
    assert math.isnan(rates[6].value)
    for model in range(6):
        of = (votes.first == model) | (votes.second == model)
        inverse = 1 / votes.chances[of]
        expected = (inverse * votes.both_bad[of]).sum() / inverse.sum()
        found = rates[model]
        assert found.value == pytest.approx(expected)
        assert found.low < expected < found.high
        assert found.n_votes == of.sum()
    assert len(rates) == 7


def test_the_standard_error_of_independent_votes_is_that_of_the_survey_formula() -> None:
    rng = np.random.default_rng(0)
    n = 200
    y, pi = rng.integers(0, 2, n).astype(float), rng.uniform(0.01, 0.1, n)
    q, of_all = rng.uniform(0, 1, n), rng.uniform(0, 1, 900)
    numbers = np.arange(n)
    inverse = 1 / pi

    def error(r: np.ndarray) -> float:
        left = r - (inverse @ r) / inverse.sum()
        return math.sqrt((left**2 * inverse**2).sum()) / float(inverse.sum())

    hajek = hajek_rate(y, pi, numbers, numbers)
    assert hajek.value == pytest.approx((y / pi).sum() / inverse.sum())
    # Clustered by itself: a factor n / (n - 1) of the variance.
    assert hajek.error == pytest.approx(error(y) * math.sqrt(n / (n - 1)))
    assisted = assisted_rate(y, q, pi, numbers, numbers, of_all=of_all)
    assert assisted.value == pytest.approx(of_all.mean() + ((y - q) / pi).sum() / inverse.sum())
    assert assisted.error == pytest.approx(error(y - q) * math.sqrt(n / (n - 1)))
    half = assisted.error * scipy.stats.t.isf(0.025, inverse.sum() ** 2 / (inverse**2).sum() - 1)
    ratio = half**2 / (hajek.value * (1 - hajek.value))
    assert (assisted.low + assisted.high) / 2 == pytest.approx(
        (assisted.value + ratio / 2) / (1 + ratio)
    )
    assert (assisted.high - assisted.low) / 2 == pytest.approx(
        math.sqrt(half**2 + ratio**2 / 4) / (1 + ratio)
    )
    always = assisted_rate(y, q, pi, numbers, numbers, of_all=of_all, planned=n)
    assert always.high - always.low > 1.5 * (assisted.high - assisted.low)


def test_clusters_of_a_rate_are_prompts_and_raters() -> None:
    votes = some_votes(8)
    y = votes.won
    weights = 1 / votes.chances / (1 / votes.chances).sum()
    left = (weights * (y - weights @ y))[:, None]
    expected = math.sqrt(clustered_by_loops(left, votes)[0, 0])
    found = hajek_rate(y, votes.chances, votes.prompts, votes.raters)
    assert found.error == pytest.approx(max(expected, math.sqrt((left**2).sum())))


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(
    ("prompts", "raters", "n"), [(30, 6, 6), (5, 30, 5), (30, 1, 30), (1, 6, 6), (1, 1, 30)]
)
def test_outcomes_that_are_all_alike_have_wilsons_interval_of_the_fewer_clusters(
    value: float, prompts: int, raters: int, n: int
) -> None:
    numbers, ones = np.arange(30), np.ones(30)
    found = hajek_rate(ones * value, ones, numbers % prompts, numbers % raters)
    assert astuple(found) == pytest.approx((value, 0.0, *wilson(value, n), 30), abs=1e-12)


def wilson(value: float, n: int) -> tuple[float, float]:
    """The interval as the two roots of (p - value)² = z² p (1 - p) / n."""
    ratio = scipy.stats.norm.isf(0.025) ** 2 / n
    low, high = sorted(np.roots([1 + ratio, -(2 * value + ratio), value**2]).real)
    return float(low), float(high)


def test_one_rater_who_is_of_one_mind_is_as_sure_as_one_who_once_is_not() -> None:
    ones, prompts, rater = np.ones(500), np.arange(500), np.zeros(500, int)
    always = hajek_rate(ones, ones, prompts, rater)
    once = hajek_rate(np.r_[ones[1:], 0.0], ones, prompts, rater)
    assert once.low < always.low < 1
    assert always.low == pytest.approx(once.low, abs=0.005)


@pytest.mark.parametrize("n", [1, 5, 30])
@pytest.mark.parametrize("planned", [None, 30])
def test_a_metric_that_predicts_alike_for_all_prompts_neither_helps_nor_harms(
    n: int, planned: int | None
) -> None:
    numbers, ones, q = np.arange(n), np.ones(n), np.full(n, 0.7)
    for won in (ones, np.zeros(n), np.where(numbers % 3 > 0, 1.0, 0.0)):
        alone = hajek_rate(won, ones, numbers, numbers, planned=planned)
        helped = assisted_rate(
            won, q, ones, numbers, numbers, of_all=np.full(90, 0.7), planned=planned
        )
        assert astuple(helped) == pytest.approx(astuple(alone), abs=1e-12)
        assert helped.high - helped.low > 0.1


@pytest.mark.parametrize("won", [0.0, 1.0])
@pytest.mark.parametrize("varied", [0, 1])
def test_ends_of_an_assisted_rate_stand_in_order_where_it_lies_outside(
    won: float, varied: int
) -> None:
    rng = np.random.default_rng(0)
    y = np.full(30, won)
    y[:varied] = 1 - won
    q = rng.uniform(0.8, 0.9, 30) if won == 0 else rng.uniform(0.1, 0.2, 30)
    of_all, numbers = np.full(100, 0.45 if won == 0 else 0.55), np.arange(30)
    rate = assisted_rate(y, q, np.ones(30), numbers, numbers, of_all=of_all)
    assert (rate.value < 0) if won == 0 else (rate.value > 1)
    assert 0 <= rate.low < rate.high <= 1
    assert (rate.low, rate.high)[int(won)] == pytest.approx(won, abs=0.02)


def assisted_coverage(rate: float, n: int, runs: int) -> float:
    """How often the interval holds the rate, with predictions that know nothing."""
    rng = np.random.default_rng(n)
    q, numbers, held = rng.uniform(0.3, 0.7, 2000), np.arange(n), 0
    for _ in range(runs):
        drawn = rng.integers(0, 2000, n)
        won = (rng.random(n) < rate).astype(float)
        found = assisted_rate(won, q[drawn], np.ones(n), drawn, numbers, of_all=q)
        held += found.low <= rate <= found.high
    return held / runs


def test_an_assisted_rate_of_few_votes_is_held() -> None:
    assert assisted_coverage(0.95, 5, 60) > 0.85


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 30, 100])
def test_assisted_rates_are_held_from_few_votes_on(n: int) -> None:
    assert assisted_coverage(0.95, n, 600) == pytest.approx(0.95, abs=0.035)


def test_rates_of_no_votes_are_missing() -> None:
    none, numbers = np.empty(0), np.empty(0, int)
    for rate in (
        hajek_rate(none, none, numbers, numbers),
        assisted_rate(none, none, none, numbers, numbers, of_all=np.ones(3)),
    ):
        assert rate.n_votes == 0
        assert np.isnan([rate.value, rate.low, rate.high, rate.error]).all()


def test_a_board_has_a_value_for_every_field_of_every_model() -> None:
    board = vote_board(some_votes(0), 6)
    for name in VoteBoard.__dataclass_fields__:
        assert len(getattr(board, name)) == 6
