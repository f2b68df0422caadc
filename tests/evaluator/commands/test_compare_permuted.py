"""PERM-BOTH beside the test of the boards on TIFA160, where both look at the same differences."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path

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
from evaluator.commands.compare_files import (
    Field,
    Pools,
    SliceKey,
    contenders,
    measured_field,
)
from evaluator.commands.compare_permuted import Permuted, column_words, permuted, permuted_words
from leaderboard.ranking.comparing import Match, compare_cells

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


def compared(field: Field, measure: str, facet: str) -> tuple[Compared, ...]:
    key = Selector(measure=measure, split="all", variant="paper", facet=facet), None
    pairs = combinations(range(len(field.names)), 2)
    return compare_cells([Match(field.slices[key], a, b) for a, b in pairs], CARD, field.names)


@pytest.mark.slow
@pytest.mark.paper
@pytest.mark.parametrize(
    ("measure", "facet"),
    [("srcc", "dsg_likert"), ("pearson", "dsg_likert"), ("pearson", "human_avg")],
)
def test_on_the_released_scores_both_tests_say_the_same(
    field: Field, measure: str, facet: str
) -> None:
    rows = compared(field, measure, facet)
    found = permuted(rows, field, SEED)
    of_board = np.array([row.p_value for row in rows])
    of_scores = np.array([one.p_value for one in found])
    assert {(one.n_draws, one.exact, one.note) for one in found} == {(9999, False, "")}
    np.testing.assert_allclose(of_scores, of_board, atol=0.03)


@pytest.mark.paper
def test_the_released_scores_are_swapped_by_prompt(field: Field) -> None:
    rows = compared(field, "pearson", "dsg_likert")
    key = Selector(measure="pearson", split="all", variant="paper", facet="dsg_likert"), None
    samples = [make() for make in field.pools[key]]
    tests = perm_both(
        np.column_stack([one.scores for one in samples]),
        samples[0].ratings,
        "pearson",
        clusters=samples[0].clusters,
        n_draws=9999,
        seed=SEED,
    )
    pairs = tuple(np.triu_indices(len(RELEASED), 1))
    assert [one.p_value for one in permuted(rows, field, SEED)] == tests.p_values[pairs].tolist()
    differences = [row.difference for row in rows]
    np.testing.assert_allclose(differences, tests.differences[pairs], atol=1e-12)
    assert np.unique(samples[0].clusters).size == 160


# Without data.


def made_up() -> Iterator[PooledSample]:
    rng = np.random.default_rng(3)
    ratings, clusters = rng.normal(size=80), np.repeat(np.arange(20), 4)
    for noise in (0.5, 0.7):
        yield PooledSample(ratings + noise * rng.normal(size=80), ratings, clusters)


def pair_of(one: PooledSample, other: PooledSample) -> tuple[Compared, Field]:
    row = Compared("a", "b", "srcc", None, None, None, None, True, 0.5, 0.4, 0.1)
    pools: dict[SliceKey, Pools] = {(Selector(measure="srcc"), None): (lambda: one, lambda: other)}
    return row, Field({}, {"0/a": "a", "1/b": "b"}, {}, pools)


def test_metrics_of_other_images_are_refused() -> None:
    one, other = made_up()
    row, field = pair_of(one, replace(other, ratings=other.ratings[::-1]))
    with pytest.raises(ValueError, match="not measured on the same images by srcc"):
        permuted([row], field, 0)


def test_what_has_no_value_has_no_test() -> None:
    row, field = pair_of(*made_up())
    (found,) = permuted([replace(row, difference=math.nan)], field, 0)
    assert found == Permuted(note="one of the metrics has no value here")


def test_the_order_of_two_metrics_does_not_matter() -> None:
    row, field = pair_of(*made_up())
    turned = replace(row, metric_a="b", metric_b="a")
    one, other = permuted([row, turned], field, 0)
    assert one == other


def test_words_say_the_test_or_why_there_is_none() -> None:
    drawn = Permuted(0.0312, 9999, False, "tested on the 58 images that both have scores for")
    assert permuted_words(drawn, "prompt") == (
        "PERM-BOTH on raw scores: p = 0.031 (standardised scores swapped by prompt, 9,999 draws; "
        "tested on the 58 images that both have scores for)"
    )
    none = Permuted(note="because")
    assert permuted_words(none, "prompt") == "PERM-BOTH on raw scores: not tested, because"
    assert column_words(["x", "y", "z"], [drawn, none, none], "prompt") == (
        "p (scores): PERM-BOTH, standardised scores swapped by prompt, 9,999 patterns of swaps; "
        "not corrected. x: tested on the 58 images that both have scores for. y, z: because."
    )
