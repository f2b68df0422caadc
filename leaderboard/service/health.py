"""Health of an installation: figures, and a verdict in words.

Everything here is computed from what `leaderboard.service.polling` read, the time and the disk.
Nothing in it is secret: submissions are counted and never named.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict

from benchmarks.errors import AssayError
from leaderboard.records import Status
from leaderboard.states import IN_WORK, WAITING, State
from leaderboard.store.live.interface import Heartbeat

SILENT_AFTER = timedelta(seconds=60)
"""A worker that has not beaten for so long is taken for dead; others take over what it held."""
DAY = timedelta(days=1)
_ENDED = frozenset({State.PUBLISHED, State.HELD, State.FAILED})
_LEAVES_BOARDS = frozenset({State.HIDDEN, State.SUPERSEDED, State.WITHDRAWN})


class Level(StrEnum):
    """How an installation is doing."""

    OK = "ok"
    DEGRADED = "degraded"
    """It works, and somebody should look at it."""
    DOWN = "down"
    """It cannot do its work."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Problem(_Model):
    """Something an operator should know of.

    Attributes:
        code: stable identifier in snake_case, for programs.
        level: how bad it is by itself.
        message: what is wrong, in a sentence.
        remedy: what to do, in a sentence.
        cause: code of the error behind it, `token_refused` for example; empty without one.
    """

    code: str
    level: Level
    message: str
    remedy: str
    cause: str = ""


class Worker(_Model):
    """A worker by its last pulse."""

    name: str
    heartbeat_age_s: float
    alive: bool
    working: bool
    isolation_ok: bool
    """Whether it runs strangers' code."""
    rate_per_s: float
    """Pairs a second, of what it works on."""


class DiskSpace(_Model):
    """Of the disk on which the store, or what belongs to it, lies."""

    free_bytes: int
    total_bytes: int


class StoreHealth(_Model):
    """Of the store; `changed_at` is the time of the newest line of the public ledger."""

    version: str
    changed_at: AwareDatetime | None
    age_s: float | None
    commits_left: int | None
    commit_wait_min: int = 0
    """Minutes until the next commit may be made; 0 where it is one at the most."""
    """Of this hour's budget of this process; None where there is none, or it is not known."""


class SnapshotHealth(_Model):
    """Of what the boards show."""

    built_at: AwareDatetime
    age_s: float
    behind_s: float
    """Time from when it was built to the newest event that changes boards; 0: it has them all."""


class Health(_Model):
    """How an installation is doing."""

    schema_version: Literal[1] = 1
    status: Level
    problems: tuple[Problem, ...] = ()
    at: AwareDatetime
    queue_length: int = 0
    """Submissions that wait for a worker or a judge."""
    oldest_wait_s: float = 0.0
    in_work: int = 0
    submissions: dict[str, int] = {}
    """By state."""
    received: int = 0
    """Submissions ever received."""
    scored: int = 0
    """Of them, those that ever had results."""
    workers: tuple[Worker, ...] = ()
    ended_last_day: int = 0
    """Submissions that were published, held or failed within a day, and are still so."""
    failed_last_day: dict[str, int] = {}
    """Of them, those that failed, by whose fault it was."""
    failure_rate: dict[str, float] = {}
    """The same as shares of all that ended."""
    retrying: int = 0
    """Submissions that wait after a fault of the world."""
    events: dict[str, int] = {}
    """Lines of the public ledger by what was done, from its beginning."""
    disk: DiskSpace | None = None
    store: StoreHealth | None = None
    snapshot: SnapshotHealth | None = None


@dataclass(frozen=True)
class Boards:
    """What the snapshot says of itself."""

    built_at: datetime  # when it was built
    shown: frozenset[str]  # ids of the submissions that have entries


@dataclass(frozen=True)
class Seen:
    """What was read of a store."""

    version: str  # of its public part
    statuses: tuple[Status, ...] = ()  # all submissions, as everybody may see them
    pulses: tuple[Heartbeat, ...] = ()  # of workers
    live_fault: str = ""  # why those cannot be read; empty where they can
    # time of the newest line of the ledger; None where there is none
    changed_at: datetime | None = None
    events: Mapping[str, int] = field(default_factory=dict)  # lines of the ledger by what was done
    boards: Boards | None = None  # of the snapshot; None while nothing was published
    boards_fault: str = ""  # why the snapshot cannot be read; empty where it can
    commits_left: int | None = None  # in this hour's budget; None where there is none
    commit_wait_min: int = 0  # until the next may be made


def disk_of(folder: Path) -> DiskSpace | None:
    """The disk of a folder, or of the nearest one above it; None where it cannot be asked."""
    for place in (folder, *folder.absolute().parents):
        try:
            usage = shutil.disk_usage(place)
        except OSError:
            continue
        return DiskSpace(free_bytes=usage.free, total_bytes=usage.total)
    return None


