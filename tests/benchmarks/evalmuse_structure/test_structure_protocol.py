"""The structure test: the threshold search against a slow definition, and the operator's table."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks.evalmuse_structure.load import StructureAnswers
from benchmarks.evalmuse_structure.protocol import EvalMuseStructure, auc
from benchmarks.rows import Row
from benchmarks.schema import ScoreTable

Question = tuple[str, str, bool]  # image, category, yes
Problem = tuple[str, str]  # image, skill


def answers(categories: Sequence[Question], problems: Sequence[Problem] = ()) -> StructureAnswers:
    asked = pd.DataFrame(categories, columns=["cluster", "category", "yes"]).astype({"yes": bool})
    asked.insert(0, "pair_id", asked["cluster"] + "|" + asked["category"])
    annotated = pd.DataFrame(problems, columns=["cluster", "skill"])
    annotated.insert(0, "pair_id", annotated["cluster"] + "|" + annotated["skill"])
    both = pd.concat([asked, annotated])
    pairs, clusters = (tuple(dict.fromkeys(both[name])) for name in ("pair_id", "cluster"))
    return StructureAnswers(pairs, clusters, asked, annotated)


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
    "a|animal": 0.9, "b|animal": 0.3, "c|human": 0.6, "d|human": 0.2, "c|human:palm_deformed": 0.5,
    "c|human:palm_shapeless": 0.1,
}  # fmt: skip


def test_the_smallest_best_threshold_is_taken_and_yes_needs_more_than_it() -> None:
    """Any t in 0.30..0.59 separates; at 0.30 the no with P = 0.30 is not above it."""
    found = rows(FOUR, SCORES)
    assert {
        (name, skill or "", row.variant): row.value for (name, skill), row in found.items()
    } == {
        ("threshold", "", "paper"): 0.3, ("f1", "", "paper"): 1.0, ("accuracy", "", "paper"): 1.0,
        ("accuracy", "animal", "paper"): 1.0, ("accuracy", "human", "paper"): 1.0,
        ("recall", "", "paper"): pytest.approx(2 / 3),
        ("recall", "human:palm_deformed", "assay"): 1.0,
        ("recall", "human:palm_shapeless", "assay"): 0.0, ("recall", "animal", "assay"): 1.0,
        ("auc", "", "assay"): 1.0, ("auc", "animal", "assay"): 1.0, ("auc", "human", "assay"): 1.0,
    }  # fmt: skip
    assert "threshold 0.30" in found["accuracy", None].note


def test_accuracy_of_a_category_is_the_mean_of_both_shares_at_the_common_threshold() -> None:
    """Objects alone would be separated at 0.8; the other categories pull the threshold down."""
    labels = answers(
        [("a", "animal", True)] * 6
        + [("b", "animal", False)] * 6
        + [("o", "object", True), ("p", "object", False), ("q", "object", False)]
    )
    scores = {"a|animal": 0.5, "b|animal": 0.4, "o|object": 0.9, "p|object": 0.8, "q|object": 0.1}
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


SCORE = st.one_of(
    st.integers(0, 100).map(lambda k: k / 100), st.floats(0, 1), st.just(math.nan)
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(cells=st.lists(st.tuples(SCORE, st.booleans()), min_size=2, max_size=30))
def test_the_search_agrees_with_trying_every_threshold(cells: list[tuple[float, bool]]) -> None:
    yes = [y for _, y in cells]
    if len(set(yes)) < 2:
        return
    labels = answers([(f"{n:03d}", "human", y) for n, y in enumerate(yes)])
    found = rows(labels, {f"{n:03d}|human": s for n, (s, _) in enumerate(cells)}, b=4)
    at, f1 = slow_search([s for s, _ in cells], yes)
    assert found["threshold", None].value == at
    assert found["f1", None].value == pytest.approx(f1)


def test_each_resample_searches_its_own_threshold() -> None:
    rng = np.random.default_rng(2)
    kinds = ["animal", "object", "human"]
    asked = [(f"{k:03d}", kinds[k % 3], bool(rng.random() > 0.4)) for k in range(60)]
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
        drawn = np.repeat(np.arange(len(asked)), plan.counts[b].astype(int))
        chosen = [asked[k] for k in drawn]
        x = [scores[f"{image}|{kind}"] for image, kind, _ in chosen]
        at, f1 = slow_search(x, [y for _, _, y in chosen])
        assert values["f1", None][b] == pytest.approx(f1)
        human = [(s, y) for s, (_, kind, y) in zip(x, chosen, strict=True) if kind == "human"]
        shares = (
            np.mean([s > at for s, y in human if y]),
            np.mean([s <= at for s, y in human if not y]),
        )
        assert values["accuracy", "human"][b] == pytest.approx(np.mean(shares))
        said = [scores[f"{i}|human:palm_deformed"] > at for i, _, y in chosen if y]
        assert values["recall", None][b] == pytest.approx(np.mean(said))
    assert np.isnan(values["threshold", None]).all()  # a setting that is found, without an interval


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.1, 0.2, 0.5, 0.9]), st.booleans(), st.integers(0, 3)),
        min_size=2,
        max_size=25,
    )
)
def test_auc_is_the_share_of_won_pairs(questions: list[tuple[float, bool, int]]) -> None:
    x, y, w = (np.array(column) for column in zip(*questions, strict=True))
    repeated, labels = np.repeat(x, w), np.repeat(y, w)
    found = auc(x, y, w[None].astype(float))[0]
    if labels.all() or not labels.any():
        assert math.isnan(found)
        return
    u = stats.mannwhitneyu(repeated[labels], repeated[~labels]).statistic
    assert found == pytest.approx(u / (labels.sum() * (~labels).sum()))


def test_a_missing_score_counts_as_no_and_is_counted() -> None:
    found = rows(FOUR, {**SCORES, "a|animal": math.nan})
    animal = found["accuracy", "animal"]
    assert (animal.value, animal.n_missing, found["recall", None].n_missing) == (0.5, 1, 1)
    assert "no: 1" in animal.note
    assert found["recall", "animal"].value == found["auc", "animal"].value == 0.0
    missing = rows(FOUR, dict.fromkeys(FOUR.pair_ids, math.nan))
    assert [missing[name, None].value for name in ("accuracy", "recall", "auc")] == [0.5, 0.0, 0.5]
    assert missing["accuracy", None].n_missing == 4


@pytest.mark.parametrize(("constant", "recall"), [(0.0, 0.0), (0.4, 1.0), (1.0, 1.0)])
def test_a_constant_score_is_a_coin(constant: float, recall: float) -> None:
    found = rows(FOUR, dict.fromkeys(FOUR.pair_ids, constant))
    values = [found[name, None].value for name in ("threshold", "f1", "accuracy", "auc", "recall")]
    assert values == [0.0, 0.0, 0.5, 0.5, recall]


@pytest.mark.parametrize(
    ("categories", "reason"),
    [
        ([("a", "human", True)], "answer no"),
        ([("a", "human", False)], "answer yes"),
        ([], "category question"),
    ],
)
def test_without_both_answers_there_is_no_threshold(
    categories: list[Question], reason: str
) -> None:
    labels = answers(categories, [("a", "animal")])
    found = rows(labels, dict.fromkeys(labels.pair_ids, 0.5))
    for name in ("accuracy", "recall", "f1", "threshold", "auc"):
        assert math.isnan(found[name, None].value)
        assert found[name, None].note.endswith(reason)


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
    assert math.isnan(found["accuracy", "human"].value)
    assert math.isnan(found["accuracy", "object"].value)
    assert "answer no" in found["accuracy", "human"].note
    assert found["recall", None].n_items == 0
    assert "no problem" in found["recall", None].note


@pytest.mark.parametrize(("score", "direction"), [(3.5, 1), (-0.2, 1), (0.5, -1)])
def test_scores_that_are_no_probabilities_get_an_auc_only(score: float, direction: int) -> None:
    found = rows(FOUR, {**SCORES, "a|animal": score}, direction=direction)
    for key in (("accuracy", None), ("accuracy", "human"), ("recall", None), ("threshold", None)):
        assert math.isnan(found[key].value)
        assert ("outside 0..1" if direction > 0 else "lower-is-better") in found[key].note
        assert found[key].n_items > 0
    assert not math.isnan(found["auc", None].value)
