"""Published rows: their JSON, their interval and contributions, and where they come from."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.arrays import FloatArray
from benchmarks.inference import FEW_DEFINED, IN_STEPS, NOT_COMPARED, infer, plan_hash, versions
from benchmarks.registry import load_registry
from benchmarks.rows import ONE_CLUSTER, Measured, MeasuredBuilder, PooledSample, Row
from benchmarks.schema import Answers, Benchmark, ScoreTable
from benchmarks.statistics.intervals import PerturbedPlan, percentile
from benchmarks.statistics.joint_tests import JointTests
from benchmarks.statistics.resampling import ResamplingPlan, resampled_mean
from tests.kit.toy import Toy

AT_HAND = ("demo_croc", "demo_ts2", "demo_evalmuse", "demo_gecko")
FROM_DATA = ("ts2", "genai_527", "tifa160")
N_RESAMPLES = 20


def plan_of(n_clusters: int, n_resamples: int = N_RESAMPLES, seed: int = 3) -> PerturbedPlan:
    names = tuple(map(str, range(n_clusters)))
    return PerturbedPlan.of(ResamplingPlan(names, seed, n_resamples))


PLAN = plan_of(12)
VALUES = np.random.default_rng(1).exponential(size=12)
MEAN = float(VALUES.mean())


def row_of(value: float = MEAN, n_clusters: int = 12, note: str = "") -> Row:
    return Row("toy", "1", "m", "mean", value, n_clusters=n_clusters, note=note)


def draws_of_mean(plan: PerturbedPlan = PLAN) -> FloatArray:
    return resampled_mean(VALUES, plan.counts)


def inferred(
    row: Row, draws: FloatArray | None, plan: PerturbedPlan = PLAN
) -> tuple[Row, Measured]:
    built = MeasuredBuilder(plan.n_resamples)
    built.add(row, draws)
    found = infer(built.build(), plan)
    return found.rows[0], found


# Rows
def test_unused_and_undefined_fields_are_null_in_json_and_come_back() -> None:
    record = row_of(math.nan).to_json()
    assert list(record) == [field.name for field in fields(Row)]
    assert record["value"] is record["skill"] is record["ci_low"] is None
    again = Row.from_json(json.loads(json.dumps(record)))
    assert math.isnan(again.value) and again.skill is None
    with pytest.raises(TypeError):
        Row.from_json({**record, "extra": 1})


def test_rows_are_built_with_resamples_clusters_and_pools_made_when_asked_for() -> None:
    asked: list[str] = []

    def pool() -> PooledSample:
        asked.append("sample")
        return PooledSample(np.zeros(2), np.ones(2), np.arange(2))

    built = MeasuredBuilder(1001)
    built.add(row_of(), np.linspace(0, 1, 1001), ["c1", "c2"], np.array([0.0, 2.0]))
    built.add(row_of(), pool=pool)
    found = built.build()
    assert (found.rows[0].ci_low, found.rows[0].ci_high) == pytest.approx((0.025, 0.975))
    assert math.isnan(found.rows[1].ci_low)
    assert (found.resamples.shape, list(found.pools), asked) == ((2, 1001), [1], [])
    assert found.clusters.values.tolist() == [[0, "c1", 0.0], [0, "c2", 2.0]]
    assert (found.pools[1]().ratings.tolist(), asked) == ([1.0, 1.0], ["sample"])
    nothing = MeasuredBuilder(PLAN.n_resamples).build()
    assert nothing.resamples.shape == (0, PLAN.n_resamples)
    assert infer(nothing, PLAN).rows == ()


# One row
def test_a_mean_has_a_bca_interval_its_cluster_values_and_says_where_they_come_from() -> None:
    row, found = inferred(row_of(), draws_of_mean())
    assert PLAN.bootstrap is not None
    resamples = resampled_mean(VALUES, PLAN.bootstrap.counts)
    ends = percentile(resamples[None])
    assert (row.percentile_low, row.percentile_high) == (ends.low[0], ends.high[0])
    np.testing.assert_allclose(found.contributions[0], VALUES / 12, atol=1e-14)
    np.testing.assert_array_equal(found.resamples[0], resamples.astype(np.float32))
    assert (row.ci_method, row.note) == ("bca", "")
    assert (row.seed, row.n_resamples, row.plan) == (3, N_RESAMPLES, plan_hash(PLAN))
    assert all(f"{name} {number}" in (row.versions or "") for name, number in versions().items())
    few, _ = inferred(row_of(n_clusters=4), draws_of_mean())
    assert few.ci_low <= row.ci_low < row.ci_high <= few.ci_high
    assert (few.ci_low, few.ci_high) != (row.ci_low, row.ci_high)


def test_a_value_undefined_in_most_resamples_has_no_interval_and_says_so() -> None:
    """Draws with a block left out or doubled are no resamples: they give no interval."""
    draws = draws_of_mean()
    draws[: N_RESAMPLES // 2 + 1] = np.nan
    row, found = inferred(row_of(), draws)
    assert np.isnan([row.ci_low, row.ci_high, row.percentile_low, row.percentile_high]).all()
    assert (row.ci_method, row.note) == (None, FEW_DEFINED)
    assert np.isfinite(found.contributions).all()


def test_a_value_undefined_without_one_cluster_is_not_compared_and_says_so() -> None:
    draws = draws_of_mean()
    draws[N_RESAMPLES + 5] = np.nan
    row, found = inferred(row_of(note="why"), draws)
    assert np.isnan(found.contributions).all()
    assert (row.note, row.ci_method) == (f"why; {NOT_COMPARED}", "percentile")
    # Expanded for twelve clusters, so wider than the percentile interval itself.
    assert row.ci_low < row.percentile_low < row.percentile_high < row.ci_high


@pytest.mark.parametrize(
    ("row", "draws", "note"),
    [
        (row_of(0.5, note="withheld"), None, "withheld"),  # the protocol explains itself
        (row_of(0.5, 1), np.full(PLAN.n_resamples, 0.5), ONE_CLUSTER),
        (row_of(math.nan, note="constant"), draws_of_mean(), "constant"),
    ],
)
def test_without_draws_or_value_is_no_interval(
    row: Row, draws: FloatArray | None, note: str
) -> None:
    found, measured = inferred(row, draws)
    assert found.note == note
    assert note == "constant" or (math.isnan(found.ci_low) and found.ci_method is None)
    assert note == ONE_CLUSTER or np.isnan(measured.contributions).all()


def test_no_variance_at_all_is_a_point_and_rounding_makes_no_steps() -> None:
    row, found = inferred(row_of(1.0), resampled_mean(np.ones(12), PLAN.counts))
    assert (row.ci_low, row.ci_high, row.ci_method) == (1.0, 1.0, "bca")
    np.testing.assert_allclose(found.contributions, 1 / 12, rtol=1e-14)
    plan = plan_of(20, 50)
    draws = np.full(plan.n_resamples, 0.7) + np.random.default_rng(0).normal(size=90) * 1e-17
    row, found = inferred(row_of(0.7, 20), draws, plan)
    assert row.note == "" and np.isfinite(found.contributions).all()


def test_a_measure_that_is_not_corrected_for_bias_has_a_percentile_interval() -> None:
    built = MeasuredBuilder(PLAN.n_resamples)
    for measure in ("mean", "other"):
        built.add(replace(row_of(), measure=measure), draws_of_mean())
    corrected, other = infer(built.build(), PLAN, uncorrected={"other"}).rows
    assert (corrected.ci_method, other.ci_method) == ("bca", "percentile")
    # It is expanded for few clusters all the same.
    assert other.ci_low < other.percentile_low and other.percentile_high < other.ci_high
    assert (corrected.ci_low, corrected.ci_high) != (other.ci_low, other.ci_high)


def test_a_value_that_moves_in_steps_has_resamples_but_no_influences() -> None:
    """A count of relations: no single cluster turns one, many together do."""
    plan = plan_of(60, 200)
    draws = np.ones(plan.n_resamples)
    draws[:200] = np.random.default_rng(0).integers(0, 3, 200)
    row, found = inferred(row_of(1.0, 60), draws, plan)
    assert np.isnan(found.contributions).all()
    assert (row.note, row.ci_method) == (IN_STEPS, "percentile")


def test_the_plan_is_named_by_its_clusters_its_seed_and_its_numbers() -> None:
    assert plan_hash(PLAN) == plan_hash(plan_of(12))
    bootstrap = ResamplingPlan(PLAN.clusters, 3, N_RESAMPLES)
    others = [plan_of(13), plan_of(12, seed=4), plan_of(12, N_RESAMPLES + 1)]
    others.append(PerturbedPlan.of(bootstrap, most_blocks=6))
    named = PerturbedPlan.of(ResamplingPlan(tuple("abcdefghijkl"), 3, N_RESAMPLES))
    assert len({plan_hash(each) for each in [PLAN, *others, named]}) == 6
    one, other = (inferred(row_of(), draws_of_mean(plan), plan)[0] for plan in (PLAN, named))
    assert replace(one, plan=other.plan) == other  # clusters by any other name


def test_evaluate_infers() -> None:
    answers = Toy().answers(None)
    table = pd.DataFrame({"m": [1.0, 2.0, 4.0]}, index=pd.Index(answers.pair_ids, name="pair_id"))
    found = Toy().evaluate(ScoreTable(table), answers, N_RESAMPLES)
    assert found.rows[0].n_resamples == N_RESAMPLES
    np.testing.assert_allclose(found.contributions, [[1 / 3, 2 / 3, 4 / 3]], rtol=1e-12)


# Every row of every benchmark at hand
@dataclass(frozen=True)
class Case:
    """A benchmark and what it finds for `poor_scores`."""

    benchmark: Benchmark
    answers: Answers
    scores: pd.DataFrame
    found: Measured

    def evaluate(self, scores: pd.DataFrame) -> Measured:
        return self.benchmark.evaluate(ScoreTable(scores), self.answers, N_RESAMPLES)


def poor_scores(answers: Answers) -> pd.DataFrame:
    """Metrics that say little: constant, missing, tied, and one that says something."""
    rng = np.random.default_rng(0)
    n = len(answers.pair_ids)
    plain = rng.normal(size=n)
    columns = {
        "plain": plain,
        "constant": np.zeros(n),
        "none": np.full(n, np.nan),
        "one": np.where(np.arange(n) == n // 2, 1.0, np.nan),
        "two": np.where(np.isin(np.arange(n), [1, n - 2]), plain, np.nan),
        "half": np.where(rng.random(n) < 0.5, np.nan, plain),
        "tied": np.round(plain),
        "all but one tied": np.where(np.arange(n) == 3, 1.0, 0.0),
        "two values": rng.integers(0, 2, n).astype(float),
        "huge": plain * 1e300,
        "tiny": plain * 1e-300,
    }
    return pd.DataFrame(columns, index=pd.Index(answers.pair_ids, name="pair_id"))


@pytest.fixture(
    scope="module",
    params=[*AT_HAND, *(pytest.param(n, marks=pytest.mark.paper) for n in FROM_DATA)],
)
def case(request: pytest.FixtureRequest) -> Case:
    name: str = request.param
    data: Path | None = request.getfixturevalue("assay_data") if name in FROM_DATA else None
    benchmark = load_registry()[name]
    answers = benchmark.answers(data)
    scores = poor_scores(answers)
    found = benchmark.evaluate(ScoreTable(scores), answers, N_RESAMPLES)
    return Case(benchmark, answers, scores, found)


@pytest.mark.slow
def test_every_row_has_what_it_promises_or_says_why_not(case: Case) -> None:
    found, answers = case.found, case.answers
    assert found.contributions.shape == (len(found.rows), min(len(answers.clusters), 250))
    assert {row.metric for row in found.rows} == set(case.scores)
    for row, shares in zip(found.rows, found.contributions, strict=True):
        assert math.isfinite(row.value) or (math.isnan(row.value) and row.note), row
        assert row.metric != "none" or row.n_missing > 0 or row.n_items == 0, row
        if np.isfinite(shares).all():
            assert shares.sum() == pytest.approx(row.value, abs=1e-10), row
        else:
            assert np.isnan(shares).all() and row.note, row
        if math.isnan(row.ci_low):
            assert row.ci_method is None and row.note, row
        else:
            assert row.ci_method in ("bca", "percentile"), row
            assert row.ci_low <= row.ci_high and row.percentile_low <= row.percentile_high, row
        assert (row.seed, row.n_resamples) == (case.benchmark.plan(answers).seed, N_RESAMPLES)
        assert row.plan and row.versions


KEY = ("metric", "measure", "split", "skill", "variant", "facet")


def keys(found: Measured) -> dict[tuple[Any, ...], int]:
    return {tuple(getattr(row, name) for name in KEY): i for i, row in enumerate(found.rows)}


def matched(one: Measured, other: Measured) -> list[tuple[int, int]]:
    """Positions of the same row in both."""
    places = keys(other)
    return [(i, places[key]) for key, i in keys(one).items() if key in places]


def same_numbers(one: Measured, other: Measured, rows: list[tuple[int, int]]) -> None:
    for field in ("value", "ci_low", "ci_high", "percentile_low", "percentile_high"):
        left = [getattr(one.rows[i], field) for i, _ in rows]
        right = [getattr(other.rows[j], field) for _, j in rows]
        # A fitted curve is found to about 1e-8, and rounding decides where the search ends.
        np.testing.assert_allclose(left, right, rtol=1e-7, atol=1e-12, err_msg=field)
    for field in ("ci_method", "n_items", "n_clusters", "n_missing"):
        left = [getattr(one.rows[i], field) for i, _ in rows]
        assert left == [getattr(other.rows[j], field) for _, j in rows]
    first = one.contributions[[i for i, _ in rows]]
    second = other.contributions[[j for _, j in rows]]
    # What comes of a fit is not the `plcc` alone: errors of the fit and means of several measures.
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-7)


@pytest.mark.slow
def test_other_metrics_beside_it_move_no_value_no_interval_and_no_p_value(case: Case) -> None:
    names = ["half", "tied", "plain"]
    few = case.evaluate(case.scores[names])
    rows = matched(few, case.found)
    assert len(rows) == len(few.rows)
    same_numbers(few, case.found, rows)
    assert all(few.rows[i].note == case.found.rows[j].note for i, j in rows)
    boards = {key[1:] for key in keys(few)}
    for board in sorted(boards, key=str)[:8]:
        one, other = (
            JointTests.of(found.contributions[[keys(found)[(name, *board)] for name in names]], 1)
            for found in (few, case.found)
        )
        np.testing.assert_allclose(one.p_value, other.p_value, rtol=1e-9)


@pytest.mark.slow
def test_neither_a_unit_nor_for_ranks_a_monotone_transform_moves_anything(case: Case) -> None:
    moved = case.scores[["plain", "half"]] * 4.0
    moved["half"] = np.exp(case.scores["half"] / 2.0)
    found = case.evaluate(moved)
    ranks = ("srcc", "krcc", "rank", "ks", "accuracy_ignoring_ties")
    unitless = (*ranks, "pearson", "accuracy", "pairwise_accuracy")
    seen = {"plain": unitless, "half": ranks}
    rows = matched(found, case.found)
    rows = [(i, j) for i, j in rows if found.rows[i].measure in seen[found.rows[i].metric]]
    assert rows
    same_numbers(found, case.found, rows)
