"""Pulses and running logs by way of the app, for workers whose store is on the Hub.

Nothing here holds a worker up: what it tells is put aside and sent by a thread of its own, the
latest pulse and the end of what was said. Where the app does not answer, telling waits, and nobody
is known to be alive or silent, so that no lease is taken over because a relay is out.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from benchmarks.errors import SubmitterError, TransientError
from benchmarks.sources.client import httpx
from leaderboard.store.live.interface import Heartbeat, checked_key, readable
from leaderboard.store.live.wire import (
    PATH,
    SECRET_HEADER,
    Heartbeats,
    LiveSpool,
    WorkerReport,
    checked_secret,
)

TOLD_EVERY_S = 1.0
LONGEST_PAUSE_S = 8.0
"""Between two tries while the app does not answer: far less than the silence of a dead worker."""
FRESH_FOR_S = 1.0
_TIMEOUT = httpx.Timeout(5.0, connect=3.0)
_REFUSED = frozenset({401, 403})
_UNREADABLE = frozenset({413, 422})
_NO_SECRET = "ASSAY_LIVE_SECRET is not set."  # noqa: S105 (a sentence)
_SAME_SECRET = "Set the same ASSAY_LIVE_SECRET for the app and for its workers."  # noqa: S105

log = logging.getLogger(__name__)


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
        self._outbox = LiveSpool()
        self._wake = threading.Event()
        self._asking, self._starting = threading.Lock(), threading.Lock()
        self._thread: threading.Thread | None = None
        self._troubles: set[tuple[str, str]] = set()
        self._known: tuple[Heartbeat, ...] = ()
        self._known_until = float("-inf")

    def beat(self, pulse: Heartbeat) -> None:
        """See `Live`; returns at once."""
        checked_key(pulse.worker)
        self._outbox.beat(pulse)
        self._send()

    def say(self, submission_id: str, text: str) -> None:
        """See `Live`; returns at once."""
        self._outbox.say(checked_key(submission_id), text)
        self._send()

    def forget(self, submission_id: str) -> None:
        """See `Live`; returns at once."""
        self._outbox.forget(checked_key(submission_id))
        self._send()

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

    def _send(self) -> None:
        if not self._secret:
            self._trouble(
                "Nothing is told to the app", SubmitterError("no_secret", _NO_SECRET, _SAME_SECRET)
            )
            return
        # Not the lock of who asks: that may be held for as long as the app is silent.
        with self._starting:
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
                told = self._outbox.next()
                well = told is None or self._tell(told)
            except Exception:
                # A thread that ends would let a worker seem dead that is alive.
                log.exception("A defect in telling the app; it is tried again.")
                self._wake.set()
                well = False
            pause = self._every_s if well else min(2 * pause, LONGEST_PAUSE_S)
            time.sleep(pause)

    def _tell(self, told: WorkerReport) -> bool:
        """Whether the app has the message; it is tried again where it has not."""
        try:
            self._request("POST", "/told", told.model_dump_json().encode())
        except TransientError as error:
            self._trouble("Pulses are not told", error)
            if error.code != "relay_unreadable":
                self._wake.set()
                return False
        else:
            self._troubles.clear()
        self._outbox.sent()
        if self._outbox.waits:
            self._wake.set()
        return True

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
            log.warning("%s: %s %s Work goes on.", what, _short(error), hint)


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


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