def figures(seen: Seen, now: datetime, disk: DiskSpace | None) -> Health:
    """The figures, without a verdict."""
    waiting = [s for s in seen.statuses if s.state in WAITING or s.to_judge]
    ended = [s for s in seen.statuses if s.state in _ENDED and s.since > now - DAY]
    failed = Counter(s.fault or "unknown" for s in ended if s.state is State.FAILED)
    return Health(
        status=Level.OK,
        at=now,
        queue_length=len(waiting),
        oldest_wait_s=max((_seconds(now - s.since) for s in waiting), default=0.0),
        in_work=sum(s.state in IN_WORK and not s.to_judge for s in seen.statuses),
        submissions=dict(Counter(str(s.state) for s in seen.statuses)),
        received=len(seen.statuses),
        scored=sum(s.scored_at is not None for s in seen.statuses),
        workers=tuple(_worker(pulse, now) for pulse in seen.pulses),
        ended_last_day=len(ended),
        failed_last_day=dict(failed),
        failure_rate={fault: n / len(ended) for fault, n in failed.items()},
        retrying=sum(s.fault == "world" for s in waiting),
        events=dict(seen.events),
        disk=disk,
        store=StoreHealth(
            version=seen.version,
            changed_at=seen.changed_at,
            age_s=None if seen.changed_at is None else _seconds(now - seen.changed_at),
            commits_left=seen.commits_left,
            commit_wait_min=seen.commit_wait_min,
        ),
        snapshot=_snapshot(seen, now),
    )


def last_board_event(statuses: tuple[Status, ...]) -> datetime | None:
    """When something last came onto the boards or left them; None: never."""
    times = [
        s.since
        for s in statuses
        if s.state is State.PUBLISHED
        or (s.state in _LEAVES_BOARDS and s.scored_at is not None and not s.submission.private)
    ]
    return max(times, default=None)


def _worker(pulse: Heartbeat, now: datetime) -> Worker:
    return Worker(
        name=pulse.worker,
        heartbeat_age_s=_seconds(now - pulse.at),
        alive=now - pulse.at <= SILENT_AFTER,
        working=bool(pulse.submission_id),
        isolation_ok=pulse.isolation_ok,
        rate_per_s=pulse.rate_per_s,
    )


def _snapshot(seen: Seen, now: datetime) -> SnapshotHealth | None:
    if seen.boards is None:
        return None
    built, last = seen.boards.built_at, last_board_event(seen.statuses)
    return SnapshotHealth(
        built_at=built,
        age_s=_seconds(now - built),
        behind_s=0.0 if last is None else _seconds(last - built),
    )


def _seconds(span: timedelta) -> float:
    """Clocks of two machines may differ by a little: nothing is younger than now."""
    return max(0.0, span.total_seconds())


DISK_FLOOR_BYTES = 1 << 30
"""With less, nothing more is begun: what runs needs the rest to end in order."""
DISK_LOW_BYTES = 5 << 30
LONG_WAIT_S = 6 * 3600.0
ABANDONED_S = 300.0  # A dead worker's submission should have been taken over by now
MANY_FAILURES = 0.05
BEHIND_S = 60.0
"""A snapshot is built in the commit it tells of, a moment before the commit's own time."""
FEW_COMMITS = 1

_REBUILD = "Build the boards anew: python -m evaluator doctor --repair"
_ORDER = (Level.OK, Level.DEGRADED, Level.DOWN)
_Rule = Callable[[Health, Seen], Iterator[Problem]]


def judged(seen: Seen, now: datetime, disk: DiskSpace | None, *, own: str = "") -> Health:
    """The health of an installation."""
    health = figures(seen, now, disk)
    problems = [problem for rule in _RULES for problem in rule(health, seen)]
    if own and not seen.live_fault:
        problems += _own_pulse(health, own)
    return _with(health, problems)


def unreadable(error: AssayError, now: datetime, disk: DiskSpace | None) -> Health:
    """The health where the store cannot be read."""
    problem = Problem(
        code="store_unreadable",
        level=Level.DOWN,
        message=f"The store cannot be read: {error.message}",
        remedy=error.hint or "Look at the log of this process.",
        cause=error.code,
    )
    return _with(Health(status=Level.OK, at=now, disk=disk), [problem])


def _with(health: Health, problems: list[Problem]) -> Health:
    worst = max((p.level for p in problems), key=_ORDER.index, default=Level.OK)
    ordered = sorted(problems, key=lambda p: -_ORDER.index(p.level))
    return health.model_copy(update={"status": worst, "problems": tuple(ordered)})


def _own_pulse(health: Health, own: str) -> Iterator[Problem]:
    if not any(worker.name == own and worker.alive for worker in health.workers):
        yield Problem(
            code="this_worker_silent",
            level=Level.DOWN,
            message=f"This worker has not beaten for {SILENT_AFTER.total_seconds():.0f} s.",
            remedy="Start it again; what it finished is kept.",
        )


