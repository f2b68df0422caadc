"""Everything the page shows of a choice, worked out once for its tables and its chart."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from leaderboard.pages.reading import View
from leaderboard.pages.skills.base import Placed, SkillsBase, skills_base
from leaderboard.pages.skills.costs import (
    Point,
    Spent,
    affordable,
    as_good_for_less,
    pareto_front,
    points,
    spent,
)
from leaderboard.pages.skills.disagreement import Disagreement, disagreement
from leaderboard.pages.skills.names import Part
from leaderboard.pages.skills.query import SkillsChoice

_KEPT_BYTES = 64 << 20
_KEPT = 16


@dataclass(frozen=True)
class Found:
    """What is known of the chosen skills.

    Attributes:
        base: the parts.
        weights: part to weight, of those that take part in the list.
        placed: the list; those with every part come first and are ranked.
        spent: of each metric of the list; None where nothing is recorded.
        points: metrics whose cost is known.
        front: of those that may be recommended, the ones that nothing cheaper beats.
        disagreement: between the parts.
    """

    base: SkillsBase
    weights: Mapping[str, float]
    placed: tuple[Placed, ...]
    spent: tuple[Spent | None, ...]
    points: tuple[Point, ...]
    front: tuple[Point, ...]
    disagreement: Disagreement

    @property
    def ranked(self) -> tuple[Placed, ...]:
        """Metrics with every part that has a weight."""
        return tuple(one for one in self.placed if one.standing.rank is not None)

    @property
    def recommended(self) -> tuple[Placed, ...]:
        """Of them, those that may be recommended, in the same order."""
        return tuple(one for one in self.placed if one.recommended)

    def affordable(self, budget: float | None) -> Point | None:
        """The best within a budget; without one, the cheapest that may be as good as the best.

        Of those that may be recommended; None where none of them does.
        """
        if budget is None:
            return as_good_for_less(self.front)
        return affordable(self.front, budget)


def found_for(choice: SkillsChoice, base: SkillsBase) -> Found:
    """The list, its costs and the front under the weights of a choice."""
    used = base.comparison.benchmarks if base.comparison else ()
    weights = {part.name: choice.weight(part) for part in choice.parts if part.name in used}
    placed = base.placed(weights)
    benchmarks = {part.benchmark for part in choice.parts if weights.get(part.name)}
    costs = tuple(spent(base.sent[one.who], benchmarks) for one in placed)
    shown = tuple(points(placed, costs, choice.cost))
    weighty = [name for name, weight in weights.items() if weight]
    return Found(
        base=base,
        weights=weights,
        placed=placed,
        spent=costs,
        points=shown,
        front=pareto_front(point for point in shown if point.placed.recommended),
        disagreement=disagreement(base, weighty, [one.who for one in placed]),
    )


class Prepared:
    """The parts of the skills that were looked at last, for one view of the boards."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._view: View | None = None
        self._kept: OrderedDict[tuple[Part, ...], SkillsBase] = OrderedDict()

    def of(self, view: View, parts: tuple[Part, ...]) -> SkillsBase:
        """Cells and resamples of some parts; read at the first use."""
        # Made inside the lock: whoever comes meanwhile would only do the same work.
        with self._lock:
            if self._view is not view:
                self._view = view
                self._kept.clear()
            if parts not in self._kept:
                self._kept[parts] = skills_base(view, parts)
            self._kept.move_to_end(parts)
            while len(self._kept) > 1 and (len(self._kept) > _KEPT or self.nbytes > _KEPT_BYTES):
                self._kept.popitem(last=False)
            return self._kept[parts]

    @property
    def nbytes(self) -> int:
        """What is kept now, about."""
        return sum(base.nbytes for base in self._kept.values())
