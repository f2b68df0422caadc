"""The hash by which the same scores under two names are recognised."""

from __future__ import annotations

import pandas as pd
import pytest

from leaderboard.publication.score_hash import scores_sha256


def _of(**scores: float) -> str:
    return scores_sha256(pd.Series(scores, dtype="float64"))


def test_the_order_of_pairs_does_not_matter() -> None:
    assert _of(a=0.1, b=0.2) == _of(b=0.2, a=0.1)


def test_which_pair_has_which_score_matters() -> None:
    assert _of(a=0.1, b=0.2) != _of(a=0.2, b=0.1)
    assert _of(a=0.1) != _of(b=0.1)


@pytest.mark.parametrize(
    ("one", "other"), [(0.1234564, 0.1234561), (1e30, 1.0000001e30), (0.0, -0.0)]
)
def test_what_differs_after_six_digits_is_the_same(one: float, other: float) -> None:
    assert _of(a=one) == _of(a=other)


@pytest.mark.parametrize(("one", "other"), [(0.123456, 0.123457), (1e-9, 2e-9), (1.0, -1.0)])
def test_what_differs_within_six_digits_is_not(one: float, other: float) -> None:
    assert _of(a=one) != _of(a=other)


def test_a_missing_score_is_no_number() -> None:
    missing = float("nan")
    assert _of(a=missing) == _of(a=missing)
    assert len({_of(a=missing), _of(a=0.0), _of()}) == 3


def test_ids_cannot_run_into_each_other() -> None:
    assert scores_sha256(pd.Series({"a:1.00000e+00\n1:b": 2.0})) != _of(a=1.0, b=2.0)
