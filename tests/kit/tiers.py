"""Which cases of a parametrized test are run; see the marker `slow` in pyproject.toml."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

import pytest

Case = TypeVar("Case")


def all_slow_but_one(
    cases: Iterable[Any], chosen: Callable[[Any], bool] = lambda case: True
) -> list[Any]:
    """Cases for `pytest.mark.parametrize`, all of the slow tier but one.

    Args:
        cases: each a value, or a tuple of values.
        chosen: tells the one; the first that it is true of. All are slow where there is none.
    """
    found, one = [], False
    for case in cases:
        quick = not one and chosen(case)
        one = one or quick
        values = case if isinstance(case, tuple) else (case,)
        found.append(pytest.param(*values, marks=() if quick else pytest.mark.slow))
    return found


def nightly() -> bool:
    """Whether samples are run whole: ASSAY_NIGHTLY=1, as `make nightly` sets it."""
    return os.environ.get("ASSAY_NIGHTLY") == "1"


def first_of_each(cases: Iterable[Case], kind: Callable[[Case], Hashable]) -> list[Case]:
    """The first case of each kind, in their order; all cases in a nightly run."""
    cases = list(cases)
    if nightly():
        return cases
    first: dict[Hashable, Case] = {}
    for case in cases:
        first.setdefault(kind(case), case)
    return list(first.values())
