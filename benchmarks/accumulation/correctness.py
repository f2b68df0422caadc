"""When an answer counts as correct: the rules of the released metrics, by name."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.errors import SubmitterError

BoolArray = NDArray[np.bool_]
Correctness = Literal["equals_yes", "contains_yes", "tifa", "given"]


def equals_yes(answers: pd.Series) -> BoolArray:
    """The answer is exactly `yes` (DSG, Cho et al. 2024, released evaluation).

    Args:
        answers: shape (n,), text; an empty answer is not correct.
    """
    return np.asarray(answers == "yes", bool)


def contains_yes(answers: pd.Series) -> BoolArray:
    """The answer has the letters `yes` in it, in any case (T2IScoreScore, its DSG metrics).

    So `Yes, there is` is correct, but `her eyes` too: the published scores count it.

    Args:
        answers: shape (n,), text; an empty answer is not correct.
    """
    return np.asarray(answers.str.lower().str.contains("yes", regex=False), bool)


def tifa(
    answers: pd.Series, mc_answers: pd.Series, choices: pd.Series, expected: pd.Series
) -> BoolArray:
    """The rules of the TIFA metrics of T2IScoreScore.

    With two choices the answer must contain `yes`, whatever was expected: so the published scores
    are computed, although a few of these questions expect `no` or have other choices. With more,
    the choice nearest to the answer must be the expected one, apart from case and spaces.

    Args:
        answers: shape (n,), free answers.
        mc_answers: shape (n,), the choice that was found nearest to each answer.
        choices: shape (n,), the choices, joined by `|`.
        expected: shape (n,), the right choice.

    Raises:
        SubmitterError: `bad_choices`, where a question has fewer than two choices, or more than
            two and no expected answer.
    """
    n_choices = choices.str.count(r"\|").to_numpy() + 1
    wanted = _bare(expected)
    unclear = (n_choices < 2) | ((n_choices > 2) & np.asarray(wanted == "", bool))
    if unclear.any():
        row = int(np.flatnonzero(unclear)[0])
        raise SubmitterError(
            "bad_choices",
            f"{int(unclear.sum())} answers belong to questions without choices or without an "
            f"expected answer; the first has the choices {choices.iloc[row]!r} and the expected "
            f"answer {expected.iloc[row]!r}.",
            "Give every question two or more choices, joined by '|', and the right one.",
        )
    chosen = np.asarray(_bare(mc_answers) == wanted, bool)
    return np.where(n_choices == 2, contains_yes(answers), chosen)


def given(cells: pd.Series) -> BoolArray:
    """Correctness that the file states itself: `1` or `0` in each cell.

    Raises:
        SubmitterError: `bad_correct`, with the first cell that is neither.
    """
    bad = ~cells.isin(["0", "1"]).to_numpy(bool)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise SubmitterError(
            "bad_correct",
            f"Column correct has {int(bad.sum())} cells that are neither 0 nor 1; the first is "
            f"{cells.iloc[row]!r} in line {row + 2}.",
            "Write 1 for a correct answer and 0 for any other.",
        )
    return np.asarray(cells == "1", bool)


def _bare(cells: pd.Series) -> pd.Series:
    return cells.str.lower().str.replace(r"\s", "", regex=True)
