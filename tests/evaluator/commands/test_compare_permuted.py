"""`compare --permute-scores`: PERM-BOTH on raw scores beside the test of the boards."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.comparison import Compared
from benchmarks.rows import PooledSample
from benchmarks.schema import Selector
from benchmarks.statistics.perm_both import perm_both
from benchmarks.statistics.resampling import seed_of
from benchmarks.tifa160.load import HUMAN
from benchmarks.tifa160.protocol import CARD, Tifa160
from evaluator.commands.compare_files import Field, Pools, SliceKey, contenders, measured_field
from evaluator.commands.compare_permuted import (
    NO_POOL,
    Permuted,
    column_words,
    permuted,
    permuted_words,
)
from leaderboard.ranking.comparing import Match, compare_cells
from tests.evaluator.commands.rated import GOLD, OF_PAIR, SCORES, scores_file, with_gaps
from tests.evaluator.commands.submitting import Run

FACTS = ("p", "draws", "exact", "note")


def facts(record: dict[str, Any]) -> list[Any]:
    return [record[f"permute_scores_{name}"] for name in FACTS]


def expected_p(one: Any, other: Any) -> float:
    both, seed = np.column_stack([one, other]), seed_of("rated", "1")
    tests = perm_both(both, GOLD, "spearman", clusters=OF_PAIR, n_draws=9999, seed=seed)
    return float(tests.p_values[0, 1])


def test_pooled_correlations_are_tested_by_swapped_scores_too(compare: Run) -> None:
    words = ("good.csv", "poor.csv")
    plain = compare(*words, "--json").json
    found = compare(*words, "--permute-scores", "--json").json
    p = expected_p(SCORES["good"], SCORES["poor"])
    without = [None, None, None, NO_POOL]
    assert [facts(one) for one in found] == [[p, 9999, False, ""], *[without] * (len(found) - 1)]
    assert [before.items() <= one.items() for before, one in zip(plain, found, strict=True)]
    told = compare(*words, "--permute-scores").told
    assert re.search(r"PERM-BOTH on raw scores: p = 0\.\d+ \(standardised .* 9,999 draws\)", told)
    assert f"side, distance: {NO_POOL}." in told
    assert "PERM-BOTH" not in compare(*words).out


def test_every_pair_of_a_file_is_tested_as_it_would_be_alone(compare: Run) -> None:
    words = ("all.csv", "--permute-scores")
    every = compare(*words, "--json").json
    alone = compare(*words, "--metric-a", "fair", "--metric-b", "poor", "--json").json
    assert facts(every[2]) == facts(alone[0])
    assert "p (scores)" in compare(*words).out
    assert compare(*words, "--measure", "side").out.count(NO_POOL) == 1


def test_few_clusters_are_swapped_in_every_way_and_skills_are_no_pool(compare: Run) -> None:
    words = ("good.csv", "poor.csv", "--permute-scores", "--skill", "few")
    (few, *_) = compare(*words, "--json").json
    p, draws, exact, _ = facts(few)
    assert (exact, draws) == (True, 2**5) and p in np.arange(1, 33) / 32
    assert "all 32 patterns" in compare(*words).out
    (both, *_) = compare(*words, "--skill", "many", "--json").json
    assert facts(both)[0] is None and "skills" in facts(both)[3]


def test_constant_scores_are_not_permuted_nor_missing_ones(compare: Run, tmp_path: Path) -> None:
    scores_file(tmp_path / "flat.csv", "flat", 0.5)
    (flat, *_) = compare("good.csv", "flat.csv", "--permute-scores", "--json").json
    assert facts(flat)[0] is None and "constant" in facts(flat)[3]
    gaps = with_gaps(2, "poor")
    scores_file(tmp_path / "gaps.csv", "gaps", gaps)
    (first, *_) = compare("good.csv", "gaps.csv", "--permute-scores", "--json").json
    assert facts(first)[0] == expected_p(SCORES["good"], gaps) and "58" in facts(first)[3]


# On TIFA160, where both tests look at the same differences ----------------------------------------

SEED = seed_of(CARD.name, CARD.revision)
RELEASED = ("meteor", "spice", "clipscore_vitb32", "tifa_mplug-large")


@pytest.fixture(scope="module")
def field(assay_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Field:
    """Metrics released with the ratings, in one file."""
    benchmark = Tifa160()
    answers = benchmark.answers(assay_data)
    released = json.loads((assay_data / HUMAN).read_text(encoding="utf-8"))
    table = pd.DataFrame({key: released[key] for key in answers.pair_ids}).T[list(RELEASED)]
    path = tmp_path_factory.mktemp("scores") / "released.csv"
    table.rename_axis("pair_id").to_csv(path)
    return measured_field(contenders([path], (None, None), benchmark, answers), benchmark, answers)


def compared(field: Field, measure: str, facet: str) -> tuple[SliceKey, tuple[Compared, ...]]:
    key = Selector(measure=measure, split="all", variant="paper", facet=facet), None
    pairs = combinations(range(len(field.names)), 2)
    matches = [Match(field.slices[key], a, b) for a, b in pairs]
    return key, compare_cells(matches, CARD, field.names)


@pytest.mark.slow
@pytest.mark.paper
@pytest.mark.parametrize(
    ("measure", "facet"),
    [("srcc", "dsg_likert"), ("pearson", "dsg_likert"), ("pearson", "human_avg")],
)
def test_on_released_scores_both_tests_agree(field: Field, measure: str, facet: str) -> None:
    _, rows = compared(field, measure, facet)
    found = permuted(rows, field, SEED)
    assert {(one.n_draws, one.exact, one.note) for one in found} == {(9999, False, "")}
    of_board, of_scores = [row.p_value for row in rows], [one.p_value for one in found]
    np.testing.assert_allclose(of_scores, of_board, atol=0.03)


@pytest.mark.paper
def test_the_released_scores_are_swapped_by_prompt(field: Field) -> None:
    key, rows = compared(field, "pearson", "dsg_likert")
    samples = [make() for make in field.pools[key]]
    scores, first = np.column_stack([one.scores for one in samples]), samples[0]
    clusters = first.clusters
    tests = perm_both(
        scores, first.ratings, "pearson", clusters=clusters, n_draws=9999, seed=SEED
    )  # fmt: skip
    pairs = tuple(np.triu_indices(len(RELEASED), 1))
    assert [one.p_value for one in permuted(rows, field, SEED)] == tests.p_values[pairs].tolist()
    differences = [row.difference for row in rows]
    np.testing.assert_allclose(differences, tests.differences[pairs], atol=1e-12)
    assert np.unique(clusters).size == 160


# Without data ---------------------------------------------------------------------------------------


def made_up(*, other_images: bool = False) -> tuple[Compared, Field]:
    rng = np.random.default_rng(3)
    ratings, clusters = rng.normal(size=80), np.repeat(np.arange(20), 4)
    one, other = (
        PooledSample(ratings + noise * rng.normal(size=80), ratings, clusters)
        for noise in (0.5, 0.7)
    )
    if other_images:
        other = replace(other, ratings=ratings[::-1])
    row = Compared("a", "b", "srcc", None, None, None, None, True, 0.5, 0.4, 0.1)
    pools: dict[SliceKey, Pools] = {(Selector(measure="srcc"), None): (lambda: one, lambda: other)}
    return row, Field({}, {"0/a": "a", "1/b": "b"}, {}, pools)


def test_only_metrics_with_values_on_the_same_images_are_tested_in_any_order() -> None:
    row, field = made_up()
    one, other, none = permuted(
        [row, replace(row, metric_a="b", metric_b="a"), replace(row, difference=math.nan)], field, 0
    )
    assert one == other and one.p_value is not None
    assert none == Permuted(note=none.note) and "value" in none.note
    row, field = made_up(other_images=True)
    with pytest.raises(ValueError, match="srcc"):
        permuted([row], field, 0)


def test_words_say_the_test_or_why_there_is_none() -> None:
    drawn, none = Permuted(0.0312, 9999, False, "tested on 58 images"), Permuted(note="because")
    assert permuted_words(drawn, "prompt") == (
        "PERM-BOTH on raw scores: p = 0.031 (standardised scores swapped by prompt, 9,999 draws; "
        "tested on 58 images)"
    )
    assert permuted_words(none, "prompt").endswith("not tested, because")
    told = column_words(["x", "y", "z"], [drawn, none, none], "prompt")
    assert told.endswith("x: tested on 58 images. y, z: because.") and "9,999" in told
