"""Run loop of the command `worker`: the worker is made, works, and is told to end."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from benchmarks.prompt_sets.registry import load_prompt_sets, with_prompt_sets
from benchmarks.schema import Benchmark
from evaluator.commands.launcher_option import launch
from evaluator.commands.worker_making import disk_watch, make_worker, name_of_worker
from evaluator.commands.worker_running import Surroundings
from evaluator.isolation.gate import IsolationChoice
from evaluator.isolation.layers import Layer
from evaluator.launching.settings import JobSettings
from evaluator.reevaluating import reevaluate_at_start
from evaluator.scoring.asking import Engine
from evaluator.worker.roles import WorkerRole
from evaluator.worker.stopping import stop_on_signals
from evaluator.worker.upkeep.disk_watch import DiskWatch
from evaluator.worker.upkeep.structured_logs import RememberedClock
from evaluator.worker.worker import Worker
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.orphans import sweep
from leaderboard.ledger.tidying import tidy_all
from leaderboard.publication.publisher import Publisher, cards_of
from leaderboard.store.interface import Store

Carrier = Callable[[Path], AbstractContextManager[Engine]]
"""Makes what carries batches, with a folder for its logs."""


@dataclass(frozen=True)
class Shift:
    """What one worker is to do, and with what.

    Attributes:
        surroundings: store, scratch, log and health.
        environment: of this process.
        registry: the benchmarks known here.
        carrier: makes the engine.
        role: what the worker does.
        data: folder of benchmark data, if there is one.
        questions: folder of exported questions.
        keys: folder of their keys.
        isolation: what isolates strangers' code.
        required: layers without which none is run.
        embeddings: folder of kept ones, which may be given up.
        claim: how many to take in one commit; None: as many as fits the store.
        once: whether to stop when nothing is left.
        submission: to work on alone; None: on all.
        jobs: how jobs are run that run the code; None: it is run here.
    """

    surroundings: Surroundings
    environment: Mapping[str, str]
    registry: Mapping[str, Benchmark]
    carrier: Carrier
    role: WorkerRole = WorkerRole.BOTH
    data: Path | None = None
    questions: Path | None = None
    keys: Path | None = None
    isolation: IsolationChoice = IsolationChoice.AUTO
    required: Collection[Layer] = ()
    embeddings: Path | None = None
    claim: int | None = None
    once: bool = False
    submission: str | None = None
    jobs: JobSettings | None = None

    def run(self) -> None:
        """Work until it is done, or this process is told to end.

        Raises:
            SubmitterError: `wrong_launcher`, or options that cannot be used.
            TransientError: `not_claimed`, `disk_low`, or the store fails.
        """
        if self.jobs is not None and self.submission is not None:
            raise SubmitterError(
                "wrong_launcher",
                "With --submission the one submission is run here.",
                "Leave --launcher jobs out, or --submission.",
            )
        opened, clock = self._opened()
        wake = threading.Event()
        around, name = self.surroundings, name_of_worker(self.environment)
        with ExitStack() as entered:
            tell = entered.enter_context(around.logging(name, clock.last))
            if self.role.judges and self.submission is None:
                self._put_in_order(opened)
            engine = entered.enter_context(self.carrier(around.scratch / "ray"))
            disk = disk_watch(opened, around.scratch, self.embeddings)
            made = self._made(opened, name, engine, wake, disk)
            tell(made)
            # Where jobs run the code, this worker beats only while it judges.
            beats = "" if self.jobs is not None else name
            poll_s = entered.enter_context(around.around(beats, opened, wake))
            entered.enter_context(disk.watching())
            self._work(made, opened, poll_s, wake, disk)

    def _opened(self) -> tuple[Store, RememberedClock]:
        """The store as this worker uses it, and its clock."""
        opened = self.surroundings.store.open()
        clock = RememberedClock(opened.clock)
        claim = opened.jobs_per_commit if self.claim is None else self.claim
        return replace(opened, clock=clock, jobs_per_commit=claim), clock

    def _made(
        self,
        opened: Store,
        name: str,
        engine: Engine,
        wake: threading.Event,
        disk: DiskWatch,
    ) -> Worker:
        # Where jobs run the code, this machine need not be able to.
        role = self.role if self.jobs is None else WorkerRole.JUDGE
        made = make_worker(
            opened,
            self.surroundings.store,
            self.registry,
            self.data,
            engine=engine,
            isolation=self.isolation,
            required=self.required,
            role=role,
            questions=self.questions if role.scores else None,
            keys=self.keys,
            name=name,
            scratch=self.surroundings.scratch,
            wake=wake,
            disk=disk,
        )
        if role.scores and not made.gate.ok:
            reason, remedy = made.gate.reason, made.gate.remedy
            logging.warning("Strangers' code is not run here: %s %s", reason, remedy)
        return made

    def _work(
        self,
        made: Worker,
        opened: Store,
        poll_s: float,
        wake: threading.Event,
        disk: DiskWatch,
    ) -> None:
        stop = threading.Event()
        try:
            if self.submission is not None:
                disk.check()
                self._one(made, opened, self.submission)
                return
            with stop_on_signals(stop, wake, opened.wait_no_more):
                if self.jobs is not None:
                    self._launch(self.jobs, made, opened, stop, wake)
                elif self.once:
                    made.run_all(stop)
                else:
                    made.run_forever(stop, poll_s)
        except KeyboardInterrupt:
            stop.set()
        if stop.is_set():
            logging.info("Stopped.")

    def _one(self, made: Worker, opened: Store, submission_id: str) -> None:
        # It hands back what it works on when it is interrupted, by the first signal.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        if made.run(submission_id):
            return
        status = Ledger(opened).status(submission_id)
        if status.unfinished:
            raise TransientError(
                "not_claimed",
                f"{submission_id} is {status.state}, and this worker may not have it now.",
                "See what this machine lacks: python -m evaluator doctor",
            )
        logging.info("%s is %s already.", submission_id, status.state)

    def _launch(
        self,
        jobs: JobSettings,
        made: Worker,
        opened: Store,
        stop: threading.Event,
        wake: threading.Event,
    ) -> None:
        # Only where it is wanted: the command line starts without the Hub's client.
        from evaluator.launching.hub_jobs import HubJobs  # noqa: PLC0415
        from evaluator.launching.launcher import JobLauncher  # noqa: PLC0415

        def judge() -> None:
            made.run_all(stop)

        known = with_prompt_sets(self.registry, load_prompt_sets())
        launcher = JobLauncher(opened, HubJobs.on_the_hub(jobs), known)
        judges = judge if self.role.judges else None
        launch(launcher, stop, once=self.once, judge=judges, wake=wake)

    def _put_in_order(self, opened: Store) -> None:
        """Remove what was interrupted, show the benchmarks known here, run again what is stale."""
        publisher = Publisher(opened, cards_of(self.registry))
        steps: tuple[Callable[[], object], ...] = (
            lambda: tidy_all(opened),
            lambda: sweep(opened, opened.clock()),
            lambda: publisher.publish_cards(opened.clock()),
            lambda: reevaluate_at_start(opened, self.registry, self.data),
        )
        for step in steps:
            try:
                step()
            except PlatformError as error:
                # A record that is broken is to stop nothing else; `doctor` lists them.
                logging.error("Not put in order: %s", error)  # noqa: TRY400 (it names the file)
