"""The threshold search, accuracy and recall on small cases and against a slow definition."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks.evalmuse_structure.load import StructureAnswers
from benchmarks.evalmuse_structure.measures import THRESHOLDS, auc, yes_by_cluster
from benchmarks.evalmuse_structure.protocol import EvalMuseStructure
from benchmarks.rows import Row
from benchmarks.schema import ScoreTable

Question = tuple[str, str, bool]  # image, category, yes
Problem = tuple[str, str]  # image, skill


def answers(categories: list[Question], problems: list[Problem] = []) -> StructureAnswers:  # noqa: B006 - never changed
    asked = pd.DataFrame(
        {
            "pair_id": [f"{image}|{category}" for image, category, _ in categories],
            "cluster": [image for image, _, _ in categories],
            "category": [category for _, category, _ in categories],
            "yes": np.array([yes for _, _, yes in categories], bool),
        }
    )
    annotated = pd.DataFrame(
        {
            "pair_id": [f"{image}|{skill}" for image, skill in problems],
            "cluster": [image for image, _ in problems],
            "skill": [skill for _, skill in problems],
        }
    )
    pairs = dict.fromkeys([*asked["pair_id"], *annotated["pair_id"]])
    clusters = dict.fromkeys([*asked["cluster"], *annotated["cluster"]])
    return StructureAnswers(tuple(pairs), tuple(clusters), asked, annotated)


def rows(
    labels: StructureAnswers, scores: dict[str, float], b: int = 100, direction: int = 1
) -> dict[tuple[str, str | None], Row]:
    overall = pd.DataFrame({"m": scores}, dtype=float).loc[list(labels.pair_ids)]
    table = ScoreTable(overall, directions={} if direction == 1 else {"m": -1})
    measured = EvalMuseStructure().evaluate(table, labels, b)
    return {(row.measure, row.skill): row for row in measured.rows}


FOUR = answers(
    [("a", "animal", True), ("b", "animal", False), ("c", "human", True), ("d", "human", False)],
    [("c", "human:palm_deformed"), ("c", "human:palm_shapeless"), ("a", "animal")],
)
SCORES = {
    "a|animal": 0.9,
    "b|animal": 0.3,
    "c|human": 0.6,
    "d|human": 0.2,
    "c|human:palm_deformed": 0.5,
    "c|human:palm_shapeless": 0.1,
}


def test_the_smallest_best_threshold_is_taken_and_yes_needs_more_than_it() -> None:
    """Any t in 0.30..0.59 separates; at 0.30 the no with P = 0.30 is not above it."""
    found = rows(FOUR, SCORES)
    assert found["threshold", None].value == 0.3
    assert found["f1", None].value == 1.0
    assert found["accuracy", None].value == 1.0
    assert found["accuracy", "animal"].value == found["accuracy", "human"].value == 1.0
    assert ("accuracy", "object") not in found
    assert found["recall", None].value == pytest.approx(2 / 3)
    assert found["recall", "human:palm_deformed"].value == 1.0
    assert found["recall", "human:palm_shapeless"].value == 0.0
    assert found["recall", "animal"].variant == "assay"
    assert found["recall", None].variant == "paper"
    assert "threshold 0.30" in found["accuracy", None].note
    assert found["auc", None].value == 1.0


def test_accuracy_of_a_category_is_the_mean_of_both_shares_at_the_common_threshold() -> None:
    """Objects alone would be separated at 0.8; the other categories pull the threshold down."""
    labels = answers(
        [("a", "animal", True)] * 6
        + [("b", "animal", False)] * 6
        + [("o", "object", True), ("p", "object", False), ("q", "object", False)]
    )
    scores = {"a|animal": 0.5, "b|animal": 0.4, "o|object": 0.9, "p|object": 0.8, "q|object": 0.1}
    labels = StructureAnswers(
        tuple(dict.fromkeys(labels.pair_ids)), labels.clusters, labels.categories, labels.problems
    )
    found = rows(labels, scores)
    assert found["threshold", None].value == 0.4
    assert found["accuracy", "object"].value == (1.0 + 0.5) / 2
    assert found["accuracy", None].value == (1.0 + 7 / 8) / 2
    assert found["f1", None].value == pytest.approx(2 * 7 / 8 / (15 / 8))


def slow_search(scores: list[float], yes: list[bool]) -> tuple[float, float]:
    """Threshold and F1 by trying every threshold on every question."""
    best, at = -1.0, 0.0
    for k in range(101):
        t = k / 100
        said = [score > t for score in scores]
        p = np.mean([s for s, y in zip(said, yes, strict=True) if y])
        n = np.mean([not s for s, y in zip(said, yes, strict=True) if not y])
        f1 = 0.0 if p + n == 0 else 2 * p * n / (p + n)
        if f1 > best:
            best, at = float(f1), t
    return at, best


@settings(max_examples=40, deadline=None)
@given(
    cells=st.lists(
        st.tuples(
            st.one_of(
                st.integers(0, 100).map(lambda k: k / 100), st.floats(0, 1), st.just(math.nan)
            ),
            st.booleans(),
        ),
        min_size=2,
        max_size=30,
    )
)
def test_the_search_agrees_with_trying_every_threshold(cells: list[tuple[float, bool]]) -> None:
    yes = [y for _, y in cells]
    if len(set(yes)) < 2:
        return
    names = [f"{n:03d}" for n in range(len(cells))]
    labels = answers([(name, "human", y) for name, y in zip(names, yes, strict=True)])
    scores = {f"{name}|human": s for name, (s, _) in zip(names, cells, strict=True)}
    found = rows(labels, scores, b=4)
    at, f1 = slow_search([s for s, _ in cells], yes)
    assert found["threshold", None].value == at
    assert found["f1", None].value == pytest.approx(f1)


def test_each_resample_searches_its_own_threshold() -> None:
    rng = np.random.default_rng(2)
    n = 60
    kinds = ["animal", "object", "human"]
    asked = [(f"{k:03d}", kinds[k % 3], bool(rng.random() > 0.4)) for k in range(n)]
    problems = [(image, "human:palm_deformed") for image, _, yes in asked if yes]
    labels = answers(asked, problems)
    scores = {
        f"{image}|{kind}": float(np.clip(0.3 * yes + rng.random() * 0.7, 0, 1))
        for image, kind, yes in asked
    } | {f"{image}|{skill}": float(rng.random()) for image, skill in problems}
    scores["003|animal"] = math.nan
    benchmark = EvalMuseStructure()
    plan = benchmark.plan(labels, 6)
    table = ScoreTable(pd.DataFrame({"m": scores}).loc[list(labels.pair_ids)])
    measured = benchmark.measure(table, labels, plan)
    values = {(r.measure, r.skill): measured.resamples[k] for k, r in enumerate(measured.rows)}
    for b in range(6):
        drawn = np.repeat(np.arange(n), plan.counts[b].astype(int))
        chosen = [asked[k] for k in drawn]
        x = [scores[f"{image}|{kind}"] for image, kind, _ in chosen]
        yes = [y for _, _, y in chosen]
        at, f1 = slow_search(x, yes)
        assert values["threshold", None][b] == pytest.approx(at)
        assert values["f1", None][b] == pytest.approx(f1)
        human = [(s, y) for s, (_, kind, y) in zip(x, chosen, strict=True) if kind == "human"]
        shares = (
            np.mean([s > at for s, y in human if y]),
            np.mean([s <= at for s, y in human if not y]),
        )
        assert values["accuracy", "human"][b] == pytest.approx(np.mean(shares))
        said = [scores[f"{i}|human:palm_deformed"] > at for i, _, y in chosen if y]
        assert values["recall", None][b] == pytest.approx(np.mean(said))


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_auc_is_the_share_of_won_pairs(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 25))
    x = np.array(data.draw(st.lists(st.sampled_from([0.1, 0.2, 0.5, 0.9]), min_size=n, max_size=n)))
    y = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    w = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    repeated, labels = np.repeat(x, w), np.repeat(y, w)
    found = auc(x, y, w[None].astype(float))[0]
    if labels.all() or not labels.any():
        assert math.isnan(found)
        return
    u = stats.mannwhitneyu(repeated[labels], repeated[~labels]).statistic
    assert found == pytest.approx(u / (labels.sum() * (~labels).sum()))


def test_yes_is_strictly_above_each_of_the_101_thresholds() -> None:
    scores = np.array([0.0, 0.005, 0.29, 0.3, 1.0, math.nan])
    yes = yes_by_cluster(scores, np.arange(6), 6)
    expected = np.array([[s > t for t in THRESHOLDS] for s in scores], float)
    assert np.array_equal(yes, expected)


def test_a_missing_score_counts_as_no_and_is_counted() -> None:
    found = rows(FOUR, {**SCORES, "a|animal": math.nan})
    assert found["accuracy", "animal"].value == 0.5
    assert found["accuracy", "animal"].n_missing == 1
    assert "missing scores, which count as no: 1" in found["accuracy", "animal"].note
    assert found["recall", "animal"].value == 0.0
    assert found["recall", None].n_missing == 1
    assert found["auc", "animal"].value == 0.0
    missing = rows(FOUR, dict.fromkeys(FOUR.pair_ids, math.nan))
    assert (missing["accuracy", None].value, missing["recall", None].value) == (0.5, 0.0)
    assert missing["auc", None].value == 0.5
    assert missing["accuracy", None].n_missing == 4


@pytest.mark.parametrize(("constant", "recall"), [(0.0, 0.0), (0.4, 1.0), (1.0, 1.0)])
def test_a_constant_score_is_a_coin(constant: float, recall: float) -> None:
    found = rows(FOUR, dict.fromkeys(FOUR.pair_ids, constant))
    assert found["threshold", None].value == 0.0
    assert found["f1", None].value == 0.0
    assert found["accuracy", None].value == found["auc", None].value == 0.5
    assert found["recall", None].value == recall


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (answers([("a", "human", True)], [("a", "animal")]), "no question has the answer no"),
        (answers([("a", "human", False)], [("a", "animal")]), "no question has the answer yes"),
        (answers([], [("a", "animal")]), "there is no category question"),
    ],
)
def test_without_both_answers_there_is_no_threshold(labels: StructureAnswers, reason: str) -> None:
    found = rows(labels, dict.fromkeys(labels.pair_ids, 0.5))
    for key in (("accuracy", None), ("recall", None), ("f1", None), ("threshold", None)):
        assert math.isnan(found[key].value)
        assert reason in found[key].note
    assert math.isnan(found["auc", None].value)
    assert reason in found["auc", None].note


def test_a_category_with_one_answer_only_has_no_accuracy_but_the_others_do() -> None:
    labels = answers(
        [
            ("a", "animal", True),
            ("b", "animal", False),
            ("c", "human", True),
            ("d", "object", False),
        ]
    )
    found = rows(labels, {"a|animal": 0.9, "b|animal": 0.1, "c|human": 0.9, "d|object": 0.1})
    assert found["accuracy", "animal"].value == 1.0
    assert "no question has the answer no" in found["accuracy", "human"].note
    assert math.isnan(found["accuracy", "human"].value)
    assert math.isnan(found["accuracy", "object"].value)
    assert found["recall", None].n_items == 0
    assert "no problem is annotated" in found["recall", None].note


def test_one_image_only_has_values_and_no_interval() -> None:
    labels = answers([("a", "animal", True), ("a", "human", False)])
    found = rows(labels, {"a|animal": 0.9, "a|human": 0.1})
    row = found["accuracy", None]
    assert (row.value, row.n_clusters) == (1.0, 1)
    assert math.isnan(row.ci_low)
    assert "one cluster only" in row.note


@pytest.mark.parametrize(("score", "direction"), [(3.5, 1), (-0.2, 1), (0.5, -1)])
def test_scores_that_are_no_probabilities_get_an_auc_only(score: float, direction: int) -> None:
    found = rows(FOUR, {**SCORES, "a|animal": score}, direction=direction)
    for key in (("accuracy", None), ("accuracy", "human"), ("recall", None), ("threshold", None)):
        assert math.isnan(found[key].value)
        assert ("outside 0..1" if direction > 0 else "lower-is-better") in found[key].note
        assert found[key].n_items > 0
    assert not math.isnan(found["auc", None].value)
