"""`worker`: what operators run, on one machine or on many."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchmarks.command_line import DataOption
from benchmarks.errors import SubmitterError
from benchmarks.registry import load_registry
from benchmarks.settings.rotation import CurrentSecrets
from evaluator.commands.common import DEFAULT_STORE, IsolationOption, RequireOption, StoreOption
from evaluator.commands.scorer_options import (
    ActorsOption,
    EngineChoice,
    EngineOption,
    RayAddressOption,
    make_engine,
)
from evaluator.commands.worker_loop import RunLoop, scratch_of
from evaluator.isolation.availability import IsolationChoice
from evaluator.launching.planning import JobSettings
from evaluator.worker.logs import LogFormat
from evaluator.worker.tasks import WorkerRole
from leaderboard.store.opening import HUB, StoreName

if TYPE_CHECKING:
    pass


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
SubmissionOption = Annotated[
    str | None, typer.Option("--submission", help="Work on this one alone, then stop.")
]
ClaimOption = Annotated[
    int | None,
    typer.Option(
        "--claim",
        min=1,
        max=64,
        help="Submissions taken, and sent, in one commit at most; by default 1, on the Hub 8.",
    ),
]
ScratchOption = Annotated[
    Path | None,
    typer.Option(
        "--scratch",
        envvar="ASSAY_SCRATCH",
        help="Folder for unpacked modules and finished shards; by default in the store's folder. "
        "Workers that share it go on where one of them stopped.",
    ),
]
EmbeddingsOption = Annotated[
    Path | None,
    typer.Option(help="Folder of kept embeddings, given up where the disk is short."),
]
HealthPortOption = Annotated[
    int | None,
    typer.Option(
        "--health-port",
        min=0,
        max=65535,
        help="Answer /health, /metrics and, where ASSAY_WEBHOOK_SECRET is set, /webhook here.",
    ),
]
HealthHostOption = Annotated[
    str, typer.Option("--health-host", help="Address for that; 0.0.0.0 inside a container.")
]
PollOption = Annotated[
    float | None,
    typer.Option(
        "--poll",
        min=0.1,
        max=3600.0,
        help="Seconds between two looks at the store; by default 1, on the Hub 15, or 60 where "
        "webhooks wake it.",
    ),
]
LogFormatOption = Annotated[
    LogFormat, typer.Option("--log-format", help="How the log is written to the error output.")
]


def check_role(role: WorkerRole, questions: Path | None, keys: Path | None) -> None:
    """Refuse options that do not go with a role."""
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


JOB_TOKEN = "ASSAY_JOB_TOKEN"  # noqa: S105 (the name of a variable)
_PASSED_ON = ("ASSAY_LIVE", "HF_ENDPOINT", "ASSAY_PACKAGE_INDEX", "ASSAY_ACCEPTED_ADVISORIES")
_LIVE_SECRET = "ASSAY_LIVE_SECRET"  # noqa: S105 (the name of a variable)


class LauncherChoice(StrEnum):
    """Where scoring modules are run."""

    HERE = "here"
    JOBS = "jobs"


LauncherOption = Annotated[
    LauncherChoice,
    typer.Option(
        "--launcher",
        help="`here` runs code on this machine. `jobs` starts one Hub Job for each run and follows "
        "it, so that no GPU is needed here; with `--role both` or `judge` what comes back is "
        "judged here. Jobs get the token in ASSAY_JOB_TOKEN.",
    ),
]
JobImageOption = Annotated[
    str,
    typer.Option(
        "--job-image",
        envvar="ASSAY_JOB_IMAGE",
        help="With `--launcher jobs`: image with Assay installed, or hf.co/spaces/OWNER/NAME.",
    ),
]
JobFlavorOption = Annotated[
    str, typer.Option("--job-flavor", envvar="ASSAY_JOB_FLAVOR", help="Machine of each job.")
]
JobHoursOption = Annotated[
    float, typer.Option("--job-hours", min=0.1, max=168.0, help="Time after which a job is ended.")
]
JobsAtOnceOption = Annotated[
    int, typer.Option("--jobs-at-once", min=1, max=100, help="Jobs that run at the same time.")
]
JobNamespaceOption = Annotated[
    str | None,
    typer.Option("--job-namespace", help="Who runs the jobs; by default the store's owner."),
]
JobQuestionsOption = Annotated[
    str,
    typer.Option(
        "--job-questions",
        envvar="ASSAY_JOB_QUESTIONS",
        help="Dataset repository with exported questions, which jobs read; never their keys.",
    ),
]


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
    RunLoop(
        store,
        scratch_of(store, scratch),
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
        log_format=log_format,
        health_port=health_port,
        health_host=health_host,
        poll_s=poll,
    ).run()


@dataclass(frozen=True)
class JobOptions:
    """The options of `--launcher jobs`, as they were given."""

    image: str = ""
    flavor: str = "t4-small"
    hours: float = 6.0
    at_once: int = 4
    namespace: str | None = None
    questions: str = ""

    def settings(self, store: StoreName, environment: MutableMapping[str, str]) -> JobSettings:
        """How the jobs of a store are run."""
        if not self.image:
            raise SubmitterError(
                "no_job_image",
                "It is not said which image jobs run in.",
                "Build one with Assay installed and give it with --job-image.",
            )
        names = {"HF_TOKEN": JOB_TOKEN}
        if environment.get(_LIVE_SECRET):
            names[_LIVE_SECRET] = _LIVE_SECRET
        return JobSettings(
            store=str(store),
            image=self.image,
            namespace=self.namespace or str(store).removeprefix(HUB).partition("/")[0],
            flavor=self.flavor,
            timeout_s=round(self.hours * 3600),
            at_most=self.at_once,
            questions=self.questions,
            variables={name: environment[name] for name in _PASSED_ON if environment.get(name)},
            secrets=CurrentSecrets(names, environment),
        )
