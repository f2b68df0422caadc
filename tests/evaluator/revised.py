"""The toy benchmark in later editions, and what a worker of them finds in a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.rows import Measured
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from evaluator.reevaluating import reevaluate_at_start
from leaderboard.publication.publisher import Publisher
from leaderboard.publication.snapshot import Snapshot, read_snapshot
from leaderboard.records import RunResult
from leaderboard.reevaluation.requeue import Reevaluation
from tests.benchmarks.toy import Toy
from tests.evaluator.rig import Rig


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


def shown(rig: Rig) -> Snapshot:
    """The boards as they are."""
    found = read_snapshot(rig.store.public)
    assert found is not None
    return found


def values(rig: Rig) -> dict[str, float | None]:
    """Metric to headline on the board of now."""
    cells = shown(rig).boards["toy"].cells
    return {cell.entry_id.partition("/")[2]: cell.value for cell in cells}


def result(rig: Rig, submission_id: str, below: str = "") -> RunResult:
    """A result in the store, or an old one below `at/`."""
    content = rig.store.public.read(f"results/{submission_id}/{below}toy.json")
    return RunResult.model_validate_json(content)


def module(name: str) -> dict[str, bytes]:
    """The files of a scoring module of that name."""
    return {"assay.toml": f'name = "{name}"'.encode(), "scorer.py": b"class Scorer: ..."}


def publish(rig: Rig, names: Sequence[str]) -> dict[str, str]:
    """Submit modules and run them; name to id."""
    found = {name: rig.send(module(name)).submission.submission_id for name in names}
    rig.worker("first").run_all()
    return found
