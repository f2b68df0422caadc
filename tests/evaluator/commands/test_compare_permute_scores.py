"""`compare --permute-scores`: PERM-BOTH on raw scores beside the test of the boards."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.statistics.perm_both import perm_both
from benchmarks.statistics.resampling import seed_of
from evaluator.commands.compare_permuted import NO_POOL
from tests.evaluator.commands.rated import (
    GOLD,
    OF_PAIR,
    PAIRS,
    SCORES,
    Compare,
)


def test_pooled_correlations_are_tested_by_swapped_scores_too(
    compare: Compare, score_files: Path
) -> None:
    words = ("rated", "--scores", score_files / "good.csv", score_files / "poor.csv")
    plain = compare(*words, "--json").records
    (srcc, *others) = compare(*words, "--permute-scores", "--json").records
    both = np.column_stack([SCORES["good"], SCORES["poor"]])
    expected = perm_both(
        both, GOLD, "spearman", clusters=OF_PAIR, n_draws=9999, seed=seed_of("rated", "1")
    )
    assert srcc == plain[0] | {
        "permute_scores_p": expected.p_values[0, 1],
        "permute_scores_draws": 9999,
        "permute_scores_exact": False,
        "permute_scores_note": "",
    }
    for record, before in zip(others, plain[1:], strict=True):
        assert record == before | {
            "permute_scores_p": None,
            "permute_scores_draws": None,
            "permute_scores_exact": None,
            "permute_scores_note": NO_POOL,
        }


def test_every_pair_of_a_file_is_tested_as_it_would_be_alone(
    compare: Compare, score_files: Path
) -> None:
    every = compare(
        "rated", "--scores", score_files / "all.csv", "--permute-scores", "--json"
    ).records
    pair = ("--metric-a", "fair", "--metric-b", "poor", "--permute-scores", "--json")
    (alone, *_) = compare("rated", "--scores", score_files / "all.csv", *pair).records
    assert every[2]["permute_scores_p"] == alone["permute_scores_p"]
    out = compare("rated", "--scores", score_files / "all.csv", "--permute-scores").out
    assert "good, fair" in out
    assert "p: sign flips. p (scores): PERM-BOTH" in out


def test_a_field_without_a_pool_says_so_once(compare: Compare, score_files: Path) -> None:
    words = ("rated", "--scores", score_files / "all.csv", "--permute-scores", "--measure", "side")
    said = f"PERM-BOTH on raw scores: not tested, {NO_POOL}."
    assert compare(*words).out.count(said) == 1


def test_few_clusters_are_swapped_in_every_way(compare: Compare, score_files: Path) -> None:
    words = (
        "rated",
        "--scores",
        score_files / "good.csv",
        score_files / "poor.csv",
        "--permute-scores",
    )
    (few, *_) = compare(*words, "--skill", "few", "--json").records
    assert (few["permute_scores_exact"], few["permute_scores_draws"]) == (True, 2**5)
    assert few["permute_scores_p"] in np.arange(1, 33) / 32
    assert (
        "(standardised scores swapped by prompt, all 32 patterns)"
        in compare(*words, "--skill", "few").out
    )


def test_the_mean_of_several_skills_is_no_pool(compare: Compare, score_files: Path) -> None:
    words = (
        "rated",
        "--scores",
        score_files / "good.csv",
        score_files / "poor.csv",
        "--permute-scores",
    )
    (both, *_) = compare(*words, "--skill", "few", "--skill", "many", "--json").records
    assert both["permute_scores_p"] is None
    assert both["permute_scores_note"].startswith("a mean over several skills")


def test_a_constant_metric_is_not_permuted(compare: Compare, score_files: Path) -> None:
    pd.DataFrame({"pair_id": PAIRS, "flat": 0.5}).to_csv(score_files / "flat.csv", index=False)
    words = (
        "rated",
        "--scores",
        score_files / "good.csv",
        score_files / "flat.csv",
        "--permute-scores",
    )
    (first, *_) = compare(*words, "--json").records
    assert first["permute_scores_p"] is None
    assert first["permute_scores_note"] == "a metric has constant scores"


def test_images_without_one_of_the_scores_are_left_out_and_this_is_said(
    compare: Compare, score_files: Path
) -> None:
    gaps = np.where(np.arange(60) < 2, math.nan, SCORES["poor"])
    pd.DataFrame({"pair_id": PAIRS, "gaps": gaps}).to_csv(score_files / "gaps.csv", index=False)
    words = (
        "rated",
        "--scores",
        score_files / "good.csv",
        score_files / "gaps.csv",
        "--permute-scores",
    )
    (first, *_) = compare(*words, "--json").records
    both = np.column_stack([SCORES["good"], gaps])
    expected = perm_both(
        both, GOLD, "spearman", clusters=OF_PAIR, n_draws=9999, seed=seed_of("rated", "1")
    )
    assert first["permute_scores_p"] == expected.p_values[0, 1]
    assert first["permute_scores_note"] == "tested on the 58 images that both have scores for"


def test_both_tests_stand_beside_each_other(compare: Compare, score_files: Path) -> None:
    words = (
        "rated",
        "--scores",
        score_files / "good.csv",
        score_files / "fair.csv",
        "--permute-scores",
    )
    out = compare(*words).out
    assert re.search(r"PERM-BOTH on raw scores: p = 0\.\d+ \(standardised .* 9,999 draws\)", out)
    text = " ".join(out.split())
    assert "p (scores): PERM-BOTH, standardised scores swapped by prompt" in text
    assert f"side, distance: {NO_POOL}." in text
    assert "PERM-BOTH" not in compare(*words[:-1]).out


@pytest.mark.parametrize("width", [50, 80, 160])
@pytest.mark.parametrize("file", ["all.csv", "good.csv"])
def test_no_number_of_either_test_is_cut(
    compare: Compare, score_files: Path, width: int, file: str
) -> None:
    more = [score_files / "poor.csv"] if file == "good.csv" else []
    words = (
        "rated",
        "--scores",
        score_files / file,
        *more,
        "--all",
        "--skills",
        "--permute-scores",
    )
    out = compare(*words, width=width).out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= width
