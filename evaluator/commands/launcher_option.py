"""Option of the launcher: scoring on this machine, or in one job of the Hub for each run."""

from __future__ import annotations

import threading
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from benchmarks.errors import SubmitterError
from benchmarks.settings.rotation import CurrentSecrets
from evaluator.launching.settings import JobSettings
from leaderboard.store.opening import HUB, StoreName

if TYPE_CHECKING:
    from evaluator.launching.launcher import JobLauncher

JOB_TOKEN = "ASSAY_JOB_TOKEN"  # noqa: S105 (the name of a variable)
_PASSED_ON = ("ASSAY_LIVE", "HF_ENDPOINT")
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
        """How the jobs of a store are run.

        Args:
            store: its name.
            environment: of this process; of it a job gets only what is named here.

        Raises:
            SubmitterError: `no_job_image`, `no_job_token`, `store_out_of_reach` or
                `bad_job_questions`.
        """
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


def launch(
    launcher: JobLauncher,
    stop: threading.Event,
    *,
    once: bool,
    judge: Callable[[], object] | None,
    wake: threading.Event | None = None,
) -> None:
    """Start and follow jobs until told to stop; between two looks, judge what came back.

    Args:
        launcher: of the store.
        stop: ends it; jobs that run go on, and the next launcher finds them.
        once: end when nothing waits and nothing runs.
        judge: judges all that waits for it; None where another worker does.
        wake: ends a pause early.

    Raises:
        PlatformError: with `once`, where the Hub refuses jobs.
    """
    launcher.run(stop, once=once, between=judge or _nothing, wake=wake)


def _nothing() -> None:
    """Nobody judges here."""
