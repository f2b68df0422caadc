"""Liveness of workers: process locks, heartbeats, leases, and who is gone by them."""

from __future__ import annotations

import logging
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Self

from benchmarks.errors import TransientError
from evaluator.in_use import took_lock
from evaluator.scoring.progress import Progress
from evaluator.worker.tasks import Setting
from leaderboard.ledger.ledger import Batch, Ledger
from leaderboard.records import Event, Status
from leaderboard.states import RENEWED
from leaderboard.store.live.interface import Heartbeat, Live

log = logging.getLogger(__name__)


class Backoff:
    """How long to wait before the next try."""

    def __init__(
        self,
        first_s: float = 1.0,
        most_s: float = 60.0,
        draw: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._draw = draw
        self._failures = 0

    @property
    def failing(self) -> bool:
        """Whether the last try failed."""
        return self._failures > 0

    def next_s(self) -> float:
        """Seconds to wait after one more failure; half of it is chance, so that many spread."""
        bound = min(self._most_s, self._first_s * 2.0 ** min(self._failures, 30))
        self._failures += 1
        return self._draw(bound / 2.0, bound)

    def reset(self) -> None:
        """It worked."""
        self._failures = 0


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_BOOT = Path("/proc/sys/kernel/random/boot_id")
FORGOTTEN_AFTER_S = 7 * 24 * 3600.0
_TRIES = 50
_PAUSE_S = 0.02


class ProcessLock:
    """A lock that a worker holds while it works, in a folder that workers of a machine share.

    The kernel gives the lock up when the process ends, however it ends, so whoever can take it
    knows at once that the worker is gone. Across machines locks tell nothing: a file of another
    machine, or of an earlier start of this one, is not judged by.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._fd: int | None = None

    def __enter__(self) -> Self:
        """Take the lock; where that cannot be, the worker is known by its pulse alone."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._fd = self._locked()
        except OSError as error:
            log.warning("No lock shows that this worker lives: %s", error)
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd is not None:
            os.close(self._fd)  # The file stays: that it can be locked says that we are gone.
            self._fd = None

    def ended(self, name: str) -> bool:
        """Whether a worker's process has certainly ended; False where nothing is known of it."""
        if not _NAME.fullmatch(name) or name == self._name:
            return False
        with self._left(name) as left:
            return left

    def sweep(self, now_s: float) -> None:
        """Remove locks of workers that ended long ago."""
        for file in self._folder.glob("*.lock"):
            with suppress(OSError):
                old = file.stat().st_mtime < now_s - FORGOTTEN_AFTER_S
                if old:
                    self._remove(file)

    def _remove(self, file: Path) -> None:
        name = file.name.removesuffix(".lock")
        # While it is locked: a worker that takes it up again finds that it is gone (`_locked`).
        with self._left(name) as left:
            if left and name != self._name:
                file.unlink()

    @contextmanager
    def _left(self, name: str) -> Iterator[bool]:
        """Hold the lock of a worker that has certainly ended; False where that is not known."""
        try:
            fd = os.open(self._file(name), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            yield False
            return
        try:
            yield took_lock(fd) and self._is_file(fd, name) and _of_this_start(fd)
        finally:
            os.close(fd)

    def _locked(self) -> int:
        """This worker's file, locked, and named for this start.

        Whoever looks whether a worker has ended holds its lock for a moment, and whoever cleans up
        may have removed the file between its opening and its locking: then it is tried again.
        """
        for _ in range(_TRIES):
            fd = os.open(self._file(self._name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                if took_lock(fd) and self._is_file(fd, self._name):
                    os.ftruncate(fd, 0)
                    os.write(fd, _this_start().encode())
                    return fd
            except OSError:
                os.close(fd)
                raise
            os.close(fd)
            time.sleep(_PAUSE_S)
        raise OSError(f"another process holds the lock of {self._name}")

    def _is_file(self, fd: int, name: str) -> bool:
        """Whether a file that is open is the one of that name now."""
        try:
            return os.path.samestat(os.fstat(fd), self._file(name).stat())
        except FileNotFoundError:
            return False

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.lock"


def _of_this_start(fd: int) -> bool:
    try:
        return os.pread(fd, 200, 0).decode(errors="replace") == _this_start()
    except OSError:
        return False


def _this_start() -> str:
    """Names this start of this machine's kernel; empty where that is not told."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return "no name"


BEAT_S = 2.0


@dataclass(frozen=True)
class RunProgress:
    """Where a run (one submission on one benchmark) stands, for whoever listens."""

    submission: str  # its id
    metric: str  # its name on the boards; says nothing where it is private
    benchmark: str  # the benchmark
    progress: Progress  # of this run


class HeartbeatSender:
    """Beats while entered, so that a long batch is no silence; may be entered within itself."""

    def __init__(self, live: Live, idle: Heartbeat, clock: Callable[[], datetime]) -> None:
        self._live = live
        self._idle = idle
        self._pulse = idle
        self._claimed: tuple[str, ...] = ()
        self._attempt = 0
        self._beaten = False
        self._clock = clock
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._depth = 0
        self._thread: threading.Thread | None = None

    @property
    def pulse(self) -> Heartbeat:
        """What is told of the worker now."""
        with self._lock:
            return self._pulse

    def idle_as(self, idle: Heartbeat) -> None:
        """From now on the worker waits with this pulse, for example because it can do less."""
        self._idle = idle
        self._replace()

    def holding(self, submission_ids: Iterable[str]) -> None:
        """From now on the pulse names these as claimed; public ids."""
        self._claimed = tuple(submission_ids)
        self._replace(keep=True)

    def working_on(self, submission_id: str, attempt: int = 0) -> None:
        """From now on the pulse names this submission; empty: the worker waits.

        A worker that beats does so at once: whatever kills it next is known by what it was at.
        """
        self._attempt = attempt
        self._replace(submission_id=submission_id, attempt=attempt)
        if submission_id and self._beaten:
            self.beat()

    def waiting(self, why: str) -> None:
        """From now on the pulse says why nothing is done."""
        self._replace(stage=why)

    def tell(self, run: RunProgress, last_line: str = "") -> None:
        """From now on the pulse shows this progress, and the last line that the scorer printed."""
        progress = run.progress
        self._replace(
            submission_id=run.submission,
            stage=f"{run.benchmark}: {progress.stage}",
            done=progress.done,
            total=progress.total,
            rate_per_s=progress.rate,
            eta_s=progress.eta_s,
            attempt=self._attempt,
            last_line=last_line,
        )

    def beat(self) -> None:
        """One beat now. A pulse may be lost: a fault of the store is logged, no more."""
        with self._lock:
            pulse = self._pulse
        self._beaten = True
        try:
            self._live.beat(pulse.model_copy(update={"at": self._clock()}))
        except (OSError, TransientError) as error:
            log.warning("No heartbeat: %s", error)

    def __enter__(self) -> Self:
        self._depth += 1
        if self._depth == 1:
            self.beat()
            self._stop.clear()
            self._thread = threading.Thread(target=self._go_on, name="heartbeat", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0 and self._thread is not None:
            self._stop.set()
            self._thread.join()

    def _replace(self, *, keep: bool = False, **shown: object) -> None:
        with self._lock:
            base = self._pulse if keep else self._idle
            self._pulse = base.model_copy(update={**shown, "claimed": self._claimed})

    def _go_on(self) -> None:
        while not self._stop.wait(BEAT_S):
            self.beat()


SILENT_AFTER = timedelta(seconds=60)
"""A worker that has not beaten for so long is dead, whatever its lease says."""
LEASE_SLACK = timedelta(minutes=2)
"""A lease that has just run out may be of somebody whose clock reads a little less."""
LEASE = timedelta(minutes=20)
"""A machine that is lost holds its work no longer, where its heartbeats reach nobody. Renewed at
half, it costs six commits an hour of the hundred that the Hub takes."""
LEASE_HEARD = timedelta(hours=1)
"""The same where heartbeats arrive and tell of a lost machine within a minute. It counts while
the app that relays them is away."""


OUTAGE = timedelta(minutes=5)
"""After one that lasted so long, others are given as long to renew what ran out meanwhile."""


@dataclass
class StoreContact:
    """Whether this worker has reached the store for long enough to judge leases by it."""

    _fails: bool = False
    _reached_at: datetime | None = None
    _back_at: datetime | None = None

    def failed(self) -> None:
        """The store does not answer."""
        self._fails = True

    def reached(self, now: datetime) -> None:
        """It answers."""
        if self._fails and self._reached_at is not None and now - self._reached_at >= OUTAGE:
            self._back_at = now
        self._fails, self._reached_at = False, now

    def tells_leases(self, now: datetime) -> bool:
        """Whether a lease that ran out was not just kept from being renewed."""
        return not self._fails and (self._back_at is None or now - self._back_at >= OUTAGE)


@dataclass(frozen=True)
class LostClaim:
    """Why a claim holds no more."""

    why: str  # for people, one sentence
    begun: bool  # whether its worker was at it when it was lost, as far as can be told


@dataclass(frozen=True)
class Liveness:
    """Judges other workers. All times are the medium's: whose own clock is wrong loses nothing."""

    name: str  # of the worker that judges
    live: Live  # where pulses are
    lock: ProcessLock  # the locks of this machine
    beat: Callable[[], None]  # makes this worker beat once
    clock: Callable[[], datetime]  # of the medium
    silent_after: timedelta = SILENT_AFTER  # how long a pulse may be missing
    shared: bool = True  # whether workers of other machines can see pulses at all
    contact: StoreContact = field(default_factory=StoreContact)

    def poll(self) -> WorkerPoll:
        """All workers as they are now."""
        return WorkerPoll(self)

    def lease(self) -> timedelta:
        """How long a claim that is made now is to hold."""
        return LEASE_HEARD if self.shared and self.is_heard() else LEASE

    def is_heard(self) -> bool:
        """Whether this worker's own pulse arrives: if not, the silence of others proves nothing."""
        self.beat()
        own = {pulse.worker: pulse for pulse in self.pulses()}.get(self.name)
        return own is not None and own.at >= self.clock() - self.silent_after

    def workers(self) -> int:
        """How many workers beat now, this one included."""
        now = self.clock()
        beating = {
            pulse.worker for pulse in self.pulses() if abs(now - pulse.at) <= self.silent_after
        }
        return len(beating | {self.name})

    def others_idle(self) -> bool:
        """Whether another worker beats, may run code, and holds nothing."""
        now = self.clock()
        return any(
            pulse.isolation_ok and not pulse.submission_id and not pulse.claimed
            for pulse in self.pulses()
            if pulse.worker != self.name and abs(now - pulse.at) <= self.silent_after
        )

    def pulses(self) -> tuple[Heartbeat, ...]:
        """The latest of every worker; none where they cannot be read, so that leases decide."""
        try:
            return self.live.pulses()
        except (OSError, TransientError):
            return ()


class WorkerPoll:
    """One look at all workers; pulses are read once, and only if they matter."""

    def __init__(self, liveness: Liveness) -> None:
        self._by = liveness

    def lost_claim(self, status: Status) -> LostClaim | None:
        """Why a submission that is in work may be taken from whoever holds it; None: it may not."""
        by, pulse, now = self._by, self._pulses.get(status.by), self._now
        if by.lock.ended(status.by):
            return LostClaim(f"The process of {status.by} ended.", _begun(status, pulse))
        # What claims to come from the future says nothing about when its worker beat.
        if pulse is not None and pulse.at <= now + by.silent_after:
            if pulse.at >= now - by.silent_after:
                return None
            if self._is_heard:
                why = f"{status.by} was silent since {_time_text(pulse.at)}."
                return LostClaim(why, _begun(status, pulse))
        if status.expired(now - LEASE_SLACK) and by.contact.tells_leases(now):
            until = "" if status.lease_until is None else f" at {_time_text(status.lease_until)}"
            why = f"The lease of {status.by} ran out{until}."
            return LostClaim(why, _begun(status, pulse))
        return None

    @cached_property
    def _now(self) -> datetime:
        return self._by.clock()

    @cached_property
    def _pulses(self) -> dict[str, Heartbeat]:
        return {pulse.worker: pulse for pulse in self._by.pulses()}

    @cached_property
    def _is_heard(self) -> bool:
        return self._by.is_heard()


def _begun(status: Status, pulse: Heartbeat | None) -> bool:
    """Whether its worker was at it when it was lost.

    Where no pulse says what it was at, that is sure only of what it had claimed alone, as all of it
    is claimed from then on.
    """
    if pulse is not None and pulse.submission_id:
        return pulse.submission_id == status.submission.submission_id
    return status.claimed_alone


def _time_text(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")


_JOIN_S = 5.0
_AGAIN_AFTER = timedelta(minutes=1)


@dataclass
class LeaseRenewal:
    """While entered, a thread renews what runs out soon: a run may take longer than any lease."""

    at: Setting
    held: Callable[[], Iterable[str]]  # ids of what this worker holds now
    lease: Callable[[], timedelta]  # how long a claim that is made now is to hold
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._stop.clear()
        self._thread = threading.Thread(target=self._go_on, name="leases", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_JOIN_S)  # It may be waiting for a commit, which is then lost.

    def renew_due(self) -> timedelta:
        """Renew all leases if half of one is over; how long the next look may wait."""
        names = tuple(self.held())
        if not names:
            return LEASE / 2
        # Of its own: this is another thread than the worker's.
        ledger, now, lease = Ledger(self.at.store), self.at.now(), self.lease()
        left = self._left(ledger, names, now)
        if left <= lease / 2:
            ledger.write(lambda: self._batch(ledger, names), f"renewed by {self.at.name}")
            left = lease
        return min(left - lease / 2, LEASE / 2)

    def _left(self, ledger: Ledger, names: Iterable[str], now: datetime) -> timedelta:
        ends = [s.lease_until for s in self._renewable(ledger, names) if s.lease_until is not None]
        return min(ends, default=now + self.lease()) - now

    def _renewable(self, ledger: Ledger, names: Iterable[str]) -> list[Status]:
        wanted = set(names)
        found = (s for s in ledger.statuses() if s.submission.submission_id in wanted)
        return [status for status in found if self.at.holds(status)]

    def _batch(self, ledger: Ledger, names: Iterable[str]) -> Batch:
        now = self.at.now()
        until = now + self.lease()
        return Batch(
            events={
                status.submission.submission_id: [
                    Event(
                        at=now,
                        state=status.state,
                        by=self.at.name,
                        code=RENEWED,
                        lease_until=until,
                    )
                ]
                for status in self._renewable(ledger, names)
            }
        )

    def _go_on(self) -> None:
        pause = LEASE / 2
        while not self._stop.wait(pause.total_seconds()):
            try:
                pause = self.renew_due()
            except TransientError as error:
                log.warning("Leases are renewed later: %s", error)
                pause = _AGAIN_AFTER
            except Exception:
                log.exception("Leases are not renewed.")
                pause = _AGAIN_AFTER
