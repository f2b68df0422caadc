"""Simulated measures with thresholds: against a plain search in every draw."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks.statistics.calibration import __main__ as command
from benchmarks.statistics.calibration.designs import Design, Noise, Sample, drawn
from benchmarks.statistics.calibration.measures import MEASURES
from benchmarks.statistics.calibration.scenarios import SAME, Scenario
from benchmarks.statistics.calibration.trials import PERM_BOTH_DRAWS, batch
from benchmarks.statistics.calibration.truths import truth
from benchmarks.statistics.permutation.perm_both import perm_both

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

    monkeypatch.setattr("benchmarks.statistics.calibration.trials.perm_both", noted)
    # One metric is noise alone beside the quality itself: every repetition must say so.
    apart = replace(TIED.with_clusters(40), noises=(Noise(0.1, 0.0), Noise(9.0, 0.0)))
    trials = batch(
        Scenario(measure, apart), np.full(2, 0.5), number=0, size=3, seed=2, n_resamples=20
    )
    assert asked == [(statistic, PERM_BOTH_DRAWS)] * 3
    assert trials.rejected["PERM-BOTH"].all()


def test_a_simulated_rank_correlation_is_scipys() -> None:
    sample = drawn(TIED, np.random.default_rng(3))
    found = MEASURES["Kendall"](sample, np.ones((1, 8)))[0]
    expected = [stats.kendalltau(x, sample.gold).statistic for x in sample.scores.T]
    np.testing.assert_allclose(found, expected, atol=1e-12)


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
    assert "| chain rank | same |" in again
    assert ended("--only", "no such") == 2
    assert "no scenario has 'no such' in its name" in capsys.readouterr().err
