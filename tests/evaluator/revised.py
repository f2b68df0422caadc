"""The toy benchmark in later editions, and what a worker of them does when it starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.rows import Measured
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from evaluator.reevaluating import reevaluate_at_start
from leaderboard.publication.publisher import Publisher
from leaderboard.publication.requeue import Reevaluation
from tests.kit.toy import Toy
from tests.kit.worker import Rig, named


class Revised(Toy):
    """Another edition, in which every score counts so many times as much."""

    def __init__(self, factor: float = 2.0, **changes: Any) -> None:
        self.factor = factor
        self.card = Toy.card.model_copy(update={"revision": "2", **changes})

    def measure(self, scores: ScoreTable, answers: Any, plan: ResamplingPlan) -> Measured:
        more = ScoreTable(scores.overall * self.factor, directions=scores.directions)
        return super().measure(more, answers, plan)


def start(rig: Rig) -> Reevaluation:
    """What a worker does when it starts."""
    done = reevaluate_at_start(rig.store, {"toy": rig.toy})
    Publisher(rig.store, {"toy": rig.toy.card}).publish_cards(rig.store.clock())
    return done


def publish(rig: Rig, names: Sequence[str]) -> dict[str, str]:
    """Submit modules and run them; name to id."""
    found = {name: rig.sent(named(name)) for name in names}
    rig.worker("first").run_all()
    return found
