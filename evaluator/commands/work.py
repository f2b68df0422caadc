"""`worker` and `doctor`: what operators run."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from benchmarks.errors import SubmitterError
from benchmarks.question_folder import QuestionFolder
from benchmarks.registry import load_registry
from benchmarks.schema import Benchmark
from evaluator.commands.common import (
    DEFAULT_STORE,
    DataOption,
    StoreOption,
    console,
    models_folder,
)
from evaluator.commands.engine_choice import (
    ActorsOption,
    EngineChoice,
    EngineOption,
    RayAddressOption,
    make_engine,
)
from evaluator.commands.isolation_option import IsolationOption, RequireOption
from evaluator.commands.person import this_person
from evaluator.isolation.backend import IsolationStatus
from evaluator.isolation.gate import IsolationChoice, machine_isolation
from evaluator.isolation.layers import LEGEND, Layer
from evaluator.isolation.limits import Limits
from evaluator.isolation.plain import PlainProcess
from evaluator.scoring.engines import Engine
from evaluator.scoring.local import LocalEngine
from evaluator.worker.heartbeat import RunProgress
from evaluator.worker.roles import WorkerRole
from evaluator.worker.scorer_role import ScorerRole
from evaluator.worker.worker import Worker
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.orphans import sweep
from leaderboard.ledger.tidying import tidy_all
from leaderboard.publication.publisher import Publisher, cards_of
from leaderboard.states import State
from leaderboard.store.interface import Store
from leaderboard.store.opening import StoreName

RUNS_NO_CODE = IsolationStatus(None, ())
"""Of a worker that only judges: nothing is probed, since nothing is run."""

RoleOption = Annotated[
    WorkerRole,
    typer.Option(
        help="`score` runs code on the questions and hands the scores over; it needs no answers. "
        "`judge` turns scores into results and runs no code. `both` does all of it."
    ),
]
QuestionsOption = Annotated[
    Path | None,
    typer.Option(
        help="With `--role score`: folder of exported questions, instead of benchmark data."
    ),
]
KeysOption = Annotated[
    Path | None,
    typer.Option(
        help="With `--role judge`: folder of the keys of exported questions, whose ids are opaque."
    ),
]


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
) -> Worker:
    """A worker of this machine on a folder store; without an engine, it asks in this process.

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
    """
    status = (
        machine_isolation(store.folder.resolve(), choice=isolation, required=required)
        if role.scores
        else RUNS_NO_CODE
    )
    scorers = ScorerRole(
        isolation=status,
        own=PlainProcess(),
        scratch=store.folder.resolve() / "scratch",
        limits=Limits(),
        engine=engine or LocalEngine(),
        models=models_folder(),
        operator=this_person().key,
        questions=None if questions is None else QuestionFolder(questions),
    )
    # Unique even where every start has the same process id, as in a container.
    name = f"{socket.gethostname().lower()[:40]}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
    return Worker(
        name,
        opened,
        registry=registry,
        data=data,
        scorers=scorers,
        listener=listener,
        role=role,
        keys=keys,
    )


def check_role(role: WorkerRole, questions: Path | None, keys: Path | None) -> None:
    """Refuse options that do not go with a role.

    Raises:
        SubmitterError: `wrong_role`, or `key_beside_questions`.
    """
    if questions is not None and role is not WorkerRole.SCORE:
        raise SubmitterError(
            "wrong_role",
            f"A worker with --role {role} does not take its questions from an exported folder.",
            "Leave --questions out, or run one worker with --role score and one that judges.",
        )
    if keys is not None and not role.judges:
        raise SubmitterError(
            "wrong_role",
            "A worker that only scores may not know what the opaque ids stand for.",
            "Give --keys to the worker that judges, and keep them away from this machine.",
        )
    lying = sorted(questions.glob("*.key.parquet")) if questions is not None else []
    if lying:
        raise SubmitterError(
            "key_beside_questions",
            f"{lying[0]} says what the opaque ids stand for, which a host that scores may not know.",
            "Copy only the folders of the benchmarks there; keep the keys where the judge runs.",
        )


def worker(
    store: StoreOption = DEFAULT_STORE,
    data: DataOption = None,
    once: Annotated[bool, typer.Option(help="Stop when nothing is left to do.")] = False,
    engine: EngineOption = EngineChoice.LOCAL,
    ray_address: RayAddressOption = None,
    actors: ActorsOption = None,
    isolation: IsolationOption = IsolationChoice.AUTO,
    require: RequireOption = None,
    role: RoleOption = WorkerRole.BOTH,
    questions: QuestionsOption = None,
    keys: KeysOption = None,
) -> None:
    """Score, judge and publish what is queued.

    On two machines, one worker with `--role score` runs the code and holds no answers, and one with
    `--role judge` has the answers and runs no code. Scores files go to the judge alone.

    With `--engine ray` every module runs in as many boxes as there are actors, each on the machine
    of its actor; the machines must isolate code alike.

    Without isolation, strangers' code is left to other workers. With `--isolation none` what you
    submitted yourself is run all the same, as this user.

    Example: python -m evaluator worker --once
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    check_role(role, questions, keys)
    opened, registry = store.open(), load_registry()
    if role.judges:
        _put_in_order(opened, registry)
    # A worker that is told to stop hands back what it works on; finished parts are kept.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    carried_by = engine if role.scores else EngineChoice.LOCAL
    with make_engine(
        carried_by, ray_address, actors, store.folder.resolve() / "scratch" / "ray"
    ) as carrier:
        made = make_worker(
            opened,
            store,
            registry,
            data,
            engine=carrier,
            isolation=isolation,
            required=require or (),
            role=role,
            questions=questions,
            keys=keys,
        )
        gate = made.gate
        if role.scores and not gate.ok:
            logging.warning("Strangers' code is not run here: %s %s", gate.reason, gate.remedy)
        try:
            if once:
                made.run_all()
            else:
                made.run_forever(threading.Event())
        except KeyboardInterrupt:
            logging.info("Stopped.")