def _workers(health: Health, seen: Seen) -> Iterator[Problem]:
    if seen.live_fault:
        yield Problem(
            code="workers_not_known",
            level=Level.DEGRADED,
            message=f"What the workers do is not known: {seen.live_fault}",
            remedy="See whether the site that ASSAY_LIVE names is up.",
        )
        return
    alive = [worker for worker in health.workers if worker.alive]
    if not alive and (health.queue_length or health.in_work):
        yield Problem(
            code="no_worker",
            level=Level.DEGRADED,
            message=f"{health.queue_length} submissions wait and {health.in_work} are in work, "
            "but no worker is alive.",
            remedy="Start one: python -m evaluator worker",
        )
    # Generations wait for it, too: scoring modules judge them.
    code_waits = any(s.state in WAITING and s.submission.boxed for s in seen.statuses)
    if alive and code_waits and not any(worker.isolation_ok for worker in alive):
        yield Problem(
            code="no_isolation",
            level=Level.DEGRADED,
            message="Scoring modules or generations wait, but no worker that is alive runs strangers' code.",
            remedy="See what a worker's machine lacks: python -m evaluator doctor",
        )


def _waiting(health: Health, seen: Seen) -> Iterator[Problem]:
    if health.oldest_wait_s > LONG_WAIT_S:
        yield Problem(
            code="long_wait",
            level=Level.DEGRADED,
            message=f"{health.queue_length} submissions wait, the oldest for "
            f"{health.oldest_wait_s / 3600:.1f} hours.",
            remedy="Start more workers, or find out what none of them can run: "
            "python -m evaluator doctor",
        )
    ages = {worker.name: worker.heartbeat_age_s for worker in health.workers}
    held = [s for s in seen.statuses if s.state in IN_WORK and not s.to_judge]
    left = sum(ages.get(s.by, 0.0) > ABANDONED_S for s in held)
    if left:
        yield Problem(
            code="abandoned",
            level=Level.DEGRADED,
            message=f"{left} submissions are held by workers that have been silent for more than "
            f"{ABANDONED_S / 60:.0f} minutes.",
            remedy="Start a worker that can run them; it goes on where the other stopped.",
        )


def _failures(health: Health, _: Seen) -> Iterator[Problem]:
    rate = health.failure_rate.get("platform", 0.0)
    if rate > MANY_FAILURES:
        yield Problem(
            code="our_failures",
            level=Level.DEGRADED,
            message=f"{health.failed_last_day['platform']} of {health.ended_last_day} submissions "
            "that ended within a day failed by our own fault.",
            remedy="The workers' logs say why; then run them again: python -m evaluator rerun",
        )


def _disk(health: Health, _: Seen) -> Iterator[Problem]:
    disk = health.disk
    if disk is None or disk.free_bytes >= DISK_LOW_BYTES:
        return
    full = disk.free_bytes < DISK_FLOOR_BYTES
    yield Problem(
        code="disk_full" if full else "disk_low",
        level=Level.DOWN if full else Level.DEGRADED,
        message=f"{disk.free_bytes / 2**30:.1f} GiB of {disk.total_bytes / 2**30:.1f} GiB are free.",
        remedy="Make room on the disk; models that are not needed: python -m evaluator models list",
    )


def _commits(health: Health, _: Seen) -> Iterator[Problem]:
    store = health.store
    if store is None or store.commits_left is None:
        return
    if store.commits_left < FEW_COMMITS or store.commit_wait_min:
        yield Problem(
            code="no_commits_left",
            level=Level.DEGRADED,
            message="What is to be written waits for commits, the next in "
            f"{max(1, store.commit_wait_min)} min.",
            remedy="Wait; where it happens often, let fewer machines write to the store.",
        )


def _boards(_: Health, seen: Seen) -> Iterator[Problem]:
    if seen.boards_fault:
        yield Problem(
            code="boards_damaged", level=Level.DOWN, message=seen.boards_fault, remedy=_REBUILD
        )
    if seen.boards is None:
        return
    on_boards = {s.submission.submission_id for s in seen.statuses if s.on_boards}
    if ghosts := seen.boards.shown - on_boards:
        yield Problem(
            code="boards_show_too_much",
            level=Level.DEGRADED,
            message=f"The boards show {len(ghosts)} submissions that were taken off.",
            remedy=_REBUILD,
        )
    published = [s.since for s in seen.statuses if s.state is State.PUBLISHED]
    behind = (max(published) - seen.boards.built_at).total_seconds() if published else 0.0
    if behind > BEHIND_S:
        yield Problem(
            code="boards_behind",
            level=Level.DEGRADED,
            message=f"The boards were built {behind:.0f} s before the newest result.",
            remedy=_REBUILD,
        )


_RULES: tuple[_Rule, ...] = (_workers, _waiting, _failures, _disk, _commits, _boards)
