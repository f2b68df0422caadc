"""The simulation behind the report: a reduced run stays within its bands, a wrong method does not."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from benchmarks.statistics.calibration.__main__ import calibration, simulated
from benchmarks.statistics.calibration.designs import Design, Noise, drawn
from benchmarks.statistics.calibration.measures import MEASURES
from benchmarks.statistics.calibration.rates import COVERAGE, Rate, Rates
from benchmarks.statistics.calibration.scenarios import (
    DIFFERENT,
    SAME,
    Scenario,
    quick_scenarios,
    scenarios,
)
from benchmarks.statistics.calibration.tables import markdown
from benchmarks.statistics.calibration.trials import Found, assay, batch, plan_of
from benchmarks.statistics.calibration.truths import truth
from benchmarks.statistics.correlation import kendall, pearson, spearman
from benchmarks.statistics.sign_flips import FIRST_DRAWS, pair_tests

REPETITIONS = 240
COVERAGE_BAND = 0.9, 0.985
"""Three standard errors of 240 repetitions around 94 to 96 %, about."""
REJECTION_BAND = 0.01, 0.09
N_RESAMPLES = 200
N_CLUSTERS, SIZE = 50, 8
NOISES = Noise(0.4, 0.8), Noise(0.4, 0.8)
CLUSTERED = Scenario("Pearson", Design(N_CLUSTERS, (SIZE, SIZE), NOISES, shared=0.5, gold_levels=5))
MEAN = Scenario(
    "accuracy",
    Design(N_CLUSTERS, (SIZE, SIZE), NOISES, "margin", shared=0.5, score_levels=9),
)


def within(value: float, band: tuple[float, float]) -> bool:
    return band[0] <= value <= band[1]


@pytest.mark.parametrize("scenario", [CLUSTERED, MEAN], ids=lambda one: one.measure)
def test_intervals_cover_and_tests_reject_as_they_should(scenario: Scenario) -> None:
    true = truth(scenario.measure, scenario.design, same=True, seed=1, share=0.2)
    trials = batch(
        scenario, true.value, number=0, size=REPETITIONS, seed=1, n_resamples=N_RESAMPLES
    )
    found = Rates.of(scenario, true, [trials])
    for rate in found.coverage["assay"]:
        assert within(rate.value, COVERAGE_BAND), found.coverage
    for name in ("sign flips", "t"):
        assert within(found.rejection[name].value, REJECTION_BAND), found.rejection
    assert max(map(abs, found.bias)) < 0.3


@pytest.mark.parametrize("scenario", [CLUSTERED, MEAN], ids=lambda one: one.measure)
def test_the_bands_notice_when_clusters_are_ignored(scenario: Scenario) -> None:
    """The same with each item as a cluster of its own: intervals too short, tests too bold."""
    true = truth(scenario.measure, scenario.design, same=True, seed=1, share=0.2)
    n_items = N_CLUSTERS * SIZE
    plan = plan_of(n_items, 5, N_RESAMPLES)
    counts = np.vstack([np.ones(n_items), plan.counts])
    rng = np.random.default_rng(6)
    draws = []
    for _ in range(100):
        sample = drawn(scenario.design, rng)
        items = replace(sample, clusters=np.arange(n_items), n_clusters=n_items)
        draws.append(MEASURES[scenario.measure](items, counts).T)
    found = Found.of(np.concatenate(draws), plan)
    ends = assay(found)
    covered = (ends.low <= true.value[0]) & (true.value[0] <= ends.high)
    assert not within(float(covered.mean()), COVERAGE_BAND)
    rows = np.arange(0, 200, 2)
    p_values = pair_tests(found.shares, rows, rows + 1, 1, most_draws=FIRST_DRAWS).p_value
    assert not within(float((p_values <= 0.05).mean()), REJECTION_BAND)


def test_few_clusters_need_expanded_quantiles() -> None:
    """With eight clusters the textbook's BCa interval is too short, and the expanded one longer."""
    scenario = replace(MEAN, design=MEAN.design.with_clusters(8))
    true = truth("accuracy", scenario.design, same=True, seed=1, share=0.2)
    trials = batch(scenario, true.value, number=0, size=300, seed=2, n_resamples=N_RESAMPLES)
    plain, expanded = (float(trials.covered[name].mean()) for name in ("bca", "assay"))
    assert plain + 0.02 < expanded
    assert within(expanded, COVERAGE_BAND)


def test_metrics_that_differ_in_kind_of_noise_only_have_one_true_value() -> None:
    design = Design(10, (5, 20), DIFFERENT, gold_levels=5, score_levels=9)
    for measure in ("Pearson", "Spearman", "Kendall"):
        found = truth(measure, design, same=False, seed=3, share=0.1)
        difference = abs(found.value[0] - found.value[1])
        assert difference < 4 * float(np.hypot(*found.error))
        assert found.error.max() < 0.004


