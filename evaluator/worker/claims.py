"""Claiming of submissions, what a worker holds of them, and their release.

Several are claimed in one commit where the store wants that, in fair order, and never more than
this worker's share of what waits. Which ones is decided anew from the state each try of the commit
is based on, so two workers never claim the same. Every claim carries a nonce: where the answer to a
commit was lost, the worker finds by it that the submissions are its own.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import islice, takewhile
from typing import Self

from benchmarks.errors import AssayError, PlatformError, SubmitterError, TransientError
from evaluator.worker.handoff import Handoff, RunSpool
from evaluator.worker.liveness import Liveness, LostClaim, WorkerPoll
from evaluator.worker.publishing import PublishQueue
from evaluator.worker.scorer_role import CodeSlot
from evaluator.worker.tasks import (
    MAX_ATTEMPTS_TO_PUBLISH,
    MAX_LOST,
    Finalizer,
    Setting,
    Task,
    about,
)
from leaderboard.ledger.ledger import Batch, Ledger, fault_of
from leaderboard.ledger.policy import Ban, read_bans
from leaderboard.ledger.private_records import BANNED
from leaderboard.ledger.queue_file import KEPT_FOR
from leaderboard.queueing import fair_order, fair_share
from leaderboard.records import Event, Kind, Status, Submission
from leaderboard.replay import asked_at
from leaderboard.states import IN_BATCH, IN_WORK, NOT_BEGUN, State

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Free:
    """What may be claimed, and why if somebody else holds it."""

    status: Status
    lost: LostClaim | None

    @property
    def submission_id(self) -> str:
        """Its id."""
        return self.status.submission.submission_id

    @property
    def claimed_as(self) -> State:
        """The state a claim puts it in."""
        return State.JUDGING if is_scored(self.status) else State.CLAIMED


def is_scored(status: Status) -> bool:
    """Whether its scores are in the store: left to a judge, or left behind by one."""
    return status.to_judge or status.state is State.JUDGING


@dataclass(frozen=True)
class SkippedJobs:
    """Keeps one submission with a record that cannot be read from stopping all claims.

    Each reason is logged once; `doctor` lists them all.
    """

    ledger: Ledger  # where the records are
    _logged: set[tuple[str, str]] = field(default_factory=set)

    def with_records(self) -> tuple[Status, ...]:
        """Every submission with its whole record, but for those whose record cannot be read."""
        found: list[Status] = []
        for status in self.ledger.statuses():
            name = status.submission.submission_id
            self.doing(name, partial(self._add, status, found))
        return tuple(found)

    def _add(self, public: Status, to: list[Status]) -> None:
        to.append(self.ledger.with_record(public))

    def takes(self, status: Status, events: Sequence[Event]) -> bool:
        """Whether these events can follow those that a submission has."""
        error = fault_of(self.ledger, status, events)
        if error is not None:
            self._tell(status.submission.submission_id, error)
        return error is None

    def doing(self, submission_id: str, action: Callable[[], object]) -> bool:
        """Do something with one submission; False where its records keep that from being done."""
        try:
            return bool(action())
        except PlatformError as error:
            self._tell(submission_id, error)
            return False

    def _tell(self, submission_id: str, error: PlatformError) -> None:
        if (submission_id, error.message) not in self._logged:
            self._logged.add((submission_id, error.message))
            log.error("Passed over: %s", error, extra=about(submission_id))


AHEAD = timedelta(minutes=15)
"""What is claimed at once is to be done within this. A worker that joins meanwhile finds the rest
in the queue, and nobody waits for longer behind what is before it. Runs of which eight fit take less
than two minutes each: only with those are commits scarce."""
UNTIMED_AT_ONCE = 2
"""Of code that nobody timed, any may run for hours: no more than one is held behind another. It is
not one alone, since a worker whose first two runs are short then claims by what they took."""


class SlowestRuns:
    """The slowest run of each kind of this worker so far."""

    def __init__(self) -> None:
        self._slowest: dict[tuple[str, ...], float] = {}

    def took(self, submission: Submission, seconds: float) -> None:
        """A run took so long, from its claim to its scores."""
        kind = _kind(submission)
        self._slowest[kind] = max(seconds, self._slowest.get(kind, 0.0))

    def expects(self, submission: Submission) -> float | None:
        """Seconds a run may take at worst by what is known; None: nothing is known."""
        return self._slowest.get(_kind(submission))

    def timed(self, submission: Submission, *, runs_code: bool) -> float | None:
        """The same, of what may be claimed ahead: a file that is only read is quick."""
        if runs_code:
            return self.expects(submission)
        return 0.0 if submission.kind is Kind.METRIC else self.expects(submission) or 0.0


def done_soon(expected: Iterable[float | None]) -> int:
    """How many of those in line, from the first on, are claimed at once; one in any case."""
    seconds, untimed, taken = 0.0, 0, 0
    for one in expected:
        untimed += one is None
        seconds += one or 0.0
        if taken and (seconds > AHEAD.total_seconds() or untimed > UNTIMED_AT_ONCE):
            break
        taken += 1
    return taken


def _kind(submission: Submission) -> tuple[str, ...]:
    return (submission.kind, *sorted(submission.benchmarks))


@dataclass(frozen=True)
class Claims:
    """What a worker takes from the queue."""

    at: Setting
    slot: CodeSlot  # where code is run, and in which role
    handoff: Handoff  # the hand-over between workers of one role each
    finalizer: Finalizer  # records what ends a submission
    spool: RunSpool  # what was finished on this disk; it is claimed first
    liveness: Liveness  # judges who holds what is in work
    slowest: SlowestRuns  # how long runs take
    skipped: SkippedJobs  # what cannot be claimed because of its records
    holding: Callable[[str], bool]  # whether this worker has a submission in its hands already
    # of generations that wait for further metrics, by the second
    worth: Callable[[Status], float] = lambda _: 0.0
    _tried: set[str] = field(default_factory=set)

    def more(self) -> tuple[Task, ...]:
        """Claim this worker's share of what waits, in fair order; none if there is nothing.

        Submissions of a claim whose answer was lost are found first, without another commit.
        """
        claimed = self._found_again() or self._claim(self._share)
        if not claimed:  # What nobody here can run is to be seen by everybody all the same.
            self.at.ledger.take_over(before=self.at.now() - KEPT_FOR)
        return claimed

    def take(self, submission_id: str) -> tuple[Task, ...]:
        """Claim one submission; none if this worker may not have it now."""
        self.at.ledger.status(submission_id)  # Refused where it is not known.

        return self._claim(lambda free: min(free, 1), submission_id)

    def check_still_mine(self, submission_id: str) -> None:
        """Find out whether the work is still wanted."""
        status = self.at.ledger.status(submission_id)
        if not self.at.holds(status):
            raise TransientError(
                "lost_race", f"{submission_id} was moved to {status.state} by {status.by}."
            )

    def check_not_banned(self, task: Task) -> None:
        """Find out whether the account is banned, before anything of it is begun.

        What was run before, or was scored by another worker, is finished all the same. A private
        submission fails as others do that cannot be run: only a ban rejects what was accepted, and
        bans are public, so in that state anyone could see whose it is.
        """
        begun = task.scored_before or task.status.scored_at is not None
        ban = None if begun else read_bans(self.at.store.public).get(task.submission.account)
        if ban is None:
            return
        if task.submission.private:
            raise _banned(ban)
        raise TransientError(BANNED, f"{task.submission.account} was banned.")

    def _share(self, free: int) -> int:
        most = self.at.store.jobs_per_commit
        return min(free, 1) if most == 1 else fair_share(free, self.liveness.workers(), most)

    def _claim(self, how_many: Callable[[int], int], only: str | None = None) -> tuple[Task, ...]:
        self._clear(only)
        nonce, chosen = uuid.uuid4().hex, list[Free]()

        def batch() -> Batch:
            free = self._free_ones(only)
            chosen[:] = self._first(free, how_many(len(free)))
            return Batch(events=self._events(chosen, nonce))

        events = batch().events
        if not chosen:
            return ()
        self._tried.add(nonce)
        states = dict.fromkeys(event.state for one in events.values() for event in one)
        self.at.ledger.write(batch, f"{'+'.join(states)} by {self.at.name}")
        tasks = tuple(self._task(one.submission_id) for one in chosen)
        self._tried.discard(nonce)
        for task in tasks:
            log.info("Claimed.", extra=about(task.submission_id, task.status.attempts))
        return tasks

    def _first(self, free: Sequence[Free], n: int) -> list[Free]:
        """The first that this machine can work on, and has done soon."""
        found = list(islice(filter(self._can_take, free), n))
        if found and self._is_suspect(found[0]):
            return found[:1]
        soon = found[: done_soon(map(self._expected, found))]
        return list(takewhile(lambda one: not self._is_suspect(one), soon))

    def _is_suspect(self, one: Free) -> bool:
        """Whether a worker was lost with it, maybe because of it: it is claimed alone.

        Whatever becomes of that worker then becomes of this one alone.
        """
        return one.lost is not None and not self._only_to_be_sent(one.status)

    def _can_take(self, one: Free) -> bool:
        """Whether this machine can work on it, and the store can take the claim."""
        claim = Event(at=self.at.now(), state=one.claimed_as, by=self.at.name)
        can = self.skipped.doing(one.submission_id, lambda: self._can_work_on(one.status))
        return can and self.skipped.takes(one.status, [claim])

    def _expected(self, one: Free) -> float | None:
        job = one.status.job
        runs_code = job.kind is not Kind.SCORES and not is_scored(one.status)
        return self.slowest.timed(job, runs_code=runs_code)

    def _free_ones(self, only: str | None) -> list[Free]:
        """What nobody works on, in the order in which it is to be taken."""
        now, statuses = self.at.now(), self.skipped.with_records()
        look = self.liveness.poll()
        free = {s.submission.submission_id: self._free(s, look, now) for s in statuses}
        order = fair_order(
            statuses,
            now,
            waiting=lambda s: bool(free[s.submission.submission_id]),
            worth=self.worth,
        )
        found = (free[s.submission.submission_id] for s in order)
        wanted = [one for one in found if one and only in (None, one.submission_id)]
        finished_here = set(self.spool.ids())
        return sorted(wanted, key=lambda one: one.submission_id not in finished_here)

    def _free(self, status: Status, look: WorkerPoll, now: datetime) -> Free | None:
        if status.state not in IN_WORK or status.to_judge:
            return Free(status, None) if status.due(now) else None
        lost = self._lost_claim(status, look)
        return Free(status, lost) if lost else None

    def _lost_claim(self, status: Status, look: WorkerPoll) -> LostClaim | None:
        """Why what is in work may be taken; None: it may not."""
        if status.by != self.at.name:
            return look.lost_claim(status)
        if self.holding(status.submission.submission_id):
            return None
        return LostClaim("An earlier fault of the same worker left it.", begun=True)

    def _clear(self, only: str | None) -> None:
        """End what may not be run any more, and what wore out its workers."""
        bans = read_bans(self.at.store.public)
        for one in self._free_ones(only):
            # A private one is claimed in its turn and fails then; see `check_not_banned`.
            private, account = one.status.submission.private, one.status.submission.account
            ban = None if private else bans.get(account)
            self.skipped.doing(one.submission_id, partial(self._end_if_over, one, ban))

    def _end_if_over(self, one: Free, ban: Ban | None) -> None:
        status, lost = one.status, one.lost
        # What was scored before is run again because an operator wants it.
        if ban is not None and status.state is State.QUEUED and status.scored_at is None:
            self.finalizer.refuse(status, _banned(ban), still=self._still_free)
        elif lost is not None and lost.begun and status.attempts >= self._most(status):
            self.finalizer.give_up(status, lost.why, still=self._still_free)

    def _most(self, status: Status) -> int:
        return MAX_ATTEMPTS_TO_PUBLISH if self._only_to_be_sent(status) else MAX_LOST

    def _only_to_be_sent(self, status: Status) -> bool:
        """Whether it was finished on this disk, and need not be judged here any more.

        Judging is done in the worker's own process, and may be what it dies of each time.
        """
        entry = self.spool.entry(status.submission.submission_id)
        to_judge = self.slot.role.judges or is_scored(status)
        return entry is not None and (entry.judged or not to_judge)

    def _still_free(self, status: Status) -> bool:
        return self._free(status, self.liveness.poll(), self.at.now()) is not None

    def _can_work_on(self, status: Status) -> bool:
        """Whether this machine has what it needs."""
        submission, role = status.job, self.slot.role
        benchmarks = [self.at.registry[n] for n in submission.benchmarks if n in self.at.registry]
        if len(benchmarks) < len(submission.benchmarks):
            return False
        # Whoever only scores does not so much as ask for answers.
        if role.judges and not all(one.has_answers(self.at.data) for one in benchmarks):
            return False
        if is_scored(status):
            return role.judges and self.handoff.can_take(submission)
        if submission.kind is Kind.SCORES:
            return role.judges
        asked = role.scores and all(self.slot.can_ask(one, self.at.data) for one in benchmarks)
        return asked and self.slot.can_run(submission)

    def _events(self, chosen: Sequence[Free], nonce: str) -> dict[str, list[Event]]:
        """The claims; the first is begun at once, and says so."""
        now, found = self.at.now(), dict[str, list[Event]]()
        until = now + self.liveness.lease()
        batch = IN_BATCH if len(chosen) > 1 else ""
        for place, one in enumerate(chosen):
            claim = Event(
                at=now,
                state=one.claimed_as,
                by=self.at.name,
                lease_until=until,
                nonce=nonce,
                reason="" if one.lost is None else one.lost.why,
                code=NOT_BEGUN if one.lost is not None and not one.lost.begun else batch,
            )
            begun = Event(at=now, state=State.SCORING, by=self.at.name, code=batch)
            first_to_score = place == 0 and claim.state is State.CLAIMED
            found[one.submission_id] = [claim, begun] if first_to_score else [claim]
        return found

    def _task(self, submission_id: str) -> Task:
        events = self.at.ledger.events(submission_id)
        return Task(self.at.ledger.whole_status(submission_id), asked_at(events))

    def _found_again(self) -> tuple[Task, ...]:
        """What this worker claimed by a commit whose answer was lost."""
        found: list[Task] = []
        for status in self.at.ledger.statuses() if self._tried else ():
            name = status.submission.submission_id
            if not self.at.holds(status) or self.holding(name):
                continue
            self.skipped.doing(name, partial(self._find_lost, name, found))
        self._tried.clear()
        for task in found:
            log.info("Claimed before the answer was lost.", extra=about(task.submission_id))
        return tuple(found)

    def _find_lost(self, submission_id: str, found: list[Task]) -> None:
        events = self.at.ledger.events(submission_id)
        claims = [event.nonce for event in events if event.nonce]
        if claims and claims[-1] in self._tried:
            found.append(self._task(submission_id))


def _banned(ban: Ban) -> SubmitterError:
    return SubmitterError(
        BANNED,
        f"{ban.account} was banned: {ban.reason}",
        "Send it again once the ban is lifted.",
    )


class ClaimedJobs:
    """The submissions that are this worker's, by id."""

    def __init__(
        self, tell: Callable[[Iterable[str]], None], clear: Callable[[Task], None]
    ) -> None:
        self._tell = tell
        self._clear = clear
        self._to_do: dict[str, Task] = {}
        self._finished: dict[str, Task] = {}

    @property
    def to_do(self) -> tuple[Task, ...]:
        """What is not finished, in the order in which it is to be done."""
        return tuple(self._to_do.values())

    @property
    def empty(self) -> bool:
        """Whether nothing at all is held."""
        return not self._to_do and not self._finished

    def holds(self, submission_id: str) -> bool:
        """Whether it is one of them."""
        return submission_id in self._to_do or submission_id in self._finished

    def take(self, tasks: Iterable[Task]) -> None:
        """These were claimed."""
        self._to_do |= {task.submission_id: task for task in tasks}
        self._report()

    def postpone(self, task: Task) -> None:
        """The others are done before it: what it needs cannot be had now."""
        if self._to_do.pop(task.submission_id, None) is not None:
            self._to_do[task.submission_id] = task

    def finish(self, task: Task) -> None:
        """It waits for nothing but the store."""
        self._to_do.pop(task.submission_id, None)
        self._finished[task.submission_id] = task
        self._report()

    def let_go(self, task: Task) -> None:
        """It is over, or another's; what is left of it is removed."""
        self._to_do.pop(task.submission_id, None)
        self._finished.pop(task.submission_id, None)
        self._report()
        self._clear(task)

    def drop_to_do(self) -> None:
        """All that is not finished was handed back."""
        self._to_do.clear()
        self._report()

    def _report(self) -> None:
        self._tell((*self._to_do, *self._finished))


