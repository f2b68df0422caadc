"""Which cases of a parametrized test are run; see the markers `slow` and `first_quick`."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable
from typing import Any


def led_by(cases: Iterable[Any], chosen: Callable[[Any], bool]) -> list[Any]:
    """Cases with those that are chosen first: the quick ones of a test marked `first_quick`."""
    return sorted(cases, key=lambda case: not chosen(case))


def nightly() -> bool:
    """Whether samples are run whole: ASSAY_NIGHTLY=1, as `make nightly` sets it."""
    return os.environ.get("ASSAY_NIGHTLY") == "1"


def first_of_each(cases: Iterable[Any], kind: Callable[[Any], Hashable]) -> list[Any]:
    """The first case of each kind, in their order; all cases in a nightly run."""
    cases = list(cases)
    if nightly():
        return cases
    first: dict[Hashable, Any] = {}
    for case in cases:
        first.setdefault(kind(case), case)
    return list(first.values())
