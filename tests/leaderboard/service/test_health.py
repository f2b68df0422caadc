"""How an installation says that it is well, over HTTP and to Prometheus, and what where it is not."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.testclient import TestClient

from benchmarks.errors import TransientError
from leaderboard.publication.snapshot import PATH
from leaderboard.service.health import DISK_FLOOR_BYTES, DiskSpace, Health, Level, Seen, judged
from leaderboard.service.health_routes import routes
from leaderboard.service.metrics import metrics_text
from leaderboard.service.polling import ChronicleCounts, HealthWatch, StorePoll
from leaderboard.states import State
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import transact
from leaderboard.store.live.interface import Heartbeat, MemoryLive
from tests.kit.governed import OLGA, T0, House
from tests.kit.records import a_pulse
from tests.kit.store import memory_store
from tests.leaderboard.web.failing_store import Switch, failing

ROOMY = DiskSpace(free_bytes=100 << 30, total_bytes=200 << 30)


def codes(health: Health) -> set[str]:
    return {problem.code for problem in health.problems}


def beat(
    house: House, worker: str = "w1", *, ago_s: float = 0.0, isolation_ok: bool = True
) -> None:
    at = house.clock() - timedelta(seconds=ago_s)
    house.store.live.beat(a_pulse(worker, at, isolation_ok=isolation_ok, rate_per_s=2.5))


def seen(house: House, *, later: timedelta = timedelta(0), disk: DiskSpace = ROOMY) -> Health:
    """What whoever looks then is told."""
    now = house.clock() + later
    then = replace(house.store, clock=lambda: now)
    return HealthWatch(then, Path("/"), disk=lambda _: disk).health()


def failed(house: House) -> House:
    failing = house.send(name="red")
    house.claim(failing)
    house.fail(failing)
    return house


# Figures


def test_an_empty_store_is_well() -> None:
    health = seen(House())
    assert (health.status, health.queue_length, health.received) == (Level.OK, 0, 0)
    assert health.snapshot is None


def test_a_published_submission_leaves_nothing_to_worry_about() -> None:
    house = House()
    house.done()
    beat(house)
    health = seen(house)
    assert (health.status, health.problems) == (Level.OK, ())
    assert (health.submissions, health.events["published"]) == ({"published": 1}, 1)
    assert (health.received, health.scored, health.ended_last_day) == (1, 1, 1)
    assert health.snapshot is not None
    assert health.snapshot.behind_s <= 1.0


def test_what_waits_is_counted_with_the_longest_wait() -> None:
    house = House()
    house.send()
    house.send(name="red")
    beat(house)
    since = house.ledger.statuses()[0].since
    health = seen(house, later=since + timedelta(seconds=49) - house.clock())
    assert (health.status, health.queue_length, health.oldest_wait_s) == (Level.OK, 2, 50.0)


@pytest.mark.parametrize("fault", ["submitter", "platform"])
def test_failures_are_told_by_whose_fault_they_were(fault: str) -> None:
    house = House()
    house.done()
    done, failing = failed(house).ledger.statuses()
    assert failing.state is State.FAILED
    statuses = (done, failing.model_copy(update={"fault": fault}))
    health = judged(Seen("1", statuses), house.clock(), ROOMY)
    assert (health.failed_last_day, health.failure_rate) == ({fault: 1}, {fault: 0.5})
    assert codes(health) == ({"our_failures"} if fault == "platform" else set())


def test_failures_of_the_day_before_are_forgotten() -> None:
    health = seen(failed(House()), later=timedelta(days=2))
    assert (health.ended_last_day, health.failure_rate) == (0, {})


@pytest.mark.parametrize("private", [True, False])
def test_no_submission_and_no_author_is_named(*, private: bool) -> None:
    house = House()
    waits = house.send(name="secret-metric", private=private)
    done = house.done(name="secret-metric", private=private)
    told = seen(house).model_dump_json()
    assert '"queue_length":1' in told
    assert not [name for name in (waits, done, "secret-metric", "ada") if name in told]


# What is wrong


def old_boards(house: House, meanwhile: Callable[[House], object]) -> None:
    snapshot = house.store.public.read(PATH)
    meanwhile(house)
    transact(house.store.public, lambda: {PATH: snapshot}, "an old snapshot comes back")


def hide_one(house: House) -> None:
    house.acts.hide(house.ledger.statuses()[0].submission.submission_id, OLGA, "copied")


def publish_later(house: House) -> None:
    house.clock.time += timedelta(hours=1)  # type: ignore[attr-defined]
    house.done(name="red")
    beat(house)


def silent_work(house: House) -> None:
    house.claim(house.send())
    beat(house, house.worker, ago_s=600)
    beat(house, "w2")


def damage(house: House) -> None:
    transact(house.store.public, lambda: {PATH: b"no snapshot"}, "damaged")


WRONG: dict[str, Callable[[House], None]] = {
    "no_worker": lambda house: beat(house, ago_s=3600),
    "no_isolation": lambda house: beat(house, isolation_ok=False),
    "long_wait": lambda house: beat(house, ago_s=-7 * 3600),
    "abandoned": silent_work,
    "boards_show_too_much": lambda house: old_boards(house, hide_one),
    "boards_damaged": damage,
    "boards_behind": lambda house: old_boards(house, publish_later),
}


@pytest.mark.parametrize("code", WRONG)
def test_what_is_wrong_is_told_with_a_remedy(code: str) -> None:
    house = House()
    house.done()
    if code in {"no_worker", "no_isolation", "long_wait"}:
        house.send()
    else:
        beat(house)
    WRONG[code](house)
    health = seen(house, later=timedelta(hours=7) if code == "long_wait" else timedelta(0))
    assert codes(health) == {code}
    assert health.status is (Level.DOWN if code == "boards_damaged" else Level.DEGRADED)
    assert sum(health.submissions.values()) == len(house.ledger.statuses())
    if code == "boards_behind":
        assert health.snapshot is not None
        assert health.snapshot.behind_s > 3000
    told = {"no_worker": "evaluator worker", "boards_show_too_much": "--repair"}.get(code, "")
    assert health.problems[0].remedy and told in health.problems[0].remedy


def test_another_worker_with_isolation_is_enough_and_a_silent_one_is_known() -> None:
    house = House()
    house.send()
    beat(house, isolation_ok=False)
    beat(house, "w2")
    assert codes(seen(house)) == set()
    later = {worker.name: worker for worker in seen(house, later=timedelta(hours=1)).workers}
    assert not later["w2"].alive
    assert later["w2"].heartbeat_age_s >= 3600


@pytest.mark.parametrize(
    ("free", "status"), [(DISK_FLOOR_BYTES - 1, Level.DOWN), (2 << 30, Level.DEGRADED)]
)
def test_a_disk_that_is_almost_full_is_told(free: int, status: Level) -> None:
    health = seen(House(), disk=DiskSpace(free_bytes=free, total_bytes=10 << 30))
    assert health.status is status
    assert "GiB" in health.problems[0].message


@pytest.mark.parametrize("how", ["removed", "not mounted"])
def test_a_folder_that_is_gone_is_an_outage_and_not_an_empty_store(
    tmp_path: Path, how: str
) -> None:
    root, away = tmp_path / "disk" / "store", tmp_path / "away"
    watch = HealthWatch(folder_store(root), tmp_path, fresh_for_s=0.0, disk=lambda _: ROOMY)
    assert watch.health().status is Level.OK
    root.rename(away)
    if how == "not mounted":
        root.mkdir()
    down = watch.health()
    assert (down.status, down.problems[0].cause) == (Level.DOWN, "store_gone")
    shutil.rmtree(root, ignore_errors=True)
    away.rename(root)
    assert watch.health().status is Level.OK


@pytest.mark.parametrize(("seconds", "minutes"), [(0.0, 0), (60.0, 0), (61.0, 2), (600.0, 10)])
def test_who_waits_for_commits_is_told_for_how_long(seconds: float, minutes: int) -> None:
    store = replace(memory_store(), commits_left=lambda: 5, next_commit_s=lambda: seconds)
    assert store.commit_wait_min() == minutes
    seen = Seen("1", commits_left=5, commit_wait_min=store.commit_wait_min())
    found = judged(seen, T0, ROOMY)
    assert codes(found) == ({"no_commits_left"} if minutes else set())
    assert not minutes or f"next in {minutes} min" in found.problems[0].message


@pytest.mark.parametrize(("left", "told"), [(0, {"no_commits_left"}), (7, set())])
def test_commits_that_are_used_up_are_told(left: int, told: set[str]) -> None:
    assert codes(judged(Seen("1", commits_left=left), T0, ROOMY)) == told


# A store that fails, and how often it is asked


def watched(house: House, switch: Switch | None = None, **more: Any) -> tuple[HealthWatch, Any]:
    """What watches a house, and its public repository, which says what it was asked."""
    store = failing(replace(house.store, clock=house.clock), switch or Switch())
    return HealthWatch(store, Path("/"), disk=lambda _: ROOMY, **more), store.public


def test_a_store_that_fails_is_down_in_the_stores_own_words_until_it_is_back() -> None:
    switch = Switch()
    watch, _ = watched(House(), switch, fresh_for_s=0.0)
    switch.out = True
    health = watch.health()
    assert (health.status, health.store) == (Level.DOWN, None)
    assert "503" in health.problems[0].message and health.problems[0].remedy == "Try again later."
    switch.out = False
    assert watch.health().status is Level.OK


def test_where_workers_tell_nobody_it_is_not_said_that_there_are_none() -> None:
    class SilentRelay(MemoryLive):
        def pulses(self) -> tuple[Heartbeat, ...]:
            raise TransientError("live_failed", "The site does not answer.")

    house = House()
    house.send()
    store = replace(house.store, live=SilentRelay(), clock=house.clock)
    health = HealthWatch(store, Path("/"), own="w1", disk=lambda _: ROOMY).health()
    assert (health.status, codes(health)) == (Level.DEGRADED, {"workers_not_known"})
    assert health.queue_length == 1


def test_a_burst_of_questions_reads_the_store_once_and_then_only_its_version() -> None:
    house, seconds = House(), [0.0]
    house.done()
    watch, public = watched(house, monotonic=lambda: seconds[0], fresh_for_s=5.0)
    first = watch.health()
    public.asked.clear()
    assert all(watch.health() is first for _ in range(100))
    assert public.asked == []
    seconds[0] = 6.0
    watch.health()
    assert public.asked == ["head"]


def test_a_worker_that_answers_and_does_not_beat_is_down() -> None:
    house = House()
    beat(house, "w1")
    first, second = (watched(house, own=name)[0] for name in ("w1", "w2"))
    assert first.health().status is Level.OK
    assert codes(second.health()) == {"this_worker_silent"}


@pytest.fixture
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("ledger.audit_log", "service.polling"):
        monkeypatch.setattr(f"leaderboard.{module}.SEGMENT_LINES", 3, raising=False)


@pytest.mark.usefixtures("short_segments")
def test_full_segments_of_the_ledger_are_read_once() -> None:
    house = House()
    for number in range(4):
        house.send(name=f"m{number}")
    _, public = watched(house)
    counts = ChronicleCounts(public)
    assert counts.read()[0] == {"began": 1, "received": 4, "queued": 4}
    assert public.asked.count("read") > 1
    public.asked.clear()
    house.send(name="m4")
    after, last = counts.read()
    assert after == {"began": 1, "received": 5, "queued": 5}
    assert public.asked.count("read") <= 2
    assert isinstance(last, datetime)


@pytest.mark.usefixtures("short_segments")
def test_a_ledger_begun_again_is_counted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = House(), House()
    for number in range(4):
        old.send(name=f"m{number}")
    at = new.clock() + timedelta(days=1)
    monkeypatch.setattr(new, "clock", lambda: at)
    for number in range(3):
        new.done(name=f"n{number}")
    _, public = watched(old)
    counts = ChronicleCounts(public)
    for house in (old, new):
        public.inner = house.store.public
        assert counts.read() == ChronicleCounts(house.store.public).read()
    assert counts.read()[0]["published"] == 3


def test_all_that_is_read_of_a_store_is_of_one_version() -> None:
    house = House()
    house.done()
    looking = StorePoll(house.store)
    assert looking.look().statuses is looking.look().statuses
    house.send(name="red")
    assert len(looking.look().statuses) == 2


# Over HTTP


def client(house: House, free: int) -> TestClient:
    disk = DiskSpace(free_bytes=free, total_bytes=100 << 30)
    watch = HealthWatch(house.store, Path("/"), disk=lambda _: disk)
    return TestClient(Starlette(routes=routes(watch)))


def test_an_installation_that_is_well_answers_200_with_its_figures_to_who_reads() -> None:
    house = House()
    house.done()
    site = client(house, 50 << 30)
    answered = site.get("/health")
    assert (answered.status_code, answered.headers["Cache-Control"]) == (200, "no-store")
    told = answered.json()
    assert (told["status"], told["submissions"]) == ("ok", {"published": 1})
    refused = site.post("/health"), site.delete("/metrics")
    assert [answer.status_code for answer in refused] == [405, 405]


def test_an_installation_that_is_down_answers_503_and_still_says_why() -> None:
    site = client(House(), 0)
    answered, scraped_ = site.get("/health"), site.get("/metrics")
    assert (answered.status_code, scraped_.status_code) == (503, 200)
    assert answered.json()["problems"][0]["code"] == "disk_full"
    assert scraped_.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert 'assay_health{status="down"} 1.0' in scraped_.text


# To Prometheus


def scraped(health: Health) -> dict[str, float]:
    families = text_string_to_metric_families(metrics_text(health).decode())
    return {
        " ".join([sample.name.removeprefix("assay_"), *sample.labels.values()]): sample.value
        for family in families
        for sample in family.samples
    }


@pytest.fixture
def house() -> House:
    made = House()
    made.done()
    made.send(name="red")
    beat(made)
    return made


def test_the_figures_of_health_are_all_there(house: House) -> None:
    found = scraped(seen(house))
    known = {
        "queue_length": 1, "submissions published": 1, "submissions failed": 0,
        "worker_pairs_per_second w1": 2.5, "disk_free_bytes": 100 << 30,
        "health ok": 1, "health down": 0,
    }  # fmt: skip
    assert {name: found[name] for name in known} == known
    assert found["snapshot_built_timestamp_seconds"] > T0.timestamp()


def test_counters_go_on_where_the_process_that_counts_is_another(house: House) -> None:
    first = scraped(seen(house))
    house.done(name="blue")
    then = scraped(seen(house))
    published = "ledger_events_total published"
    assert (first[published], then[published]) == (1, 2)
    assert (then["submissions_received_total"], then["submissions_scored_total"]) == (3, 2)


def test_every_family_has_help_and_names_its_unit(house: House) -> None:
    lines = [line.split(" ") for line in metrics_text(seen(house)).decode().splitlines()]
    types = {line[2]: line[3] for line in lines if line[:2] == ["#", "TYPE"]}
    assert set(types) == {line[2] for line in lines if line[:2] == ["#", "HELP"]}
    assert all(name.startswith("assay_") for name in types)
    counted = ("submissions_received", "submissions_scored", "ledger_events")
    counters = {name for name, kind in types.items() if kind == "counter"}
    assert counters == {f"assay_{name}_total" for name in counted}
    timed = {name for name in types if any(of in name for of in ("wait", "age", "behind"))}
    assert all(name.endswith("_seconds") for name in timed)


def test_of_a_dead_worker_its_silence_is_told_and_no_rate(house: House) -> None:
    found = scraped(seen(house, later=timedelta(hours=1)))
    assert found["worker_heartbeat_age_seconds w1"] > 3500
    assert found["workers_alive"] == 0
    assert "worker_pairs_per_second w1" not in found


def test_of_a_store_that_cannot_be_read_no_figure_claims_that_it_is_empty() -> None:
    found = scraped(Health(status=Level.DOWN, at=T0, disk=ROOMY))
    assert (found["health down"], found["disk_size_bytes"]) == (1, 200 << 30)
    assert "queue_length" not in found
