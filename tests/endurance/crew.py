"""Worker processes as a test has them: started, stopped for a moment, killed at random, and counted."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evaluator.worker.tasks import MAX_LOST
from leaderboard.store.interface import Store
from tests.endurance.stages import Board, Stage
from tests.endurance.worker_process import WHERE_IT_IS, Given
from tests.kit.processes import running

ROOT = Path(__file__).resolve().parents[2]
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
class Fell:
    """How processes were killed: how many, and where."""

    at: Counter[Stage] = field(default_factory=Counter)  # how many fell at each stage
    spared: int = 0  # how many were let go, since it was the last attempt of a submission

    @property
    def kills(self) -> int:
        return self.at.total()

    def __str__(self) -> str:
        where = ", ".join(f"{stage.name.lower()} {self.at[stage]}" for stage in Stage)
        return f"{self.kills} kills ({where}); {self.spared} times the last attempt was spared"


@dataclass
class Crew:
    """Workers on one store."""

    launcher: Launcher  # makes their processes
    like: Given  # what they all are, but for their names
    fell: Fell = field(default_factory=Fell)
    _made: int = 0

    def __post_init__(self) -> None:
        self.board = Board(Path(self.like.place) / "board")

    def start(self, line: int = 0, **more: Any) -> Member:
        """One more worker."""
        self._made += 1
        given = replace(self.like, name=f"{self.like.name}{self._made:04d}", line=line, **more)
        self.board.write(line, stage=Stage.BETWEEN, attempt=0, steps=0)
        return Member(self, given, self.launcher.start(given))


def wait_until_beaten(store: Store, members: Sequence[Member]) -> None:
    """Wait until each of these workers has told that it lives, so that each is there for work."""
    until = time.monotonic() + 120.0
    while len(store.live.pulses()) < len(members):
        assert time.monotonic() < until, [member.said() for member in members]
        time.sleep(0.05)


@dataclass
class Member:
    """One worker process."""

    crew: Crew
    given: Given
    pid: int

    @property
    def ended(self) -> int | None:
        """How it ended; None: it runs."""
        return self.crew.launcher.code(self.pid)

    def kill(self, *, spare: bool = True) -> bool:
        """Kill it, unless it makes the last attempt at a submission and that is to be spared.

        It is stopped before it is looked at, so that it is killed where it was seen.
        """
        os.kill(self.pid, signal.SIGSTOP)
        _wait_until_stopped(self.pid)
        stage, attempt, _ = self.crew.board.read(self.given.line)
        if spare and attempt >= MAX_LOST:
            os.kill(self.pid, signal.SIGCONT)
            self.crew.fell.spared += 1
            return False
        os.kill(self.pid, signal.SIGKILL)
        self.crew.launcher.wait(self.pid)
        self.crew.fell.at[stage] += 1
        return True

    def end(self) -> None:
        """Tell it to stop, and see that it does in good order."""
        os.kill(self.pid, signal.SIGTERM)
        assert self._code() == 0, self.said()

    def _code(self) -> int | None:
        """How it ended; None: it did not, and its log says now where it is."""
        try:
            return self.crew.launcher.wait(self.pid)
        except TimeoutError:
            os.kill(self.pid, WHERE_IT_IS)
            time.sleep(1.0)
            return None

    def said(self) -> str:
        """The end of its log."""
        log = Path(self.given.place) / f"{self.given.name}.log"
        return log.read_text()[-8000:] if log.exists() else ""


def _wait_until_stopped(pid: int) -> None:
    state = Path(f"/proc/{pid}/stat")
    for _ in range(2000):
        with suppress(FileNotFoundError):
            if state.read_text().rpartition(")")[2].split()[0] in "TtZX":
                return
        time.sleep(0.0005)
    raise AssertionError(f"process {pid} does not stop")


LONGEST_S = 200.0
_AIMED = (Stage.CLAIM, Stage.SCORE, Stage.OUTBOX, Stage.COMPUTE, Stage.PUBLISH, Stage.CLEAR)


@dataclass
class Aim:
    """When somebody is to be killed: at a time, or so long after a stage was first seen."""

    at: float | None  # by the steady clock; None: it waits for its stage
    stage: Stage = Stage.BETWEEN  # that is waited for
    after_s: float = 0.0  # it was seen

    def is_due(self, seen: Stage, now: float) -> bool:
        """Whether it is time."""
        if self.at is None and seen is self.stage:
            self.at = now + self.after_s
        return self.at is not None and now >= self.at


@dataclass
class Reaper:
    """Kills members of a crew at random moments and starts others in their place.

    Half of them are killed at a random time after their start, the others at a random time after
    they are seen at a stage, so that the short ones are met as well.
    """

    crew: Crew  # whose
    chance: random.Random  # decides when; seeded
    workers: int = 2  # how many are at work at a time
    longest_ms: int = 300  # the longest random time from a start
    after_ms: int = 20  # the longest from when a stage is seen
    enough: int = 0  # after so many kills, all are left alone; 0: never

    def until(self, done: Callable[[], bool]) -> None:
        """Go on until that is so, then let all of them end in good order."""
        members = [(self.crew.start(line), self._aim()) for line in range(self.workers)]
        begun = looked = time.monotonic()
        while True:
            now = time.monotonic()
            for line, (member, aim) in enumerate(members):
                seen = self.crew.board.read(line)[0]
                if not self._has_enough() and aim.is_due(seen, now):
                    killed = member.kill()
                    members[line] = self.crew.start(line) if killed else member, self._aim()
            if now - looked > 0.1:
                looked = now
                if done():
                    break
            assert now - begun < LONGEST_S, f"not done; one of them says: {members[0][0].said()}"
            time.sleep(0.0002)
        for member, _ in members:
            member.end()

    def _has_enough(self) -> bool:
        return 0 < self.enough <= self.crew.fell.kills

    def _aim(self) -> Aim:
        seconds = self.chance.uniform(0.001, self.longest_ms / 1000.0)
        if self.chance.random() < 0.5:
            return Aim(time.monotonic() + seconds)
        stage = self.chance.choice(_AIMED)
        if stage is Stage.SCORE:
            return Aim(None, stage, self.chance.uniform(0.0, self.longest_ms / 1000.0))
        # Mostly at once: the shortest stage lasts a millisecond.
        return Aim(None, stage, self.chance.random() ** 3 * self.after_ms / 1000.0)
