"""Agreement of CROC_syn with itself and with CROC_hum."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks.croc.contrasts import DIRECTIONS
from benchmarks.croc_syn.answers import MODES
from benchmarks.croc_syn.comparison import (
    SHARED_GROUPS,
    agreement_with_hum,
    shared_accuracies,
    text_model_stability,
)
from benchmarks.rows import Row
from tests.benchmarks.croc_syn.syn_tree import (
    benchmark,
    line,
    load,
    same_everywhere,
    slow_groups,
    slow_outcome,
    table_of,
    write,
)

LEAVES = {"action": "Waving", "spatial": "Left-of", "size": "Giant_Figures", "shape": "Organic"}


def stability_rows(values: np.ndarray) -> list[Row]:
    """Accuracies of shape (metrics, modes, directions, text models)."""
    return [
        Row(
            "croc_syn",
            "r",
            f"m{m}",
            "accuracy",
            values[m, i, d, t],
            split=f"{mode}:{text_model}",
            facet=direction,
        )
        for m in range(len(values))
        for i, mode in enumerate(MODES)
        for d, direction in enumerate(DIRECTIONS)
        for t, text_model in enumerate(("ds", "qwen"))
    ]


def test_stability_is_kendall_over_metrics_modes_and_directions() -> None:
    values = np.random.default_rng(2).integers(0, 20, (3, 3, 4, 2)) / 20
    rows = stability_rows(values)
    others = [
        Row("croc_syn", "r", "m0", "accuracy", 0.5, split="entity_variation", facet="inverse_text"),
        Row("croc_syn", "r", "m0", "scaled_accuracy", 0.5, split="entity_variation:ds"),
    ]
    found = text_model_stability([*rows, *others])
    expected = stats.kendalltau(values[..., 0].ravel(), values[..., 1].ravel())
    assert (found.tau, found.p_value) == pytest.approx((expected.statistic, expected.pvalue))
    assert found.n == 36


def test_without_rows_or_with_constant_ones_there_is_no_stability() -> None:
    assert (text_model_stability([]).n, math.isnan(text_model_stability([]).tau)) == (0, True)
    assert math.isnan(text_model_stability(stability_rows(np.full((1, 3, 4, 2), 0.5))).tau)


def test_cells_of_one_text_model_only_are_left_out() -> None:
    rows = stability_rows(np.random.default_rng(3).random((1, 3, 4, 2)))
    assert text_model_stability(rows[1:]).n == 11


def test_shared_accuracies_and_their_agreement_with_hum(tmp_path: Path) -> None:
    lines = [
        line(f"subject_property|||Flora|||{leaf}", ["a", "b"])
        for leaf in (*LEAVES.values(), "Red", "Foreground_Emphasis")
    ]
    answers = load(write(tmp_path, same_everywhere(*lines)), n_images=2)
    rng = np.random.default_rng(4)
    values = {f"m{k}": rng.random(len(answers.pair_ids)) for k in range(3)}
    scores = table_of(answers, **values)
    shared = shared_accuracies(scores, answers)
    for metric in scores.metrics:
        slow = slow_groups(scores.overall[metric], tmp_path)
        for group, leaf in LEAVES.items():
            for facet in ("text", "image"):
                expected = np.mean(
                    [
                        slow_outcome(images, f"{way}_{facet}")
                        for way in ("forward", "inverse")
                        for key, images in slow.items()
                        if key[2].endswith(f"|||{leaf}")
                    ]
                )
                assert shared.loc[(facet, group), metric] == pytest.approx(expected)
    assert shared.xs("negation", level="group").isna().to_numpy().all()

    hum = {
        (metric, category): float(rng.random())
        for metric in (*scores.metrics, "elsewhere")
        for category, _ in SHARED_GROUPS.values()
    }
    rows = [
        Row("croc_hum", "r", metric, "scaled_accuracy", value, skill=category, facet="image")
        for (metric, category), value in hum.items()
    ]
    rows += [
        Row("croc_hum", "r", "m0", "scaled_accuracy", 0.5, skill=None, facet="image"),
        Row("croc_hum", "r", "m0", "scaled_accuracy", 0.5, skill="counting", facet="image"),
        Row("croc_hum", "r", "m0", "scaled_accuracy", 0.5, skill="action", facet="text"),
    ]
    found = agreement_with_hum(shared, rows, "image")
    couples = [
        (shared.loc[("image", group), metric], hum[metric, SHARED_GROUPS[group][0]])
        for metric in scores.metrics
        for group in LEAVES
    ]
    assert found.n == 12  # negation has no prompts here
    assert found.tau == pytest.approx(stats.kendalltau(*np.array(couples).T).statistic)


def test_rows_of_the_benchmark_feed_the_stability(tmp_path: Path) -> None:
    lines = [line(f"{mode}|||Flora|||Red", [f"{k}" for k in range(6)]) for mode in MODES]
    answers = load(write(tmp_path, same_everywhere(*lines)), n_images=2)
    values = np.random.default_rng(5).random(len(answers.pair_ids))
    rows = benchmark(2).evaluate(table_of(answers, m0=values), answers, 5).rows
    assert text_model_stability(rows).n == 12
