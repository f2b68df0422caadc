"""The parts of a worker, put together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from benchmarks.errors import AssayError
from benchmarks.schema import Benchmark
from evaluator.worker.claims.claiming import Claims
from evaluator.worker.claims.giving_way import GivingWay
from evaluator.worker.claims.hand import Hand
from evaluator.worker.claims.heartbeat import Heartbeat, RunProgress
from evaluator.worker.claims.leaving import Leaving
from evaluator.worker.claims.liveness import Liveness
from evaluator.worker.claims.pace import Pace
from evaluator.worker.claims.passed_over import PassedOver
from evaluator.worker.claims.presence import Presence
from evaluator.worker.ending.concluding import Endings
from evaluator.worker.ending.handing_over import HandingOver
from evaluator.worker.ending.outbox import Outbox
from evaluator.worker.ending.outgoing import Outgoing
from evaluator.worker.ending.owed import OwedEvents
from evaluator.worker.ending.publishing import RunPublisher
from evaluator.worker.ending.upload_shelf import UploadShelf
from evaluator.worker.one_task import OneTask
from evaluator.worker.roles import WorkerRole
from evaluator.worker.running.code_slot import CodeSlot
from evaluator.worker.running.jury import Jury
from evaluator.worker.running.scorer_role import ScorerRole
from evaluator.worker.running.scoring_run import Scoring
from evaluator.worker.upkeep.filling import Filling
from evaluator.worker.upkeep.leftovers import Leftovers
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.publisher import Publisher, cards_of
from leaderboard.store.interface import Store
from leaderboard.store.live.interface import Pulse

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Setting:
    """Where a worker stands and what it is given; see `Worker`."""

    name: str
    store: Store
    registry: Mapping[str, Benchmark]
    data: Path | None
    scorers: ScorerRole
    listener: Callable[[RunProgress], None]
    role: WorkerRole
    keys: Path | None
    silent_after: timedelta
    pace: Pace


class Parts:
    """What one worker is made of.

    Args:
        setting: where it stands.
    """

    def __init__(self, setting: Setting) -> None:
        at, store, scratch = setting, setting.store, setting.scorers.scratch
        self._setting = setting
        self._ledger = Ledger(store)
        self._outbox = Outbox(scratch / "outbox", at.name)
        self._pace = at.pace
        self.slot = CodeSlot(at.scorers, at.role)
        self.presence = Presence(scratch / "workers", at.name)
        self.heart = Heartbeat(store.live, self.idle_pulse(), store.clock)
        publisher = Publisher(store, cards_of(at.registry))
        owed = OwedEvents(scratch / "owed")
        self.endings = Endings(at.name, self._ledger, store.clock, owed, publisher.snapshot_files)
        self.uploads = UploadShelf(scratch / "uploads", self._ledger.fetch_upload)
        self._handing = HandingOver(
            at.name, store, self._ledger, at.registry, at.data, at.keys, store.clock
        )
        self._results = RunPublisher(
            at.name, store, self._ledger, publisher, at.registry, at.data, store.clock, scratch
        )
        self.leftovers = Leftovers(
            self._ledger,
            store.live,
            at.scorers,
            self._outbox,
            self._handing,
            self._results,
            self.uploads,
        )
        self._jury = Jury(store)
        self.filling = Filling(store, self._jury, at.registry)
        self.hand = Hand(self.heart.holding, self.leftovers.clear)
        self._liveness = Liveness(
            at.name, store.live, self.presence, self.heart.beat, store.clock, at.silent_after
        )
        self.claims = self._made_claims()
        self.outgoing = self._made_outgoing()
        self.one = self._made_one()
        self.leaving = Leaving(self.outgoing, self.endings, self.hand, self.uploads)

    def fill(self) -> bool:
        """Queue what further metrics have to score, where this worker runs code; False: nothing."""
        return self._setting.role.scores and self.filling.look()

    def idle_pulse(self) -> Pulse:
        """The pulse of the worker while it waits."""
        gate, scorers = self.slot.gate, self._setting.scorers
        return Pulse(
            worker=self._setting.name,
            at=self._setting.store.clock(),
            isolation_ok=gate.ok,
            isolation=", ".join(scorers.layers) if gate.ok else f"{gate.reason} {gate.remedy}",
        )

    def _made_claims(self) -> Claims:
        at, store = self._setting, self._setting.store
        return Claims(
            name=at.name,
            store=store,
            ledger=self._ledger,
            registry=at.registry,
            data=at.data,
            slot=self.slot,
            handing=self._handing,
            endings=self.endings,
            outbox=self._outbox,
            liveness=self._liveness,
            pace=self._pace,
            passed_over=PassedOver(self._ledger),
            holding=self._holds,
            worth=self.filling.worth,
        )

    def _made_outgoing(self) -> Outgoing:
        return Outgoing(
            self._setting.store,
            self._setting.registry,
            self._outbox,
            results=self._results if self._setting.role.judges else None,
            handing=self._handing,
            endings=self.endings,
            still=self.claims.mine,
            gone=self.hand.let_go,
        )

    def _made_one(self) -> OneTask:
        at = self._setting
        return OneTask(
            store=at.store,
            claims=self.claims,
            endings=self.endings,
            handing=self._handing,
            outgoing=self.outgoing,
            scoring=Scoring(
                at.scorers,
                self.uploads,
                at.store.live,
                at.registry,
                at.data,
                self.heart,
                at.listener,
                self._jury,
            ),
            hand=self.hand,
            giving_way=GivingWay(self.hand, self.endings, self._liveness, at.store.clock),
            pace=self._pace,
            broke=self._broke,
        )

    def _holds(self, submission_id: str) -> bool:
        return self.hand.holds(submission_id) or self.endings.owes(submission_id)

    def _broke(self, error: AssayError) -> None:
        self.slot.broken = error
        self.heart.idle_as(self.idle_pulse())
        log.error("No further code is run by this worker: %s", error)
