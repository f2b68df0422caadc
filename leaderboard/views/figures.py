"""Figures and names as views, pages and titles print them: plain text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from leaderboard.text import clean, interval, number, ranks

_LONGEST_NAMED = 60
_Row = TypeVar("_Row")


@dataclass(frozen=True)
class Verdict:
    """What a page says first: a sentence or two to quote, and what they rest on."""

    sentence: str
    detail: str = ""


@dataclass(frozen=True)
class Option:
    """A value of a chooser; `chosen` says whether it is the present one."""

    value: str
    label: str
    chosen: bool = False


def told_apart(named: Mapping[str, str]) -> tuple[Option, ...]:
    """A choice of metrics or models, id to name; equal names get their submission."""
    names = list(named.values())
    return tuple(
        Option(ident, f"{name} ({ident.partition('/')[0]})" if names.count(name) > 1 else name)
        for ident, name in named.items()
    )


class HasRankRange(Protocol):
    """A cell, or where a model stands."""

    @property
    def rank_low(self) -> int | None: ...  # noqa: D102
    @property
    def rank_high(self) -> int | None: ...  # noqa: D102


def rank_range(one: HasRankRange | None) -> str:
    """`1–3`, `4`, or a dash where there is no rank."""
    return ranks(one.rank_low, one.rank_high) if one is not None else ranks(None, None)


def estimate(value: float | None, low: float | None, high: float | None) -> str:
    """A value with its interval: `0.779 [0.731, 0.816]`."""
    return f"{number(value)} {interval(low, high)}".strip()


def by_value(
    rows: Iterable[_Row], value: Callable[[_Row], float | str | None], *, down: bool
) -> tuple[_Row, ...]:
    """Rows by a value; those without one last in both directions, equal ones as they came."""
    valued = [(value(row), row) for row in rows]
    there = [(v, row) for v, row in valued if v is not None and v != ""]
    there.sort(key=lambda pair: pair[0], reverse=down)
    return (*(row for _, row in there), *(row for v, row in valued if v is None or v == ""))


def in_words(names: Sequence[str]) -> str:
    """`A, B and C`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def named(asked: str) -> str:
    """What a link asked for, no longer than needed to know it again."""
    shown = clean(asked)
    return shown if len(shown) <= _LONGEST_NAMED else f"{shown[:_LONGEST_NAMED]}…"