OVERRUN = "Its worker is busy with another for longer than was expected; another worker is free."


@dataclass(frozen=True)
class Preemption:
    """Lets idle workers have what this one claimed ahead and cannot begin in time."""

    claimed_jobs: ClaimedJobs  # what this worker holds
    finalizer: Finalizer  # hands back
    liveness: Liveness  # knows who is idle
    clock: Callable[[], datetime]  # the store's time

    def look(self, task: Task) -> None:
        """Hand back all but the run under way, if it overran all that was claimed and one is idle.

        A store that fails changes nothing: they stay claimed, and it is tried at the next look.
        """
        begun = task.begun_at
        later = [one for one in self.claimed_jobs.to_do if one.submission_id != task.submission_id]
        if begun is None or not later or self.clock() - begun <= AHEAD:
            return
        if not self.liveness.others_idle():
            return
        try:
            self.finalizer.hand_back(later, OVERRUN)
        except TransientError as error:
            log.info("Not handed back yet: %s", error, extra=about(task.submission_id))
            return
        for one in later:
            log.info(OVERRUN, extra=about(one.submission_id))
            self.claimed_jobs.let_go(one)


WITHIN_S = 30.0
"""A store that does not answer for so long keeps no worker from ending."""
_PAUSES_S = (0.0, 1.0, 3.0)
STOPPED = "The worker was stopped; what was finished is kept."


