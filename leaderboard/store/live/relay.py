"""Pulses and running logs by way of the app, for workers whose store is on the Hub.

Nothing here holds a worker up: what it tells is put aside and sent by a thread of its own, the
latest pulse and the latest log. Where the app does not answer, telling waits, and nobody
is known to be alive or silent, so that no lease is taken over because a relay is out.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import ValidationError

from benchmarks.errors import SubmitterError, TransientError
from benchmarks.settings.rotation import refresh
from benchmarks.sources.client import httpx
from leaderboard.store.live.interface import (
    FolderLive,
    Heartbeat,
    Live,
    checked_key,
    log_bytes,
    readable,
)
from leaderboard.store.live.wire import (
    MOST_BYTES,
    MOST_LOGS,
    MOST_PULSES,
    PATH,
    SECRET,
    SECRET_HEADER,
    Heartbeats,
    RunningLog,
    WorkerReport,
    checked_secret,
    fitted,
)

LIVE = "ASSAY_LIVE"
TOLD_EVERY_S = 5.0
"""At most so often a message goes out: a worker is taken for dead after a minute of silence."""
LONGEST_PAUSE_S = 10.0
"""Between two tries while the app does not answer."""
FRESH_FOR_S = 2.0
_TIMEOUT = httpx.Timeout(5.0, connect=3.0)
_REFUSED = frozenset({401, 403})
_UNREADABLE = frozenset({413, 422})
_NO_SECRET = f"{SECRET} is not set."
_SAME_SECRET = f"Set the same {SECRET} for the app and for its workers."
_T = TypeVar("_T")

log = logging.getLogger(__name__)


def is_relayed(environment: Mapping[str, str]) -> bool:
    """Whether workers of other machines see the heartbeats of this one by way of the app."""
    return all(environment.get(name, "").strip() for name in (LIVE, SECRET))


def live_of(folder: Path, environment: MutableMapping[str, str]) -> Live:
    """The pulses of a store whose medium has no place for them."""
    address = environment.get(LIVE, "").strip()
    if not address:
        return FolderLive(folder / "live")

    def renew() -> str:
        refresh(SECRET, environment)
        return environment.get(SECRET, "").strip()

    given = environment.get(SECRET, "").strip()
    return RelayLive(address, given, renew=renew if given else None)


class RelayLive:
    """Tells the app, and asks it."""

    def __init__(
        self,
        address: str,  # of the app
        secret: str,  # shared with the app; empty: pulses can be read, and nothing else
        *,
        renew: Callable[[], str] | None = None,
        client: Callable[[], httpx.Client] = lambda: httpx.Client(timeout=_TIMEOUT),
        steady: Callable[[], float] = time.monotonic,  # seconds that only go forward
        every_s: float = TOLD_EVERY_S,  # at most so often a message goes out
    ) -> None:
        self._address = checked_address(address)
        self._secret = checked_secret(secret) if secret else ""
        self._renew = renew
        self._client = client()
        self._steady = steady
        self._every_s = every_s
        # What is to be told, the latest last; None in place of a log: it is to be forgotten.
        self._pulses: dict[str, Heartbeat] = {}
        self._logs: dict[str, str | None] = {}
        self._wake = threading.Event()
        self._asking, self._telling = threading.Lock(), threading.Lock()
        self._thread: threading.Thread | None = None
        self._troubles: set[tuple[str, str]] = set()
        self._known: tuple[Heartbeat, ...] = ()
        self._known_until = float("-inf")

    def beat(self, pulse: Heartbeat) -> None:
        """See `Live`; returns at once."""
        self._tell_later(self._pulses, checked_key(pulse.worker), pulse, MOST_PULSES)

    def set_log(self, submission_id: str, text: str) -> None:
        """See `Live`; returns at once."""
        end = log_bytes(text).decode("utf-8", errors="replace")
        self._tell_later(self._logs, checked_key(submission_id), end, MOST_LOGS)

    def forget(self, submission_id: str) -> None:
        """See `Live`; returns at once."""
        self._tell_later(self._logs, checked_key(submission_id), None, MOST_LOGS)

    def pulses(self) -> tuple[Heartbeat, ...]:
        """See `Live`; none where the app does not answer: nobody is known to be silent then."""
        with self._asking:
            if self._steady() >= self._known_until:
                self._known = self._ask_pulses()
            return self._known

    def log_end(self, submission_id: str) -> str:
        """See `Live`."""
        checked_key(submission_id)
        if not self._secret:
            raise SubmitterError(
                "no_live_secret",
                "Running logs are shown to their authors, who are known on the pages.",
                f"Open {self._address}/submit?id={submission_id}",
            )
        return readable(self._request("GET", f"/said/{submission_id}").content)

    def _ask_pulses(self) -> tuple[Heartbeat, ...]:
        try:
            found = Heartbeats.model_validate_json(self._request("GET", "/pulses").content).pulses
        except (TransientError, ValidationError) as error:
            self._trouble("The pulses cannot be read", error)
            self._known_until = self._steady() + LONGEST_PAUSE_S
            return ()
        self._known_until = self._steady() + FRESH_FOR_S
        return found

    def _tell_later(self, waiting: dict[str, _T], name: str, what: _T, most: int) -> None:
        if not self._secret:
            self._trouble(
                "Nothing is told to the app", SubmitterError("no_secret", _NO_SECRET, _SAME_SECRET)
            )
            return
        # Not the lock of who asks: that may be held for as long as the app is silent.
        with self._telling:
            waiting.pop(name, None)
            waiting[name] = what
            while len(waiting) > most:
                del waiting[next(iter(waiting))]
            if self._thread is None:
                self._thread = threading.Thread(target=self._go_on, name="relay", daemon=True)
                self._thread.start()
        self._wake.set()

    def _go_on(self) -> None:
        pause = self._every_s
        while True:
            self._wake.wait()
            self._wake.clear()
            try:
                well = self._tell()
            except Exception:
                # A thread that ends would let a worker seem dead that is alive.
                log.exception("A defect in telling the app; the next beat is told.")
                well = False
            pause = self._every_s if well else min(2 * pause, LONGEST_PAUSE_S)
            time.sleep(pause)

    def _tell(self) -> bool:
        """Tell the app; False where it did not answer, and what is not newer is told again."""
        with self._telling:
            pulses, logs = dict(self._pulses), self._take_logs()
            self._pulses.clear()
            if self._logs:
                self._wake.set()
        try:
            self._request("POST", "/told", _report(pulses, logs).model_dump_json().encode())
        except TransientError as error:
            self._trouble("Pulses are not told", error)
            if error.code == "relay_unreadable":
                return True
            with self._telling:
                _put_back(self._pulses, pulses, MOST_PULSES)
                _put_back(self._logs, logs, MOST_LOGS)
            self._wake.set()
            return False
        self._troubles.clear()
        return True

    def _take_logs(self) -> dict[str, str | None]:
        """As many of the logs that wait as go into one message."""
        taken: dict[str, str | None] = {}
        room = MOST_BYTES // 32  # A character can take six bytes in JSON, and one may be over.
        while self._logs and room > 0:
            submission_id = next(iter(self._logs))
            taken[submission_id] = text = self._logs.pop(submission_id)
            room -= len(text or "")
        return taken

    def _request(self, method: str, path: str, content: bytes | None = None) -> Any:
        reply = self._sent(method, path, content)
        if reply.status_code in _REFUSED and self._has_another():
            reply = self._sent(method, path, content)
        if reply.status_code in _REFUSED:
            raise TransientError(
                "relay_refuses", f"{self._address} refuses the secret.", _SAME_SECRET
            )
        if reply.status_code in _UNREADABLE:
            raise TransientError(
                "relay_unreadable",
                f"{self._address} cannot read what is told.",
                "Run the same version of Assay in the app and in its workers.",
            )
        if reply.status_code != 200:
            raise TransientError("no_relay", f"{self._address} answers {reply.status_code}.")
        return reply

    def _has_another(self) -> bool:
        """Whether there is a new secret, which is then sent from now on."""
        if self._renew is None:
            return False
        try:
            found = checked_secret(self._renew())
        except SubmitterError as error:
            self._trouble("The new secret is not used", error)
            return False
        another, self._secret = found != self._secret, found
        return another

    def _sent(self, method: str, path: str, content: bytes | None) -> Any:
        headers = {SECRET_HEADER: self._secret} if self._secret else {}
        try:
            return self._client.request(
                method, f"{self._address}{PATH}{path}", content=content, headers=headers
            )
        except httpx.HTTPError as error:
            why = str(error) or type(error).__name__
            raise TransientError("no_relay", f"{self._address} does not answer: {why}.") from error

    def _trouble(self, what: str, error: Exception) -> None:
        """Log a trouble once, until something is told again."""
        kind = (what, getattr(error, "code", ""))
        if kind not in self._troubles:
            self._troubles.add(kind)
            hint = getattr(error, "hint", "")
            log.warning("%s: %s %s Work goes on.", what, " ".join(str(error).split())[:300], hint)


def _put_back(waiting: dict[str, _T], before: Mapping[str, _T], most: int) -> None:
    """Let what could not be told wait again, unless there is something newer, or too much."""
    every = {**before, **waiting}
    waiting.clear()
    waiting.update(list(every.items())[-most:])


def _report(pulses: Mapping[str, Heartbeat], logs: Mapping[str, str | None]) -> WorkerReport:
    kept = {name: text for name, text in logs.items() if text is not None}
    return WorkerReport(
        pulses=tuple(map(fitted, pulses.values())),
        logs=tuple(RunningLog(submission_id=name, text=text) for name, text in kept.items()),
        forgotten=tuple(name for name in logs if name not in kept),
    )


def checked_address(address: str) -> str:
    """The address of an app, without a slash at its end."""
    try:
        found = urlsplit(address)
        good = found.scheme in {"http", "https"} and bool(found.hostname) and "@" not in address
    except ValueError:
        good = False
    if not good:
        raise SubmitterError(
            "bad_live",
            "ASSAY_LIVE is no address of an app.",
            "Set it to the app's address, for example https://my-org-assay.hf.space",
        )
    return address.rstrip("/")
