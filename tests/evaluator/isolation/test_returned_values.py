"""What a scorer may return, and what its author is told about anything else."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evaluator.isolation.inside import calls
from evaluator.isolation.inside.calls import ScorerFailure
from evaluator.isolation.inside.wire_protocol import ErrorKind

ROOT = Path(__file__).parent
PROMPTS = ["a cat", "a dog", "a cow"]


class Returning:
    """A scorer that returns whatever it is given."""

    def __init__(self, returned: Callable[[], Any]) -> None:
        self._returned = returned

    def score(self, images: list[Any], prompts: list[str]) -> Any:
        return self._returned()

    def score_elements(self, images: list[Any], prompts: list[str], elements: list[Any]) -> Any:
        return self._returned()


def scores(returned: Callable[[], Any]) -> list[float]:
    return calls.call_score(Returning(returned), ROOT, [None] * 3, PROMPTS)


def element_scores(returned: Callable[[], Any]) -> list[float]:
    elements = [["x"], ["y", "z"]]
    return calls.call_score_elements(Returning(returned), ROOT, [None] * 2, PROMPTS[:2], elements)


def rows(returned: Callable[[], Any], outputs: int = 2) -> list[float]:
    return calls.call_score_rows(Returning(returned), ROOT, [None] * 3, PROMPTS, outputs)


class Tensor:
    """Stands for a tensor: not a list, but with a list of itself."""

    def __init__(self, listed: Any) -> None:
        self._listed = listed

    def tolist(self) -> Any:
        return self._listed


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (np.zeros((3, 1)), "a ndarray of shape (3, 1), not one with one dimension; use `.squeeze(1)`"),
        (np.zeros((3, 2)), "a ndarray of shape (3, 2), not one with one dimension"),
        (np.zeros((1, 3)), "a ndarray of shape (1, 3), not one with one dimension"),
        (np.zeros((3, 1, 1)), "a ndarray of shape (3, 1, 1), not one with one dimension"),
    ],
)  # fmt: skip
def test_an_array_with_several_dimensions_is_told_with_its_shape(returned: Any, said: str) -> None:
    with pytest.raises(ScorerFailure) as caught:
        scores(lambda: returned)
    assert caught.value.kind is ErrorKind.WRONG_TYPE
    assert f"score returned {said}" in caught.value.text
    assert ("squeeze" in caught.value.text) == ("squeeze" in said)


def test_a_column_of_torch_is_told_with_its_shape() -> None:
    import torch

    with pytest.raises(
        ScorerFailure, match=r"a Tensor of shape \(3, 1\).*`\.squeeze\(1\)`"
    ) as caught:
        scores(lambda: torch.zeros(3, 1))
    assert caught.value.kind is ErrorKind.WRONG_TYPE


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ([1, 2.5, None], [1.0, 2.5, np.nan]),
        ((0.1, math.nan, -3), [0.1, np.nan, -3.0]),
        (np.array([1, 2, 3], dtype=np.float32), [1.0, 2.0, 3.0]),
        ([np.float32(0.5), np.int64(2), np.array(3.0)], [0.5, 2.0, 3.0]),
        (pd.Series([1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]),
        (Tensor([1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]),
        ([Tensor(1.0), Tensor(2), 3], [1.0, 2.0, 3.0]),
    ],
)
def test_lists_arrays_tensors_and_scalars_are_scores(returned: Any, expected: list[float]) -> None:
    np.testing.assert_array_equal(scores(lambda: returned), expected)


@pytest.mark.parametrize(
    ("returned", "kind", "said"),
    [
        ([1.0], "WRONG_COUNT", "score returned 1 values for 3 pairs (test_returned_values.py:"),
        ([1.0] * 4, "WRONG_COUNT", "4 values for 3 pairs"),
        ([True, 1.0, 1.0], "WRONG_TYPE", "a bool at position 0"),
        (np.array([True, False, True]), "WRONG_TYPE", "a bool at position 0"),
        ([1.0, "0.5", 1.0], "WRONG_TYPE", "a str at position 1"),
        ([1.0, 1.0, 1j], "WRONG_TYPE", "a complex at position 2"),
        (np.ones((3, 1)), "WRONG_TYPE", "use `.squeeze(1)`"),
        ([[1.0]] * 3, "WRONG_TYPE", "a list at position 0"),
        (np.float64(1.0), "WRONG_TYPE", "not a list of floats"),
        ({"a": 1.0}, "WRONG_TYPE", "a dict, not a list of floats"),
        ("abc", "WRONG_TYPE", "a str, not a list of floats"),
        (None, "WRONG_TYPE", "a NoneType, not a list of floats"),
        ((x for x in [1.0] * 3), "WRONG_TYPE", "a generator"),
        ([1.0, math.inf, 1.0], "NOT_FINITE", "position 1"),
        ([1.0, 10**400, 1.0], "NOT_FINITE", "position 1"),
    ],
)
def test_anything_else_is_told_with_its_place(returned: Any, kind: str, said: str) -> None:
    with pytest.raises(ScorerFailure) as caught:
        scores(lambda: returned)
    assert caught.value.kind.name == kind
    assert said in caught.value.text


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (ValueError("bad\nvalue"), "SCORER_RAISED", "score raised ValueError: bad value (test_"),
        (MemoryError(), "OUT_OF_MEMORY", "score raised MemoryError"),
        (RuntimeError("CUDA out of memory. Tried"), "OUT_OF_MEMORY", "CUDA out of memory"),
        (SystemExit(3), "SCORER_RAISED", "SystemExit: 3"),
    ],
)
def test_what_is_raised_is_told_in_one_line(error: BaseException, kind: str, said: str) -> None:
    def act() -> None:
        raise error

    with pytest.raises(ScorerFailure) as caught:
        scores(act)
    assert caught.value.kind.name == kind
    assert said in caught.value.text
    assert "\n" not in caught.value.text


def test_an_error_that_cannot_be_printed_is_still_told() -> None:
    class SilentError(Exception):
        def __str__(self) -> str:
            raise ValueError

    def act() -> None:
        raise SilentError

    with pytest.raises(ScorerFailure, match="its message cannot be read"):
        scores(act)


def test_element_scores_come_item_by_item() -> None:
    assert element_scores(lambda: [[1.0], np.array([2.0, 3.0])]) == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("returned", "kind", "said"),
    [
        ([[1.0]], "WRONG_COUNT", "1 values for 2 items"),
        ([[1.0], [1.0]], "WRONG_COUNT", "item 1 returned 1 values for 2 elements"),
        ([1.0, [1.0, 1.0]], "WRONG_TYPE", "item 0 returned a float"),
    ],
)
def test_wrong_element_scores_are_told(returned: Any, kind: str, said: str) -> None:
    with pytest.raises(ScorerFailure) as caught:
        element_scores(lambda: returned)
    assert caught.value.kind.name == kind
    assert said in caught.value.text


@pytest.mark.parametrize(
    "returned",
    [
        [[1, 2], (3.5, None), [5, 6]],
        np.array([[1, 2], [3.5, np.nan], [5, 6]]),
        [np.array([1, 2]), Tensor([3.5, None]), pd.Series([5.0, 6.0])],
        Tensor([[1, 2], [3.5, math.nan], [5, 6]]),
    ],
    ids=["lists", "array", "arrays", "tensor"],
)
def test_rows_of_several_outputs_are_scores_pair_by_pair(returned: Any) -> None:
    np.testing.assert_array_equal(rows(lambda: returned), [1, 2, 3.5, np.nan, 5, 6])


def test_none_in_place_of_a_row_is_no_score_of_any_output() -> None:
    np.testing.assert_array_equal(rows(lambda: [[1, 2], None, [3, 4]])[2:4], [np.nan, np.nan])


@pytest.mark.parametrize(
    ("returned", "kind", "said"),
    [
        (
            [1.0, 2.0, 3.0],
            "WRONG_TYPE",
            "score for pair 0 returned a float, not a row of 2 numbers",
        ),
        (np.ones(3), "WRONG_TYPE", "not a row of 2 numbers"),
        ([[1.0, 2.0]], "WRONG_COUNT", "score returned 1 values for 3 pairs"),
        ([[1.0, 2.0], [3.0], [4.0, 5.0]], "WRONG_COUNT", "score for pair 1 returned 1 values"),
        ([[1.0] * 3] * 3, "WRONG_COUNT", "score for pair 0 returned 3 values for 2 outputs"),
        (np.ones((3, 3)), "WRONG_COUNT", "3 values for 2 outputs"),
        (np.ones((2, 3)), "WRONG_COUNT", "score returned 2 values for 3 pairs"),
        (np.ones((3, 2, 1)), "WRONG_TYPE", "a list at position 0"),
        ([[[1.0], [2.0]]] * 3, "WRONG_TYPE", "a list at position 0"),
        ([[1.0, True]] * 3, "WRONG_TYPE", "a bool at position 1"),
        ([{"a": 1.0, "b": 2.0}] * 3, "WRONG_TYPE", "a dict, not a row of 2 numbers"),
        (["ab"] * 3, "WRONG_TYPE", "a str, not a row"),
        ([[1.0, math.inf]] * 3, "NOT_FINITE", "position 1"),
        (None, "WRONG_TYPE", "a NoneType, not a list"),
    ],
)
def test_rows_of_any_other_form_are_told_with_the_pair(returned: Any, kind: str, said: str) -> None:
    with pytest.raises(ScorerFailure) as caught:
        rows(lambda: returned)
    assert caught.value.kind.name == kind
    assert said in caught.value.text
