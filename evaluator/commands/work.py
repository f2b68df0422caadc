"""`worker`: what operators run, on one machine or on many."""

from __future__ import annotations

import os
from functools import partial
from typing import Annotated

import typer

from benchmarks.registry import load_registry
from evaluator.commands.common import DEFAULT_STORE, DataOption, StoreOption
from evaluator.commands.engine_choice import (
    ActorsOption,
    EngineChoice,
    EngineOption,
    RayAddressOption,
    make_engine,
)
from evaluator.commands.isolation_option import IsolationOption, RequireOption
from evaluator.commands.launcher_option import (
    JobFlavorOption,
    JobHoursOption,
    JobImageOption,
    JobNamespaceOption,
    JobOptions,
    JobQuestionsOption,
    JobsAtOnceOption,
    LauncherChoice,
    LauncherOption,
)
from evaluator.commands.worker_making import scratch_of
from evaluator.commands.worker_options import (
    ClaimOption,
    EmbeddingsOption,
    HealthHostOption,
    HealthPortOption,
    KeysOption,
    LogFormatOption,
    PollOption,
    QuestionsOption,
    RoleOption,
    ScratchOption,
    SubmissionOption,
    check_role,
)
from evaluator.commands.worker_running import Surroundings
from evaluator.commands.worker_shift import Shift
from evaluator.isolation.gate import IsolationChoice
from evaluator.worker.roles import WorkerRole
from evaluator.worker.upkeep.structured_logs import LogFormat


def worker(
    store: StoreOption = DEFAULT_STORE,
    data: DataOption = None,
    once: Annotated[bool, typer.Option(help="Stop when nothing is left to do.")] = False,
    submission: SubmissionOption = None,
    claim: ClaimOption = None,
    engine: EngineOption = EngineChoice.LOCAL,
    ray_address: RayAddressOption = None,
    actors: ActorsOption = None,
    isolation: IsolationOption = IsolationChoice.AUTO,
    require: RequireOption = None,
    role: RoleOption = WorkerRole.BOTH,
    questions: QuestionsOption = None,
    keys: KeysOption = None,
    launcher: LauncherOption = LauncherChoice.HERE,
    job_image: JobImageOption = "",
    job_flavor: JobFlavorOption = "t4-small",
    job_hours: JobHoursOption = 6.0,
    jobs_at_once: JobsAtOnceOption = 4,
    job_namespace: JobNamespaceOption = None,
    job_questions: JobQuestionsOption = "",
    scratch: ScratchOption = None,
    embeddings: EmbeddingsOption = None,
    health_port: HealthPortOption = None,
    health_host: HealthHostOption = "127.0.0.1",
    poll: PollOption = None,
    log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Score, judge and publish what is queued.

    On two machines, one worker with `--role score` runs the code and holds no answers, and one with
    `--role judge` has the answers and runs no code. Scores files go to the judge alone.

    With `--engine ray` every module runs in as many boxes as there are actors, each on the machine
    of its actor; the machines must isolate code alike. With `--launcher jobs` each runs in a job of
    the Hub.

    Without isolation, strangers' code is left to other workers. With `--isolation none` what you
    submitted yourself is run all the same, as this user.

    With `--health-port` it answers probes, and webhooks of the Hub where ASSAY_WEBHOOK_SECRET is
    set.

    Example: python -m evaluator worker --once
    """
    check_role(role, questions, keys)
    hub_jobs = JobOptions(
        job_image, job_flavor, job_hours, jobs_at_once, job_namespace, job_questions
    )
    jobs = hub_jobs.settings(store, os.environ) if launcher is LauncherChoice.JOBS else None
    runs_here = role.scores and jobs is None
    place = scratch_of(store, scratch)
    Shift(
        Surroundings(store, place, log_format, health_port, health_host, poll),
        os.environ,
        load_registry(),
        partial(make_engine, engine if runs_here else EngineChoice.LOCAL, ray_address, actors),
        role=role,
        data=data,
        questions=questions,
        keys=keys,
        isolation=isolation,
        required=require or (),
        embeddings=embeddings,
        claim=claim,
        once=once,
        submission=submission,
        jobs=jobs,
    ).run()
