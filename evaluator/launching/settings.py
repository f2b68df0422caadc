"""Settings of a job. It is given questions at most: never answers, never a key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.errors import SubmitterError
from leaderboard.store.opening import HUB

QUESTIONS_AT = "/questions"
"""Where a job finds exported questions."""
WORKER = "ASSAY_WORKER"
"""The variable that names the worker within a job; its start and its claim are matched by it."""
PREFIX = "job-"
"""Of the names of workers within jobs."""
STORE_LABEL, SUBMISSION_LABEL, WORKER_LABEL = "assay-store", "assay-submission", "assay-worker"

_JOB_WORKER = re.compile(re.escape(PREFIX) + "[0-9a-z]+")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")


@dataclass(frozen=True)
class JobSettings:
    """How the jobs of a store are run.

    Attributes:
        store: its name, `hub:OWNER/NAME`: a job reaches no folder of this machine.
        image: with Assay installed, of a registry or of a Space.
        namespace: who runs the jobs, and pays.
        flavor: of the machine.
        timeout_s: after which a job is ended by the Hub.
        at_most: how many run at once.
        questions: dataset repository with exported questions; empty where the image has them.
        variables: further variables of every job, which anyone in the namespace can read.
        secrets: variables that nobody can read; the token among them.
    """

    store: str
    image: str
    namespace: str
    flavor: str = "t4-small"
    timeout_s: int = 6 * 3600
    at_most: int = 4
    questions: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not self.store.startswith(HUB):
            raise SubmitterError(
                "store_out_of_reach",
                f"A job of the Hub cannot reach the store {self.store!r}.",
                "Keep the store on the Hub (--store hub:OWNER/NAME), or leave --launcher out.",
            )
        if self.questions and not _REPOSITORY.fullmatch(self.questions):
            raise SubmitterError(
                "bad_job_questions",
                f"{self.questions[:120]!r} is no dataset repository.",
                "Upload the folder of exported questions to one and give OWNER/NAME.",
            )
        if not self.secrets.get("HF_TOKEN"):
            raise SubmitterError(
                "no_job_token",
                "A job has no token to hand its scores over with.",
                "Set ASSAY_JOB_TOKEN to a fine-grained token that may write to NAME-requests and "
                "NAME-submissions of the store, and to nothing else.",
            )


@dataclass(frozen=True)
class JobRequest:
    """One job, as the Hub is asked for it.

    Attributes:
        submission_id: what it scores.
        worker: the name of the worker within it, unlike any other ever.
    """

    submission_id: str
    worker: str

    def command(self, settings: JobSettings) -> list[str]:
        """What runs in it: one worker that scores one submission and ends."""
        command = ["python", "-m", "evaluator", "worker", "--role", "score"]
        command += ["--submission", self.submission_id, "--once", "--store", settings.store]
        return [*command, "--questions", QUESTIONS_AT] if settings.questions else command

    def environment(self, settings: JobSettings) -> dict[str, str]:
        """The variables that are no secret."""
        return {**settings.variables, "ASSAY_STORE": settings.store, WORKER: self.worker}

    def labels(self, settings: JobSettings) -> dict[str, str]:
        """By which it is found again, whether or not its start was answered."""
        return {
            **store_label(settings),
            SUBMISSION_LABEL: self.submission_id,
            WORKER_LABEL: self.worker,
        }


def works_in_job(worker: str) -> bool:
    """Whether a worker of this name is one within a job.

    One elsewhere has further parts in its name, and may be on a machine called `job-7`.
    """
    return _JOB_WORKER.fullmatch(worker) is not None


def store_label(settings: JobSettings) -> dict[str, str]:
    """What the jobs of one store have in common."""
    return {STORE_LABEL: settings.store.removeprefix(HUB).replace("/", "--")}
