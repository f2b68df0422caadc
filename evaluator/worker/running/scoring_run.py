"""From a claimed submission to its scores, telling of it on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import TransientError
from benchmarks.schema import Benchmark
from evaluator.scoring.progress import Progress
from evaluator.worker.claims.heartbeat import Heartbeat, RunProgress
from evaluator.worker.claims.tasks import Task
from evaluator.worker.ending.judging import Scored
from evaluator.worker.ending.upload_shelf import UploadShelf
from evaluator.worker.running.generations_run import GenerationsRun
from evaluator.worker.running.jury import Jury
from evaluator.worker.running.runs import Run
from evaluator.worker.running.said_lines import SaidLines
from evaluator.worker.running.scorer_role import ScorerRole
from leaderboard.ledger.private_records import public_record
from leaderboard.records import Kind, Submission
from leaderboard.store.live.interface import Live

LOG_CHARS = 4000
Look = Callable[[Task], None]


class StoreAwayError(TransientError):
    """The store does not answer; no submission is to blame, and none loses an attempt by it."""

    @classmethod
    def of(cls, error: TransientError) -> StoreAwayError:
        """A fault that the store met."""
        return cls(error.code, error.message, error.hint)


@dataclass(frozen=True)
class Told:
    """What happens after every batch.

    Attributes:
        run: whose output is read.
        said: passes it on.
        look: finds out whether to go on.
    """

    run: Run
    said: SaidLines
    look: Look


@dataclass
class Scoring:
    """Has the scorers of one worker score, one submission after another.

    Attributes:
        scorers: runs scoring modules.
        uploads: of what is to be scored.
        live: where output is told while it comes.
        registry: the benchmarks known here.
        data: folder of benchmark data, if there is one.
        heart: shows progress.
        listener: is told of progress.
        jury: knows the metrics that score generations.
        output: what the last scorer printed.
    """

    scorers: ScorerRole
    uploads: UploadShelf
    live: Live
    registry: Mapping[str, Benchmark]
    data: Path | None
    heart: Heartbeat
    listener: Callable[[RunProgress], None]
    jury: Jury
    output: str = ""

    def scores(self, task: Task, look: Look) -> list[Scored]:
        """The scores of a submission on each of its benchmarks.

        Args:
            task: the submission.
            look: finds out after every batch whether it is still wanted; what it raises ends the
                run and its box.

        Raises:
            StoreAwayError: its upload cannot be had now.
            TransientError: `lost_race`, `stopped`, or another fault of the world.
            AssayError: it failed.
        """
        submission = task.submission
        said = SaidLines(self.live, task.submission_id, may_tell=self.may_tell(submission))
        run: Run | None = None
        try:
            with (
                self.scorers.fetched(submission, self._fetch) as upload,
                self._opened(submission, upload) as run,
            ):
                told = Told(run, said, look)
                scored = {
                    name: run.scores_of(
                        self.registry[name], self.data, self._teller(task, name, told)
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
        return not self.registry[benchmark].card.answers_public

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

    def _teller(self, task: Task, benchmark: str, to: Told) -> Callable[[Progress], None]:
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
