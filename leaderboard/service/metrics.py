"""The same figures for Prometheus.

Counters are counted anew from the store's records each time, so that they go on after a restart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
            {str(level): level is health.status for level in Level},
        )  # fmt: skip
        problems = GaugeMetricFamily(
            "assay_health_problem", "1 for each problem there is.", labels=["code", "level"]
        )
        for problem in health.problems:
            problems.add_metric([problem.code, str(problem.level)], 1.0)
        yield problems
        if health.disk is not None:
            yield _one("assay_disk_free_bytes", "Free on the disk.", health.disk.free_bytes)
            yield _one("assay_disk_size_bytes", "Size of the disk.", health.disk.total_bytes)
        if health.store is None:
            return  # Figures of a store that cannot be read would say that it is empty.
        yield from _submissions(health)
        yield from _workers(health)
        yield from _store(health)


def _submissions(health: Health) -> Iterator[Metric]:
    gauges = (
        ("assay_queue_length", "Submissions that wait.", health.queue_length),
        ("assay_queue_oldest_wait_seconds",
         "How long the submission that waits longest has waited.", health.oldest_wait_s),
        ("assay_submissions_in_work", "Submissions held by workers.", health.in_work),
        ("assay_submissions_retrying",
         "Submissions that wait after a fault of the world.", health.retrying),
        ("assay_submissions_ended_last_day",
         "Submissions published, held or failed within a day.", health.ended_last_day),
    )  # fmt: skip
    yield from (_one(*gauge) for gauge in gauges)
    counts = {str(state): health.submissions.get(state, 0) for state in State}
    yield _by("assay_submissions", "Submissions by state.", "state", counts)
    failed = {fault: health.failed_last_day.get(fault, 0) for fault in _FAULTS}
    what = "Of them, failed, by whose fault."
    yield _by("assay_submissions_failed_last_day", what, "fault", failed)
    rates = {fault: health.failure_rate.get(fault, 0.0) for fault in _FAULTS}
    yield _by("assay_failure_ratio", "The same as shares of those that ended.", "fault", rates)
    received, scored = "Submissions ever received.", "Submissions that ever had results."
    yield CounterMetricFamily("assay_submissions_received", received, health.received)
    yield CounterMetricFamily("assay_submissions_scored", scored, health.scored)
    events = CounterMetricFamily(
        "assay_ledger_events", "Lines of the public ledger by what was done.", labels=["action"]
    )
    for action, n in sorted(health.events.items()):
        events.add_metric([action], n)
    yield events


def _workers(health: Health) -> Iterator[Metric]:
    alive = [worker for worker in health.workers if worker.alive]
    yield _one("assay_workers_alive", "Workers that beat lately.", len(alive))
    yield _by(
        "assay_worker_heartbeat_age_seconds", "Time since a worker beat.", "worker",
        {worker.name: worker.heartbeat_age_s for worker in health.workers},
    )  # fmt: skip
    yield _by(
        "assay_worker_busy", "1 while a worker works on a submission.", "worker",
        {worker.name: worker.working for worker in alive},
    )  # fmt: skip
    yield _by(
        "assay_worker_isolates", "1 where a worker runs strangers' code.", "worker",
        {worker.name: worker.isolation_ok for worker in alive},
    )  # fmt: skip
    yield _by(
        "assay_worker_pairs_per_second", "Pairs a worker scores in a second.", "worker",
        {worker.name: worker.rate_per_s for worker in alive},
    )  # fmt: skip


def _store(health: Health) -> Iterator[Metric]:
    store, snapshot = health.store, health.snapshot
    if store is not None and store.changed_at is not None:
        changed_at = store.changed_at.timestamp()
        yield _one("assay_store_changed_timestamp_seconds", "Newest line.", changed_at)
    if store is not None and store.commits_left is not None:
        what = "Commits left in the budget of this process."
        yield _one("assay_store_commits_left", what, store.commits_left)
    if snapshot is not None:
        built_at = snapshot.built_at.timestamp()
        yield _one(
            "assay_snapshot_built_timestamp_seconds", "When the boards were built.", built_at
        )
        what = "Time from then to the newest event that changes boards; 0 where none is newer."
        yield _one("assay_snapshot_behind_seconds", what, snapshot.behind_s)


def _one(name: str, what: str, value: float) -> Metric:
    return GaugeMetricFamily(name, what, value=float(value))


def _by(name: str, what: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, what, labels=[label])
    for value, number in values.items():
        family.add_metric([value], float(number))
    return family
