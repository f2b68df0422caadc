"""Messages between workers and the app that relays their heartbeats, and the spool of those not yet sent."""

from __future__ import annotations

import threading
import uuid
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from benchmarks.errors import SubmitterError
from leaderboard.store.live.interface import SAID_BYTES, Heartbeat, as_bytes, checked_key, end_of

PATH = "/live"  # Below the address of the app: `/told`, `/pulses` and `/said/ID`
MOST_BYTES = 2 << 20  # Of one message
MOST_PULSES = 32
MOST_LINES = 64  # Submissions of which one message brings words
SHORTEST_SECRET = 16
SECRET_HEADER = "X-Assay-Secret"  # noqa: S105 (a name)
"""Not `Authorization`, which a private Space wants for itself."""

Name = Annotated[str, AfterValidator(checked_key)]
_MOST_CLAIMED = 64
_LENGTHS = {"isolation": 2000, "submission_id": 100, "stage": 200, "last_line": 400}


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SentHeartbeat(Heartbeat):
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


class ScorerOutput(_Strict):
    """What a scorer printed."""

    submission_id: Name
    text: str = Field(max_length=SAID_BYTES)


class WorkerReport(_Strict):
    """What a worker tells at once. What is forgotten is forgotten before anything is said."""

    teller: Name
    """Of one process, made up when it starts."""
    number: int = Field(ge=1)
    """Of this message among those of its teller: words that come twice are taken once."""
    pulses: tuple[SentHeartbeat, ...] = Field(default=(), max_length=MOST_PULSES)
    forgotten: tuple[Name, ...] = Field(default=(), max_length=MOST_LINES)
    words: tuple[ScorerOutput, ...] = Field(default=(), max_length=MOST_LINES)


class Heartbeats(BaseModel):
    """The answer to whoever asks for pulses."""

    model_config = ConfigDict(frozen=True, extra="ignore")

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
            f"ASSAY_LIVE_SECRET needs {SHORTEST_SECRET} printable characters or more.",
            "Make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    return secret


class LiveSpool:
    """Collects what is to be told, safe among threads.

    A message that was not answered is sent again under its number, with the latest pulses, so that
    its words are taken once.
    """

    def __init__(self) -> None:
        self._teller = uuid.uuid4().hex
        self._number = 0
        self._lock = threading.Lock()
        self._pulses: dict[str, Heartbeat] = {}
        self._words: dict[str, bytes] = {}
        self._forgotten: dict[str, None] = {}
        self._sending: WorkerReport | None = None

    def beat(self, pulse: Heartbeat) -> None:
        """Tell this pulse in place of the worker's earlier one."""
        with self._lock:
            self._pulses.pop(pulse.worker, None)
            self._pulses[pulse.worker] = pulse
            _shorten(self._pulses, MOST_PULSES)

    def say(self, submission_id: str, text: str) -> None:
        """Tell this; of what waits already, the end is kept."""
        with self._lock:
            before = self._words.pop(submission_id, b"")
            self._words[submission_id] = end_of(before + as_bytes(text), SAID_BYTES)
            _shorten(self._words, MOST_LINES)

    def forget(self, submission_id: str) -> None:
        """Tell that the log is to go, and not what waits of it."""
        with self._lock:
            self._words.pop(submission_id, None)
            self._forgotten[submission_id] = None
            _shorten(self._forgotten, MOST_LINES)

    def next(self) -> WorkerReport | None:
        """The message to send: the one not yet answered, with the latest pulses, or a new one."""
        with self._lock:
            if self._sending is None:
                if not self.waits:
                    return None
                self._number += 1
                self._sending = WorkerReport(
                    teller=self._teller,
                    number=self._number,
                    forgotten=tuple(self._forgotten),
                    words=tuple(self._take_words()),
                )
                self._forgotten.clear()
            latest = {pulse.worker: pulse for pulse in self._sending.pulses}
            latest |= {worker: fitted(pulse) for worker, pulse in self._pulses.items()}
            self._pulses.clear()
            pulses = tuple(latest.values())[-MOST_PULSES:]
            self._sending = self._sending.model_copy(update={"pulses": pulses})
            return self._sending

    @property
    def waits(self) -> bool:
        """Whether there is anything for another message."""
        return bool(self._pulses or self._words or self._forgotten)

    def sent(self) -> None:
        """The message was answered."""
        with self._lock:
            self._sending = None

    def _take_words(self) -> list[ScorerOutput]:
        taken: list[ScorerOutput] = []
        room = MOST_BYTES // 32  # A character can take six bytes in JSON, and one may be over.
        while self._words and room > 0:
            submission_id = next(iter(self._words))
            text = self._words.pop(submission_id).decode("utf-8", errors="replace")
            taken.append(ScorerOutput(submission_id=submission_id, text=text))
            room -= len(text)
        return taken


def _shorten(kept: dict[str, Any], most: int) -> None:
    while len(kept) > most:
        del kept[next(iter(kept))]