@dataclass(frozen=True)
class Release:
    """Entered while a worker works, so that it leaves in good order however that ends.

    What the store cannot take stays where it is: in the outbox, and claimed by a worker that beats
    no more, so that others find it.
    """

    publish_queue: PublishQueue  # what is finished
    finalizer: Finalizer  # hands back
    claimed_jobs: ClaimedJobs  # what is held
    sleep: Callable[[float], None] = time.sleep  # how to wait; passed in by tests

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After anything but an error or an order to stop, this process may be in any state.
        if kind is None or issubclass(kind, Exception | KeyboardInterrupt):
            self.leave()

    def leave(self) -> None:
        """Do it now, in bounded time."""
        if self.claimed_jobs.empty:
            return
        thread = threading.Thread(target=self._in_order, name="leaving", daemon=True)
        thread.start()
        thread.join(WITHIN_S)
        if thread.is_alive():
            log.warning("The store does not answer; the worker ends without it.")

    def _in_order(self) -> None:
        self._persistently(self.publish_queue.send)
        if self._persistently(self._hand_back):
            self.claimed_jobs.drop_to_do()

    def _hand_back(self) -> None:
        self.finalizer.hand_back(self.claimed_jobs.to_do, STOPPED)

    def _persistently(self, action: Callable[[], object]) -> bool:
        for pause in _PAUSES_S:
            self.sleep(pause)
            try:
                action()
            except TransientError as error:
                log.warning("On leaving: %s", error)
            except AssayError:
                log.exception("Not done on leaving.")
                return False
            else:
                return True
        return False
