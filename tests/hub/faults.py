"""What can go wrong on the way, on demand."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass
class Fault:
    """Spoils the next requests whose target contains a text.

    Attributes:
        target: part of the path of the request.
        times: how many requests are spoilt.
        status: answer with this status; 0 where the answer itself is right.
        headers: sent along with the status.
        cut_after: send so many bytes of the body, then close the connection.
        hang_after: send so many bytes of the body, then say nothing more until released.
    """

    target: str
    times: int = 1
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    hang_after: int | None = None
    released: threading.Event = field(default_factory=threading.Event)


class Faults:
    """The faults in store; each is used up in the order in which it was added."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        with self._lock:
            self._waiting.append(fault)
        return fault

    def take(self, target: str) -> Fault | None:
        """The fault for a request, if there is one left."""
        with self._lock:
            for fault in self._waiting:
                if fault.target in target and fault.times > 0:
                    fault.times -= 1
                    return fault
        return None

    def release(self) -> None:
        """Let everything that hangs go on, to its end."""
        with self._lock:
            for fault in self._waiting:
                fault.released.set()
