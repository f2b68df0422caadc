"""Calibration study: simulated designs and measures, intervals and tests within their bands."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.statistics.correlation import kendall, pearson, spearman
from benchmarks.statistics.perm_both import perm_both
from benchmarks.statistics.sign_flips import FIRST_DRAWS, pair_tests
from tools.calibration import __main__ as command
from tools.calibration.__main__ import markdown, simulated
from tools.calibration.designs import (
    DIFFERENT,
    MEASURES,
    SAME,
    Design,
    Noise,
    Sample,
    Scenario,
    drawn,
    quick_scenarios,
    scenarios,
    truth,
)
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


@pytest.mark.slow
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


LABELS = Design(12, (3, 7), SAME, "label")
TIED = Design(8, (2, 4), SAME, gold_levels=3, score_levels=5)


def items_of(sample: Sample, counts: np.ndarray) -> np.ndarray:
    """Positions of the items of one draw, as often as their cluster was drawn."""
    return np.repeat(np.arange(sample.gold.size), counts[sample.clusters].astype(int))


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


def test_element_accuracy_is_the_best_of_all_thresholds_in_each_draw() -> None:
    sample = drawn(LABELS, np.random.default_rng(6))
    rng = np.random.default_rng(7)
    counts = np.vstack([np.ones(12), rng.multinomial(12, np.full(12, 1 / 12), 4)])
    found = MEASURES["element accuracy"](sample, counts)
    assert found.shape == (5, 2)
    for draw, of_clusters in enumerate(counts):
        items = items_of(sample, of_clusters)
        for metric in range(2):
            scores, labels = sample.scores[items, metric], sample.gold[items] > 0
            tried = [((scores >= t) == labels).mean() for t in np.arange(0, 1.005, 0.01)]
            assert found[draw, metric] == pytest.approx(max(tried), abs=1e-12)


def test_tie_calibrated_accuracy_keeps_the_threshold_that_is_best_in_the_sample() -> None:
    sample = drawn(TIED, np.random.default_rng(8))
    rng = np.random.default_rng(9)
    counts = np.vstack([np.ones(8), rng.multinomial(8, np.full(8, 1 / 8), 5)])
    found = MEASURES["tie-calibrated"](sample, counts)

    def accuracy(scores: np.ndarray, gold: np.ndarray, threshold: float) -> float:
        a, b = np.triu_indices(scores.size, 1)
        sign = np.where(
            np.abs(scores[a] - scores[b]) <= threshold, 0, np.sign(scores[a] - scores[b])
        )
        return float((sign == np.sign(gold[a] - gold[b])).mean())

    for metric, scores in enumerate(sample.scores.T):
        differences = np.unique(np.abs(np.subtract.outer(scores, scores)))
        values = [accuracy(scores, sample.gold, t) for t in differences]
        assert found[0, metric] == pytest.approx(max(values), abs=1e-12)
        best = {float(t) for t, v in zip(differences, values, strict=True) if v == max(values)}
        for draw, of_clusters in enumerate(counts[1:], 1):
            items = items_of(sample, of_clusters)
            drawn_values = [accuracy(scores[items], sample.gold[items], t) for t in best]
            assert any(found[draw, metric] == pytest.approx(v, abs=1e-12) for v in drawn_values)


def test_the_true_tie_calibrated_accuracy_without_ties_is_kendalls() -> None:
    """Of continuous values no tie is right: accuracy is (1 + tau) / 2, and tau is known."""
    noises = (Noise(0.6, 0.0), Noise(0.0, 1.2))
    design = Design(10, (2, 4), noises)
    found = truth("tie-calibrated", design, same=False, seed=3, share=0.05)
    for metric, noise in enumerate(noises):
        r = 1 / math.sqrt((1 + noise.item**2 + noise.cluster**2) * (1 + design.rater**2))
        expected = (1 + 2 * math.asin(r) / math.pi) / 2
        # The threshold is fitted, so a small sample reads a trace too high.
        error = 5 * float(found.error[metric]) + 0.002
        assert float(found.value[metric]) == pytest.approx(expected, abs=error)


def test_where_both_are_the_same_the_truth_is_their_common_mean() -> None:
    one = truth("tie-calibrated", TIED, same=True, seed=3, share=0.02)
    each = truth("tie-calibrated", TIED, same=False, seed=3, share=0.02)
    assert one.value[0] == one.value[1] == pytest.approx(each.value.mean())


@pytest.mark.parametrize(
    ("measure", "statistic"), [("Spearman", "spearman"), ("Kendall", "kendall")]
)
def test_perm_both_is_told_which_coefficient_is_simulated(
    measure: str, statistic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, int]] = []

    def noted(scores: np.ndarray, gold: np.ndarray, statistic: Any, **options: Any) -> object:
        asked.append((statistic, options["n_draws"]))
        return perm_both(scores, gold, statistic, **options)

    monkeypatch.setattr("tools.calibration.trials.perm_both", noted)
    # One metric is noise alone beside the quality itself: every repetition must say so.
    apart = replace(TIED.with_clusters(40), noises=(Noise(0.1, 0.0), Noise(9.0, 0.0)))
    trials = batch(
        Scenario(measure, apart), np.full(2, 0.5), number=0, size=3, seed=2, n_resamples=20
    )
    assert asked == [(statistic, PERM_BOTH_DRAWS)] * 3
    assert trials.rejected["PERM-BOTH"].all()


def test_the_program_simulates_and_prints_what_a_file_then_gives_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rates.json"
    quick = ["--quick", "--repetitions", "2", "--only", "chain"]

    def ended(*arguments: str) -> int:
        monkeypatch.setattr("sys.argv", ["calibration", *arguments])
        try:
            return command.main()
        except SystemExit as end:
            return int(str(end.code))

    assert ended(*quick, "--json", str(file)) == 0
    printed = capsys.readouterr().out
    assert ended("--from", str(file)) == 0
    again = capsys.readouterr().out
    assert printed.startswith(again.strip())
    assert "### Coverage" in again
    assert "| chain rank | same |" in again
    rates = json.loads(file.read_text())["rates"]
    assert [one["scenario"]["measure"] for one in rates] == ["chain rank"]
    assert ended("--only", "no such") == 2
    assert "no scenario has 'no such' in its name" in capsys.readouterr().err
