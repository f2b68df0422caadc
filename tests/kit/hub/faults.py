"""What can go wrong on the way, on demand."""

from __future__ import annotations

import fnmatch
import random
import threading
from dataclasses import dataclass, field


@dataclass
class Fault:
    """Spoils the next requests whose target contains a text."""

    target: str  # part of the path and query of the request; with a `*` in it, a pattern for all
    times: int = 1  # how many requests are spoilt
    method: str = ""  # only requests of this method; empty for all
    status: int = 0  # answer with this status; 0 where the answer itself is right
    headers: dict[str, str] = field(default_factory=dict)  # sent along with the status
    body: bytes = b""  # likewise
    # whether the request is carried out although its answer is spoilt by `status` or `drop`
    done: bool = False
    # close the connection without an answer. With `done`, that is a lost answer.
    drop: bool = False
    wait_s: float = 0.0  # seconds to wait before the request is carried out
    reply_after_s: float = 0.0  # seconds to wait after it was carried out, before the answer
    # somebody else commits to that branch just before the request is carried out
    conflict: bool = False
    # read so many bytes of the request's body, then close the connection
    cut_upload_after: int | None = None
    cut_after: int | None = None  # send so many bytes of the body, then close the connection
    # send so many bytes of the body, then say nothing more until released
    hang_after: int | None = None
    # ends everything that waits or hangs
    released: threading.Event = field(default_factory=threading.Event)
    # set when the first request is met
    met: threading.Event = field(default_factory=threading.Event)
    seen: list[str] = field(default_factory=list)  # targets of the requests spoilt so far

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
    """A share of all requests fails: half before they are carried out, half after."""

    share: float  # between 0 and 1
    seed: int = 0  # of the choice; the same requests in the same order fail in the same way
    target: str = ""  # only requests whose target contains this text
    method: str = ""  # only requests of this method; empty for all
    statuses: tuple[int, ...] = (500, 502, 503)  # answered in turn with lost connections

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
                    fault.met.set()
                    return fault
            return self._weather.strike(method, target) if self._weather else None

    def release(self) -> None:
        """Let everything that hangs go on, to its end."""
        with self._lock:
            for fault in self._waiting:
                fault.released.set()
