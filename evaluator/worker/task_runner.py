"""Work on one claimed submission, to its end: scores, or a state with a reason."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from benchmarks.errors import AssayError, TransientError
from evaluator.isolation.supervising.failures import without_its_words
from evaluator.scoring.progress import Progress
from evaluator.submission.runs import Run, Scored
from evaluator.worker.claimed import ClaimedJobs, Preemption
from evaluator.worker.claims import Claims, SlowestRuns
from evaluator.worker.disk import is_full
from evaluator.worker.finalizer import MAX_ATTEMPTS_TO_PUBLISH, Finalizer, blamed, incident
from evaluator.worker.generations import BOX_NOT_ENDED, GenerationsRun, JudgeSet
from evaluator.worker.handoff import Handoff
from evaluator.worker.liveness import Heartbeat, RunProgress
from evaluator.worker.publish_queue import PublishQueue
from evaluator.worker.scorer_role import ScorerRole
from evaluator.worker.spool import UploadCache
from evaluator.worker.stopping import StoppedError
from evaluator.worker.tasks import Finished, Setting, Task, about
from leaderboard.ledger.private_records import BANNED, public_record
from leaderboard.records import Kind, Submission
from leaderboard.store.interface import NOT_LET_IN
from leaderboard.store.live.interface import Live

log = logging.getLogger(__name__)

LONGEST_LINE = 300
_FIRST_SEEN = 4096
"""Of output that does not go on from what was seen, this much of its end is passed on."""


class LogTail:
    """What one scorer said so far."""

    def __init__(self, live: Live, submission_id: str, *, may_tell: bool) -> None:
        self._live = live
        self._submission_id = submission_id
        self._may_tell = may_tell
        self._seen = ""

    @property
    def last(self) -> str:
        """The last line with anything in it, cut to a length that can be shown."""
        lines = (line.strip() for line in reversed(self._seen.splitlines()))
        return next((line[:LONGEST_LINE] for line in lines if line), "")

    def heard(self, output: Callable[[], str]) -> None:
        """Pass on what is new; what cannot be told now is lost, and nothing else."""
        if not self._may_tell:
            return
        text = output()
        new, self._seen = after(self._seen, text), text
        if not new:
            return
        try:
            self._live.say(self._submission_id, new)
        except (OSError, TransientError) as error:
            log.debug("Output is not told: %s", error)

    def forget(self) -> None:
        """Nobody is to read it any more."""
        try:
            self._live.forget(self._submission_id)
        except (OSError, TransientError) as error:
            log.debug("Output is not forgotten: %s", error)


def after(seen: str, text: str) -> str:
    """What a text has beyond what was seen of it.

    Of long output only the first part and the last are kept, so the end of what was seen is looked
    for; where it is not found any more, the end of the text is all new.
    """
    if text.startswith(seen):
        return text[len(seen) :]
    end = seen[-200:]
    place = text.rfind(end)
    return text[place + len(end) :] if place >= 0 else text[-_FIRST_SEEN:]


LOG_CHARS = 4000
Look = Callable[[Task], None]


class StoreAwayError(TransientError):
    """The store does not answer; no submission is to blame, and none loses an attempt by it."""

    @classmethod
    def of(cls, error: TransientError) -> StoreAwayError:
        """A fault that the store met."""
        return cls(error.code, error.message, error.hint)


@dataclass(frozen=True)
class BatchCallbacks:
    """What happens after every batch."""

    run: Run  # whose output is read
    said: LogTail  # passes it on
    look: Look  # finds out whether to go on


@dataclass
class Scoring:
    """Has the scorers of one worker score, one submission after another."""

    at: Setting
    scorers: ScorerRole  # runs scoring modules
    uploads: UploadCache  # of what is to be scored
    heart: Heartbeat  # shows progress
    listener: Callable[[RunProgress], None]  # is told of progress
    jury: JudgeSet  # knows the metrics that score generations
    output: str = ""  # what the last scorer printed

    def scores(self, task: Task, look: Look) -> list[Scored]:
        """The scores of a submission on each of its benchmarks."""
        submission = task.submission
        said = LogTail(self.at.store.live, task.submission_id, may_tell=self.may_tell(submission))
        run: Run | None = None
        try:
            with (
                self.scorers.fetched(submission, self._fetch) as upload,
                self._opened(submission, upload) as run,
            ):
                told = BatchCallbacks(run, said, look)
                scored = {
                    name: run.scores_of(
                        self.at.registry[name], self.at.data, self._teller(task, name, told)
                    )
                    for name in sorted(submission.benchmarks, key=self._is_withheld)
                }
                return [scored[name] for name in submission.benchmarks]
        finally:
            if run is not None:  # Its box is closed: the last that it printed has come.
                self.output = run.log
                said.heard(lambda: self.output)

    def shown_output(self, submission: Submission) -> str:
        """The end of the scorer's output, if it may be kept: it may tell of what it was shown."""
        return ending(self.output) if self.may_tell(submission) else ""

    def may_tell(self, submission: Submission) -> bool:
        """Whether what a scorer says may be told to its author."""
        return not any(self._is_withheld(name) for name in submission.benchmarks)

    def _is_withheld(self, benchmark: str) -> bool:
        """These come last: scores of others, published whole, could tell of their questions."""
        return not self.at.registry[benchmark].card.answers_public

    def _opened(self, submission: Submission, upload: Path) -> AbstractContextManager[Run]:
        if submission.kind is Kind.GENERATIONS:
            jury = self.jury
            return nullcontext(
                GenerationsRun(submission, upload, self.scorers, jury, jury.store.clock)
            )
        return self.scorers.open(submission, upload)

    def _fetch(self, submission: Submission, target: Path) -> None:
        try:
            self.uploads.take(submission, target)
        except TransientError as error:
            raise StoreAwayError.of(error) from error

    def _teller(self, task: Task, benchmark: str, to: BatchCallbacks) -> Callable[[Progress], None]:
        """Passes progress and output on, and stops the work where it is no longer wanted."""
        # Everyone can see the pulse: it names a private submission as the boards do, not at all.
        shown = public_record(task.submission)

        def tell(progress: Progress) -> None:
            told = RunProgress(shown.submission_id, shown.name, benchmark, progress)
            to.said.heard(lambda: to.run.log)
            self.heart.tell(told, to.said.last)
            self.listener(told)
            to.look(task)

        return tell


