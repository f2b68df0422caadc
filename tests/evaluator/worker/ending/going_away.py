"""A store that does not answer for a while, and what a worker holds back meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.errors import TransientError
from evaluator.worker.worker import Worker
from leaderboard.store.interface import Store
from tests.evaluator.rig import ADA, FakeBackend, Rig
from tests.evaluator.worker.breaking import Breaking
from tests.evaluator.worker.stock import stock

PER_RUN = 8 * 3
"""Answers that one run takes, the trust checks included."""


@dataclass
class Outage:
    """Whether a store answers."""

    away: bool = False

    def step(self, _: str) -> None:
        if self.away:
            raise TransientError("hub_down", "The Hub does not answer.")


def seen_through(store: Store, outage: Outage) -> Store:
    return replace(
        store,
        public=Breaking(store.public, outage),  # type: ignore[arg-type]
        private=Breaking(store.private, outage),  # type: ignore[arg-type]
    )


def goes_away(rig: Rig, outage: Outage, at: int) -> FakeBackend:
    def score(n: int, _: str) -> float:
        outage.away = outage.away or len(rig.backend.asked) == at
        return float(n)

    return FakeBackend(score)


def until_quiet(rig: Rig, worker: Worker) -> None:
    """Go on as `run_forever` does, but without its pauses."""
    for _ in range(10):
        try:
            if not worker.run_next():
                return
        except TransientError:
            rig.clock.move(minutes=2)
    raise AssertionError("It never came to rest.")


def entries(rig: Rig) -> set[str]:
    return {path.name for path in (rig.folder / "scratch" / "outbox").glob("[!.]*")}


def finished_in_an_outage(rig: Rig, outage: Outage) -> str:
    (name,) = stock(rig.store, [ADA.key])
    rig.backend = goes_away(rig, outage, 5)
    rig.worker("w1").run_next()
    outage.away = False
    rig.clock.move(hours=9)
    assert entries(rig) == {name}
    return name
