"""Addresses of pages by what they show. Each page reads its own back from the query string."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

_PLAIN = "~:,/"
"""Characters that may stand in a query as they are."""


def address(page: str, **state: str) -> str:
    """A link to a page in a state; what is empty is left out. It is not escaped for HTML yet."""
    given = {name: value for name, value in state.items() if value}
    return f"./{page}?{urlencode(given, safe=_PLAIN)}" if given else f"./{page}"


def metric_address(entry_id: str) -> str:
    """The card of one metric of one submission."""
    return address("metric", id=entry_id)


def board_address(benchmark: str, *, skill: str = "", measure: str = "") -> str:
    """One ranking of a benchmark."""
    return address("boards", benchmark=benchmark, skill=skill, measure=measure)


def items_address(
    benchmark: str,
    *,
    skill: str = "",
    split: str = "",
    a: str = "",
    b: str = "",
    show: str = "",
    case: str = "",
) -> str:
    """The cases behind a result; `a` and `b` are entry ids, `show` is what to begin with."""
    return address(
        "items", benchmark=benchmark, skill=skill, split=split, a=a, b=b, show=show, case=case
    )


def skills_address(skill: str = "", weights: Mapping[str, float] | None = None) -> str:
    """The skill explorer, for one skill or with a visitor's weights."""
    given = ",".join(f"{name}:{weight:g}" for name, weight in (weights or {}).items())
    return address("skills", skill=skill, w=given)


def compare_address(benchmark: str, *entries: str, skill: str = "", measure: str = "") -> str:
    """Two to four entries side by side."""
    named = dict(zip("abcd", entries, strict=False))
    return address("compare", benchmark=benchmark, skill=skill, measure=measure, **named)
