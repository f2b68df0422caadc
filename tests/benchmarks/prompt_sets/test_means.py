"""Scores of one model by prompt and seed, and their means with intervals, overall and by skill."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.prompt_sets.demo import PROMPT_SETS
from benchmarks.prompt_sets.means import by_seed, over_seeds
from benchmarks.prompt_sets.prompt_set import (
    MEASURE,
    PromptAnswers,
    PromptSet,
    SetElement,
    SetPrompt,
    pair_id,
    parsed_pair,
    skills_of,
)
from benchmarks.rows import Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan

NAN = math.nan
PROMPTS = (
    SetPrompt("a/1", "two cups", skills=("count", "count:two")),
    SetPrompt("b", "a red cup", skills=("colour",)),
    SetPrompt("c", "three red cups", skills=("colour", "count")),
    SetPrompt("d", "a cup"),
)
IDS = tuple(one.prompt_id for one in PROMPTS)


def scores_of(values: dict[tuple[str, int], float]) -> pd.Series:
    return pd.Series({pair_id(prompt, seed): value for (prompt, seed), value in values.items()})


def test_scores_are_laid_out_by_seed_and_prompt() -> None:
    scores = scores_of({("b", 42): 0.2, ("a/1", 7): 0.1, ("a/1", 42): 0.4, ("d", 2**63): 0.3})
    seeds, found = by_seed(scores, IDS)
    assert seeds == (7, 42, 2**63)
    np.testing.assert_array_equal(
        found, [[0.1, NAN, NAN, NAN], [0.4, 0.2, NAN, NAN], [NAN, NAN, NAN, 0.3]]
    )


def test_perturbed_images_and_prompts_of_no_set_are_passed_over() -> None:
    scores = scores_of({("a/1", 7): 0.1, ("z", 7): 0.9})
    scores[pair_id("a/1", 7, perturbed=True)] = 0.8
    scores[pair_id("b", 9, perturbed=True)] = 0.8
    seeds, found = by_seed(scores, IDS)
    assert seeds == (7,)
    np.testing.assert_array_equal(found, [[0.1, NAN, NAN, NAN]])


def test_no_scores_are_no_seeds() -> None:
    seeds, found = by_seed(pd.Series(dtype=float, index=pd.Index([], dtype=str)), IDS)
    assert seeds == ()
    assert found.shape == (0, 4)


@given(st.text(st.characters(blacklist_categories=["Cs"]), min_size=1), st.integers(0, 2**64 - 1))
def test_a_pair_is_named_so_that_its_prompt_and_seed_can_be_read(prompt: str, seed: int) -> None:
    for perturbed in (False, True):
        name = pair_id(prompt, seed, perturbed=perturbed)
        assert parsed_pair(name) == (prompt, seed, perturbed)


def test_a_prompts_value_is_the_mean_over_its_images() -> None:
    images = np.array([[0.1, NAN, NAN], [0.4, 0.2, NAN]])
    np.testing.assert_allclose(over_seeds(images), [0.25, 0.2, NAN])
    assert np.isnan(over_seeds(np.empty((0, 3)))).all()
    assert over_seeds(np.empty((0, 3))).shape == (3,)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), st.randoms())
def test_a_mean_depends_on_the_scores_and_not_on_which_seed_gave_which(
    values: list[float], random: object
) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first, again = (over_seeds(np.array(one)[:, None])[0] for one in (values, shuffled))
    assert first == again == pytest.approx(math.fsum(values) / len(values), abs=1e-6)


@given(st.floats(-1e6, 1e6), st.integers(1, 9))
def test_one_number_many_times_has_itself_as_mean(value: float, n: int) -> None:
    assert over_seeds(np.full((n, 1), value))[0] == value


def test_skills_stand_in_the_order_of_their_first_prompt() -> None:
    assert skills_of(PROMPTS) == ("count", "count:two", "colour")
    assert skills_of(()) == ()


@pytest.fixture
def answers() -> PromptAnswers:
    return PromptAnswers((), IDS, prompts=PROMPTS)


def measured(prompt_set: PromptSet, answers: PromptAnswers, table: ScoreTable) -> dict[str, Row]:
    plan = ResamplingPlan(IDS, 3, 200)
    found = prompt_set.measure(table, answers, plan)
    assert {row.measure for row in found.rows} == {MEASURE}
    assert {row.facet for row in found.rows} == {row.metric for row in found.rows}
    return {f"{row.metric} {row.skill or ''}".strip(): row for row in found.rows}


def test_a_models_score_is_the_mean_over_prompts_of_the_mean_over_images(
    answers: PromptAnswers,
) -> None:
    values = {("a/1", 1): 0.0, ("a/1", 2): 1.0, ("b", 1): 0.2, ("c", 1): 0.6}
    table = ScoreTable(
        pd.DataFrame({"up": scores_of(values), "down": scores_of(values)}),
        directions={"down": -1},
    )
    (demo,) = PROMPT_SETS[:1]
    rows = measured(demo, answers, table)
    for metric, sign in (("up", 1), ("down", -1)):
        whole = rows[metric]
        assert whole.value == pytest.approx(sign * (0.5 + 0.2 + 0.6) / 3)
        assert (whole.n_items, whole.n_clusters, whole.n_missing) == (4, 3, 4)
        assert whole.ci_low <= whole.value <= whole.ci_high
        assert rows[f"{metric} count"].value == pytest.approx(sign * (0.5 + 0.6) / 2)
        assert rows[f"{metric} colour"].value == pytest.approx(sign * (0.2 + 0.6) / 2)
        assert rows[f"{metric} count:two"].value == pytest.approx(sign * 0.5)
        assert "one cluster" in rows[f"{metric} count:two"].note
    assert not whole.note


def test_resamples_draw_prompts_and_are_joint_over_skills(answers: PromptAnswers) -> None:
    values = {("a/1", 1): 0.1, ("b", 1): 0.2, ("c", 1): 0.7, ("d", 1): 0.4}
    table = ScoreTable(pd.DataFrame({"m": scores_of(values)}))
    (demo,) = PROMPT_SETS[:1]
    plan = ResamplingPlan(IDS, 3, 50)
    found = demo.measure(table, answers, plan)
    skills = [row.skill for row in found.rows]
    by_prompt = np.array([0.1, 0.2, 0.7, 0.4])
    np.testing.assert_allclose(found.resamples[0], plan.counts @ by_prompt / 4)
    colour = found.resamples[skills.index("colour")]
    with np.errstate(invalid="ignore"):
        expected = plan.counts[:, 1:3] @ by_prompt[1:3] / plan.counts[:, 1:3].sum(axis=1)
    np.testing.assert_allclose(colour, expected)
    members = found.members[skills.index("colour")]
    assert members is not None
    assert members.tolist() == [1, 2]


def test_a_skill_without_scores_says_so(answers: PromptAnswers) -> None:
    (demo,) = PROMPT_SETS[:1]
    table = ScoreTable(pd.DataFrame({"m": scores_of({("d", 1): 0.4})}))
    rows = measured(demo, answers, table)
    assert math.isnan(rows["m colour"].value)
    assert rows["m colour"].note == "no image of these prompts has a score"
    nothing = ScoreTable(pd.DataFrame({"m": pd.Series(dtype=float, index=pd.Index([], dtype=str))}))
    assert math.isnan(measured(demo, answers, nothing)["m"].value)


def test_what_a_set_holds_is_counted() -> None:
    prompts = (*PROMPTS, SetPrompt("e", "x", split="real", elements=(SetElement("1", "x"),)))
    found = PromptAnswers((), (), prompts=prompts).counts()
    assert found == {
        "prompts": 5,
        "elements": 1,
        "real: prompts of the split": 1,
        "count: prompts": 2,
        "count:two: prompts": 1,
        "colour: prompts": 2,
    }
