"""Work on one claimed submission, to its end: scores, or a state with a reason."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from benchmarks.errors import AssayError, TransientError
from evaluator.isolation.supervising.failures import without_its_words
from evaluator.worker.claims.claiming import Claims
from evaluator.worker.claims.giving_way import GivingWay
from evaluator.worker.claims.hand import Hand
from evaluator.worker.claims.pace import Pace
from evaluator.worker.claims.tasks import Finished, Task, about
from evaluator.worker.ending.concluding import MAX_ATTEMPTS_TO_PUBLISH, Endings, blamed, incident
from evaluator.worker.ending.handing_over import HandingOver
from evaluator.worker.ending.judging import Scored
from evaluator.worker.ending.outgoing import Outgoing
from evaluator.worker.running.generations_run import BOX_NOT_ENDED
from evaluator.worker.running.scoring_run import Scoring, StoreAwayError
from evaluator.worker.stopping import StoppedError
from evaluator.worker.upkeep.disk_room import is_full
from leaderboard.ledger.private_records import BANNED
from leaderboard.records import Kind
from leaderboard.store.interface import NOT_LET_IN, Store

log = logging.getLogger(__name__)


@dataclass
class OneTask:
    """Works on one submission after another; what it finishes goes out.

    Attributes:
        store: of the submissions.
        claims: says whether they are still this worker's.
        endings: records what failed.
        handing: has the scores that other workers handed over.
        outgoing: takes what is finished.
        scoring: runs scorers.
        hand: what this worker holds.
        giving_way: hands back what cannot be begun in time.
        pace: is told how long runs take.
        broke: is told why no further code may run on this machine.
        stop: set when the worker is to stop after the running batch.
    """

    store: Store
    claims: Claims
    endings: Endings
    handing: HandingOver
    outgoing: Outgoing
    scoring: Scoring
    hand: Hand
    giving_way: GivingWay
    pace: Pace
    broke: Callable[[AssayError], None]
    stop: threading.Event = field(default_factory=threading.Event)
    _looked: datetime | None = None
    _did_not_come: set[str] = field(default_factory=set)

    def work(self, claimed: Task) -> None:
        """Score, and judge if that is this worker's part.

        Raises:
            TransientError: the store does not answer, or there is no room on the disk; the task
                stays in hand.
        """
        task = replace(claimed, begun_at=self.store.clock())
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
            finished = Finished(task, scored, output, self.store.clock())
            took = finished.at - (task.begun_at or finished.at)
            if not task.handed_over:  # Scores of others are merely read.
                self.pace.took(task.submission, took.total_seconds())
        self._look_now(task)
        self.outgoing.add(finished)
        self.hand.finish(task)

    def look(self, task: Task) -> None:
        """Stop where that is wanted, and send what is due; a store that fails changes nothing.

        Raises:
            TransientError: `stopped`, or `lost_race`.
        """
        if self.stop.is_set():
            raise StoppedError
        try:
            now, every = self.store.clock(), timedelta(seconds=self.store.look_every_s)
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
        self.store.look_anew()
        try:
            self.store.public.head()
            self.store.private.head()
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
