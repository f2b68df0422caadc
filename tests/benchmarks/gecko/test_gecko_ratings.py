"""Raw Gecko ratings: scores, preferences and reliable prompts of worked examples."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.errors import SubmitterError
from benchmarks.gecko.load import (
    COLUMNS,
    disagreements,
    majority,
    preferences,
    reliable_prompts,
    template_scores,
)


def rated(template: str, prompt: str, *by_rater: list[str], model: str = "a") -> pd.DataFrame:
    """One image: each rater's values for its units (words, questions or the one rating)."""
    rows = [
        (template, prompt, model, "", f"r{r}", unit, "", value)
        for r, values in enumerate(by_rater)
        for unit, value in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def ratings(template: str, by_rater: list[list[str]], model: str = "a") -> pd.DataFrame:
    return rated(template, "p", *by_rater, model=model)


def votes(*values: str, models: tuple[str, str] = ("a", "b")) -> pd.DataFrame:
    rows = [
        ("SxS", "p", models[0], models[1], f"r{r}", 0, "", value) for r, value in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def score(table: pd.DataFrame) -> float:
    found = template_scores(table)
    assert len(found) == 1
    return float(found["score"].iloc[0])


A, N, U = "aligned", "not_aligned", "unsure"


@pytest.mark.parametrize(
    ("template", "by_rater", "expected"),
    [
        ("Likert", [["5"], ["4"], ["4"]], 13 / 15),
        ("Likert", [["5"], ["4"], ["unsure"]], 0.9),
        ("Likert", [["1"], ["1"], ["1"]], 0.2),
        ("WL", [[A, A, N], [A, U, N], [A, A, A]], (2 / 3 + 1 / 2 + 1) / 3),
        ("WL", [[A, N], [U, U]], 0.5),
        ("DSGH", [["yes", "no", "invalid"], ["yes", "unsure", "yes"]], 0.75),
    ],
)
def test_units_are_averaged_within_raters_then_raters(
    template: str, by_rater: list[list[str]], expected: float
) -> None:
    assert score(ratings(template, by_rater)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("template", "value"), [("Likert", "unsure"), ("WL", "unsure"), ("DSGH", "invalid")]
)
def test_an_item_with_nothing_but_unsure_answers_has_no_score(template: str, value: str) -> None:
    assert np.isnan(score(ratings(template, [[value], [value]])))


def test_each_image_and_template_has_its_own_score() -> None:
    table = pd.concat(
        [ratings("Likert", [["5"]]), ratings("Likert", [["1"]], "b"), ratings("WL", [[N]])]
    )
    found = template_scores(pd.concat([table, votes("a")]))
    assert found.to_numpy().tolist() == [
        ["Likert", "p", "a", 1.0],
        ["Likert", "p", "b", 0.2],
        ["WL", "p", "a", 0.0],
    ]


def test_without_ratings_there_are_no_scores_and_no_preferences() -> None:
    nothing = ratings("Likert", [])
    assert template_scores(nothing).empty
    assert preferences(nothing).empty


def test_equal_means_are_equal_numbers_whoever_gave_which_rating() -> None:
    """4/5 on average, from ratings in every order: the last bits must not tell them apart."""
    groups = [["4", "4", "4"], ["5", "4", "3"], ["3", "5", "4"], ["4", "3", "5"], ["3", "4", "5"]]
    found = {score(ratings("Likert", [[value] for value in group])) for group in groups}
    assert found == {0.8}
    words = [[[A, N, N], [A, A, N]], [[A, A, N], [N, A, N]], [[N, A, A], [N, N, A]]]
    assert len({score(ratings("WL", group)) for group in words}) == 1


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (("a", "a", "b"), 1),
        (("b", "unsure", "b"), -1),
        (("a", "b", "unsure"), 0),
        (("a", "b"), 0),
        (("a", "unsure", "unsure"), 0),
        (("a", "a", "b", "unsure"), 0),
    ],
)
def test_the_majority_wins_and_a_tie_is_unsure(values: tuple[str, ...], expected: int) -> None:
    assert preferences(votes(*values))["preference"].tolist() == [expected]
    assert majority(values.count("a"), values.count("b"), values.count("unsure")) == expected


def test_raters_who_saw_the_models_in_the_other_order_vote_on_the_same_comparison() -> None:
    table = pd.concat([votes("a"), votes("b", "b", models=("b", "a"))])
    found = preferences(table)
    assert found.to_numpy().tolist() == [["p", "a", "b", 1]]


def test_an_unknown_value_is_refused_by_name() -> None:
    with pytest.raises(SubmitterError, match="'6' is no value of the annotation template Likert"):
        template_scores(ratings("Likert", [["6"]]))
    with pytest.raises(SubmitterError, match="SxS"):
        preferences(votes("left"))


def table(*parts: pd.DataFrame) -> pd.DataFrame:
    return pd.concat(parts, ignore_index=True)


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
