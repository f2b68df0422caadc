"""What can go wrong on the way, on demand."""

from __future__ import annotations

import fnmatch
import random
import threading
from dataclasses import dataclass, field


@dataclass
class Fault:
    """Spoils the next requests whose target contains a text.

    Attributes:
        target: part of the path and query of the request; with a `*` in it, a pattern for all.
        times: how many requests are spoilt.
        method: only requests of this method; empty for all.
        status: answer with this status; 0 where the answer itself is right.
        headers: sent along with the status.
        done: whether the request is carried out although its answer is spoilt by `status` or `drop`.
        drop: close the connection without an answer. With `done`, that is a lost answer.
        wait_s: seconds to wait before the request is carried out.
        reply_after_s: seconds to wait after it was carried out, before the answer.
        conflict: somebody else commits to that branch just before the request is carried out.
        cut_upload_after: read so many bytes of the request's body, then close the connection.
        cut_after: send so many bytes of the body, then close the connection.
        hang_after: send so many bytes of the body, then say nothing more until released.
        released: ends everything that waits or hangs.
        seen: targets of the requests spoilt so far.
    """

    target: str
    times: int = 1
    method: str = ""
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    done: bool = False
    drop: bool = False
    wait_s: float = 0.0
    reply_after_s: float = 0.0
    conflict: bool = False
    cut_upload_after: int | None = None
    cut_after: int | None = None
    hang_after: int | None = None
    released: threading.Event = field(default_factory=threading.Event)
    seen: list[str] = field(default_factory=list)

    def concerns(self, method: str, target: str) -> bool:
        if self.method not in {"", method}:
            return False
        if "*" in self.target:
            return fnmatch.fnmatchcase(target, self.target)
        return self.target in target

    @property
    def before(self) -> bool:
        """Whether the request is not carried out at all."""
        return not self.done and (self.status != 0 or self.drop)


@dataclass
class Weather:
    """A share of all requests fails: half before they are carried out, half after.

    Attributes:
        share: between 0 and 1.
        seed: of the choice; the same requests in the same order fail in the same way.
        target: only requests whose target contains this text.
        method: only requests of this method; empty for all.
        statuses: answered in turn with lost connections.
    """

    share: float
    seed: int = 0
    target: str = ""
    method: str = ""
    statuses: tuple[int, ...] = (500, 502, 503)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self.failed = 0

    def strike(self, method: str, target: str) -> Fault | None:
        """What happens to a request; None where it goes well."""
        fault = Fault(self.target, method=self.method)
        if not fault.concerns(method, target) or self._random.random() >= self.share:
            return None
        self.failed += 1
        fault.done = self._random.random() < 0.5
        if self._random.random() < 0.5:
            fault.drop = True
        else:
            fault.status = self._random.choice(self.statuses)
        return fault


class Faults:
    """The faults in store; each is used up in the order in which it was added."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Fault] = []
        self._weather: Weather | None = None

    def add(self, fault: Fault) -> Fault:
        with self._lock:
            self._waiting.append(fault)
        return fault

    def weather(self, weather: Weather | None) -> Weather | None:
        """Let a share of all requests fail from now on; None ends it."""
        with self._lock:
            self._weather = weather
        return weather

    def clear(self) -> None:
        """Nothing goes wrong from now on; what hangs goes on."""
        self.release()
        with self._lock:
            self._waiting.clear()
            self._weather = None

    def waiting(self) -> tuple[Fault, ...]:
        """All that were added since the last `clear`, those that are used up as well."""
        with self._lock:
            return tuple(self._waiting)

    def take(self, target: str, method: str = "") -> Fault | None:
        """The fault for a request, if there is one left."""
        with self._lock:
            for fault in self._waiting:
                if fault.times > 0 and fault.concerns(method, target):
                    fault.times -= 1
                    fault.seen.append(target)
                    return fault
            return self._weather.strike(method, target) if self._weather else None

    def release(self) -> None:
        """Let everything that hangs go on, to its end."""
        with self._lock:
            for fault in self._waiting:
                fault.released.set()
