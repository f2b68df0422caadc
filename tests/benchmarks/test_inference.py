"""What every published row carries: an interval, contributions, and where they come from."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.inference import (
    FEW_DEFINED,
    IN_STEPS,
    NOT_COMPARED,
    infer,
    plan_hash,
    versions,
)
from benchmarks.registry import load_registry
from benchmarks.rows import ONE_CLUSTER, Measured, MeasuredBuilder, Row
from benchmarks.schema import Answers, Benchmark, ScoreTable
from benchmarks.statistics.intervals import PerturbedPlan, percentile
from benchmarks.statistics.resampling import ResamplingPlan, resampled_mean
from benchmarks.statistics.sign_flips import flip_tests
from tests.benchmarks.toy import Toy

AT_HAND = ("demo_croc", "demo_ts2", "demo_evalmuse", "demo_gecko")
FROM_DATA = ("ts2", "genai_527", "tifa160")
N_RESAMPLES = 20
SEED = 1


def plan_of(n_clusters: int) -> PerturbedPlan:
    names = tuple(map(str, range(n_clusters)))
    return PerturbedPlan.of(ResamplingPlan(names, 3, N_RESAMPLES))


def row_of(value: float, n_clusters: int, note: str = "") -> Row:
    return Row("toy", "1", "m", "mean", value, n_clusters=n_clusters, note=note)


def inferred(row: Row, draws: np.ndarray | None, plan: PerturbedPlan) -> tuple[Row, Measured]:
    built = MeasuredBuilder(plan.n_resamples)
    built.add(row, draws)
    found = infer(built.build(), plan)
    return found.rows[0], found


class TestOneRow:
    plan = plan_of(12)
    values = np.random.default_rng(1).exponential(size=12)

    def mean(self) -> tuple[Row, Measured]:
        draws = resampled_mean(self.values, self.plan.counts)
        return inferred(row_of(float(self.values.mean()), 12), draws, self.plan)

    def test_a_mean_has_a_bca_interval_the_percentile_ends_and_its_cluster_values(self) -> None:
        row, found = self.mean()
        assert row.ci_method == "bca"
        assert self.plan.bootstrap is not None
        resamples = resampled_mean(self.values, self.plan.bootstrap.counts)
        expected = percentile(resamples[None])
        assert (row.percentile_low, row.percentile_high) == (expected.low[0], expected.high[0])
        np.testing.assert_allclose(found.contributions[0], self.values / 12, atol=1e-14)
        np.testing.assert_array_equal(found.resamples[0], resamples.astype(np.float32))

    def test_it_says_where_its_figures_come_from(self) -> None:
        row, _ = self.mean()
        assert (row.seed, row.n_resamples, row.plan) == (3, N_RESAMPLES, plan_hash(self.plan))
        assert row.versions is not None
        assert all(f"{name} {number}" in row.versions for name, number in versions().items())
        assert row.note == ""

    def test_fewer_clusters_make_a_wider_interval_of_the_same_resamples(self) -> None:
        draws = resampled_mean(self.values, self.plan.counts)
        ends = []
        for n in (4, 12):
            row, _ = inferred(row_of(float(self.values.mean()), n), draws, self.plan)
            ends.append((row.ci_low, row.ci_high))
        assert ends[0][0] <= ends[1][0] < ends[1][1] <= ends[0][1]
        assert ends[0] != ends[1]

    def test_a_value_undefined_in_most_resamples_has_no_interval_and_says_so(self) -> None:
        """Draws with a block left out or doubled are no resamples: they give no interval."""
        draws = resampled_mean(self.values, self.plan.counts)
        draws[: N_RESAMPLES // 2 + 1] = np.nan
        row, found = inferred(row_of(float(self.values.mean()), 12), draws, self.plan)
        nothing = [row.ci_low, row.ci_high, row.percentile_low, row.percentile_high]
        assert np.isnan(nothing).all()
        assert row.ci_method is None
        assert row.note == FEW_DEFINED
        assert np.isfinite(found.contributions).all()

    def test_a_value_undefined_without_one_cluster_is_not_compared_and_says_so(self) -> None:
        draws = resampled_mean(self.values, self.plan.counts)
        draws[N_RESAMPLES + 5] = np.nan
        row, found = inferred(row_of(float(self.values.mean()), 12, "why"), draws, self.plan)
        assert np.isnan(found.contributions).all()
        assert row.note == f"why; {NOT_COMPARED}"
        assert row.ci_method == "percentile"
        # Expanded for twelve clusters, so wider than the percentile interval itself.
        assert row.ci_low < row.percentile_low < row.percentile_high < row.ci_high

    def test_what_the_protocol_withheld_it_explains_itself(self) -> None:
        row, found = inferred(row_of(0.5, 12, "no interval: because"), None, self.plan)
        assert row.note == "no interval: because"
        assert math.isnan(row.ci_low)
        assert np.isnan(found.contributions).all()

    def test_one_cluster_has_no_interval(self) -> None:
        row, _ = inferred(row_of(0.5, 1), np.full(self.plan.n_resamples, 0.5), self.plan)
        assert (row.note, row.ci_method) == (ONE_CLUSTER, None)

    def test_an_undefined_value_stays_undefined(self) -> None:
        draws = resampled_mean(self.values, self.plan.counts)
        row, found = inferred(row_of(math.nan, 12, "constant"), draws, self.plan)
        assert row.note == "constant"
        assert np.isnan(found.contributions).all()

    def test_no_variance_at_all_is_a_point(self) -> None:
        draws = resampled_mean(np.ones(12), self.plan.counts)
        row, found = inferred(row_of(1.0, 12), draws, self.plan)
        assert (row.ci_low, row.ci_high, row.ci_method) == (1.0, 1.0, "bca")
        np.testing.assert_allclose(found.contributions, 1 / 12, rtol=1e-14)

    def test_no_rows_and_plain_plans_pass_through(self) -> None:
        assert infer(MeasuredBuilder(self.plan.n_resamples).build(), self.plan).rows == ()


def test_the_plan_is_named_by_its_clusters_its_seed_and_its_numbers() -> None:
    plan = plan_of(12)
    assert plan_hash(plan) == plan_hash(plan_of(12))
    others = [plan_of(13), PerturbedPlan.of(ResamplingPlan(plan.clusters, 4, N_RESAMPLES))]
    others += [PerturbedPlan.of(ResamplingPlan(plan.clusters, 3, N_RESAMPLES + 1))]
    others += [PerturbedPlan.of(ResamplingPlan(plan.clusters, 3, N_RESAMPLES), most_blocks=6)]
    assert len({plan_hash(each) for each in [plan, *others]}) == 5


def test_evaluate_infers() -> None:
    answers = Toy().answers(None)
    table = pd.DataFrame({"m": [1.0, 2.0, 4.0]}, index=pd.Index(answers.pair_ids, name="pair_id"))
    found = Toy().evaluate(ScoreTable(table), answers, N_RESAMPLES)
    assert found.rows[0].n_resamples == N_RESAMPLES
    np.testing.assert_allclose(found.contributions, [[1 / 3, 2 / 3, 4 / 3]], rtol=1e-12)


@dataclass(frozen=True)
class Case:
    """A benchmark and what it finds for `poor_scores`."""

    benchmark: Benchmark
    answers: Answers
    scores: pd.DataFrame
    found: Measured

    def evaluate(self, scores: pd.DataFrame) -> Measured:
        return self.benchmark.evaluate(ScoreTable(scores), self.answers, N_RESAMPLES)


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
            assert np.isnan(shares).all(), row
            assert row.note, row
        if math.isnan(row.ci_low):
            assert row.ci_method is None, row
            assert row.note, row
        else:
            assert row.ci_method in ("bca", "percentile"), row
            assert row.ci_low <= row.ci_high, row
            assert row.percentile_low <= row.percentile_high, row
        assert row.seed == case.benchmark.plan(answers).seed
        assert row.n_resamples == N_RESAMPLES
        assert row.plan
        assert row.versions


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


def keys(found: Measured) -> dict[tuple[object, ...], int]:
    names = ("metric", "measure", "split", "skill", "variant", "facet")
    return {tuple(getattr(row, name) for name in names): i for i, row in enumerate(found.rows)}


def matched(one: Measured, other: Measured) -> list[tuple[int, int]]:
    """Positions of the same row in both."""
    places = keys(other)
    return [(i, places[key]) for key, i in keys(one).items() if key in places]


@pytest.mark.slow
def test_other_metrics_beside_it_move_no_value_no_interval_and_no_p_value(case: Case) -> None:
    names = ["half", "tied", "plain"]
    few = case.evaluate(case.scores[names])
    rows = matched(few, case.found)
    assert len(rows) == len(few.rows)
    same_numbers(few, case.found, rows)
    assert all(few.rows[i].note == case.found.rows[j].note for i, j in rows)
    boards = {(r.measure, r.split, r.skill, r.variant, r.facet) for r in few.rows}
    for board in sorted(boards, key=str)[:8]:
        p_values = []
        for found in (few, case.found):
            places = keys(found)
            on_board = [places[(name, *board)] for name in names]
            p_values.append(flip_tests(found.contributions[on_board], SEED).p_value)
        np.testing.assert_allclose(p_values[0], p_values[1], rtol=1e-9)


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


def test_clusters_by_any_other_name_give_the_same_numbers() -> None:
    """With the same seed; the order of items inside a plan does not matter either."""
    rng = np.random.default_rng(4)
    values = rng.normal(size=20)
    named = PerturbedPlan.of(ResamplingPlan(tuple(f"c{i}" for i in range(20)), 3, N_RESAMPLES))
    numbered = plan_of(20)
    found = [
        inferred(row_of(float(values.mean()), 20), resampled_mean(values, plan.counts), plan)[0]
        for plan in (named, numbered)
    ]
    assert found[0].plan != found[1].plan
    assert replace(found[0], plan=found[1].plan) == found[1]


def test_a_value_that_moves_in_steps_has_resamples_but_no_influences() -> None:
    """A count of relations: no single cluster turns one, many together do."""
    plan = PerturbedPlan.of(ResamplingPlan(tuple(f"c{i}" for i in range(60)), 3, 200))
    draws = np.ones(plan.n_resamples)
    draws[:200] = np.random.default_rng(0).integers(0, 3, 200)
    row, found = inferred(row_of(1.0, 60), draws, plan)
    assert np.isnan(found.contributions).all()
    assert row.note == IN_STEPS
    assert row.ci_method == "percentile"


def test_equal_resamples_that_differ_by_rounding_are_no_steps() -> None:
    plan = PerturbedPlan.of(ResamplingPlan(tuple(f"c{i}" for i in range(20)), 3, 50))
    draws = np.full(plan.n_resamples, 0.7) + np.random.default_rng(0).normal(size=90) * 1e-17
    row, found = inferred(row_of(0.7, 20), draws, plan)
    assert row.note == ""
    assert np.isfinite(found.contributions).all()
