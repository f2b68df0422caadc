"""Calibration study: simulated designs and measures, intervals and tests within their bands."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.correlation import kendall, pearson, spearman
from benchmarks.statistics.logistic import plcc
from benchmarks.statistics.pairwise_accuracy import pairwise_accuracy, tie_calibrated
from benchmarks.statistics.perm_both import perm_both
from benchmarks.statistics.sign_flips import FIRST_DRAWS, pair_tests
from tools.calibration import __main__ as command
from tools.calibration.designs import Design, Noise, Sample, drawn
from tools.calibration.measures import MEASURES, OVER_MODELS, SOFT
from tools.calibration.scenarios import DIFFERENT, SAME, Scenario, scenarios, truth
from tools.calibration.trials import (
    COVERAGE,
    PERM_BOTH_DRAWS,
    Found,
    Rate,
    Rates,
    assay,
    batch,
    plan_of,
)

COVERAGE_BAND = 0.9, 0.985
"""Three standard errors of 240 repetitions around 94 to 96 %, about."""
REJECTION_BAND = 0.01, 0.09
N_CLUSTERS, SIZE = 50, 8
NOISES = Noise(0.4, 0.8), Noise(0.4, 0.8)
CLUSTERED = Scenario("Pearson", Design(N_CLUSTERS, (SIZE, SIZE), NOISES, shared=0.5, gold_levels=5))
MEAN = Scenario(
    "accuracy", Design(N_CLUSTERS, (SIZE, SIZE), NOISES, "margin", shared=0.5, score_levels=9)
)
TIED = Design(8, (2, 4), SAME, gold_levels=3, score_levels=5)
each_kind = pytest.mark.parametrize("scenario", [CLUSTERED, MEAN], ids=lambda one: one.measure)


def within(value: float, band: tuple[float, float]) -> bool:
    return band[0] <= value <= band[1]


# Rates
@pytest.mark.slow
@each_kind
def test_intervals_cover_and_tests_reject_as_they_should(scenario: Scenario) -> None:
    true = truth(scenario.measure, scenario.design, same=True, seed=1, share=0.2)
    trials = batch(scenario, true.value, number=0, size=240, seed=1, n_resamples=200)
    found = Rates.of(scenario, true, [trials])
    assert all(within(rate.value, COVERAGE_BAND) for rate in found.coverage["assay"])
    assert all(within(found.rejection[test].value, REJECTION_BAND) for test in ("sign flips", "t"))
    assert max(map(abs, found.bias)) < 0.3


@each_kind
def test_the_bands_notice_when_clusters_are_ignored(scenario: Scenario) -> None:
    """The same with each item as a cluster of its own: intervals too short, tests too bold."""
    true = truth(scenario.measure, scenario.design, same=True, seed=1, share=0.2)
    n_items, rng = N_CLUSTERS * SIZE, np.random.default_rng(6)
    plan = plan_of(n_items, 5, 200)
    counts = np.vstack([np.ones(n_items), plan.counts])
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
    trials = batch(scenario, true.value, number=0, size=300, seed=2, n_resamples=200)
    plain, expanded = (float(trials.covered[name].mean()) for name in ("bca", "assay"))
    assert plain + 0.02 < expanded and within(expanded, COVERAGE_BAND)


def test_rates_have_binomial_errors_and_targets() -> None:
    rate, low = Rate.of(np.arange(400) < 376), Rate.of(np.arange(400) < 372)
    assert (rate.value, rate.error) == pytest.approx((0.94, math.sqrt(0.94 * 0.06 / 400)))
    assert (rate.within(COVERAGE), low.within(COVERAGE), low.within(COVERAGE, 2.0)) == (
        True, False, True,
    )  # fmt: skip


def test_repetitions_are_the_same_again_and_all_scenarios_have_names_of_their_own() -> None:
    first, again, other = (
        batch(CLUSTERED, np.full(2, 0.6), number=n, size=5, seed=9, n_resamples=50).values
        for n in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert (other != first).all()
    assert len({one.name for one in scenarios()}) == len(scenarios())
    assert {one.measure for one in scenarios()} == set(MEASURES)


@pytest.mark.parametrize(
    ("measure", "statistic"), [("Spearman", "spearman"), ("Kendall", "kendall")]
)
def test_perm_both_is_told_which_coefficient_is_simulated(
    measure: str, statistic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, int]] = []

    def noted(scores: FloatArray, gold: FloatArray, statistic: Any, **options: Any) -> object:
        asked.append((statistic, options["n_draws"]))
        return perm_both(scores, gold, statistic, **options)

    monkeypatch.setattr("tools.calibration.trials.perm_both", noted)
    # One metric is noise alone beside the quality itself: every repetition must say so.
    apart = replace(TIED.with_clusters(40), noises=(Noise(0.1, 0.0), Noise(9.0, 0.0)))
    scenario = Scenario(measure, apart)
    trials = batch(scenario, np.full(2, 0.5), number=0, size=3, seed=2, n_resamples=20)
    assert asked == [(statistic, PERM_BOTH_DRAWS)] * 3
    assert trials.rejected["PERM-BOTH"].all()


# True values
def test_metrics_that_differ_in_kind_of_noise_only_have_one_true_value() -> None:
    design = Design(10, (5, 20), DIFFERENT, gold_levels=5, score_levels=9)
    for measure in ("Pearson", "Spearman", "Kendall"):
        found = truth(measure, design, same=False, seed=3, share=0.1)
        assert abs(found.value[0] - found.value[1]) < 4 * float(np.hypot(*found.error))
        assert found.error.max() < 0.004
    one, each = (
        truth("tie-calibrated", TIED, same=same, seed=3, share=0.02) for same in (True, False)
    )
    assert one.value[0] == one.value[1] == pytest.approx(each.value.mean())


def test_the_true_values_are_those_that_can_be_calculated() -> None:
    """Of continuous values no tie is right: tie-calibrated accuracy is (1 + tau) / 2."""
    design = Design(10, (2, 4), (Noise(0.6, 0.3), Noise(0.0, 1.2)))
    pearsons = truth("Pearson", design, same=False, seed=3, share=0.2)
    accuracies = truth("tie-calibrated", design, same=False, seed=3, share=0.05)
    for metric, noise in enumerate(design.noises):
        r = 1 / math.sqrt((1 + noise.item**2 + noise.cluster**2) * (1 + design.rater**2))
        assert pearsons.value[metric] == pytest.approx(r, abs=5 * pearsons.error[metric])
        # The threshold is fitted, so a small sample reads a trace too high.
        error = 5 * float(accuracies.error[metric]) + 0.002
        tau = 2 * math.asin(r) / math.pi
        assert accuracies.value[metric] == pytest.approx((1 + tau) / 2, abs=error)


# Designs and measures
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


def test_labels_are_whether_the_quality_that_raters_see_is_positive() -> None:
    design = Design(6000, (2, 4), (Noise(0.0, 0.0), Noise(0.6, 0.8)), "label", rater=0.0)
    sample = drawn(design, np.random.default_rng(5))
    assert set(np.unique(sample.gold)) == {0.0, 1.0}
    # Without noise the score is the quality itself: above one half exactly where the label is 1.
    np.testing.assert_array_equal(sample.scores[:, 0] > 0.5, sample.gold == 1.0)
    assert sample.gold.mean() == pytest.approx(0.5, abs=0.03)
    # A normal quality of variance 1 and noise of variance 1, through the logistic function.
    quality = np.log(sample.scores / (1.0 - sample.scores))
    assert quality.var(axis=0) == pytest.approx([1.0, 2.0], rel=0.06)
    # Two normal signs agree with probability 1/2 + asin(r) / pi; r = 1 / sqrt(2) here.
    right = ((sample.scores[:, 1] > 0.5) == (sample.gold == 1.0)).mean()
    assert right == pytest.approx(0.5 + math.asin(1 / math.sqrt(2)) / math.pi, abs=0.02)


def test_simulated_measures_are_those_of_the_sample() -> None:
    sample = drawn(Design(9, (2, 6), SAME, gold_levels=5, score_levels=5), np.random.default_rng(1))
    for measure, plain in (("Pearson", pearson), ("Spearman", spearman), ("Kendall", kendall)):
        found = MEASURES[measure](sample, np.ones((1, 9)))[0]
        expected = [plain(x, sample.gold) for x in sample.scores.T]
        np.testing.assert_allclose(found, expected, atol=1e-12)
    sample = drawn(Design(9, (3, 6), SAME, "order", score_levels=5), np.random.default_rng(2))
    chains = MEASURES["chain rank"](sample, np.ones((1, 9)))[0]
    for found, scores in zip(chains, sample.scores.T, strict=True):
        inside = [sample.clusters == c for c in range(9)]
        each = [spearman(scores[items], sample.gold[items]) for items in inside]
        assert found == pytest.approx(np.nan_to_num(each).mean(), abs=1e-12)


def resampled(design: Design, measure: str) -> tuple[Sample, list[IntArray], FloatArray]:
    """A sample, the items of six draws (of all first), and the measure in each of them."""
    sample, n = drawn(design, np.random.default_rng(6)), design.n_clusters
    drawn_counts = np.random.default_rng(7).multinomial(n, np.full(n, 1 / n), 5)
    counts = np.vstack([np.ones(n), drawn_counts])
    items = [
        np.repeat(np.arange(sample.gold.size), row[sample.clusters].astype(int)) for row in counts
    ]
    return sample, items, MEASURES[measure](sample, counts)


def test_element_accuracy_is_the_best_of_all_thresholds_in_each_draw() -> None:
    sample, draws, found = resampled(Design(12, (3, 7), SAME, "label"), "element accuracy")
    for items, values in zip(draws, found, strict=True):
        for scores, value in zip(sample.scores[items].T, values, strict=True):
            labels = sample.gold[items] > 0
            tried = [((scores >= t) == labels).mean() for t in np.arange(0, 1.005, 0.01)]
            assert value == pytest.approx(max(tried), abs=1e-12)


def test_tie_calibrated_accuracy_keeps_the_threshold_that_is_best_in_the_sample() -> None:
    sample, draws, found = resampled(TIED, "tie-calibrated")
    for metric, scores in enumerate(sample.scores.T):
        best = tie_calibrated(scores, sample.gold)
        assert found[0, metric] == pytest.approx(best.accuracy, abs=1e-12)
        for items, value in zip(draws, found[:, metric], strict=True):
            of_draw = pairwise_accuracy(scores[items], sample.gold[items], best.threshold)
            assert value == pytest.approx(of_draw, abs=1e-12)


@pytest.mark.parametrize(("measure", "field"), [("PLCC", "value"), ("RMSE", "rmse")])
def test_a_fitted_curve_is_the_fit_in_the_sample_and_nearly_one_in_each_draw(
    measure: str, field: str
) -> None:
    sample, draws, found = resampled(Design(12, (10, 20), SAME, gold_levels=5), measure)
    for draw, items in enumerate(draws):
        for scores, value in zip(sample.scores[items].T, found[draw], strict=True):
            fitted = getattr(plcc(scores, sample.gold[items]), field)
            assert value == pytest.approx(fitted, abs=1e-12 if draw == 0 else 1e-2)


def test_soft_accuracy_is_one_less_the_distance_of_p_values_of_models() -> None:
    sample = drawn(Design(7, (3, 3), SAME, "models"), np.random.default_rng(4))
    signs = np.array(list(itertools.product((1, -1), repeat=7)))
    found = MEASURES[SOFT](sample, np.ones((1, 7)))[0]

    def p_values(values: FloatArray) -> FloatArray:
        table = values.reshape(7, 3)
        apart = np.stack([table[:, a] - table[:, b] for a, b in ((0, 1), (0, 2), (1, 2))])
        return np.array([(signs @ one >= one.sum() - 1e-9).mean() for one in apart])

    for scores, value in zip(sample.scores.T, found, strict=True):
        distance = np.abs(p_values(sample.gold) - p_values(scores)).mean()
        assert value == pytest.approx(1.0 - distance)


def test_the_true_soft_accuracy_is_that_of_so_many_clusters() -> None:
    few, many = (Design(n, (3, 3), SAME, "models") for n in (4, 64))
    for one in (few, many):
        assert Scenario(SOFT, one).limit == one
        assert Scenario("PLCC", one).limit == one.with_clusters(0)
    means = [truth(SOFT, one, same=True, seed=1, share=0.02).value[0] for one in (few, many)]
    assert means[0] + 0.01 < means[1] < 1.0
    gold = drawn(many.with_clusters(4000), np.random.default_rng(1)).gold.reshape(-1, 3)
    assert np.diff(gold.mean(axis=0)) == pytest.approx([0.15, 0.15], abs=0.06)


@pytest.mark.parametrize("measure", OVER_MODELS)
def test_resamples_over_models_lie_around_the_sample(measure: str) -> None:
    sample = drawn(Design(40, (6, 6), SAME, "models", misjudged=0.5), np.random.default_rng(3))
    plan = plan_of(40, 8, 200)
    found = MEASURES[measure](sample, np.vstack([np.ones(40), plan.counts]))
    resamples = found[plan.resampled]
    assert np.isfinite(found).all() and len(found) == 1 + 200 + 2 * 40
    assert (np.abs(resamples.mean(axis=0) - found[0]) < resamples.std(axis=0) / 2).all()
    assert (resamples.min(axis=0) <= found[0]).all() and (found[0] <= resamples.max(axis=0)).all()


# The program
def test_the_program_simulates_and_prints_what_a_file_then_gives_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rates.json"

    def ended(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["calibration", *arguments])
        try:
            code = command.main()
        except SystemExit as end:
            code = int(str(end.code))
        return code, *capsys.readouterr()

    quick = ["--quick", "--repetitions", "2", "--only", "chain"]
    code, printed, _ = ended(*quick, "--json", str(file))
    again = ended("--from", str(file))
    assert code == again[0] == 0
    assert printed.startswith(again[1].strip()) and "### Coverage" in again[1]
    lines = [line.replace(" ", "").split("|") for line in again[1].splitlines()]
    assert [line[1:3] for line in lines].count(["chainrank", "same"]) == 2
    rates = json.loads(file.read_text())["rates"]
    assert [one["scenario"]["measure"] for one in rates] == ["chain rank"]
    code, _, problem = ended("--only", "unheard-of")
    assert code == 2 and "unheard-of" in problem
