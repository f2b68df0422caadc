"""The author's dry run: what the worker does with a module, on a part of some benchmarks.

The same box, the same trust checks, the same engine and the same protocols; nothing is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pandas as pd

from benchmarks.errors import SubmitterError
from benchmarks.rows import Row
from evaluator.isolation.backend import Backend
from evaluator.isolation.inside.frames import Capability
from evaluator.isolation.job import Job, ModelFiles
from evaluator.isolation.limits import Limits
from evaluator.isolation.supervising.session import ScorerSession
from evaluator.scoring.local import LocalEngine
from evaluator.scoring.progress import Progress
from evaluator.scoring.sandbox import SandboxSource
from evaluator.submission.checking.costs import Costs, measured
from evaluator.submission.checking.drawn import Drawn
from evaluator.submission.receipts import environment_versions
from evaluator.submission.validate import ScoringModule
from evaluator.worker.ending.judging import Scored
from evaluator.worker.running.runs import ModuleRun, ModuleWork
from leaderboard.publication.origins import scores_sha256
from leaderboard.records import Kind, Receipt, Submission
from leaderboard.trust import TrustReport

JOINED = "+"
"""Between the names of the benchmarks of a receipt."""
_SAMPLE = 16
_TESTING = "checking"
"""The stage that a run tells after each pass of the trust checks."""

Tell = Callable[[str, Progress], None]
"""Told of the benchmark and how far it is."""


@dataclass(frozen=True)
class Machine:
    """What a dry run is made on.

    Attributes:
        backend: starts the box.
        layers: what isolates in it.
        limits: of the worker.
        models: of the Hub, which the module names.
        scratch: an empty folder.
    """

    backend: Backend
    layers: tuple[str, ...]
    limits: Limits
    models: tuple[ModelFiles, ...]
    scratch: Path


@dataclass(frozen=True)
class BenchmarkRun:
    """One benchmark of a dry run.

    Attributes:
        drawn: what was asked.
        scored: what came back.
        rows: every measure, on what was asked alone.
        testing_s: of the trust checks; 0 for all benchmarks but the first.
        asking_s: until every pair had its score, reading and waiting included.
        measuring_s: from scores to measures.
    """

    drawn: Drawn
    scored: Scored
    rows: tuple[Row, ...]
    testing_s: float
    asking_s: float
    measuring_s: float

    @property
    def seconds(self) -> float:
        """All of it, without the start."""
        return self.testing_s + self.asking_s + self.measuring_s

    @property
    def scores(self) -> pd.Series[float]:
        """By pair id; NaN where there is none."""
        column: pd.Series[float] = self.scored.table.overall.iloc[:, 0]
        return column


@dataclass
class DryRun:
    """What a dry run found, as far as it came.

    Attributes:
        layers: what isolated.
        start_s: until the scorer was imported and constructed; None where it was not.
        capabilities: what it can do.
        runs: the benchmarks that are through.
        costs: what an image, a text and a pair cost; None where that was not reached.
        peak_memory_bytes: of all processes of the box.
        log: what the module printed, harmless to show.
        failure: what ended it; None where it went through.
    """

    layers: tuple[str, ...]
    start_s: float | None = None
    capabilities: Capability = Capability.SCORE
    runs: list[BenchmarkRun] = field(default_factory=list)
    costs: Costs | None = None
    peak_memory_bytes: int = 0
    log: str = ""
    failure: SubmitterError | None = None

    @property
    def trust(self) -> TrustReport | None:
        """The checks, which are made on the first benchmark."""
        return self.runs[0].scored.trust if self.runs else None

    @property
    def pairs(self) -> int:
        """That were asked."""
        return sum(run.drawn.n_pairs for run in self.runs)


def dry_run(
    module: ScoringModule,
    benchmarks: Sequence[Drawn],
    machine: Machine,
    tell: Tell,
    now: datetime,
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> DryRun:
    """Run a module; what is wrong with it is told in the result, not raised.

    Args:
        module: as it was validated.
        benchmarks: what it is asked, in this order.
        machine: where it runs.
        tell: told of progress.
        now: the current time.
        clock: seconds.

    Raises:
        PlatformError: the box cannot be started on this machine.
    """
    manifest, found = module.manifest, DryRun(machine.layers)
    job = Job(
        module.content.folder,
        manifest.entry_point,
        manifest.weights or None,
        machine.limits,
        models=machine.models,
    )
    session = machine.backend.start(job)
    with ExitStack() as box:
        box.callback(session.close)
        try:
            source = SandboxSource(session, module.content.sha256, until=box)
            started = clock()
            with source.open():
                found.start_s, found.capabilities = clock() - started, session.capabilities
            work = ModuleWork(
                _as_submission(module, benchmarks, now),
                machine.layers,
                machine.scratch / "shards",
                LocalEngine(),
            )
            run = ModuleRun(work, source, session)
            for one in benchmarks:
                found.runs.append(_run(run, one, tell, clock))
            found.costs = _costs(session, benchmarks)
        except SubmitterError as error:
            found.failure = error
        found.peak_memory_bytes = session.peak_memory_bytes
    # Once the box has ended, nothing more is printed.
    found.log = session.log
    return found


def receipt_of(module: ScoringModule, found: DryRun, now: datetime) -> Receipt:
    """The receipt of a dry run that went through; its pair ids are `benchmark/pair_id`."""
    columns = [run.scores.add_prefix(f"{run.drawn.name}/") for run in found.runs]
    return Receipt(
        content_sha256=module.content.sha256,
        versions=environment_versions(),
        isolation=found.layers,
        benchmark=JOINED.join(run.drawn.name for run in found.runs),
        pairs=found.pairs,
        scores_sha256=scores_sha256(pd.concat(columns)),
        checked_at=now,
    )


def _run(run: ModuleRun, drawn: Drawn, tell: Tell, clock: Callable[[], float]) -> BenchmarkRun:
    started = tested = clock()

    def told(progress: Progress) -> None:
        nonlocal tested
        if progress.stage == _TESTING:
            tested = clock()
        tell(drawn.name, progress)

    scored = run.scores_of(drawn, None, told)
    asked = clock()
    rows = drawn.evaluate(scored.table, drawn.answers(None)).rows
    return BenchmarkRun(drawn, scored, rows, tested - started, asked - tested, clock() - asked)


def _costs(session: ScorerSession, benchmarks: Sequence[Drawn]) -> Costs:
    questions = benchmarks[0].questions(None)
    images = [read() for read in list(questions.images.values())[:_SAMPLE]]
    return measured(session, images, list(questions.texts.values()))


def _as_submission(module: ScoringModule, benchmarks: Sequence[Drawn], now: datetime) -> Submission:
    manifest = module.manifest
    lower = manifest.direction == "lower_is_better"
    return Submission(
        submission_id="dry-run-of-its-author",
        kind=Kind.METRIC,
        name=manifest.name,
        version=manifest.version,
        metrics=(manifest.name,),
        benchmarks=tuple(one.name for one in benchmarks),
        submitter="",
        lower_is_better=(manifest.name,) if lower else (),
        trained_on=manifest.trained_on,
        flops_per_pair=manifest.flops_of_metrics,
        models=manifest.models,
        content_sha256=module.content.sha256,
        archive="",
        entry_point=manifest.entry_point,
        weights=manifest.weights,
        received_at=now,
    )
