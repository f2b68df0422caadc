"""Claiming of submissions, and the check that claims still hold.

Several are claimed in one commit where the store wants that, in fair order, and never more than
this worker's share of what waits. Which ones is decided anew from the state each try of the commit
is based on, so two workers never claim the same. Every claim carries a nonce: where the answer to a
commit was lost, the worker finds by it that the submissions are its own.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path

from benchmarks.errors import SubmitterError, TransientError
from benchmarks.schema import Benchmark
from evaluator.worker.claims.free import Free, is_scored
from evaluator.worker.claims.liveness import Gone, Liveness, Look
from evaluator.worker.claims.pace import Pace, done_soon
from evaluator.worker.claims.passed_over import PassedOver
from evaluator.worker.claims.tasks import Task, about
from evaluator.worker.ending.concluding import MAX_ATTEMPTS, MAX_ATTEMPTS_TO_PUBLISH, Endings
from evaluator.worker.ending.handing_over import HandingOver
from evaluator.worker.ending.outbox import Outbox
from evaluator.worker.running.code_slot import CodeSlot
from leaderboard.folding import asked_at
from leaderboard.ledger.batch import Batch
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.policy import Ban, read_bans
from leaderboard.ledger.private_records import BANNED
from leaderboard.queueing import fair_order, fair_share
from leaderboard.records import Event, Kind, Status
from leaderboard.states import IN_WORK, NOT_BEGUN, State
from leaderboard.store.interface import Store

log = logging.getLogger(__name__)


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
        outbox: what was finished on this disk; it is claimed first.
        liveness: judges who holds what is in work.
        pace: how long runs take.
        passed_over: what cannot be claimed because of its records.
        holding: whether this worker has a submission in its hands already.
        worth: of generations that wait for further metrics, by the second.
    """

    name: str
    store: Store
    ledger: Ledger
    registry: Mapping[str, Benchmark]
    data: Path | None
    slot: CodeSlot
    handing: HandingOver
    endings: Endings
    outbox: Outbox
    liveness: Liveness
    pace: Pace
    passed_over: PassedOver
    holding: Callable[[str], bool]
    worth: Callable[[Status], float] = lambda _: 0.0
    _tried: set[str] = field(default_factory=set)

    def more(self) -> tuple[Task, ...]:
        """Claim this worker's share of what waits, in fair order; none if there is nothing.

        Submissions of a claim whose answer was lost are found first, without another commit.

        Raises:
            TransientError: the store fails.
        """
        return self._found_again() or self._claim(self._share)

    def take(self, submission_id: str) -> tuple[Task, ...]:
        """Claim one submission; none if this worker may not have it now.

        Raises:
            TransientError: the store fails.
        """
        self.ledger.status(submission_id)  # Refused where it is not known.

        return self._claim(lambda free: min(free, 1), submission_id)

    def mine(self, status: Status) -> bool:
        """Whether this worker holds it."""
        return status.held_by(self.name)

    def check_still_mine(self, submission_id: str) -> None:
        """Find out whether the work is still wanted.

        Raises:
            TransientError: `lost_race`, it was withdrawn, or another worker has it; any other:
                the store fails, and nothing is known.
        """
        status = self.ledger.status(submission_id)
        if not self.mine(status):
            raise TransientError(
                "lost_race", f"{submission_id} was moved to {status.state} by {status.by}."
            )

    def check_not_banned(self, task: Task) -> None:
        """Find out whether the account is banned, before anything of it is begun.

        What was run before, or was scored by another worker, is finished all the same. A private
        submission fails as others do that cannot be run: only a ban rejects what was accepted, and
        bans are public, so in that state anyone could see whose it is.

        Raises:
            SubmitterError: `banned`, of a private submission.
            TransientError: `banned`, or any other: the store fails, and nothing is known.
        """
        begun = task.handed_over or task.status.scored_at is not None
        ban = None if begun else read_bans(self.store.public).get(task.submission.account)
        if ban is None:
            return
        if task.submission.private:
            raise _banned(ban)
        raise TransientError(BANNED, f"{task.submission.account} was banned.")

    def _share(self, free: int) -> int:
        most = self.store.jobs_per_commit
        return min(free, 1) if most == 1 else fair_share(free, self.liveness.workers(), most)

    def _claim(self, how_many: Callable[[int], int], only: str | None = None) -> tuple[Task, ...]:
        self._clear(only)
        nonce, chosen = uuid.uuid4().hex, dict[str, list[Event]]()

        def batch() -> Batch:
            free = self._free_ones(only)
            chosen.clear()
            chosen.update(self._events(self._first(free, how_many(len(free))), nonce))
            return Batch(events=dict(chosen))

        batch()
        if not chosen:
            return ()
        self._tried.add(nonce)
        states = dict.fromkeys(event.state for events in chosen.values() for event in events)
        self.ledger.write(batch, f"{'+'.join(states)} by {self.name}")
        tasks = tuple(self._task(name) for name in chosen)
        self._tried.discard(nonce)
        for task in tasks:
            log.info("Claimed.", extra=about(task.submission_id, task.status.attempts))
        return tasks

    def _first(self, free: Sequence[Free], n: int) -> list[Free]:
        """The first that this machine can work on, and has done soon."""
        found = list(islice(filter(self._can_take, free), n))
        return found[: done_soon(map(self._expected, found))]

    def _can_take(self, one: Free) -> bool:
        """Whether this machine can work on it, and the store can take the claim."""
        claim = Event(at=self.store.clock(), state=one.claimed_as, by=self.name)
        can = self.passed_over.doing(one.submission_id, lambda: self._can_work_on(one.status))
        return can and self.passed_over.takes(one.status, [claim])

    def _expected(self, one: Free) -> float | None:
        job = one.status.job
        runs_code = job.kind is not Kind.SCORES and not is_scored(one.status)
        return self.pace.timed(job, runs_code=runs_code)

    def _free_ones(self, only: str | None) -> list[Free]:
        """What nobody works on, in the order in which it is to be taken."""
        now, look = self.store.clock(), self.liveness.look()
        statuses = self.passed_over.with_records()
        free = {s.submission.submission_id: self._free(s, look, now) for s in statuses}
        order = fair_order(
            statuses,
            now,
            waiting=lambda s: bool(free[s.submission.submission_id]),
            worth=self.worth,
        )
        found = (free[s.submission.submission_id] for s in order)
        wanted = [one for one in found if one and only in (None, one.submission_id)]
        finished_here = set(self.outbox.ids())
        return sorted(wanted, key=lambda one: one.submission_id not in finished_here)

    def _free(self, status: Status, look: Look, now: datetime) -> Free | None:
        if status.state not in IN_WORK or status.to_judge:
            return Free(status, None) if status.due(now) else None
        gone = self._gone(status, look)
        return Free(status, gone) if gone else None

    def _gone(self, status: Status, look: Look) -> Gone | None:
        """Why what is in work may be taken; None: it may not."""
        if status.by != self.name:
            return look.gone(status)
        if self.holding(status.submission.submission_id):
            return None
        return Gone("An earlier fault of the same worker left it.", begun=True)

    def _clear(self, only: str | None) -> None:
        """End what may not be run any more, and what wore out its workers."""
        bans = read_bans(self.store.public)
        for one in self._free_ones(only):
            # A private one is claimed in its turn and fails then; see `check_not_banned`.
            private, account = one.status.submission.private, one.status.submission.account
            ban = None if private else bans.get(account)
            self.passed_over.doing(one.submission_id, partial(self._end_if_over, one, ban))

    def _end_if_over(self, one: Free, ban: Ban | None) -> None:
        status, gone = one.status, one.gone
        # What was scored before is run again because an operator wants it.
        if ban is not None and status.state is State.QUEUED and status.scored_at is None:
            self.endings.refuse(status, _banned(ban), still=self._still_free)
        elif gone is not None and gone.begun and status.attempts >= self._most(status):
            self.endings.give_up(status, gone.why, still=self._still_free)

    def _most(self, status: Status) -> int:
        return MAX_ATTEMPTS_TO_PUBLISH if self._only_to_be_sent(status) else MAX_ATTEMPTS

    def _only_to_be_sent(self, status: Status) -> bool:
        """Whether it was finished on this disk, and need not be judged here any more.

        Judging is done in the worker's own process, and may be what it dies of each time.
        """
        entry = self.outbox.entry(status.submission.submission_id)
        to_judge = self.slot.role.judges or is_scored(status)
        return entry is not None and (entry.judged or not to_judge)

    def _still_free(self, status: Status) -> bool:
        return self._free(status, self.liveness.look(), self.store.clock()) is not None

    def _can_work_on(self, status: Status) -> bool:
        """Whether this machine has what it needs."""
        submission, role = status.job, self.slot.role
        benchmarks = [self.registry[n] for n in submission.benchmarks if n in self.registry]
        if len(benchmarks) < len(submission.benchmarks):
            return False
        # Whoever only scores does not so much as ask for answers.
        if role.judges and not all(one.has_answers(self.data) for one in benchmarks):
            return False
        if is_scored(status):
            return role.judges and self.handing.can_take(submission)
        if submission.kind is Kind.SCORES:
            return role.judges
        asked = role.scores and all(self.slot.can_ask(one, self.data) for one in benchmarks)
        return asked and self.slot.can_run(submission)

    def _events(self, chosen: Sequence[Free], nonce: str) -> dict[str, list[Event]]:
        """The claims; the first is begun at once, and says so."""
        now, found = self.store.clock(), dict[str, list[Event]]()
        for place, one in enumerate(chosen):
            line = [other.status.job for other in chosen[: place + 1]]
            claim = Event(
                at=now,
                state=one.claimed_as,
                by=self.name,
                lease_until=now + self.pace.lease(line),
                nonce=nonce,
                reason="" if one.gone is None else one.gone.why,
                code=NOT_BEGUN if one.gone is not None and not one.gone.begun else "",
            )
            begun = Event(at=now, state=State.SCORING, by=self.name)
            first_to_score = place == 0 and claim.state is State.CLAIMED
            found[one.submission_id] = [claim, begun] if first_to_score else [claim]
        return found

    def _task(self, submission_id: str) -> Task:
        events = self.ledger.events(submission_id)
        return Task(self.ledger.whole_status(submission_id), asked_at(events))

    def _found_again(self) -> tuple[Task, ...]:
        """What this worker claimed by a commit whose answer was lost."""
        found: list[Task] = []
        for status in self.ledger.statuses() if self._tried else ():
            name = status.submission.submission_id
            if not self.mine(status) or self.holding(name):
                continue
            self.passed_over.doing(name, partial(self._find_lost, name, found))
        self._tried.clear()
        for task in found:
            log.info("Claimed before the answer was lost.", extra=about(task.submission_id))
        return tuple(found)

    def _find_lost(self, submission_id: str, found: list[Task]) -> None:
        events = self.ledger.events(submission_id)
        claims = [event.nonce for event in events if event.lease_until is not None]
        if claims and claims[-1] in self._tried:
            found.append(self._task(submission_id))


def _banned(ban: Ban) -> SubmitterError:
    return SubmitterError(
        BANNED,
        f"{ban.account} was banned: {ban.reason}",
        "Send it again once the ban is lifted.",
    )
