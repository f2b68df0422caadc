"""Takes queued submissions one after the other: scores them, judges them, publishes them.

A worker of one role alone does its part: it scores and hands over, or it judges and publishes.

A worker holds a lease on what it works on and beats while it works. A dead worker's submission is
taken by another, which finds the finished shards and scores what is missing. Publishing is one
commit, made only while the lease is still held, so nothing is published twice or half.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

from benchmarks.errors import AssayError, TransientError
from benchmarks.schema import Benchmark
from evaluator.isolation.supervising.failures import without_its_words
from evaluator.scoring.progress import Progress
from evaluator.worker.claiming import Claims, CodeSlot
from evaluator.worker.concluding import Endings, blamed, incident
from evaluator.worker.handing_over import HandingOver
from evaluator.worker.heartbeat import Heartbeat, RunProgress
from evaluator.worker.judging import Scored
from evaluator.worker.publishing import RunPublisher
from evaluator.worker.roles import WorkerRole
from evaluator.worker.scorer_role import ScorerRole
from leaderboard.desk import Gate
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.publisher import Publisher, cards_of
from leaderboard.records import Status, Submission
from leaderboard.states import State
from leaderboard.store.interface import Store
from leaderboard.store.live import Pulse

LEASE_CHECKED_EVERY = timedelta(seconds=30)
LOG_CHARS = 4000
_TAKEN_AWAY = frozenset({State.WITHDRAWN, State.HIDDEN, State.REJECTED})

log = logging.getLogger(__name__)


def _nobody_listens(_: RunProgress) -> None:
    """The default listener."""


class Worker:
    """One worker; works on one submission at a time.

    Args:
        name: unique among the workers a store ever had.
        store: where submissions come from and results go.
        registry: the benchmarks known here.
        data: folder of benchmark data, if there is one.
        scorers: runs scoring modules.
        listener: is told of progress.
        role: what it does.
        keys: folder of the keys of exported questions, for a judge.
    """

    def __init__(
        self,
        name: str,
        store: Store,
        *,
        registry: Mapping[str, Benchmark],
        data: Path | None,
        scorers: ScorerRole,
        listener: Callable[[RunProgress], None] = _nobody_listens,
        role: WorkerRole = WorkerRole.BOTH,
        keys: Path | None = None,
    ) -> None:
        self.name = name
        self.scorers = scorers
        clock = store.clock
        self._slot = CodeSlot(scorers, role)
        self._ledger = ledger = Ledger(store)
        self._endings = Endings(name, ledger, clock)
        self._handing = HandingOver(name, store, ledger, registry, data, keys, clock)
        self._claims = Claims(
            name,
            store,
            ledger,
            registry,
            data,
            self._slot,
            self._handing,
            self._endings,
            clock,
        )
        publisher = Publisher(store, cards_of(registry))
        self._results = RunPublisher(name, store, ledger, publisher, registry, data, clock)
        self._registry = registry
        self._data = data
        self._clock = clock
        self._listener = listener
        self._output = ""
        self.heart = Heartbeat(store.live, self._idle_pulse(), clock)

    @property
    def gate(self) -> Gate:
        """Whether this worker runs strangers' code now."""
        return self._slot.gate

    def run_forever(self, stop: threading.Event, poll_s: float = 1.0) -> None:
        """Work until told to stop. The worker outlives any defect; it is logged and slept over."""
        self.scorers.sweep(self._clock().timestamp())
        with self.heart:
            while not stop.is_set():
                try:
                    worked = self.run_next()
                except TransientError as error:
                    log.warning("The store failed for now: %s", error)
                    worked = False
                except Exception:
                    log.exception("The worker met a defect and goes on.")
                    worked = False
                if not worked:
                    stop.wait(poll_s)

    def run_all(self) -> None:
        """Work until nothing is left that this worker can do now."""
        with self.heart:
            while self.run_next():
                pass

    def run_next(self) -> bool:
        """Work on the oldest submission that can be claimed; False if there is none."""
        self._endings.settle()
        status = self._claims.next()
        if status is None:
            return False
        self._work(status.submission.submission_id)
        return True

    def run(self, submission_id: str) -> bool:
        """Work on one submission, if it can be claimed."""
        with self.heart:
            if not self._claims.take(self._ledger.whole_status(submission_id)):
                return False
            self._work(submission_id)
            return True

    def _work(self, submission_id: str) -> None:
        """Score, judge and publish; every failure becomes a state with a reason."""
        self.heart.working_on(submission_id)
        status = self._ledger.whole_status(submission_id)
        self._output = ""
        try:
            self._do_its_part(status)
        except KeyboardInterrupt:
            reason = "The worker was stopped; what was finished is kept."
            self._endings.hand_back(status, reason)
            raise
        except TransientError as error:
            self._endings.give_back(status, error, self._shown_output(status.submission))
        except AssayError as error:
            self._fail(status, blamed(error))
        except Exception:
            number = uuid.uuid4().hex[:8]
            log.exception("Incident %s with %s", number, submission_id)
            self._fail(status, incident(number))
        finally:
            self._drop_if_taken_away(submission_id)
            self.heart.working_on("")

    def _do_its_part(self, status: Status) -> None:
        submission, mine = status.submission, self._claims.mine
        handed_over = status.state is State.JUDGING
        scored = self._taken(submission) if handed_over else self._score(submission)
        self._claims.check_still_mine(submission.submission_id)
        output = self._shown_output(submission)
        if not self._slot.role.judges:
            self._handing.give(submission, scored, output, mine)
            self.scorers.forget(submission)
            return
        self._results.publish(submission, scored, output, mine, handed_over=handed_over)
        self.scorers.forget(submission)
        if handed_over:
            self._handing.remove(submission.submission_id)

    def _taken(self, submission: Submission) -> list[Scored]:
        scored, self._output = self._handing.take(submission)
        return scored

    def _score(self, submission: Submission) -> list[Scored]:
        with (
            self.scorers.fetched(submission, self._ledger.fetch_upload) as upload,
            self.scorers.open(submission, upload) as run,
        ):
            try:
                return [
                    run.scores_of(self._registry[name], self._data, self._teller(submission, name))
                    for name in submission.benchmarks
                ]
            finally:
                self._output = run.log

    def _teller(self, submission: Submission, benchmark: str) -> Callable[[Progress], None]:
        """Passes progress on, and stops the work where it is no longer wanted."""
        checked = self._clock()
        # Everyone can see the pulse: it names a private submission as the boards do, not at all.
        shown = self._ledger.status(submission.submission_id).submission

        def tell(progress: Progress) -> None:
            nonlocal checked
            run = RunProgress(shown.submission_id, shown.name, benchmark, progress)
            self.heart.tell(run)
            self._listener(run)
            if self._clock() - checked > LEASE_CHECKED_EVERY:
                checked = self._clock()
                self._claims.check_still_mine(submission.submission_id)

        return tell

    def _fail(self, status: Status, error: AssayError) -> None:
        if error.code == "box_not_ended":
            self._slot.broken = error
            self.heart.idle_as(self._idle_pulse())
            log.error("No further code is run by this worker: %s", error)
        if error.fault == "submitter":
            self.scorers.forget(status.submission)  # The same code would only fail again.
        told = error if self._may_tell(status.submission) else without_its_words(error)
        self._endings.fail(status, told, self._shown_output(status.submission))

    def _drop_if_taken_away(self, submission_id: str) -> None:
        """Leave nothing of a submission that its author or an operator took back meanwhile."""
        try:
            status = self._ledger.whole_status(submission_id)
            if status.state in _TAKEN_AWAY:
                self.scorers.forget(status.submission)
                self._results.discard(status)
        except AssayError as error:
            log.warning("What is left of %s was not removed: %s", submission_id, error)

    def _shown_output(self, submission: Submission) -> str:
        """The end of the scorer's output, if it may be kept: it may tell of what it was shown."""
        return self._output[-LOG_CHARS:] if self._may_tell(submission) else ""

    def _may_tell(self, submission: Submission) -> bool:
        return all(self._registry[name].card.answers_public for name in submission.benchmarks)

    def _idle_pulse(self) -> Pulse:
        gate = self.gate
        return Pulse(
            worker=self.name,
            at=self._clock(),
            isolation_ok=gate.ok,
            isolation=", ".join(self.scorers.layers) if gate.ok else f"{gate.reason} {gate.remedy}",
        )
