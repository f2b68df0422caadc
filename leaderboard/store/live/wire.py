"""Message between a worker and the app that relays its heartbeats, of bounded size."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from benchmarks.errors import SubmitterError
from leaderboard.store.live.interface import Pulse, checked_key
from leaderboard.store.live.text import SAID_BYTES

PATH = "/live"
"""Below the address of the app: `/told`, `/pulses` and `/said/ID`."""
MOST_BYTES = 2 << 20
"""Of one message."""
MOST_PULSES = 32
MOST_LINES = 64
"""Submissions of which one message brings words."""
SHORTEST_SECRET = 16
SECRET_HEADER = "X-Assay-Secret"  # noqa: S105 (a name)
"""Not `Authorization`, which a private Space wants for itself."""

Name = Annotated[str, AfterValidator(checked_key)]
_MOST_CLAIMED = 64
_LENGTHS = {"isolation": 2000, "submission_id": 100, "stage": 200, "last_line": 400}


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SentPulse(Pulse):
    """A pulse as it may come over the wire. Fields of newer workers are passed over, as ever."""

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


class Words(_Strict):
    """What a scorer printed."""

    submission_id: Name
    text: str = Field(max_length=SAID_BYTES)


class Told(_Strict):
    """What a worker tells at once. What is forgotten is forgotten before anything is said."""

    teller: Name
    """Of one process, made up when it starts."""
    number: int = Field(ge=1)
    """Of this message among those of its teller: words that come twice are taken once."""
    pulses: tuple[SentPulse, ...] = Field(default=(), max_length=MOST_PULSES)
    forgotten: tuple[Name, ...] = Field(default=(), max_length=MOST_LINES)
    words: tuple[Words, ...] = Field(default=(), max_length=MOST_LINES)


class Pulses(BaseModel):
    """The answer to whoever asks for pulses."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    pulses: tuple[Pulse, ...] = Field(max_length=10_000)


def fitted(pulse: Pulse) -> SentPulse:
    """The pulse, cut to what may be sent."""
    record = pulse.model_dump()
    record |= {name: record[name][:most] for name, most in _LENGTHS.items()}
    record["claimed"] = pulse.claimed[:_MOST_CLAIMED]
    return SentPulse.model_validate(record)


def checked_secret(secret: str) -> str:
    """The secret that an app and its workers share.

    Raises:
        SubmitterError: `bad_live_secret`, it is too short, or cannot be sent.
    """
    if len(secret) < SHORTEST_SECRET or not (secret.isascii() and secret.isprintable()):
        raise SubmitterError(
            "bad_live_secret",
            f"ASSAY_LIVE_SECRET needs {SHORTEST_SECRET} printable characters or more.",
            "Make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    return secret