def ending(output: str) -> str:
    """The end of what a scorer printed, at most `LOG_CHARS` characters and what says so."""
    left_out = len(output) - LOG_CHARS
    if left_out <= 0:
        return output
    return f"({left_out:,} characters before this are left out)\n{output[-LOG_CHARS:]}"


@dataclass
class TaskRunner:
    """Works on one submission after another; what it finishes goes out."""

    at: Setting
    claims: Claims  # says whether they are still this worker's
    endings: Finalizer  # records what failed
    handing: Handoff  # has the scores that other workers handed over
    outgoing: PublishQueue  # takes what is finished
    scoring: Scoring  # runs scorers
    hand: ClaimedJobs  # what this worker holds
    giving_way: Preemption  # hands back what cannot be begun in time
    pace: SlowestRuns  # is told how long runs take
    broke: Callable[[AssayError], None]  # is told why no further code may run on this machine
    # set when the worker is to stop after the running batch
    stop: threading.Event = field(default_factory=threading.Event)
    _looked: datetime | None = None
    _did_not_come: set[str] = field(default_factory=set)

    def work(self, claimed: Task) -> None:
        """Score, and judge if that is this worker's part."""
        task = replace(claimed, begun_at=self.at.now())
        name, attempt = task.submission_id, task.status.attempts
        self.scoring.output = ""
        self.scoring.heart.working_on(name, attempt)
        log.info("Begun.", extra=about(name, attempt))
        try:
            self._do(task)
        except StoppedError:
            log.info("Stopped; what was finished is kept.", extra=about(name, attempt))
        except TransientError as error:
            self._after_fault(task, error)
        except AssayError as error:
            self._fail(task, blamed(error))
        except Exception as error:
            if is_full(error):
                raise TransientError("disk_low", "There is no room on the disk.") from error
            number = uuid.uuid4().hex[:8]
            log.exception("Incident %s", number, extra=about(name, attempt))
            self._fail(task, incident(number))
        finally:
            self.scoring.heart.working_on("")

    def _do(self, task: Task) -> None:
        self._look_now(task)
        self._check_not_banned(task)
        if self.endings.take_up(task):
            self.hand.let_go(task)
            return
        finished = self.outgoing.found(task)
        if finished is None and task.submission.kind is Kind.GENERATIONS:
            self.outgoing.send()  # Among them may be metrics that are to score its images.
        if finished is None:
            scored = self._taken(task) if task.handed_over else self.scoring.scores(task, self.look)
            output = self.scoring.shown_output(task.submission)
            finished = Finished(task, scored, output, self.at.now())
            took = finished.at - (task.begun_at or finished.at)
            if not task.handed_over:  # Scores of others are merely read.
                self.pace.took(task.submission, took.total_seconds())
        self._look_now(task)
        self.outgoing.add(finished)
        self.hand.finish(task)

    def look(self, task: Task) -> None:
        """Stop where that is wanted, and send what is due; a store that fails changes nothing."""
        if self.stop.is_set():
            raise StoppedError
        try:
            now, every = self.at.now(), timedelta(seconds=self.at.store.look_every_s)
            if self._looked is not None and now - self._looked < every:
                return
            self._looked = now
            self.claims.check_still_mine(task.submission_id)
        except TransientError as error:
            if error.code == "lost_race":
                raise
            level = logging.WARNING if error.code in NOT_LET_IN else logging.INFO
            log.log(level, "Going on unseen: %s", error, extra=about(task.submission_id))
        self.giving_way.look(task)
        self.outgoing.send_due()

    def _look_now(self, task: Task) -> None:
        self._looked = None
        self.look(task)

    def _check_not_banned(self, task: Task) -> None:
        try:
            self.claims.check_not_banned(task)
        except TransientError as error:
            if error.code == BANNED:
                raise

    def _taken(self, task: Task) -> list[Scored]:
        try:
            scored, self.scoring.output = self.handing.take(task.submission)
        except TransientError as error:
            raise StoreAwayError.of(error) from error
        return scored

    def _after_fault(self, task: Task, error: TransientError) -> None:
        """Let go of a task after a fault of the world, or keep it where it is not at fault."""
        away = isinstance(error, StoreAwayError) and not is_full(error)
        if is_full(error) or (away and not self._alone_away(task)):
            self.hand.postpone(task)  # It is taken up again; nothing else waits for it alone.
            raise error
        if away:
            # Others go first, here and elsewhere, while it rests.
            self.endings.give_back(task, _files_away(error), "", most=MAX_ATTEMPTS_TO_PUBLISH)
        elif error.code == BANNED:
            self.endings.hand_back([task], "It waits, since its account was banned.")
        elif error.code != "lost_race":
            output = self.scoring.shown_output(task.submission)
            self.endings.give_back(task, error, output)
        self.hand.let_go(task)

    def _alone_away(self, task: Task) -> bool:
        """Whether its files did not come twice, while the store answers: a first time is nothing."""
        name = task.submission_id
        if not self._store_answers():
            self._did_not_come.discard(name)
            return False
        if name not in self._did_not_come:
            self._did_not_come.add(name)
            return False
        self._did_not_come.discard(name)
        return True

    def _store_answers(self) -> bool:
        """Whether both parts of the store are there now, whatever was known of them before."""
        self.at.store.look_anew()
        try:
            self.at.store.public.head()
            self.at.store.private.head()
        except TransientError:
            return False
        return True

    def _fail(self, task: Task, error: AssayError) -> None:
        if error.code == BOX_NOT_ENDED:
            self.broke(error)
            if (
                task.submission.kind is Kind.GENERATIONS
            ):  # A metric did that, not whose images they are.
                self.endings.give_back(task, error, "")
                self.hand.let_go(task)
                return
        if error.fault == "submitter":
            self.scoring.scorers.forget(task.submission)  # The same code would only fail again.
        told = error if self.scoring.may_tell(task.submission) else without_its_words(error)
        self.endings.fail(task, told, self.scoring.shown_output(task.submission))
        self.hand.let_go(task)


def _files_away(error: TransientError) -> TransientError:
    return TransientError(
        "files_away",
        f"The store answers, but what it keeps of this submission does not come: {error.message}",
        "Nothing is wrong with the submission; the operator can find why in the store.",
    )
