"""Messages between workers and the app that relays their heartbeats and running logs."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from benchmarks.errors import SubmitterError
from leaderboard.store.live.interface import SAID_BYTES, Heartbeat, checked_key

PATH = "/live"  # Below the address of the app: `/told`, `/pulses` and `/said/ID`
MOST_BYTES = 2 << 20  # Of one message
MOST_PULSES = 32
MOST_LOGS = 64  # Submissions of which one message brings, or ends, the running log
SECRET = "ASSAY_LIVE_SECRET"  # noqa: S105 (the name of a variable)
SHORTEST_SECRET = 16
SECRET_HEADER = "X-Assay-Secret"  # noqa: S105 (a name)
"""Not `Authorization`, which a private Space wants for itself."""

Name = Annotated[str, AfterValidator(checked_key)]
_MOST_CLAIMED = 64
_LENGTHS = {"isolation": 2000, "submission_id": 100, "stage": 200, "last_line": 400}


class _Message(BaseModel):
    """What is of another version of Assay is passed over, so that no worker is taken for dead."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class SentHeartbeat(Heartbeat):
    """A pulse as it may come over the wire."""

    worker: Name
    isolation: str = Field(max_length=_LENGTHS["isolation"])
    submission_id: str = Field(default="", max_length=_LENGTHS["submission_id"])
    stage: str = Field(default="", max_length=_LENGTHS["stage"])
    done: int = Field(default=0, ge=0, le=10**12)
    total: int = Field(default=0, ge=0, le=10**12)
    rate_per_s: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    eta_s: float | None = Field(default=None, allow_inf_nan=False)
    last_line: str = Field(default="", max_length=_LENGTHS["last_line"])
    attempt: int = Field(default=0, ge=0, le=1000)
    claimed: tuple[Name, ...] = Field(default=(), max_length=_MOST_CLAIMED)


class RunningLog(_Message):
    """The end of what the scorer of a submission printed so far, in place of what was told before."""

    submission_id: Name
    text: str = Field(max_length=SAID_BYTES)


class WorkerReport(_Message):
    """What a worker tells at once; harmless if it comes twice."""

    pulses: tuple[SentHeartbeat, ...] = Field(default=(), max_length=MOST_PULSES)
    logs: tuple[RunningLog, ...] = Field(default=(), max_length=MOST_LOGS)
    forgotten: tuple[Name, ...] = Field(default=(), max_length=MOST_LOGS)
    """Submissions whose running log nobody needs any more."""


class Heartbeats(_Message):
    """The answer to whoever asks for pulses."""

    pulses: tuple[Heartbeat, ...] = Field(max_length=10_000)


def fitted(pulse: Heartbeat) -> SentHeartbeat:
    """The pulse, cut to what may be sent."""
    record = pulse.model_dump()
    record |= {name: record[name][:most] for name, most in _LENGTHS.items()}
    record["claimed"] = pulse.claimed[:_MOST_CLAIMED]
    return SentHeartbeat.model_validate(record)


def checked_secret(secret: str) -> str:
    """The secret that an app and its workers share."""
    if len(secret) < SHORTEST_SECRET or not (secret.isascii() and secret.isprintable()):
        raise SubmitterError(
            "bad_live_secret",
            f"{SECRET} needs {SHORTEST_SECRET} printable characters or more.",
            "Make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    return secret
