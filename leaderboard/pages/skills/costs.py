"""Costs of metrics, measured or declared, and the Pareto front."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from leaderboard.pages.shown.flops import GIGA
from leaderboard.pages.skills.base import Placed
from leaderboard.pages.skills.query import FLOPS, MEMORY
from leaderboard.publication.entries import Entry

_GIB = 2**30


@dataclass(frozen=True)
class Spent:
    """What the runs of a metric used, and what its author declares.

    Attributes:
        seconds: in the scorer, for a thousand pairs; None where that is not known.
        memory: peak, in GiB; None where it was not recorded.
        devices: what it ran on, as the runs say.
        elsewhere: whether no run on the chosen benchmarks is recorded, but one on others is.
        gigaflops: of one pair, as declared by its author, not measured; None where it is not.
    """

    seconds: float | None
    memory: float | None
    devices: tuple[str, ...] = ()
    elsewhere: bool = False
    gigaflops: float | None = None

    def by(self, cost: str) -> float | None:
        """The figure that is asked for; only a positive one has a place on a log axis."""
        found = {MEMORY: self.memory, FLOPS: self.gigaflops}.get(cost, self.seconds)
        return found if found is not None and found > 0 else None


@dataclass(frozen=True)
class Point:
    """A metric with its value and its cost."""

    placed: Placed
    cost: float
    spent: Spent

    @property
    def value(self) -> float:
        """Weighted mean of its rescaled values."""
        return self.placed.standing.index.value

    @property
    def whole(self) -> bool:
        """Whether it has every part with a weight, so that it may be compared with the others."""
        return not self.placed.standing.missing


def spent(entries: Iterable[Entry], benchmarks: Collection[str]) -> Spent | None:
    """What a metric used on some benchmarks, together; on others where it ran on none of these.

    Args:
        entries: all of the metric.
        benchmarks: those that are looked at.

    Returns:
        None where no run is recorded and nothing is declared.
    """
    entries = tuple(entries)
    gigaflops = _declared(entries)
    found = [(entry, name) for entry in entries for name in entry.cost]
    chosen = [(entry, name) for entry, name in found if name in benchmarks]
    if not found:
        return None if gigaflops is None else Spent(None, None, gigaflops=gigaflops)
    used = chosen or found
    costs = [entry.cost[name] for entry, name in used]
    pairs = sum(cost.pairs for cost in costs)
    seconds = sum(cost.seconds for cost in costs)
    memory = max(cost.peak_memory_bytes for cost in costs)
    devices = dict.fromkeys(device for entry, name in used if (device := _device(entry, name)))
    return Spent(
        seconds=1000 * seconds / pairs if pairs else None,
        memory=memory / _GIB if memory else None,
        devices=tuple(devices),
        elsewhere=not chosen,
        gigaflops=gigaflops,
    )


def points(placed: Iterable[Placed], spent_by: Sequence[Spent | None], cost: str) -> list[Point]:
    """The metrics whose cost is known, in their order."""
    found = []
    for one, used in zip(placed, spent_by, strict=True):
        figure = used.by(cost) if used else None
        if used is not None and figure is not None and math.isfinite(one.standing.index.value):
            found.append(Point(one, figure, used))
    return found


def pareto_front(found: Iterable[Point]) -> tuple[Point, ...]:
    """Those that no other beats at the same cost or less, the cheapest first.

    Of metrics with every part only: what lacks one was not compared with the others.
    """
    front: list[Point] = []
    for point in sorted((p for p in found if p.whole), key=lambda p: (p.cost, -p.value)):
        if not front or point.value > front[-1].value:
            front.append(point)
    return tuple(front)


def affordable(front: Sequence[Point], budget: float) -> Point | None:
    """The best that costs no more than that; None where nothing does."""
    within = [point for point in front if point.cost <= budget]
    return within[-1] if within else None


def as_good_for_less(front: Sequence[Point]) -> Point | None:
    """The cheapest whose rank range reaches the first place: nothing shown is surely better."""
    return next(
        (p for p in front if p.placed.standing.rank and p.placed.standing.rank.low == 1), None
    )


def for_less(front: Sequence[Point], than: Point) -> Point | None:
    """The best of the front that costs less than a point of it; None: it is the cheapest."""
    place = front.index(than)
    return front[place - 1] if place else None


def _declared(entries: Sequence[Entry]) -> float | None:
    """As the latest entry that says anything of it declares."""
    said = [one for one in entries if one.flops_per_pair is not None]
    latest = max(said, key=lambda one: (one.published_at, one.entry_id), default=None)
    return None if latest is None or latest.flops_per_pair is None else latest.flops_per_pair / GIGA


def _device(entry: Entry, benchmark: str) -> str:
    found = entry.findings.get(benchmark)
    stated = found.environment.get("device", "") if found else ""
    report = entry.trust.get(benchmark)
    return stated or (report.environment.get("device", "") if report else "")
