"""Which submissions a worker may take, taking them, and whether they are still its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from benchmarks.errors import AssayError, PlatformError, SubmitterError, TransientError
from benchmarks.schema import Benchmark
from evaluator.worker.concluding import MAX_ATTEMPTS, Endings
from evaluator.worker.handing_over import HandingOver
from evaluator.worker.roles import WorkerRole
from evaluator.worker.scorer_role import ScorerRole
from leaderboard.desk import Gate
from leaderboard.governance.bans import Ban, read_bans
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.redaction import BANNED
from leaderboard.records import Event, Kind, Status, Submission
from leaderboard.states import IN_WORK, State
from leaderboard.store.interface import Store

LEASE = timedelta(hours=8)
SILENT_AFTER = timedelta(seconds=60)
"""A worker that has not beaten for so long is dead, whatever its lease says."""

log = logging.getLogger(__name__)


@dataclass
class CodeSlot:
    """The place on this machine where code runs, one submission after the other.

    Attributes:
        scorers: runs scoring modules.
        role: of the worker; a judge runs nothing.
        broken: why nothing more may run there; empty while all is well.
    """

    scorers: ScorerRole
    role: WorkerRole = WorkerRole.BOTH
    broken: AssayError | None = None

    @property
    def gate(self) -> Gate:
        """Whether strangers' code is run here."""
        if not self.role.scores:
            return Gate(False, "This worker judges and runs no code.", "Another one has to run it.")
        if self.broken is not None:
            return Gate(False, self.broken.message, self.broken.hint)
        return self.scorers.gate

    def can_run(self, submission: Submission) -> bool:
        """Whether this module may run here; nothing may beside what another left behind."""
        return self.role.scores and self.broken is None and self.scorers.can_run(submission)

    def can_ask(self, benchmark: Benchmark, data: Path | None) -> bool:
        """Whether its questions are here, with their images."""
        questions = self.scorers.questions
        if questions is None:
            return benchmark.has_questions(data)
        try:
            return questions.has(benchmark)
        except PlatformError as error:
            log.warning("Nothing is scored on %s: %s", benchmark.name, error)
            return False


@dataclass(frozen=True)
class Claims:
    """What a worker takes from the queue.

    Attributes:
        name: of the worker.
        store: where submissions come from.
        ledger: of that store.
        registry: the benchmarks known here.
        data: folder of benchmark data, if there is one.
        slot: where code is run, and in which role.
        handing: the hand-over between workers of one role each.
        endings: records what ends a submission.
        clock: the current time, with a time zone.
    """

    name: str
    store: Store
    ledger: Ledger
    registry: Mapping[str, Benchmark]
    data: Path | None
    slot: CodeSlot
    handing: HandingOver
    endings: Endings
    clock: Callable[[], datetime]

    def next(self) -> Status | None:
        """Claim the oldest submission that this worker can have; None if there is none."""
        bans = read_bans(self.store.public)
        waiting = self.ledger.statuses_with_records()
        return next((status for status in waiting if self._take(status, bans)), None)

    def take(self, status: Status) -> bool:
        """Claim this submission; False if this worker may not have it now."""
        return self._take(status, read_bans(self.store.public))

    def mine(self, status: Status) -> bool:
        """Whether this worker holds it."""
        return status.held_by(self.name)

    def check_still_mine(self, submission_id: str) -> None:
        """Find out whether the work is still wanted.

        Raises:
            TransientError: `lost_race`, it was withdrawn, or another worker has it.
        """
        status = self.ledger.status(submission_id)
        if not self.mine(status):
            raise TransientError(
                "lost_race", f"{submission_id} was moved to {status.state} by {status.by}."
            )

    def _take(self, status: Status, bans: Mapping[str, Ban]) -> bool:
        if not self._free(status):
            return False
        ban = bans.get(status.submission.account)
        # What was scored before is run again because an operator wants it.
        if ban is not None and status.state is State.QUEUED and status.scored_at is None:
            self.endings.refuse(status, _banned(ban), still=self._free)
            return False
        return self._can_work_on(status) and self._claim(status)

    def _can_work_on(self, status: Status) -> bool:
        """Whether this machine has what it needs."""
        submission, role = status.submission, self.slot.role
        benchmarks = [self.registry[n] for n in submission.benchmarks if n in self.registry]
        if len(benchmarks) < len(submission.benchmarks):
            return False
        # Whoever only scores does not so much as ask for answers.
        if role.judges and not all(one.has_answers(self.data) for one in benchmarks):
            return False
        if _is_scored(status):
            return role.judges and self.handing.can_take(submission)
        if submission.kind is Kind.SCORES:
            return role.judges
        asked = role.scores and all(self.slot.can_ask(one, self.data) for one in benchmarks)
        return asked and self.slot.can_run(submission)

    def _free(self, status: Status) -> bool:
        """Whether nobody works on it: it waits, or whoever held it is gone."""
        if status.state not in IN_WORK or status.to_judge:
            return status.due(self.clock())
        if status.by == self.name:
            return True  # Asked only between two submissions: a leftover of an earlier fault.
        beats = [pulse.at for pulse in self.store.live.pulses() if pulse.worker == status.by]
        if beats:
            return max(beats) < self.clock() - SILENT_AFTER
        return status.expired(self.clock())

    def _claim(self, status: Status) -> bool:
        """Take a submission; False if another worker was faster, or it wore out its workers."""
        now = self.clock()
        if status.state in IN_WORK and not status.to_judge and status.attempts >= MAX_ATTEMPTS:
            self.endings.fail(status, _worn_out(status), still=self._free)
            return False
        first = State.JUDGING if _is_scored(status) else State.CLAIMED
        events = [Event(at=now, state=first, by=self.name, lease_until=now + LEASE)]
        if first is State.CLAIMED:
            events.append(Event(at=now, state=State.SCORING, by=self.name))
        try:
            self.ledger.append(status.submission.submission_id, events, still=self._free)
        except TransientError as error:
            log.info("Not claimed: %s", error)
            return False
        return True


def _is_scored(status: Status) -> bool:
    """Whether its scores are in the store: left to a judge, or left behind by one."""
    return status.to_judge or status.state is State.JUDGING


def _banned(ban: Ban) -> SubmitterError:
    return SubmitterError(
        BANNED,
        f"{ban.account} was banned: {ban.reason}",
        "Send it again once the ban is lifted.",
    )


def _worn_out(status: Status) -> PlatformError:
    return PlatformError(
        "worker_lost",
        f"{status.attempts} workers died while they worked on it.",
        "It may need more memory than there is. The operator has the workers' logs.",
    )
