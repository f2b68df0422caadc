"""What Prometheus gets: names by its conventions, counters that go on after a restart."""

from __future__ import annotations

from datetime import timedelta

from prometheus_client.parser import text_string_to_metric_families

from leaderboard.service.health import DiskSpace, Health, Level
from leaderboard.service.metrics import metrics_text
from leaderboard.store.live.interface import Pulse
from tests.leaderboard.house import T0, House
from tests.leaderboard.service.looked import health_of

ROOMY = DiskSpace(free_bytes=100 << 30, total_bytes=200 << 30)


def scraped(health: Health) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(metrics_text(health).decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def of(house: House) -> Health:
    return health_of(house.store, house.clock(), ROOMY)


def a_house() -> House:
    house = House()
    house.done()
    house.send(name="red")
    house.store.live.beat(
        Pulse(worker="w1", at=house.clock(), isolation_ok=True, isolation="fake", rate_per_s=2.5)
    )
    return house


def test_the_figures_of_health_are_all_there() -> None:
    found = scraped(of(a_house()))
    assert found["assay_queue_length", ()] == 1
    assert found["assay_submissions", (("state", "published"),)] == 1
    assert found["assay_submissions", (("state", "failed"),)] == 0
    assert found["assay_worker_pairs_per_second", (("worker", "w1"),)] == 2.5
    assert found["assay_disk_free_bytes", ()] == 100 << 30
    assert found["assay_health", (("status", "ok"),)] == 1
    assert found["assay_health", (("status", "down"),)] == 0
    assert found["assay_snapshot_built_timestamp_seconds", ()] > T0.timestamp()


def test_counters_go_on_where_the_process_that_counts_is_another() -> None:
    house = a_house()
    first = scraped(of(house))
    house.done(name="blue")
    then = scraped(of(house))
    published = "assay_ledger_events_total", (("action", "published"),)
    assert (first[published], then[published]) == (1, 2)
    assert then["assay_submissions_received_total", ()] == 3
    assert then["assay_submissions_scored_total", ()] == 2


def test_every_family_has_help_and_names_its_unit() -> None:
    text = metrics_text(of(a_house())).decode()
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    helped = {line.split()[2] for line in text.splitlines() if line.startswith("# HELP")}
    assert names == helped
    assert all(name.startswith("assay_") for name in names)
    counters = {line.split()[2] for line in text.splitlines() if line.endswith(" counter")}
    assert counters == {
        "assay_submissions_received_total",
        "assay_submissions_scored_total",
        "assay_ledger_events_total",
    }
    wholly_timed = {name for name in names if "wait" in name or "age" in name or "behind" in name}
    assert all(name.endswith("_seconds") for name in wholly_timed)


def test_of_a_dead_worker_its_silence_is_told_and_no_rate() -> None:
    house = a_house()
    later = health_of(house.store, house.clock() + timedelta(hours=1), ROOMY)
    found = scraped(later)
    assert found["assay_worker_heartbeat_age_seconds", (("worker", "w1"),)] > 3500
    assert ("assay_worker_pairs_per_second", (("worker", "w1"),)) not in found
    assert found["assay_workers_alive", ()] == 0


def test_of_a_store_that_cannot_be_read_no_figure_claims_that_it_is_empty() -> None:
    found = scraped(Health(status=Level.DOWN, at=T0, disk=ROOMY))
    assert found["assay_health", (("status", "down"),)] == 1
    assert ("assay_queue_length", ()) not in found
    assert found["assay_disk_size_bytes", ()] == 200 << 30
