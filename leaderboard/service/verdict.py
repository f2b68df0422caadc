"""Faults of an installation, in words, with remedies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from benchmarks.errors import AssayError
from leaderboard.records import Kind
from leaderboard.service.health import (
    SILENT_AFTER,
    DiskSpace,
    Health,
    Level,
    Problem,
    Seen,
    figures,
)
from leaderboard.states import IN_WORK, WAITING, State

DISK_FLOOR_BYTES = 1 << 30
"""With less, nothing more is begun: what runs needs the rest to end in order."""
DISK_LOW_BYTES = 5 << 30
LONG_WAIT_S = 6 * 3600.0
ABANDONED_S = 300.0
"""A dead worker's submission should have been taken over by now."""
MANY_FAILURES = 0.05
BEHIND_S = 60.0
"""A snapshot is built in the commit it tells of, a moment before the commit's own time."""
FEW_COMMITS = 1

_ORDER = (Level.OK, Level.DEGRADED, Level.DOWN)
_Rule = Callable[[Health, Seen], Iterator[Problem]]


def judged(seen: Seen, now: datetime, disk: DiskSpace | None, *, own: str = "") -> Health:
    """The health of an installation.

    Args:
        seen: what was read of the store.
        now: the store's time.
        disk: on which this process depends; None: not known.
        own: name of the worker that answers; it is down where it does not beat.
    """
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
    code_waits = any(
        s.state in WAITING and s.submission.kind is not Kind.SCORES for s in seen.statuses
    )
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
    left = health.store.commits_left if health.store else None
    if left is not None and left < FEW_COMMITS:
        yield Problem(
            code="no_commits_left",
            level=Level.DEGRADED,
            message="This hour's commits are used up; what is to be written waits.",
            remedy="Wait; where it happens often, let fewer processes write to the store.",
        )


def _boards(_: Health, seen: Seen) -> Iterator[Problem]:
    remedy = "Build the boards anew: python -m evaluator doctor --repair"
    if seen.boards_fault:
        yield Problem(
            code="boards_damaged", level=Level.DOWN, message=seen.boards_fault, remedy=remedy
        )
    if seen.boards is None:
        return
    on_boards = {s.submission.submission_id for s in seen.statuses if s.on_boards}
    if ghosts := seen.boards.shown - on_boards:
        yield Problem(
            code="boards_show_too_much",
            level=Level.DEGRADED,
            message=f"The boards show {len(ghosts)} submissions that were taken off.",
            remedy=remedy,
        )
    published = [s.since for s in seen.statuses if s.state is State.PUBLISHED]
    behind = (max(published) - seen.boards.built_at).total_seconds() if published else 0.0
    if behind > BEHIND_S:
        yield Problem(
            code="boards_behind",
            level=Level.DEGRADED,
            message=f"The boards were built {behind:.0f} s before the newest result.",
            remedy=remedy,
        )


_RULES: tuple[_Rule, ...] = (_workers, _waiting, _failures, _disk, _commits, _boards)