def _put_in_order(opened: Store, registry: Mapping[str, Benchmark]) -> None:
    """Remove what acts and requests that were interrupted left; show the benchmarks known here."""
    tidy_all(opened)
    sweep(opened, opened.clock())
    Publisher(opened, cards_of(registry)).publish_cards(opened.clock())


def isolation_rows(status: IsolationStatus) -> Iterator[tuple[str, str, str]]:
    """What `doctor` says of isolation: part, state, what to do.

    Args:
        status: of this machine, probed just now.
    """
    what = "isolation of code"
    if not status.ok or status.backend is None:
        yield what, status.reason, status.remedy
        return
    yield what, f"by {status.backend.name}", ""
    for name in status.layers:
        known = name in set(Layer)
        yield f"  {name}", LEGEND[Layer(name)] if known else "holds", _advice(name)
    for note in status.notes:
        yield "  note", note, ""


def _advice(layer: str) -> str:
    if layer == Layer.MEMORY_WATCHDOG:
        return "for a hard bound, give the worker a cgroup with the memory controller"
    if layer == Layer.CPU_NICENESS:
        return "for a hard bound, give the worker a cgroup with the cpu controller"
    return ""


def doctor(store: StoreOption = DEFAULT_STORE, data: DataOption = None) -> None:
    """Say what this installation can do and what it lacks.

    Example: python -m evaluator doctor
    """
    table = Table("part", "state", "what to do")
    for row in isolation_rows(machine_isolation(store.folder.resolve())):
        table.add_row(*row)
    for name, benchmark in sorted(load_registry().items()):
        here = benchmark.has_answers(data)
        images = "with images" if benchmark.has_questions(data) else "scores files only"
        table.add_row(
            f"benchmark {name}",
            images if here else "its data files are not here",
            "" if here else "give their folder with --data or ASSAY_DATA",
        )
    statuses = Ledger(store.open()).statuses()
    states = {state: sum(s.state is state for s in statuses) for state in State}
    table.add_row(f"store {store}", ", ".join(f"{n} {s}" for s, n in states.items() if n), "")
    console().print(table)
