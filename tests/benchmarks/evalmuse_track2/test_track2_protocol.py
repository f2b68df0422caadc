"""The measures of track 2 on masks drawn by hand, and against slow definitions."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.evalmuse_track2.load import (
    FROM_BOXES,
    SIZE,
    BoolArray,
    MaskedScores,
    Track2Answers,
    pack,
    unpack,
)
from benchmarks.evalmuse_track2.measures import MEASURES, agreement
from benchmarks.evalmuse_track2.protocol import EvalMuseTrack2, final_score, region_rates
from benchmarks.rows import Row
from benchmarks.schema import ScoreTable
from tests.benchmarks.pool_rows import check_pools

N = 40
IMAGES = tuple(f"{n:05d}" for n in range(N))
LABELS = np.random.default_rng(5).uniform(1, 5, N)


def block(top: int, left: int, side: int) -> BoolArray:
    mask = np.zeros((SIZE, SIZE), bool)
    mask[top : top + side, left : left + side] = True
    return mask


def label_mask(n: int) -> BoolArray:
    """0, 1 or 2 regions."""
    mask = np.zeros((SIZE, SIZE), bool)
    for k in range(n % 3):
        mask |= block(50, 40 + 200 * k, 60)
    return mask


def predicted_mask(n: int) -> BoolArray:
    """Right for most images, a false region on every fourth."""
    mask = label_mask(n) if n % 5 else np.zeros((SIZE, SIZE), bool)
    return mask | block(400, 400, 30) if n % 4 == 0 else mask


def answers(note: str = "") -> Track2Answers:
    masks = {image: pack(label_mask(n)) for n, image in enumerate(IMAGES)}
    return Track2Answers(IMAGES, IMAGES, pd.Series(LABELS, IMAGES), masks, note)


def table(values: object = None, *, masked: bool = True) -> ScoreTable:
    noise = np.random.default_rng(6).normal(size=N)
    scores = LABELS + noise if values is None else values
    overall = pd.DataFrame({"m": scores}, index=pd.Index(IMAGES, name="pair_id"), dtype=float)
    if not masked:
        return ScoreTable(overall)
    return MaskedScores(
        overall, masks={"m": {image: pack(predicted_mask(n)) for n, image in enumerate(IMAGES)}}
    )


def rows(scores: ScoreTable, labels: Track2Answers | None = None, b: int = 200) -> dict[str, Row]:
    measured = EvalMuseTrack2().evaluate(scores, labels or answers(), b)
    assert {row.variant for row in measured.rows} == {"code"}
    return {row.measure: row for row in measured.rows}


@pytest.mark.paper
def test_final_of_the_published_baseline_follows_from_its_parts() -> None:
    """EvalMuse-Structure repository, table of baseline results (NTIRE 2025, track 2)."""
    precision, recall, plcc, srcc = 0.5086, 0.6728, 0.6945, 0.6677
    assert round(2 * precision * recall / (precision + recall + 1e-10), 4) == 0.5793
    assert round(final_score(0.5793, plcc, srcc), 4) == 0.6098


def test_precision_counts_predicted_regions_and_recall_labelled_ones() -> None:
    """10 predicted of which 4 hit, 8 labelled of which 6 are hit."""
    rates = region_rates(np.array([[10, 4, 8, 6], [0, 0, 8, 0], [3, 0, 0, 0]], float))
    assert rates["precision"].tolist()[0] == 0.4
    assert rates["recall"].tolist()[0] == 0.75
    assert rates["f1"].tolist()[0] == pytest.approx(2 * 0.4 * 0.75 / (1.15 + 1e-10), abs=1e-15)
    assert math.isnan(rates["precision"].tolist()[1])
    assert rates["f1"].tolist()[1] == 0.0
    assert math.isnan(rates["recall"].tolist()[2])
    assert math.isnan(rates["f1"].tolist()[2])


def test_rates_are_ratios_of_sums_over_images_not_means_of_ratios() -> None:
    found = rows(table())
    pairs = [(predicted_mask(n), label_mask(n)) for n in range(N)]
    sums = np.sum([agreement(p, t).counts for p, t in pairs], axis=0)
    predicted, predicted_hit, labelled, labelled_hit = (int(n) for n in sums)
    p, r = predicted_hit / predicted, labelled_hit / labelled
    assert found["precision"].value == pytest.approx(p)
    assert found["recall"].value == pytest.approx(r)
    assert found["f1"].value == pytest.approx(2 * p * r / (p + r + 1e-10), abs=1e-15)
    assert found["precision"].n_items == predicted
    assert found["recall"].n_items == labelled
    assert found["giou"].value == pytest.approx(np.mean([agreement(*pair).iou for pair in pairs]))
    assert found["giou"].n_items == found["f1"].n_clusters == N
    assert 0 < p < 1
    assert 0 < r < 1


def test_correlations_and_final_are_those_of_the_pooled_images() -> None:
    scores = table()
    found = rows(scores)
    x = scores.overall["m"].to_numpy()
    assert found["srcc"].value == pytest.approx(stats.spearmanr(x, LABELS).statistic)
    assert found["pearson"].value == pytest.approx(stats.pearsonr(x, LABELS).statistic)
    assert found["plcc"].value >= found["pearson"].value - 1e-6
    final = 0.7 * found["f1"].value + 0.15 * (found["plcc"].value + found["srcc"].value)
    assert found["final"].value == pytest.approx(final)
    for row in found.values():
        assert row.ci_low <= row.value <= row.ci_high
        assert row.measure in MEASURES
        assert row.note == ""


def test_each_resample_is_the_measure_of_the_images_it_draws() -> None:
    benchmark, labels = EvalMuseTrack2(), answers()
    plan = benchmark.plan(labels, 8)
    scores = table()
    measured = benchmark.measure(scores, labels, plan)
    values = {row.measure: measured.resamples[k] for k, row in enumerate(measured.rows)}
    x = scores.overall["m"].to_numpy()
    found = [agreement(predicted_mask(n), label_mask(n)) for n in range(N)]
    for b in range(8):
        drawn = np.repeat(np.arange(N), plan.counts[b].astype(int))
        rates = region_rates(np.sum([found[n].counts for n in drawn], axis=0))
        for name in ("f1", "precision", "recall"):
            assert values[name][b] == pytest.approx(float(rates[name]), rel=1e-6)
        assert values["giou"][b] == pytest.approx(np.mean([found[n].iou for n in drawn]), rel=1e-6)
        rho = stats.spearmanr(x[drawn], LABELS[drawn]).statistic
        assert values["srcc"][b] == pytest.approx(rho, rel=1e-5)
        final = final_score(values["f1"][b], values["plcc"][b], values["srcc"][b])
        assert values["final"][b] == pytest.approx(final, rel=1e-5)


def test_scores_without_masks_are_measured_by_correlation_only() -> None:
    found = rows(table(masked=False))
    for name in ("f1", "precision", "recall", "giou", "final"):
        assert math.isnan(found[name].value)
        assert math.isnan(found[name].ci_low)
        assert "no masks" in found[name].note
    assert found["srcc"].value == rows(table())["srcc"].value


def test_images_without_a_score_are_left_out_of_the_correlations_and_counted() -> None:
    values = LABELS.copy()
    values[::2] = np.nan
    found = rows(table(values))
    assert found["srcc"].value == pytest.approx(1.0)
    assert (found["srcc"].n_items, found["srcc"].n_missing) == (N // 2, N // 2)
    assert "left out for want of a score: 20" in found["final"].note
    assert found["f1"].value == rows(table())["f1"].value
    assert found["f1"].n_missing == 0


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.ones(N), "same score"),
        (np.where(np.arange(N) < 2, 1.0, np.nan), "fewer than 3 images"),
        (np.full(N, np.nan), "fewer than 3 images"),
    ],
)
def test_scores_that_make_no_correlation_give_a_reason(values: object, reason: str) -> None:
    found = rows(table(values))
    for name in ("srcc", "plcc", "pearson", "final"):
        assert math.isnan(found[name].value)
        assert reason in found[name].note
    assert found["f1"].value > 0


def test_one_image_gives_rates_but_no_correlation() -> None:
    one = Track2Answers(
        IMAGES[1:2], IMAGES[1:2], pd.Series([3.0], IMAGES[1:2]), {IMAGES[1]: pack(label_mask(1))}
    )
    found = rows(table(), one)
    assert found["f1"].value == pytest.approx(1.0)
    assert math.isnan(found["srcc"].value)


def test_no_predicted_region_is_an_f1_of_0_and_no_labelled_one_is_no_f1() -> None:
    nothing = pack(np.zeros((SIZE, SIZE), bool))
    scores = MaskedScores(table().overall, masks={"m": dict.fromkeys(IMAGES, nothing)})
    found = rows(scores)
    assert (found["f1"].value, found["recall"].value) == (0.0, 0.0)
    assert math.isnan(found["precision"].value)
    assert found["precision"].note == "no region is predicted"
    assert found["final"].value < 0.3
    empty = Track2Answers(
        IMAGES, IMAGES, pd.Series(LABELS, IMAGES), dict.fromkeys(IMAGES, nothing), FROM_BOXES
    )
    found = rows(table(), empty)
    assert math.isnan(found["f1"].value)
    assert found["precision"].value == 0.0
    assert found["f1"].note == f"no region is labelled; {FROM_BOXES}"
    assert "by a rule of ours" in found["giou"].note
    assert found["srcc"].note == ""


def test_a_metric_that_runs_backwards_is_turned_for_srcc() -> None:
    scores = ScoreTable(table(-LABELS, masked=False).overall, directions={"m": -1})
    assert rows(scores)["srcc"].value == pytest.approx(1.0)
    assert rows(table(-LABELS, masked=False))["srcc"].value == pytest.approx(-1.0)


def test_bits_give_back_the_mask() -> None:
    mask = np.random.default_rng(1).random((SIZE, SIZE)) > 0.5
    assert len(pack(mask)) == SIZE * SIZE // 8
    assert np.array_equal(unpack(pack(mask)), mask)


def test_rows_of_correlations_have_the_pools_behind_them() -> None:
    check_pools(EvalMuseTrack2().evaluate(table(), answers(), 20))
