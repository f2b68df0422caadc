"""Run loop of the command `worker`: the worker is made, works beside its log and health, and ends."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from benchmarks.prompt_sets.prompt_set import load_prompt_sets, with_prompt_sets
from benchmarks.questions import QuestionFolder
from benchmarks.schema import Benchmark
from evaluator.commands.common import ENDING_SIGNALS, ended_in_order, models_folder
from evaluator.environments.cache import EnvironmentCache
from evaluator.isolation.availability import IsolationChoice, PlainProcess, machine_isolation
from evaluator.isolation.backend import IsolationStatus, Layer
from evaluator.isolation.job import scorer_limits
from evaluator.launching.planning import WORKER, JobSettings
from evaluator.reevaluating import reevaluate_at_start
from evaluator.scoring.asking import Engine
from evaluator.scoring.engine import LocalEngine
from evaluator.worker.disk import DiskPlaces, DiskWatch
from evaluator.worker.liveness import LEASE, LEASE_SLACK, RunProgress
from evaluator.worker.logs import (
    LOGS,
    Activity,
    LogFormat,
    Logged,
    RememberedClock,
    SecretRedaction,
    limits_of,
    logging_to,
)
from evaluator.worker.scorer_role import ScorerRole
from evaluator.worker.tasks import WorkerRole
from evaluator.worker.worker import Worker
from leaderboard.governance.authentication import this_person
from leaderboard.ledger.cleanup import sweep, tidy_all
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.publisher import Publisher, cards_of, table_schemas
from leaderboard.publication.snapshot import known_and_shown
from leaderboard.store.interface import Store
from leaderboard.store.opening import StoreName

if TYPE_CHECKING:
    from leaderboard.service.webhooks import Webhook


class Poll(StrEnum):
    """Why a worker looks as often as it does."""

    FOLDER = "folder"
    HUB = "hub"
    WOKEN = "woken"


POLL_S = {Poll.FOLDER: 1.0, Poll.HUB: 15.0, Poll.WOKEN: 60.0}
"""Seconds between two looks: on the Hub each is a request; where webhooks wake it, few are needed."""

Carrier = Callable[[Path], AbstractContextManager[Engine]]
"""Makes what carries batches, with a folder for its logs."""


@contextmanager
def stop_on_signals(
    stop: threading.Event,
    wake: threading.Event | None = None,
    also: Callable[[], object] = lambda: None,
) -> Iterator[None]:
    """Until this is left, the first signal to end sets the event, and the next one interrupts.

    Only the main thread may enter.
    """
    signals = 0

    def set_events() -> None:
        stop.set()
        if wake is not None:
            wake.set()
        also()

    def on_signal(_: int, __: FrameType | None) -> None:
        nonlocal signals
        signals += 1
        if signals > 1:
            raise KeyboardInterrupt
        # The main thread may be within the lock of one of these events just now.
        threading.Thread(target=set_events, name="stop", daemon=True).start()

    before = {number: signal.signal(number, on_signal) for number in ENDING_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True)
class RunLoop:
    """What one worker is to do, and with what."""

    store: StoreName
    scratch: Path  # folder for what may be lost
    environment: Mapping[str, str]  # of this process
    registry: Mapping[str, Benchmark]  # the benchmarks known here
    carrier: Carrier  # makes the engine
    role: WorkerRole = WorkerRole.BOTH  # what the worker does
    data: Path | None = None  # folder of benchmark data, if there is one
    questions: Path | None = None  # folder of exported questions
    keys: Path | None = None  # folder of their keys
    isolation: IsolationChoice = IsolationChoice.AUTO  # what isolates strangers' code
    required: Collection[Layer] = ()  # layers without which none is run
    embeddings: Path | None = None  # folder of kept ones, which may be given up
    claim: int | None = None  # how many to take in one commit; None: as many as fits the store
    once: bool = False  # whether to stop when nothing is left
    submission: str | None = None  # to work on alone; None: on all
    jobs: JobSettings | None = None  # how jobs are run that run the code; None: it is run here
    log_format: LogFormat = LogFormat.TEXT  # of the error output
    health_port: int | None = None  # where health is answered; None: nowhere
    health_host: str = "127.0.0.1"
    poll_s: float | None = None  # seconds between two looks at the store; None: as fits it

    def run(self) -> None:
        """Work until it is done, or this process is told to end."""
        if self.jobs is not None and self.submission is not None:
            raise SubmitterError(
                "wrong_launcher",
                "With --submission the one submission is run here.",
                "Leave --launcher jobs out, or --submission.",
            )
        opened, clock = self._opened()
        wake = threading.Event()
        name = name_of_worker(self.environment)
        with ExitStack() as entered:
            tell = entered.enter_context(self._logging(name, clock.last))
            if self.role.judges and self.submission is None:
                self._put_in_order(opened)
            engine = entered.enter_context(self.carrier(self.scratch / "ray"))
            disk = disk_watch(opened, self.scratch, self.embeddings)
            made = self._made(opened, name, engine, wake, disk)
            tell(made)
            # Where jobs run the code, this worker beats only while it judges.
            beats = "" if self.jobs is not None else name
            poll_s = entered.enter_context(self._answering(beats, opened, wake))
            entered.enter_context(disk.watching())
            self._work(made, opened, poll_s, wake, disk)

    def _opened(self) -> tuple[Store, RememberedClock]:
        """The store as this worker uses it, and its clock."""
        opened = self.store.open()
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
            self.store,
            self.registry,
            self.data,
            engine=engine,
            isolation=self.isolation,
            required=self.required,
            role=role,
            questions=self.questions if role.scores else None,
            keys=self.keys,
            name=name,
            scratch=self.scratch,
            wake=wake,
            disk=disk,
        )
        if role.scores and not made.availability.ok:
            reason, remedy = made.availability.reason, made.availability.remedy
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
                # It hands back what it works on when it is interrupted, by the first signal.
                with ended_in_order():
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
        between = judge if self.role.judges else lambda: None
        launcher.run(stop, once=self.once, between=between, wake=wake)

    @contextmanager
    def _answering(self, own: str, opened: Store, wake: threading.Event) -> Iterator[float]:
        """Answer probes and webhooks meanwhile; gives the seconds between two looks at the store."""
        with ExitStack() as around:
            hook = None
            if self.health_port is not None:
                hook = self._webhook(os.environ, opened, wake)
                self._serve(around, own, opened, hook)
            yield poll_of(self.poll_s, self.store, woken=hook is not None)

    @contextmanager
    def _logging(
        self, name: str, clock: Callable[[], datetime]
    ) -> Iterator[Callable[[Worker], None]]:
        """Log as was chosen; gives what is told of the worker once it is made, for lines to say."""
        made: list[Worker] = []

        def doing() -> Activity:
            if not made:
                return Activity()
            pulse = made[0].heart.pulse
            return Activity(pulse.submission_id, pulse.attempt)

        logged = Logged(name, clock, doing, SecretRedaction.of(os.environ))
        with logging_to(self.log_format, logged, self.scratch / LOGS, limits_of(os.environ)):
            yield made.append

    def _serve(self, around: ExitStack, own: str, opened: Store, hook: Webhook | None) -> None:
        # Only where it is wanted: the command line starts without it.
        from evaluator.worker.health_server import HealthServer  # noqa: PLC0415
        from leaderboard.service.polling import HealthWatch  # noqa: PLC0415

        watch = HealthWatch(opened, self.scratch, own=own)
        server = HealthServer(watch, hook, host=self.health_host, port=self.health_port or 0)
        around.enter_context(server.serving())

    def _webhook(
        self, environment: MutableMapping[str, str], opened: Store, wake: threading.Event
    ) -> Webhook | None:
        from leaderboard.service.webhooks import webhook_from  # noqa: PLC0415

        def woken() -> None:
            opened.look_anew()
            wake.set()

        return webhook_from(environment, self.store.repositories, woken)

    def _put_in_order(self, opened: Store) -> None:
        """Remove what was interrupted, show the benchmarks known here, run again what is stale."""
        publisher = Publisher(opened, cards_of(self.registry))
        steps: tuple[Callable[[], object], ...] = (
            lambda: tidy_all(opened),
            lambda: sweep(opened, opened.clock()),
            lambda: publisher.publish_cards(opened.clock()),
            lambda: self._describe_datasets(opened),
            lambda: reevaluate_at_start(opened, self.registry, self.data),
        )
        for step in steps:
            try:
                step()
            except PlatformError as error:
                # A record that is broken is to stop nothing else; `doctor` lists them.
                logging.error("Not put in order: %s", error)  # noqa: TRY400 (it names the file)

    def _describe_datasets(self, opened: Store) -> None:
        """Name the benchmarks of a store on the Hub in its dataset cards, or at the next start."""
        if not self.store.on_hub:
            return
        # Only here: a worker on a folder starts without the Hub's client.
        from leaderboard.store.hub.hub_store import HubParts  # noqa: PLC0415
        from leaderboard.store.hub.maintenance import write_cards  # noqa: PLC0415

        cards = known_and_shown(opened.public, cards_of(self.registry))
        try:
            parts = HubParts(self.store.hub_name, self.store.folder)
            for line in write_cards(parts, cards, table_schemas()):
                logging.debug("%s", line)
        except TransientError as error:
            logging.warning("The dataset cards stay as they are for now: %s", error)


UNHEARD = (
    "Nobody hears the heartbeat of this worker, since ASSAY_LIVE or ASSAY_LIVE_SECRET is not set: "
    f"if its machine is lost, others wait {(LEASE + LEASE_SLACK) // timedelta(minutes=1)} minutes for "
    "what it holds. Set both to the address and the secret of the app."
)
RUNS_NO_CODE = IsolationStatus(None, ())
"""Of a worker that only judges: nothing is probed, since nothing is run."""


def make_worker(
    opened: Store,
    store: StoreName,
    registry: Mapping[str, Benchmark],
    data: Path | None,
    listener: Callable[[RunProgress], None] = lambda _: None,
    engine: Engine | None = None,
    isolation: IsolationChoice = IsolationChoice.AUTO,
    required: Collection[Layer] = (),
    role: WorkerRole = WorkerRole.BOTH,
    questions: Path | None = None,
    keys: Path | None = None,
    name: str | None = None,
    scratch: Path | None = None,
    wake: threading.Event | None = None,
    disk: DiskWatch | None = None,
) -> Worker:
    """A worker of this machine; without an engine, it asks in this process."""
    folder = scratch_of(store, scratch)
    if not opened.heartbeats_shared:
        logging.warning(UNHEARD)
    status = (
        machine_isolation(store.folder.resolve(), folder, choice=isolation, required=required)
        if role.scores
        else RUNS_NO_CODE
    )
    scorers = ScorerRole(
        isolation=status,
        own=PlainProcess(),
        scratch=folder,
        limits=scorer_limits(os.environ),
        engine=engine or LocalEngine(),
        models=models_folder(),
        operator=this_person().key,
        questions=None if questions is None else QuestionFolder(questions),
        environments=EnvironmentCache.of_settings(os.environ),
    )
    return Worker(
        name or name_of_worker(os.environ),
        opened,
        registry=with_prompt_sets(registry, load_prompt_sets()),
        data=data,
        scorers=scorers,
        listener=listener,
        role=role,
        keys=keys,
        wake=wake,
        disk=disk,
    )


def disk_watch(opened: Store, scratch: Path, embeddings: Path | None = None) -> DiskWatch:
    """Looks after the disks of a worker."""
    ledger = Ledger(opened)

    def finished() -> Collection[str]:
        return [s.submission.submission_id for s in ledger.statuses() if not s.unfinished]

    built = EnvironmentCache.of_settings(os.environ).folder
    return DiskWatch(DiskPlaces(scratch, models_folder(), embeddings, built), finished)


def scratch_of(store: StoreName, given: Path | None) -> Path:
    """Where a worker keeps what may be lost."""
    return (given or store.folder / "scratch").resolve()


def name_of_worker(environment: Mapping[str, str]) -> str:
    """A name no other worker ever had; one that was started as a job is given it."""
    # Unique even where every start has the same process id, as in a container.
    own = f"{socket.gethostname().lower()[:40]}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
    return environment.get(WORKER) or own


def poll_of(given: float | None, store: StoreName, *, woken: bool) -> float:
    """Seconds between two looks at a store."""
    if given is not None:
        return given
    if not store.on_hub:
        return POLL_S[Poll.FOLDER]
    return POLL_S[Poll.WOKEN if woken else Poll.HUB]
