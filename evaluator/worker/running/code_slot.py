"""The place on a machine where strangers' code runs."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import AssayError, PlatformError
from benchmarks.schema import Benchmark
from evaluator.worker.roles import WorkerRole
from evaluator.worker.running.scorer_role import ScorerRole
from leaderboard.desk import Gate
from leaderboard.records import Submission

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
        """Whether its questions are here, with their images; those of models bring their own."""
        if benchmark.track == "models":
            return benchmark.has_answers(data)
        questions = self.scorers.questions
        if questions is None:
            return benchmark.has_questions(data)
        try:
            return questions.has(benchmark)
        except PlatformError as error:
            log.warning("Nothing is scored on %s: %s", benchmark.name, error)
            return False
