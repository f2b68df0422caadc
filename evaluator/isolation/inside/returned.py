"""Inside the box: what a scorer returned, as the floats that are due.

Only the standard library: this file is also bound into the box.
"""

from __future__ import annotations

import math
from typing import Any

from .frames import ErrorKind
from .reporting import ScorerFailure


def numbers(returned: Any, wanted: int, what: str, place: str, *, of: str = "pairs") -> list[float]:
    """What a method returned, as so many floats.

    Args:
        returned: by the method.
        wanted: how many numbers are due.
        what: name of the method.
        place: of the method, in parentheses, or nothing.
        of: what each number is about.

    Raises:
        ScorerFailure: `WRONG_TYPE`, `WRONG_COUNT` or `NOT_FINITE`.
    """
    values = as_list(returned, what, place)
    if len(values) != wanted:
        raise wrong_count(what, len(values), wanted, of, place)
    return [_number(value, i, what, place) for i, value in enumerate(values)]


def as_list(returned: Any, what: str, place: str) -> list[Any]:
    """Lists and tuples as they are; arrays, series and tensors by their own `tolist`."""
    if isinstance(returned, (list, tuple)):
        return list(returned)
    if callable(getattr(returned, "tolist", None)):
        listed = returned.tolist()
        if isinstance(listed, list):
            return listed
    raise ScorerFailure(
        ErrorKind.WRONG_TYPE, f"{what} returned {article(returned)}, not a list of floats{place}"
    )


def _number(value: Any, position: int, what: str, place: str) -> float:
    if value is not None and not isinstance(value, (int, float)):
        value = _unwrapped(value)
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ScorerFailure(
            ErrorKind.WRONG_TYPE,
            f"{what} returned {article(value)} at position {position}, not a float{place}",
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number):
        raise ScorerFailure(
            ErrorKind.NOT_FINITE,
            f"{what} returned an infinite value at position {position}{place}",
        )
    return number


def _unwrapped(value: Any) -> Any:
    """A numpy or torch scalar as the Python number it holds; anything else as it is."""
    return value.tolist() if callable(getattr(value, "tolist", None)) else value


def wrong_count(what: str, got: int, wanted: int, of: str, place: str) -> ScorerFailure:
    """Said of a method that returned too little or too much."""
    return ScorerFailure(
        ErrorKind.WRONG_COUNT, f"{what} returned {got} values for {wanted} {of}{place}"
    )


def article(value: Any) -> str:
    """Name of a value's type, with its article."""
    name = type(value).__name__
    return f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name}"
