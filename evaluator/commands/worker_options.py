"""Options of `worker`, and what does not go together."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.errors import SubmitterError
from evaluator.worker.roles import WorkerRole
from evaluator.worker.upkeep.structured_logs import LogFormat
from leaderboard.store.opening import StoreName


class Poll(StrEnum):
    """Why a worker looks as often as it does."""

    FOLDER = "folder"
    HUB = "hub"
    WOKEN = "woken"


POLL_S = {Poll.FOLDER: 1.0, Poll.HUB: 15.0, Poll.WOKEN: 60.0}
"""Seconds between two looks: on the Hub each is a request; where webhooks wake it, few are needed."""

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


def poll_of(given: float | None, store: StoreName, *, woken: bool) -> float:
    """Seconds between two looks at a store.

    Args:
        given: by option; None: not.
        store: its name.
        woken: whether webhooks say when it has changed.
    """
    if given is not None:
        return given
    if not store.on_hub:
        return POLL_S[Poll.FOLDER]
    return POLL_S[Poll.WOKEN if woken else Poll.HUB]


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
