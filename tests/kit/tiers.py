"""Which cases of a parametrized test `make test` runs; see the marker `slow` in pyproject.toml."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


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
