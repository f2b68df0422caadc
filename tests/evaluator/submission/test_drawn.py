"""Part of a benchmark: drawn evenly, and judged by what was drawn alone."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from benchmarks.registry import load_registry
from benchmarks.schema import ScoreTable
from evaluator.submission.checking.drawn import Drawn, evenly

DEMOS = ("demo_croc", "demo_evalmuse", "demo_gecko", "demo_ts2")


def test_one_cluster_is_drawn_from_each_stretch() -> None:
    clusters = [f"c{i:03}" for i in range(100)]
    drawn = evenly(clusters, 10, seed=1)
    assert [int(name[1:]) // 10 for name in drawn] == list(range(10))
    assert drawn == evenly(clusters, 10, seed=1)
    assert drawn != evenly(clusters, 10, seed=2)


def test_no_more_than_there_are() -> None:
    assert evenly(["a", "b"], 5, seed=1) == ("a", "b")


@pytest.mark.parametrize("name", DEMOS)
def test_both_sides_hold_the_same_pairs(name: str) -> None:
    drawn = Drawn(load_registry()[name], None, 60)
    asked = [pair.pair_id for pair in drawn.questions(None).pairs]
    assert sorted(asked) == sorted(drawn.answers(None).pair_ids)
    assert 30 <= drawn.n_pairs == len(asked) <= 100 < drawn.n_pairs_whole
    assert {p.image_id for p in drawn.questions(None).pairs} == set(drawn.questions(None).images)


@pytest.mark.parametrize("name", DEMOS)
def test_what_was_not_drawn_does_not_count_as_missing(name: str) -> None:
    drawn = Drawn(load_registry()[name], None, 60)
    answers = drawn.answers(None)
    scores = np.random.default_rng(1).normal(size=len(answers.pair_ids))
    table = pd.DataFrame({"mine": scores}, index=pd.Index(answers.pair_ids, name="pair_id"))
    rows = drawn.evaluate(ScoreTable(table), answers, 100).rows
    headline = [row for row in rows if drawn.card.headline.matches(row) and row.skill is None]
    assert headline
    assert all(row.n_missing == 0 for row in rows)
    assert all(math.isfinite(row.value) for row in headline)


def test_all_pairs_are_the_benchmark_itself() -> None:
    whole = load_registry()["demo_ts2"]
    drawn = Drawn(whole, None, None)
    assert drawn.answers(None).pair_ids == whole.answers(None).pair_ids
    assert drawn.n_pairs == drawn.n_pairs_whole
