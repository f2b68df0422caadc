"""Spool of messages to the app: bounded, and the message that is on its way."""

from __future__ import annotations

import threading
import uuid
from typing import Any

from leaderboard.store.live.interface import Pulse, as_bytes
from leaderboard.store.live.text import SAID_BYTES, end_of
from leaderboard.store.live.wire import MOST_BYTES, MOST_LINES, MOST_PULSES, Told, Words, fitted


class Outbox:
    """Collects what is to be told, safe among threads.

    A message that was not answered is sent again under its number, with the latest pulses, so that
    its words are taken once.
    """

    def __init__(self) -> None:
        self._teller = uuid.uuid4().hex
        self._number = 0
        self._lock = threading.Lock()
        self._pulses: dict[str, Pulse] = {}
        self._words: dict[str, bytes] = {}
        self._forgotten: dict[str, None] = {}
        self._sending: Told | None = None

    def beat(self, pulse: Pulse) -> None:
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

    def next(self) -> Told | None:
        """The message to send: the one not yet answered, with the latest pulses, or a new one."""
        with self._lock:
            if self._sending is None:
                if not self.waits:
                    return None
                self._number += 1
                self._sending = Told(
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

    def _take_words(self) -> list[Words]:
        taken: list[Words] = []
        room = MOST_BYTES // 32  # A character can take six bytes in JSON, and one may be over.
        while self._words and room > 0:
            submission_id = next(iter(self._words))
            text = self._words.pop(submission_id).decode("utf-8", errors="replace")
            taken.append(Words(submission_id=submission_id, text=text))
            room -= len(text)
        return taken


def _shorten(kept: dict[str, Any], most: int) -> None:
    while len(kept) > most:
        del kept[next(iter(kept))]
