"""Worker processes as a test has them: started, killed at random, and ended in good order."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaluator.worker.tasks import MAX_LOST
from leaderboard.store.interface import Store
from tests.endurance.stages import Stage, Trace
from tests.endurance.worker_process import WHERE_IT_IS, Given
from tests.kit.processes import running

ROOT = Path(__file__).resolve().parents[2]
DEATHS = (-signal.SIGKILL, -signal.SIGALRM)
"""How workers end that are killed, or die by themselves at a step."""
LONGEST_S = 200.0
LOOK_S = 0.3
_ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "HF_HUB_DISABLE_XET": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
}


class Launcher:
    """Makes processes; see `launcher`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._codes: dict[int, int] = {}
        assert self._line() == "ready"

    def start(self, given: Given) -> int:
        """Start a worker; returns the id of its process."""
        pid = self._asked({"start": given.as_json()})
        assert isinstance(pid, int)
        return pid

    def code(self, pid: int) -> int | None:
        """How a process ended; None: it runs."""
        self._codes |= {int(k): v for k, v in self._asked({"ended": True}).items()}
        return self._codes.get(pid)

    def wait(self, pid: int, within_s: float = 120.0) -> int:
        """Wait until a process has ended; returns how."""
        until = time.monotonic() + within_s
        while (code := self.code(pid)) is None:
            if time.monotonic() > until:
                raise TimeoutError(f"process {pid} did not end within {within_s:.0f} s")
            time.sleep(0.005)
        return code

    def _asked(self, question: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self._line()

    def _line(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline() or '"it is gone"')


@contextmanager
def launching() -> Iterator[Launcher]:
    """A launcher for as long as the block runs; nothing it started outlives it."""
    command = [sys.executable, "-m", "tests.endurance.launcher"]
    with running(
        command,
        grace_s=0.0,  # Who is killed all the time needs no time to end.
        cwd=ROOT,
        env={**os.environ, **_ENVIRONMENT},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Launcher(process)


@dataclass
class Crew:
    """Workers on one store."""

    launcher: Launcher  # makes their processes
    like: Given  # what they all are, but for their names
    started: int = 0

    def start(self, **more: Any) -> Member:
        """One more worker."""
        self.started += 1
        given = replace(self.like, name=f"{self.like.name}{self.started:04d}", **more)
        return Member(self.launcher, given, self.launcher.start(given))


def wait_until_beaten(store: Store, members: Sequence[Member]) -> None:
    """Wait until each of these workers has told that it lives, so that each is there for work."""
    until = time.monotonic() + 120.0
    while len(store.live.pulses()) < len(members):
        assert time.monotonic() < until, [member.said() for member in members]
        time.sleep(0.05)


@dataclass
class Member:
    """One worker process."""

    launcher: Launcher
    given: Given
    pid: int

    @property
    def ended(self) -> int | None:
        """How it ended; None: it runs."""
        return self.launcher.code(self.pid)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stage of each of its steps so far."""
        return Trace(Path(self.given.place) / f"{self.given.name}.steps").read()

    def kill(self) -> None:
        """Kill it, and wait until it is gone; it may have died by itself meanwhile."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        assert self.launcher.wait(self.pid) in DEATHS, self.said()

    def end(self) -> None:
        """Tell it to stop, and see that it does in good order."""
        os.kill(self.pid, signal.SIGTERM)
        assert self._code() == 0, self.said()

    def _code(self) -> int | None:
        """How it ended; None: it did not, and its log says now where it is."""
        try:
            return self.launcher.wait(self.pid)
        except TimeoutError:
            os.kill(self.pid, WHERE_IT_IS)
            time.sleep(1.0)
            return None

    def said(self) -> str:
        """The end of its log."""
        log = Path(self.given.place) / f"{self.given.name}.log"
        return log.read_text()[-8000:] if log.exists() else ""


@dataclass(frozen=True)
class Moments:
    """Among which chance decides when a worker is killed."""

    longest_s: float  # from its start
    steps: int  # of a stage that it has made
    after_s: float  # the longest after a step


@dataclass
class Reaper:
    """Kills members of a crew at random moments and starts others in their place.

    Half of them are killed a random time after their start, the others die by themselves a random
    moment after a random step, so that short stages are met as well.
    """

    crew: Crew  # whose
    chance: random.Random  # decides when; seeded
    workers: int  # how many are at work at a time
    moments: Moments  # among which chance decides
    kills: int = MAX_LOST - 1
    """How many are killed: every death may cost each submission one of its attempts."""

    def until(self, done: Callable[[], bool]) -> int:
        """Go on until that is so, then let all of them end in good order; returns the kills."""
        members = [self._start() for _ in range(self.workers)]
        begun = looked = time.monotonic()
        killed = 0
        while True:
            now = time.monotonic()
            for place, (member, until) in enumerate(members):
                if until is not None and (now > until or member.ended is not None):
                    member.kill()
                    killed += 1
                    members[place] = self._start()
            if now - looked > LOOK_S:
                looked = now
                if done():
                    break
            assert now - begun < LONGEST_S, f"not done; one of them says: {members[0][0].said()}"
            time.sleep(0.02)
        for member, until in members:
            if until is None:
                member.end()
            else:
                member.kill()
                killed += 1
        return killed

    def _start(self) -> tuple[Member, float | None]:
        """A member, and when it is killed at the latest; None: never."""
        if self.crew.started >= self.kills:
            return self.crew.start(), None
        longest_s = self.moments.longest_s
        if self.chance.random() < 0.5:
            until = time.monotonic() + self.chance.uniform(0.001, longest_s)
            return self.crew.start(), until
        stage, step = self.chance.choice(list(Stage)), self.chance.randint(1, self.moments.steps)
        # Mostly at once: the shortest stage lasts a millisecond.
        after_s = max(1e-6, self.chance.random() ** 3 * self.moments.after_s)
        member = self.crew.start(dies_in=stage, dies_at=step, dies_after_s=after_s)
        return member, time.monotonic() + LONGEST_S
