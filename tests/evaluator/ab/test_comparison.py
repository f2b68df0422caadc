"""Outcome by skill: planted models are told, by one metric and by several."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.statistics.better_or_tied import Outcome
from evaluator.ab.comparison import Comparison, mean_scores
from evaluator.ab.images import DrawnImages
from evaluator.generation.prompts import Prompt
from tests.evaluator.ab.simulated import SKILLS, drawn, scores

PLANTED = {"color": 0.3, "count": -0.3}


def outcomes(found: Comparison) -> dict[str | None, str]:
    return {one.skill: str(one.outcome) for one in found.skills}


def test_better_worse_and_equal_skills_are_told() -> None:
    of = drawn(600)
    found = Comparison("a", "b", of, (scores(of, PLANTED, 1),))
    assert outcomes(found) == {None: "tied", "color": "better", "count": "worse", "text": "tied"}
    assert {one.n_prompts for one in found.skills} == {600, 1800}
    finer = replace(found, sub_skills=True)
    assert {one.skill for one in finer.skills} == {
        None, *SKILLS, *(f"{skill}:{part}" for skill in SKILLS for part in "ab"),
    }  # fmt: skip


def test_a_metric_of_which_lower_is_better_is_turned() -> None:
    of = drawn(200)
    rising = scores(of, PLANTED, 1)
    falling = replace(rising, values=-rising.values, higher_is_better=False)
    one, other = (Comparison("a", "b", of, (each,)) for each in (rising, falling))
    assert outcomes(one) == outcomes(other)
    np.testing.assert_allclose(one.shifts, other.shifts)


def test_metrics_judge_their_own_skills_and_contradictions_decide_nothing() -> None:
    of = drawn(200)
    one = scores(of, PLANTED, 1, "one")
    other = replace(
        scores(of, {"color": -0.3}, 2, "other"), skills=frozenset({"color", "text", None})
    )
    found = Comparison("a", "b", of, (one, other))
    by_skill = {each.skill: each for each in found.skills}
    assert set(by_skill["count"].by_metric) == {"one"}
    assert by_skill["count"].outcome is Outcome.WORSE
    color = by_skill["color"]
    assert color.contradicted and color.outcome is Outcome.UNDECIDED and color.n_to_decide is None


def test_prompts_that_decide_are_those_of_the_quickest_difference_or_of_the_slowest_tie() -> None:
    of = drawn(60)
    one, other = scores(of, {}, 1, "one"), scores(of, {}, 2, "other")
    (whole, *_) = Comparison("a", "b", of, (one, other)).skills
    assert whole.outcome is Outcome.UNDECIDED
    metrics = whole.by_metric.values()
    differ = [each.n_to_differ for each in metrics if each.n_to_differ is not None]
    tie = [each.n_to_tie for each in metrics if each.n_to_tie is not None]
    assert whole.n_to_decide == min([*differ, *([max(tie)] if len(tie) == 2 else [])])


def test_the_prompts_that_differ_most_come_first_and_equal_ones_not_at_all() -> None:
    of = drawn(30)
    one = scores(of, {}, 1)
    values = one.values.copy()
    values[:, 1] = values[:, 0]
    values[5, 1] += 2.0
    values[40, 1] -= 3.0
    values[7, 1] = np.nan
    found = Comparison("a", "b", of, (replace(one, values=values),))
    assert found.differing(10) == [40, 5]
    assert np.isnan(found.shifts[7])
    assert {each.by_metric["m"].n_missing for each in found.skills} == {1, 0}


def test_a_prompt_counts_by_the_mean_of_its_images_and_what_has_no_score_is_left_out() -> None:
    prompts = (Prompt("p", "text"), Prompt("q", "other"))
    of = DrawnImages(prompts, {"p": (("1", "2"), ("3",)), "q": (("1",), ("4",))}, {})
    known = {("1", "text"): 1.0, ("2", "text"): 2.0, ("3", "text"): np.nan, ("1", "other"): 5.0}
    found = mean_scores(of, known)
    np.testing.assert_array_equal(found, [[1.5, np.nan], [5.0, np.nan]])
    assert of.pairs() == [
        ("1", "text"),
        ("2", "text"),
        ("3", "text"),
        ("1", "other"),
        ("4", "other"),
    ]


@pytest.mark.nightly
def test_over_many_null_comparisons_few_claim_anything() -> None:
    """Two metrics, four rows each: a difference is claimed in 5 % at most; two standard errors."""
    claimed, of = 0, drawn(40)
    for run in range(500):
        metrics = (scores(of, {}, 2 * run, "one"), scores(of, {}, 2 * run + 1, "other"))
        said = set(outcomes(Comparison("a", "b", of, metrics)).values())
        claimed += bool(said & {"better", "worse"})
    assert claimed / 500 <= 0.05 + 0.02
