"""Diagnostics of a store's queue and its workers."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.doctoring.rows import Row
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.legible import faults
from leaderboard.service.health import Health, Level


def health_rows(health: Health, name: str) -> Iterator[Row]:
    """The figures and the problems of an installation.

    Args:
        health: as it is now.
        name: of the store.
    """
    store = health.store
    if store is not None:
        yield Row(f"store {name}", _states(health))
        yield Row("  version", f"{store.version}{_changed(store.age_s)}")
        if store.commits_left is not None:
            yield Row("  commits left", f"{store.commits_left} within this hour, by this process")
        yield Row("queue", _queue(health))
        yield Row("failures", _failures(health))
        yield from _workers(health)
    if health.snapshot is not None:
        yield Row("boards", f"built {ago(health.snapshot.age_s)}")
    for problem in health.problems:
        yield Row(
            f"problem {problem.code}",
            problem.message,
            problem.remedy,
            broken=problem.level is Level.DOWN,
        )


def broken_record_rows(ledger: Ledger) -> Iterator[Row]:
    """The submissions that wait or are in work and that workers pass over.

    Args:
        ledger: of the store.
    """
    for name, error in faults(ledger):
        yield Row(f"submission {name}", error.message, error.hint, broken=True)


def ago(seconds: float) -> str:
    """How long ago, as people say it."""
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


def _states(health: Health) -> str:
    return ", ".join(f"{n} {state}" for state, n in sorted(health.submissions.items())) or "empty"


def _changed(age_s: float | None) -> str:
    return "" if age_s is None else f", last changed {ago(age_s)}"


def _queue(health: Health) -> str:
    if not health.queue_length:
        return f"nobody waits, {health.in_work} in work"
    oldest = ago(health.oldest_wait_s).removesuffix(" ago")
    return f"{health.queue_length} wait, the oldest for {oldest}; {health.in_work} in work"


def _failures(health: Health) -> str:
    shares = ", ".join(
        f"{n} by the {fault} ({health.failure_rate[fault]:.0%})"
        for fault, n in sorted(health.failed_last_day.items())
    )
    return f"of {health.ended_last_day} that ended within a day: {shares or 'none'}"


def _workers(health: Health) -> Iterator[Row]:
    if not health.workers:
        yield Row("workers", "none has ever beaten, or not within a day")
    for worker in health.workers:
        doing = f"works at {worker.rate_per_s:.1f} pairs/s" if worker.working else "waits"
        beat = f"beat {ago(worker.heartbeat_age_s)}"
        yield Row(f"worker {worker.name}", f"{doing}, {beat}" if worker.alive else f"gone, {beat}")
