"""The study of votes: its simulations against exact errors and against an earlier study's figures.

The rules were chosen by figures of other code, of 160 runs as well: two means of as many runs differ
by the Monte Carlo error of both.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit

from benchmarks.arrays import FloatArray
from benchmarks.statistics.bradley_terry import posterior
from benchmarks.statistics.vote_sampling import UNIFORM_SHARE
from tools.vote_study import (
    LOOKS,
    N_PROMPTS,
    N_VOTES,
    PAIR_RULES,
    TASTES,
    PairRule,
    Population,
    Tastes,
    board_coverage,
    false_stops,
    ordering,
    prompt_chances,
    rule_chances,
    tables,
    win_rates,
)


def generators(runs: int, seed: int = 1) -> list[np.random.Generator]:
    return [np.random.default_rng([seed, run]) for run in range(runs)]


def error(values: FloatArray) -> float:
    return float(values.std()) / math.sqrt(len(values))


def test_chances_of_every_rule_add_up_and_the_rules_differ_once_there_are_votes() -> None:
    wins = np.array([[0, 9, 9, 9], [1, 0, 5, 5], [0, 5, 0, 1], [0, 2, 2, 0.0]])
    found = {rule: rule_chances(rule, posterior(wins)) for rule in PAIR_RULES}
    assert [chances.sum() for chances in found.values()] == pytest.approx([1, 1, 1])
    assert (found["close"][0, 1:] < found["information"][0, 1:]).all()
    assert found["uniform"][np.triu_indices(4, 1)] == pytest.approx(1 / 6)


def test_a_run_orders_models_better_with_more_votes_and_can_be_repeated() -> None:
    runs = [ordering("close", rng, every=20) for rng in generators(4)]
    again = ordering("close", generators(1)[0], every=20)
    assert np.array_equal(runs[0].tau, again.tau)
    tau = np.mean([run.tau for run in runs], axis=0)
    assert tau.shape == (len(LOOKS),)
    assert 0.7 < tau[0] < tau[-1] < 1


@pytest.mark.parametrize("correlation", [0.8, 0.41])
def test_prompts_have_the_rates_and_metrics_that_the_tables_say(correlation: float) -> None:
    population = Population.of(correlation, np.random.default_rng(0))
    p, q = population.rates, population.predicted
    assert p.shape == (N_PROMPTS,)
    assert p.mean() == pytest.approx(0.701, abs=0.012)
    for metric in (q, population.other):
        assert np.corrcoef(p, metric)[0, 1] == pytest.approx(correlation, abs=0.03)
        # Calibrated: the mean rate of prompts is what is predicted of them.
        order = np.argsort(metric).reshape(10, -1)
        assert p[order].mean(axis=1) == pytest.approx(metric[order].mean(axis=1), abs=0.04)


def exact_errors(population: Population) -> dict[str, float]:
    """Standard deviations of linearised rates: of y - q, over the chances of the draws."""
    p, q, mean = population.rates, population.predicted, population.rates.mean()
    uniform = np.full(N_PROMPTS, 1 / N_PROMPTS)
    spread = np.sqrt(q * (1 - q))
    unsure = 0.8 * spread / spread.sum() + 0.2 / N_PROMPTS
    apart = np.abs(q - population.other)
    disagree = np.where(apart >= np.sort(apart)[-N_PROMPTS // 10], 8.2, 0.2) / N_PROMPTS

    def error(chances: FloatArray, known: FloatArray) -> float:
        left = known + mean - known.mean()
        squares = p * (1 - left) ** 2 + (1 - p) * left**2
        return math.sqrt((squares / chances).sum() / N_VOTES) / N_PROMPTS

    none = np.zeros(N_PROMPTS)
    return {
        "uniform": error(uniform, none),
        "uniform, model-assisted": error(uniform, q),
        "unsure, Hajek": error(unsure, none),
        "unsure, model-assisted": error(unsure, q),
        "metrics disagree, Hajek": error(disagree, none),
    }


@pytest.mark.parametrize(
    ("correlation", "assisted", "unsure"),
    [(0.8, 0.0254 / 0.0285, 0.0250 / 0.0285), (0.41, 0.975, 0.97)],
)
def test_a_metric_saves_the_votes_that_were_found_before(
    correlation: float, assisted: float, unsure: float
) -> None:
    errors = exact_errors(Population.of(correlation, np.random.default_rng(0)))
    assert errors["uniform"] == pytest.approx(math.sqrt(0.701 * 0.299 / 300), rel=0.01)
    relative = {name: error / errors["uniform"] for name, error in errors.items()}
    assert relative["uniform, model-assisted"] == pytest.approx(assisted, abs=0.015)
    assert relative["unsure, model-assisted"] == pytest.approx(unsure, abs=0.015)
    assert relative["unsure, Hajek"] == pytest.approx(1.0, abs=0.02)
    # Three to four times the votes, or more.
    assert 1.7 < relative["metrics disagree, Hajek"] < 2.2


def test_every_design_gives_a_rate_and_those_without_weights_are_far_off() -> None:
    population = Population.of(0.8, np.random.default_rng(0))
    rates = win_rates(population, np.random.default_rng(0))
    truth = population.rates.mean()
    weighted = {name: rate for name, rate in rates.items() if "no weights" not in name}
    assert len(weighted) == 6
    assert all(abs(rate.value - truth) < 5 * rate.error for rate in weighted.values())
    assert rates["closest tenth, no weights"].high < truth
    assert rates["most decided tenth, no weights"].low > truth


def test_the_limit_of_votes_with_tastes_is_less_extreme_than_the_strengths() -> None:
    truth = np.array([1.0, 0.2, -1.2])
    none = Tastes(10, 10, 10, 0.0, 0.0).limit(truth)
    assert none == pytest.approx(truth - truth.mean(), abs=1e-4)
    some = Tastes(10, 10, 10, 1.0, 0.5)
    # Two models: their chance is the mean of the logistic over both tastes of each.
    draws = np.random.default_rng(0).normal(0, math.sqrt(2 * 1.25), 400_000)
    two = some.limit(np.array([0.5, -0.5]))
    assert expit(two[0] - two[1]) == pytest.approx(expit(1.0 + draws).mean(), abs=0.003)
    assert np.abs(some.limit(truth)).max() < np.abs(none).max()


def test_boards_and_stops_are_counted() -> None:
    covered = board_coverage(TASTES[0], np.random.default_rng(0))
    assert covered.shape == (3,)
    assert ((covered >= 0) & (covered <= 1)).all()
    once, always = false_stops(np.random.default_rng(0), looks=2)
    assert {int(once), int(always)} <= {0, 1}
    late = false_stops(np.random.default_rng(0), looks=1, each=20, joined=60)
    assert set(late.tolist()) <= {0, 1}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("rule", "before", "coverage"),
    [
        ("uniform", (0.822, 0.873, 0.900, 0.916), 0.955),
        ("information", (0.831, 0.884, 0.906, 0.919), 0.953),
        ("close", (0.850, 0.890, 0.914, 0.930), 0.940),
    ],
)
def test_models_are_ordered_as_well_as_was_found_before(
    rule: PairRule, before: tuple[float, ...], coverage: float
) -> None:
    runs = [ordering(rule, rng, every=10) for rng in generators(80)]
    for taus, expected in zip(np.transpose([run.tau for run in runs]), before, strict=True):
        # Ours are half as many runs as those before.
        assert taus.mean() == pytest.approx(expected, abs=3.5 * math.sqrt(1.5) * error(taus))
    covered = np.array([run.covered.mean() for run in runs])
    assert covered.mean() == pytest.approx(coverage, abs=3.5 * math.sqrt(1.5) * error(covered))


@pytest.mark.nightly
def test_the_rule_for_close_pairs_needs_fewer_votes() -> None:
    uniform, close = (
        np.array([ordering(rule, rng, every=10).tau for rng in generators(80, seed=2)])
        for rule in ("uniform", "close")
    )
    # Runs of one seed have the same models.
    gain = (close - uniform).mean(axis=1)
    assert gain.mean() > 3 * error(gain)
    # Votes that equal chances need to order models as well: 23 to 35 % fewer were found before.
    needed = np.interp(close.mean(axis=0)[:2], uniform.mean(axis=0), LOOKS)
    assert 0.15 < (1 - np.array(LOOKS[:2]) / needed).mean() < 0.45


@pytest.mark.nightly
def test_rates_have_their_exact_errors_and_their_intervals_hold() -> None:
    population = Population.of(0.8, np.random.default_rng(0))
    truth, exact = population.rates.mean(), exact_errors(population)
    runs = [win_rates(population, rng) for rng in generators(800)]
    for name in runs[0]:
        off = np.array([run[name].value for run in runs]) - truth
        if "no weights" in name:
            assert abs(off.mean()) > 0.15
            continue
        assert abs(off.mean()) < 4 * error(off)
        held = np.array([run[name].low <= truth <= run[name].high for run in runs], float)
        assert held.mean() == pytest.approx(0.95, abs=4 * error(held))
        if name in exact:
            rmse = math.sqrt((off**2).mean())
            assert rmse == pytest.approx(exact[name], abs=4 * error(off**2) / (2 * rmse))


@pytest.mark.nightly
@pytest.mark.parametrize("tastes", TASTES)
def test_intervals_of_boards_hold_where_prompts_and_raters_have_tastes(tastes: Tastes) -> None:
    covered = np.array([board_coverage(tastes, rng) for rng in generators(150)])
    posterior_alone, board, ranks = covered.T
    assert board.mean() > 0.94 - 3 * error(board)
    assert board.mean() < 0.98
    assert ranks.mean() > 0.95
    assert (posterior_alone.mean() < 0.91) == (tastes.of_prompts > 0)


@pytest.mark.nightly
def test_looks_of_a_fixed_number_find_what_is_not_there_and_those_of_every_look_do_not() -> None:
    once, always = np.transpose([false_stops(rng) for rng in generators(150)])
    assert once.mean() > 0.15
    assert always.mean() < 0.05


@pytest.mark.nightly
def test_looks_at_a_model_that_joins_late_do_not_find_what_is_not_there() -> None:
    found = [false_stops(rng, each=30, joined=600) for rng in generators(120)]
    once, always = np.transpose(found)
    assert once.mean() > 0.1
    assert always.mean() < 0.05


@pytest.mark.nightly
def test_the_study_prints_its_tables() -> None:
    made = list(tables(1, 0))
    assert [table.row_count for table in made] == [3, 8, 8, len(TASTES), 2]


@pytest.mark.parametrize("uniform", [UNIFORM_SHARE, 0.5, 1.0])
def test_prompts_are_drawn_where_the_metric_is_unsure_and_none_is_left_out(uniform: float) -> None:
    predicted = np.array([0.5, 0.9, 0.1, 1.0])
    spread = np.array([0.5, 0.3, 0.3, 0.0])
    expected = (1 - uniform) * spread / 1.1 + uniform / 4
    assert prompt_chances(predicted, uniform) == pytest.approx(expected)


def test_prompts_that_a_metric_is_sure_of_are_drawn_alike() -> None:
    assert prompt_chances(np.array([0.0, 1.0])) == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("predicted", [[], [0.5, np.nan], [1.1], [-0.1, 0.5]])
def test_predictions_must_be_there_and_be_rates(predicted: list[float]) -> None:
    with pytest.raises(ValueError, match="predicted win rates"):
        prompt_chances(np.array(predicted))
