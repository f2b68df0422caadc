"""Scores of one model by prompt and seed, and their means with intervals, overall and by skill."""

from __future__ import annotations

import math
import random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.prompt_sets.means import by_seed, over_seeds
from benchmarks.prompt_sets.prompt_set import (
    MEASURE,
    PromptAnswers,
    SetElement,
    SetPrompt,
    pair_id,
    parsed_pair,
    skills_of,
)
from benchmarks.prompt_sets.registry import load_prompt_sets
from benchmarks.rows import Measured
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
PLAN = ResamplingPlan(IDS, 3, 50)
NOTHING = pd.Series(dtype=float, index=pd.Index([], dtype=str))


def scores_of(values: dict[tuple[str, int], float]) -> pd.Series:
    return pd.Series({pair_id(prompt, seed): value for (prompt, seed), value in values.items()})


def measured(scores: dict[str, pd.Series], **directions: int) -> Measured:
    found = load_prompt_sets()["demo_prompts"].measure(
        ScoreTable(pd.DataFrame(scores), directions=directions),  # type: ignore[arg-type]
        PromptAnswers((), IDS, prompts=PROMPTS),
        PLAN,
    )
    assert {(row.measure, row.facet == row.metric) for row in found.rows} == {(MEASURE, True)}
    return found


def test_scores_are_laid_out_by_seed_and_prompt() -> None:
    """Perturbed images and prompts of no set are passed over."""
    scores = scores_of({("b", 42): 0.2, ("a/1", 7): 0.1, ("a/1", 42): 0.4, ("d", 2**63): 0.3})
    scores[pair_id("a/1", 7, perturbed=True)] = scores[pair_id("b", 9, perturbed=True)] = 0.8
    scores[pair_id("z", 7)] = 0.9
    seeds, found = by_seed(scores, IDS)
    assert seeds == (7, 42, 2**63)
    expected = [[0.1, NAN, NAN, NAN], [0.4, 0.2, NAN, NAN], [NAN, NAN, NAN, 0.3]]
    np.testing.assert_array_equal(found, expected)
    seeds, found = by_seed(NOTHING, IDS)
    assert (seeds, found.shape) == ((), (0, 4))


@given(st.text(st.characters(blacklist_categories=["Cs"]), min_size=1), st.integers(0, 2**64 - 1))
def test_a_pair_is_named_so_that_its_prompt_and_seed_can_be_read(prompt: str, seed: int) -> None:
    for perturbed in (False, True):
        name = pair_id(prompt, seed, perturbed=perturbed)
        assert parsed_pair(name) == (prompt, seed, perturbed)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), st.integers())
def test_a_mean_depends_on_the_scores_and_not_on_which_seed_gave_which(
    values: list[float], seed: int
) -> None:
    shuffled = random.Random(seed).sample(values, len(values))
    first, again = (over_seeds(np.array(one)[:, None])[0] for one in (values, shuffled))
    assert first == again == pytest.approx(math.fsum(values) / len(values), abs=1e-6)
    assert over_seeds(np.full((len(values), 1), values[0]))[0] == values[0]


def test_a_prompts_value_is_the_mean_over_its_images() -> None:
    images = np.array([[0.1, NAN, NAN], [0.4, 0.2, NAN]])
    np.testing.assert_allclose(over_seeds(images), [0.25, 0.2, NAN])
    np.testing.assert_array_equal(over_seeds(np.empty((0, 3))), [NAN] * 3)


def test_a_models_score_is_the_mean_over_prompts_of_the_mean_over_images() -> None:
    values = scores_of({("a/1", 1): 0.0, ("a/1", 2): 1.0, ("b", 1): 0.2, ("c", 1): 0.6})
    found = {(r.metric, r.skill): r for r in measured({"up": values, "down": values}, down=-1).rows}
    for metric, sign in (("up", 1), ("down", -1)):
        whole = found[metric, None]
        assert whole.value == pytest.approx(sign * (0.5 + 0.2 + 0.6) / 3)
        assert (whole.n_items, whole.n_clusters, whole.n_missing, whole.note) == (4, 3, 4, "")
        assert whole.ci_low <= whole.value <= whole.ci_high
        of_skill = {"count": (0.5 + 0.6) / 2, "colour": (0.2 + 0.6) / 2, "count:two": 0.5}
        for skill, value in of_skill.items():
            assert found[metric, skill].value == pytest.approx(sign * value)
        assert "one cluster" in found[metric, "count:two"].note


def test_resamples_draw_prompts_and_are_joint_over_skills() -> None:
    by_prompt = np.array([0.1, 0.2, 0.7, 0.4])
    values = scores_of({(one, 1): value for one, value in zip(IDS, by_prompt, strict=True)})
    found = measured({"m": values})
    colour = [row.skill for row in found.rows].index("colour")
    np.testing.assert_allclose(found.resamples[0], PLAN.counts @ by_prompt / 4)
    drawn = PLAN.counts[:, 1:3]
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(
            found.resamples[colour], drawn @ by_prompt[1:3] / drawn.sum(axis=1)
        )
    members = found.members[colour]
    assert members is not None
    assert members.tolist() == [1, 2]


def test_a_skill_without_scores_says_so() -> None:
    rows = {row.skill: row for row in measured({"m": scores_of({("d", 1): 0.4})}).rows}
    assert math.isnan(rows["colour"].value)
    assert "no image" in rows["colour"].note
    assert math.isnan(measured({"m": NOTHING}).rows[0].value)


def test_what_a_set_holds_is_counted_and_skills_stand_in_the_order_of_their_first_prompt() -> None:
    prompts = (*PROMPTS, SetPrompt("e", "x", split="real", elements=(SetElement("1", "x"),)))
    assert PromptAnswers((), (), prompts=prompts).counts() == {
        "prompts": 5, "elements": 1, "real: prompts of the split": 1, "count: prompts": 2,
        "count:two: prompts": 1, "colour: prompts": 2,
    }  # fmt: skip
    assert skills_of(PROMPTS) == ("count", "count:two", "colour")
    assert skills_of(()) == ()
