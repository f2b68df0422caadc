"""Rate budget of commits: the Hub takes only so many within an hour."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from benchmarks.errors import SubmitterError, TransientError
from leaderboard.store.disk import failing

HOUR_S = 3600.0
PER_HOUR = "ASSAY_COMMITS_PER_HOUR"
LONGEST_WAIT_S = 300.0
"""Nobody waits for longer: what is to be written is kept by whoever has it, and tried again."""
_DEFAULT = 100
_MOST = 100_000
_TICK_S = 1e-3  # The least wait, so that rounding never makes one of none


class CommitsUsedUpError(TransientError):
    """No commit may be made for now; none was."""

    def __init__(self, seconds: float) -> None:
        when = f"{seconds:.0f} s" if seconds < 100.0 else f"{seconds / 60.0:.0f} minutes"
        super().__init__(
            "commits_used_up",
            f"The commits that this machine may make are used up; the next is possible in {when}.",
            f"Try again then; {PER_HOUR} says how many commits it may make.",
        )

    def __reduce__(self) -> tuple[type[TransientError], tuple[str, str, str]]:
        return TransientError, (self.code, self.message, self.hint)


class CommitBudget:
    """Commits of the processes of a machine within any hour: a few at once, then evenly spaced.

    After `burst` commits the rest of the hour's are spread over the hour, so that whoever comes
    last waits for the next place and not for the next hour. Processes that name the same file
    count there together; those of several machines do not: give each machine its part. Where they
    exceed the limit together, the Hub answers 429, which is told here by `penalise`.

    A commit of the public side is up to two. They are paid for before the first is made: were
    each to wait for its own place, others would commit meanwhile and the first would be for
    nothing.
    """

    def __init__(
        self,
        per_hour: int | None = 100,  # the most commits within any hour; None for no bound of ours
        burst: int = 20,  # how many of them may come without a pause, after a rest
        clock: Callable[[], float] = time.monotonic,  # seconds that only grow
        sleep: Callable[[float], object] = time.sleep,  # true where the process is to end
        longest_wait_s: float = LONGEST_WAIT_S,  # who would wait for longer is told so instead
        *,
        file: Path | None = None,  # where processes count together; `clock` is then of all of them
    ) -> None:
        if per_hour is not None and not 1 <= burst <= per_hour:
            raise ValueError(f"a burst of {burst} is not within 1 and {per_hour} an hour")
        self._per_hour = per_hour
        self._burst = float(burst)
        # Burst and refill of one hour add up to the budget of an hour.
        self._refill_per_s = ((per_hour or burst) - burst) / HOUR_S
        self._clock, self._sleep = clock, sleep
        self._longest_wait_s = longest_wait_s
        self._lock, self._waiting = threading.Lock(), threading.Lock()
        self._made: deque[float] = deque()
        self._paid = 0
        self._at_once = float(burst)
        self._counted_at = self._not_before = clock()
        self._file = file

    @classmethod
    def of(
        cls,
        environment: Mapping[str, str],
        sleep: Callable[[float], object] = time.sleep,
        file: Path | None = None,
    ) -> CommitBudget:
        """This machine's part of the Hub's commits, as `ASSAY_COMMITS_PER_HOUR` says."""
        given = environment.get(PER_HOUR, "").strip() or str(_DEFAULT)
        if not given.isdecimal() or not 1 <= int(given) <= _MOST:
            raise SubmitterError(
                "bad_budget", f"{PER_HOUR} is {given[:40]!r}.", f"Give a number from 1 to {_MOST}."
            )
        clock = time.monotonic if file is None else time.time
        return cls(int(given), max(1, int(given) // 5), clock, sleep, file=file)

    def pay(self, commits: int) -> None:
        """Pay for so many commits; what an earlier one paid for and did not make counts."""
        while self._paid < commits:
            self._wait(lambda: self._take(paid=1))

    def spend(self) -> None:
        """A commit is made now: it was paid for, or is."""
        with self._lock:
            if self._paid:  # It was counted then.
                self._paid -= 1
                return
        self._wait(self._take)

    def ready(self, commits: int = 1) -> None:
        """Wait until so many commits could be made at once, without counting any.

        One after the other: else whoever needs one would always come before who needs three.
        """
        with self._waiting:
            self._wait(lambda: self.delay(commits))

    def delay(self, commits: int = 1) -> float:
        """Seconds until so many commits, but for more than a burst, could be made; 0 if at once."""
        with self._counted():
            missing = commits - self._paid
            return self._delay(min(missing, int(self._burst))) if missing > 0 else 0.0

    def penalise(self, seconds: float) -> None:
        """Make no commit for so long, and no burst after it: the Hub refused one.

        For an hour at most, whatever is asked: the Hub counts no further back. What was paid for
        is worth nothing before the pause is over.
        """
        with self._counted(change=True):
            self._paid = 0
            self._not_before = max(self._not_before, self._clock() + min(seconds, HOUR_S))
            # One commit then, and the next when it has grown from there on.
            self._at_once, self._counted_at = 1.0, self._not_before

    def left(self) -> int:
        """How many commits of the last hour's budget were not made."""
        with self._counted():
            self._count(self._clock())
            return (self._per_hour or _MOST) - len(self._made)

    @contextmanager
    def _counted(self, *, change: bool = False) -> Iterator[None]:
        """Hold what was counted, by all processes that name the file."""
        if self._file is None or self._per_hour is None:
            with self._lock:
                yield
            return
        with self._lock, failing("count its commits"):
            if not change:
                self._read(self._file)
                yield
                return
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self._file}.lock"):
                self._read(self._file)
                yield
                counts = [list(self._made), self._at_once, self._counted_at, self._not_before]
                self._file.write_text(json.dumps(counts))

    def _read(self, file: Path) -> None:
        """Take over what others counted; a file of which a crash left half says nothing."""
        try:
            made, self._at_once, counted_at, not_before = json.loads(file.read_text())
        except (FileNotFoundError, ValueError):
            return
        now = self._clock()  # It may have been set back since.
        self._made = deque(one for one in made if one <= now)
        self._counted_at = min(counted_at, now)
        self._not_before = min(not_before, now + HOUR_S)
        self._at_once = min(self._at_once, self._burst)

    def _wait(self, delay: Callable[[], float]) -> None:
        began = self._clock()
        while (seconds := delay()) > 0.0:
            too_long = self._clock() - began + seconds > self._longest_wait_s
            if too_long or self._sleep(seconds):
                raise CommitsUsedUpError(seconds)

    def _take(self, paid: int = 0) -> float:
        with self._counted(change=True):
            seconds = self._delay(1)
            if seconds == 0.0:
                self._at_once = max(0.0, self._at_once - 1.0)
                self._made.append(self._clock())
                self._paid += paid
            return seconds

    def _delay(self, commits: int) -> float:
        if self._per_hour is None:
            return 0.0
        now = self._clock()
        self._count(now)
        seconds = self._not_before - now
        too_many = len(self._made) + commits - self._per_hour
        if too_many > 0:
            seconds = max(seconds, self._made[too_many - 1] + HOUR_S - now)
        if self._at_once < commits and self._refill_per_s:
            seconds = max(seconds, (commits - self._at_once) / self._refill_per_s)
        return max(seconds, _TICK_S) if seconds > 0.0 else 0.0

    def _count(self, now: float) -> None:
        """Forget what is older than an hour, and refill."""
        if now > self._counted_at:
            grown = (now - self._counted_at) * self._refill_per_s
            self._at_once = min(self._burst, self._at_once + grown)
            self._counted_at = now
        while self._made and self._made[0] <= now - HOUR_S:
            self._made.popleft()
