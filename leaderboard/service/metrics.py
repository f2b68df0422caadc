"""The same figures for Prometheus.

Counters are counted anew from the store's records each time, so that they go on after a restart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from leaderboard.service.health import Health, Level
from leaderboard.states import State

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
_FAULTS = ("submitter", "world", "platform")


def metrics_text(health: Health) -> bytes:
    """What a scrape gets, in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(health))
    return generate_latest(registry)


class _Figures(Collector):
    def __init__(self, health: Health) -> None:
        self._health = health

    def collect(self) -> Iterator[Metric]:
        health = self._health
        yield _by(
            "assay_health", "1 for the state the installation is in, 0 for the others.", "status",
            {str(level): float(level is health.status) for level in Level},
        )  # fmt: skip
        problems = GaugeMetricFamily(
            "assay_health_problem", "1 for each problem there is.", labels=["code", "level"]
        )
        for problem in health.problems:
            problems.add_metric([problem.code, str(problem.level)], 1.0)
        yield problems
        yield from _disk(health)
        if health.store is None:
            return  # Figures of a store that cannot be read would say that it is empty.
        yield from _queue(health)
        yield from _counters(health)
        yield from _workers(health)
        yield from _store(health)


def _queue(health: Health) -> Iterator[Metric]:
    yield _one("assay_queue_length", "Submissions that wait.", health.queue_length)
    yield _one(
        "assay_queue_oldest_wait_seconds",
        "How long the submission that waits longest has waited.",
        health.oldest_wait_s,
    )
    yield _one("assay_submissions_in_work", "Submissions held by workers.", health.in_work)
    yield _one(
        "assay_submissions_retrying",
        "Submissions that wait after a fault of the world.",
        health.retrying,
    )
    counts = {str(state): float(health.submissions.get(state, 0)) for state in State}
    yield _by("assay_submissions", "Submissions by state.", "state", counts)
    yield _one(
        "assay_submissions_ended_last_day",
        "Submissions published, held or failed within a day.",
        health.ended_last_day,
    )
    failed = {fault: float(health.failed_last_day.get(fault, 0)) for fault in _FAULTS}
    yield _by(
        "assay_submissions_failed_last_day", "Of them, failed, by whose fault.", "fault", failed
    )
    rates = {fault: health.failure_rate.get(fault, 0.0) for fault in _FAULTS}
    yield _by("assay_failure_ratio", "The same as shares of those that ended.", "fault", rates)


def _counters(health: Health) -> Iterator[Metric]:
    received = CounterMetricFamily("assay_submissions_received", "Submissions ever received.")
    received.add_metric([], health.received)
    yield received
    scored = CounterMetricFamily("assay_submissions_scored", "Submissions that ever had results.")
    scored.add_metric([], health.scored)
    yield scored
    events = CounterMetricFamily(
        "assay_ledger_events", "Lines of the public ledger by what was done.", labels=["action"]
    )
    for action, n in sorted(health.events.items()):
        events.add_metric([action], n)
    yield events


def _workers(health: Health) -> Iterator[Metric]:
    alive = sum(worker.alive for worker in health.workers)
    yield _one("assay_workers_alive", "Workers that beat lately.", alive)
    age = GaugeMetricFamily(
        "assay_worker_heartbeat_age_seconds", "Time since a worker beat.", labels=["worker"]
    )
    busy = GaugeMetricFamily(
        "assay_worker_busy", "1 while a worker works on a submission.", labels=["worker"]
    )
    isolates = GaugeMetricFamily(
        "assay_worker_isolates", "1 where a worker runs strangers' code.", labels=["worker"]
    )
    rate = GaugeMetricFamily(
        "assay_worker_pairs_per_second", "Pairs a worker scores in a second.", labels=["worker"]
    )
    for worker in health.workers:
        age.add_metric([worker.name], worker.heartbeat_age_s)
        if worker.alive:
            busy.add_metric([worker.name], float(worker.working))
            isolates.add_metric([worker.name], float(worker.isolation_ok))
            rate.add_metric([worker.name], worker.rate_per_s)
    yield from (age, busy, isolates, rate)


def _disk(health: Health) -> Iterator[Metric]:
    if health.disk is not None:
        yield _one("assay_disk_free_bytes", "Free on the disk.", health.disk.free_bytes)
        yield _one("assay_disk_size_bytes", "Size of the disk.", health.disk.total_bytes)


def _store(health: Health) -> Iterator[Metric]:
    store, snapshot = health.store, health.snapshot
    if store is not None and store.changed_at is not None:
        yield _at("assay_store_changed_timestamp_seconds", "Newest line.", store.changed_at)
    if store is not None and store.commits_left is not None:
        yield _one(
            "assay_store_commits_left",
            "Commits left in the budget of this process.",
            store.commits_left,
        )
    if snapshot is not None:
        yield _at(
            "assay_snapshot_built_timestamp_seconds",
            "When the boards were built.",
            snapshot.built_at,
        )
        yield _one(
            "assay_snapshot_behind_seconds",
            "Time from then to the newest event that changes boards; 0 where none is newer.",
            snapshot.behind_s,
        )


def _one(name: str, what: str, value: float) -> Metric:
    return GaugeMetricFamily(name, what, value=float(value))


def _at(name: str, what: str, time: datetime) -> Metric:
    return _one(name, what, time.timestamp())


def _by(name: str, what: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, what, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family
