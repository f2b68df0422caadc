"""Reliable prompts from raw ratings, by the rule of the paper."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.gecko.load_ratings import COLUMNS
from benchmarks.gecko.reliable import disagreements, reliable_prompts


def rated(template: str, prompt: str, *by_rater: list[str], model: str = "m") -> pd.DataFrame:
    rows = [
        (template, prompt, model, "", f"r{r}", unit, "", value)
        for r, values in enumerate(by_rater)
        for unit, value in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def table(*parts: pd.DataFrame) -> pd.DataFrame:
    return pd.concat(parts, ignore_index=True)


A, N, U = "aligned", "not_aligned", "unsure"


def test_likert_disagreement_is_the_variance_of_the_scores() -> None:
    found = disagreements(rated("Likert", "p", ["1"], ["5"], ["unsure"]))
    assert found["disagreement"].tolist() == pytest.approx([np.var([0.2, 1.0])])


def test_word_disagreement_is_the_mean_over_words_of_the_variance_over_raters() -> None:
    found = disagreements(rated("WL", "p", [A, A, U], [A, N, A], [A, N, U]))
    assert found["disagreement"].tolist() == pytest.approx([(0 + 2 / 9 + 0) / 3])


def test_a_prompt_is_kept_below_half_of_the_largest_disagreement() -> None:
    ratings = table(
        rated("Likert", "wide", ["1"], ["5"]),
        rated("Likert", "near", ["1"], ["3"]),
        rated("Likert", "same", ["2"], ["2"]),
    )
    assert reliable_prompts(ratings) == {"near", "same"}


def test_exactly_half_is_not_below_half() -> None:
    ratings = table(rated("WL", "all", [A, A], [N, N]), rated("WL", "half", [A, A], [N, A]))
    assert reliable_prompts(ratings) == set()


def test_every_model_and_every_template_must_agree() -> None:
    ratings = table(
        rated("Likert", "a", ["1"], ["5"], model="x"),
        rated("Likert", "b", ["2"], ["2"], model="x"),
        rated("Likert", "c", ["2"], ["2"], model="x"),
        rated("Likert", "a", ["3"], ["3"], model="y"),
        rated("DSGH", "b", ["yes"], ["no"], model="y"),
        rated("DSGH", "c", ["yes"], ["yes"], model="y"),
    )
    assert reliable_prompts(ratings) == {"c"}


def test_a_prompt_with_nothing_but_unsure_likert_ratings_is_dropped() -> None:
    ratings = table(
        rated("Likert", "p", ["unsure"], ["unsure"], model="x"),
        rated("Likert", "p", ["unsure"], ["unsure"], model="y"),
        rated("WL", "p", [A], [A], model="x"),
        rated("Likert", "q", ["unsure"], ["unsure"], model="x"),
        rated("Likert", "q", ["3"], ["unsure"], model="y"),
    )
    assert reliable_prompts(ratings) == {"q"}


def test_where_nobody_disagrees_every_prompt_is_kept_and_none_without_ratings() -> None:
    assert reliable_prompts(rated("WL", "p", [A], [A])) == {"p"}
    assert reliable_prompts(rated("WL", "p")) == frozenset()
