"""Weights and order of the index: from and to a link, and onto what exists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from leaderboard.pages.index.boards import IndexBoard

HEAVIEST = 5.0
"""Only ratios of weights matter, so a small range says everything."""
BY_INDEX, BY_BORDA, BY_NAME = "index", "borda", "name"
ORDERS = {BY_INDEX: "Index", BY_BORDA: "Borda", BY_NAME: "Name"}

SIMULATED = "simulated"
"""In a link: the boards of simulated ratings, which stand apart."""

_WEIGHT = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?", re.ASCII)
_MOST_PARTS = 200
_MOST_REMARKS = 6


@dataclass(frozen=True)
class IndexQuery:
    """The state of the index page. Everything is as asked for, and may not exist.

    Attributes:
        weights: as in a link, `ts2:1,gecko:2`; empty means those to begin with.
        order: one of `ORDERS` or a benchmark, by whose value is ordered; empty means the index.
        ratings: `simulated` for the boards of simulated ratings.
    """

    weights: str = ""
    order: str = ""
    ratings: str = ""

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> IndexQuery:
        """Read from the query parameters of a request; unknown parameters are left alone."""
        return cls(params.get("w", ""), params.get("order", ""), params.get("ratings", ""))

    @property
    def simulated(self) -> bool:
        """Whether the boards of simulated ratings are asked for."""
        return self.ratings == SIMULATED


@dataclass(frozen=True)
class IndexChoice:
    """What is shown: a query resolved against what exists.

    Attributes:
        weights: every benchmark of the index to its weight, in their order.
        order: one of `ORDERS`, or a benchmark of the index.
        remarks: what was asked for and could not be done, in sentences.
        simulated: whether the boards of simulated ratings were asked for.
    """

    weights: Mapping[str, float]
    order: str
    remarks: tuple[str, ...] = ()
    simulated: bool = False

    def to_query(self, boards: Mapping[str, IndexBoard]) -> str:
        """The query string of the link to this state, with its question mark; empty at the start.

        All weights are named as soon as one differs from those to begin with: what those are may
        change with the next publication, and the link is to show the same.
        """
        parts = [f"ratings={SIMULATED}"] if self.simulated else []
        if any(weight != boards[name].weight for name, weight in self.weights.items()):
            parts.append("w=" + ",".join(f"{n}:{_plain(w)}" for n, w in self.weights.items()))
        if self.order != BY_INDEX:
            parts.append(f"order={self.order}")
        return "?" + "&".join(parts) if parts else ""


def resolve_index(
    query: IndexQuery, boards: Mapping[str, IndexBoard], left_out: Mapping[str, str]
) -> IndexChoice:
    """Find what a query asks for, saying so wherever something could not be done.

    Args:
        query: what was asked for, by anybody.
        boards: the benchmarks of the index.
        left_out: benchmarks that are not in it, with the reason.
    """
    weights = {name: board.weight for name, board in boards.items()}
    remarks: list[str] = []
    named: set[str] = set()
    parts = [part for part in query.weights.split(",") if part.strip()]
    for part in parts[:_MOST_PARTS]:
        name, _, given = part.strip().partition(":")
        if name in named:
            remarks.append(f"“{name}” has several weights; the first one counts.")
        elif name in left_out:
            remarks.append(f"{name} is not in the index: {left_out[name]}.")
        elif name not in boards:
            remarks.append(f"There is no benchmark “{name}” here, so it has no weight.")
        else:
            named.add(name)
            weights[name], remark = _weight(given, weights[name], boards[name].card.title)
            remarks += remark
    if len(parts) > _MOST_PARTS:
        remarks.append(f"Only the first {_MOST_PARTS} weights were read.")
    order = query.order or BY_INDEX
    if order not in ORDERS and order not in boards:
        remarks.append(f"There is no order by “{order}”.")
        order = BY_INDEX
    return IndexChoice(weights, order, _few(remarks), query.simulated)


def _plain(weight: float) -> str:
    """The weight without needless zeros, as `_WEIGHT` reads it: never `1e-06`."""
    return f"{weight:.6f}".rstrip("0").rstrip(".")


def _weight(given: str, before: float, title: str) -> tuple[float, tuple[str, ...]]:
    if not _WEIGHT.fullmatch(given):
        shown = f"“{given}” is no weight for {title}"
        return before, (f"{shown}: it takes a number from 0 to {HEAVIEST:g}.",)
    weight = float(given)
    if weight > HEAVIEST:
        return HEAVIEST, (f"Weights go up to {HEAVIEST:g}, so {title} has that.",)
    return weight, ()


def _few(remarks: list[str]) -> tuple[str, ...]:
    """Not more than anybody reads: a link may hold hundreds of mistakes."""
    if len(remarks) <= _MOST_REMARKS:
        return tuple(remarks)
    more = len(remarks) - _MOST_REMARKS + 1
    return (*remarks[: _MOST_REMARKS - 1], f"{more} more parts of the link could not be used.")
