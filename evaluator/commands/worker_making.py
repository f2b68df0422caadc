"""A worker of this machine, put together."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from benchmarks.prompt_sets.registry import load_prompt_sets, with_prompt_sets
from benchmarks.questions import QuestionFolder
from benchmarks.schema import Benchmark
from evaluator.commands.common import models_folder
from evaluator.commands.person import this_person
from evaluator.isolation.backend import IsolationStatus
from evaluator.isolation.gate import IsolationChoice, machine_isolation
from evaluator.isolation.layers import Layer
from evaluator.isolation.limits import Limits
from evaluator.isolation.plain import PlainProcess
from evaluator.launching.settings import WORKER
from evaluator.scoring.asking import Engine
from evaluator.scoring.local import LocalEngine
from evaluator.worker.claims.heartbeat import RunProgress
from evaluator.worker.roles import WorkerRole
from evaluator.worker.running.scorer_role import ScorerRole
from evaluator.worker.upkeep.disk_watch import DiskWatch
from evaluator.worker.upkeep.evictable import DiskPlaces
from evaluator.worker.worker import Worker
from leaderboard.ledger.ledger import Ledger
from leaderboard.store.interface import Store
from leaderboard.store.opening import StoreName

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
    """A worker of this machine; without an engine, it asks in this process.

    Args:
        opened: the store.
        store: its name.
        registry: the benchmarks known here.
        data: folder of benchmark data, if there is one.
        listener: is told of progress.
        engine: carries the batches of modules.
        isolation: what isolates strangers' code.
        required: layers without which none is run.
        role: what the worker does; one that judges only looks for no isolation.
        questions: folder of exported questions, where code is asked those.
        keys: folder of their keys, for a judge.
        name: unlike that of any other worker ever; None: one is made.
        scratch: folder for what may be lost; None: in the store's folder.
        wake: set where something new may be waiting.
        disk: looks after the room on its disk; None: nobody does.
    """
    folder = scratch_of(store, scratch)
    status = (
        machine_isolation(store.folder.resolve(), folder, choice=isolation, required=required)
        if role.scores
        else RUNS_NO_CODE
    )
    scorers = ScorerRole(
        isolation=status,
        own=PlainProcess(),
        scratch=folder,
        limits=Limits(),
        engine=engine or LocalEngine(),
        models=models_folder(),
        operator=this_person().key,
        questions=None if questions is None else QuestionFolder(questions),
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
    """Looks after the disks of a worker.

    Args:
        opened: the store, which says what is finished.
        scratch: of the worker.
        embeddings: folder of kept ones, which may be given up; None: there is none.
    """
    ledger = Ledger(opened)

    def finished() -> Collection[str]:
        return [s.submission.submission_id for s in ledger.statuses() if not s.unfinished]

    return DiskWatch(DiskPlaces(scratch, models_folder(), embeddings), finished)


def scratch_of(store: StoreName, given: Path | None) -> Path:
    """Where a worker keeps what may be lost."""
    return (given or store.folder / "scratch").resolve()


def name_of_worker(environment: Mapping[str, str]) -> str:
    """A name no other worker ever had; one that was started as a job is given it."""
    # Unique even where every start has the same process id, as in a container.
    own = f"{socket.gethostname().lower()[:40]}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
    return environment.get(WORKER) or own