def test_the_true_correlation_is_the_one_that_can_be_calculated() -> None:
    noises = (Noise(0.6, 0.3), Noise(0.0, 0.0))
    found = truth("Pearson", Design(10, (5, 20), noises), same=False, seed=3, share=0.2)
    for metric, noise in enumerate(noises):
        variance = 1 + noise.item**2 + noise.cluster**2
        expected = 1 / math.sqrt(variance * 1.25)
        assert found.value[metric] == pytest.approx(expected, abs=5 * found.error[metric])


@pytest.mark.parametrize(
    ("measure", "plain"), [("Pearson", pearson), ("Spearman", spearman), ("Kendall", kendall)]
)
def test_simulated_correlations_are_those_of_the_sample(measure: str, plain: object) -> None:
    sample = drawn(Design(9, (2, 6), SAME, gold_levels=5, score_levels=5), np.random.default_rng(1))
    found = MEASURES[measure](sample, np.ones((1, 9)))[0]
    assert callable(plain)
    expected = [plain(x, sample.gold) for x in sample.scores.T]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_simulated_chains_are_averaged_over_clusters() -> None:
    sample = drawn(Design(9, (3, 6), SAME, "order", score_levels=5), np.random.default_rng(2))
    found = MEASURES["chain rank"](sample, np.ones((1, 9)))[0]
    for metric, scores in enumerate(sample.scores.T):
        inside = [sample.clusters == c for c in range(9)]
        each = [spearman(scores[items], sample.gold[items]) for items in inside]
        assert found[metric] == pytest.approx(np.nan_to_num(each).mean(), abs=1e-12)


def test_designs_draw_what_they_say() -> None:
    design = Design(4000, (3, 7), (Noise(0.0, 1.0), Noise(0.5, 0.0)), gold_levels=3, shared=0.4)
    sample = drawn(design, np.random.default_rng(3))
    sizes = np.bincount(sample.clusters)
    assert (sizes.min(), sizes.max(), sizes.size) == (3, 7, 4000)
    assert np.unique(sample.gold).tolist() == [-1.0, 0.0, 1.0]
    assert sample.scores.var(axis=0) == pytest.approx([2.0, 1.25], rel=0.05)
    means = np.stack([np.bincount(sample.clusters, x) / sizes for x in sample.scores.T])
    within_clusters = (sample.scores - means.T[sample.clusters]).var(axis=0)
    assert within_clusters == pytest.approx(np.array([0.6, 0.85]) * 0.8, rel=0.06)


def test_repetitions_are_the_same_again_and_all_scenarios_have_names_of_their_own() -> None:
    first, again = (
        batch(CLUSTERED, np.full(2, 0.6), number=3, size=5, seed=9, n_resamples=50)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.values, again.values)
    other = batch(CLUSTERED, np.full(2, 0.6), number=4, size=5, seed=9, n_resamples=50)
    assert (other.values != first.values).all()
    assert len({one.name for one in scenarios()}) == len(scenarios())
    assert {one.measure for one in scenarios()} == set(MEASURES)


def test_rates_have_binomial_errors_and_targets() -> None:
    rate = Rate.of(np.arange(400) < 376)
    assert rate.value == 0.94
    assert rate.error == pytest.approx(math.sqrt(0.94 * 0.06 / 400))
    assert rate.within(COVERAGE)
    low = Rate.of(np.arange(400) < 372)
    assert not low.within(COVERAGE)
    assert low.within(COVERAGE, 2.0)


def test_the_tables_have_a_line_for_each_scenario() -> None:
    chosen = [replace(one, design=one.design.with_clusters(8)) for one in quick_scenarios()]
    found = simulated(chosen[2:], 4, seed=1, share=0.01)
    lines = markdown(found).splitlines()
    assert sum(line.startswith("| accuracy | different | 8 |") for line in lines) == 2
    assert sum(line.startswith("| chain rank | same | 8 |") for line in lines) == 2


def test_the_command_writes_what_it_found(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(calibration)
    file = tmp_path / "rates.json"
    options = ["--quick", "--repetitions", "2", "--only", "chain", "--json", str(file)]
    found = CliRunner().invoke(app, options)
    assert found.exit_code == 0, found.output
    assert "### Coverage" in found.output
    again = CliRunner().invoke(app, ["--from", str(file)])
    assert again.stdout.strip() == found.stdout.split("\n\nSeed")[0].strip()
    content = json.loads(file.read_text())
    assert [rates["scenario"]["measure"] for rates in content["rates"]] == ["chain rank"]
    assert CliRunner().invoke(app, ["--only", "no such"]).exit_code == 2
