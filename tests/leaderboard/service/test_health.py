"""How an installation says that it is well, and what it says where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.errors import TransientError
from leaderboard.governance.accounts import Account
from leaderboard.publication.snapshot import PATH
from leaderboard.service.health import DiskSpace, Health, Level, Seen
from leaderboard.service.looking import ChronicleCounts, HealthWatch, Looking
from leaderboard.service.verdict import DISK_FLOOR_BYTES, judged
from leaderboard.states import State
from leaderboard.store.interface import Store, transact
from leaderboard.store.live.interface import MemoryLive, Pulse
from tests.leaderboard.house import ADA, OLGA, T0, House
from tests.leaderboard.service.looked import health_of

ROOMY = DiskSpace(free_bytes=100 << 30, total_bytes=200 << 30)


def codes(health: Health) -> set[str]:
    return {problem.code for problem in health.problems}


def beat(
    house: House, worker: str = "w1", *, ago_s: float = 0.0, isolation_ok: bool = True
) -> None:
    at = house.clock() - timedelta(seconds=ago_s)
    house.store.live.beat(
        Pulse(worker=worker, at=at, isolation_ok=isolation_ok, isolation="fake", rate_per_s=2.5)
    )


def now_of(house: House, disk: DiskSpace = ROOMY) -> Health:
    return health_of(house.store, house.clock(), disk)


def test_an_empty_store_is_well() -> None:
    health = now_of(House())
    assert (health.status, health.queue_length, health.received) == (Level.OK, 0, 0)
    assert health.snapshot is None


def test_a_published_submission_leaves_nothing_to_worry_about() -> None:
    house = House()
    house.done()
    beat(house)
    health = now_of(house)
    assert (health.status, health.problems) == (Level.OK, ())
    assert health.submissions == {"published": 1}
    assert (health.received, health.scored, health.ended_last_day) == (1, 1, 1)
    assert health.events["published"] == 1
    assert health.snapshot is not None
    assert health.snapshot.behind_s <= 1.0


def test_what_waits_is_counted_with_the_longest_wait() -> None:
    house = House()
    house.send()
    house.send(name="red")
    beat(house)
    (first, _) = house.ledger.statuses()
    now = first.since + timedelta(seconds=50)
    health = health_of(house.store, now, ROOMY)
    assert (health.queue_length, health.oldest_wait_s) == (2, 50.0)
    assert health.status is Level.OK


def test_work_that_waits_without_any_worker_alive_is_told_with_the_remedy() -> None:
    house = House()
    house.send()
    beat(house, ago_s=3600)
    health = now_of(house)
    assert health.status is Level.DEGRADED
    (problem,) = health.problems
    assert problem.code == "no_worker"
    assert "python -m evaluator worker" in problem.remedy
    (worker,) = health.workers
    assert not worker.alive
    assert worker.heartbeat_age_s >= 3600


def test_modules_that_wait_for_isolation_are_told() -> None:
    house = House()
    house.send()
    beat(house, isolation_ok=False)
    assert codes(now_of(house)) == {"no_isolation"}
    beat(house, "w2")
    assert codes(now_of(house)) == set()


def test_a_wait_of_many_hours_is_told() -> None:
    house = House()
    house.send()
    later = house.clock() + timedelta(hours=7)
    house.store.live.beat(Pulse(worker="w1", at=later, isolation_ok=True, isolation="fake"))
    assert codes(health_of(house.store, later, ROOMY)) == {"long_wait"}


def test_what_a_silent_worker_holds_is_told_though_another_lives() -> None:
    house = House()
    house.claim(house.send())
    beat(house, house.worker, ago_s=600)
    beat(house, "w2")
    assert codes(now_of(house)) == {"abandoned"}


@pytest.mark.parametrize("fault", ["submitter", "platform"])
def test_failures_are_told_by_whose_fault_they_were(fault: str) -> None:
    house = House()
    house.done()
    failing = house.send(name="red")
    house.claim(failing)
    house.fail(failing)
    beat(house)
    statuses = [
        s.model_copy(update={"fault": fault}) if s.state is State.FAILED else s
        for s in house.ledger.statuses()
    ]
    health = judged(Seen("1", tuple(statuses)), house.clock(), ROOMY)
    assert health.failed_last_day == {fault: 1}
    assert health.failure_rate == {fault: 0.5}
    assert codes(health) == ({"our_failures"} if fault == "platform" else set())


def test_failures_of_the_day_before_are_forgotten() -> None:
    house = House()
    failing = house.send()
    house.claim(failing)
    house.fail(failing)
    health = health_of(house.store, house.clock() + timedelta(days=2), ROOMY)
    assert (health.ended_last_day, health.failure_rate) == (0, {})


@pytest.mark.parametrize(
    ("free", "status"), [(DISK_FLOOR_BYTES - 1, Level.DOWN), (2 << 30, Level.DEGRADED)]
)
def test_a_disk_that_is_almost_full_is_told(free: int, status: Level) -> None:
    disk = DiskSpace(free_bytes=free, total_bytes=10 << 30)
    health = health_of(House().store, T0, disk)
    assert health.status is status
    assert "GiB" in health.problems[0].message


def test_commits_that_are_used_up_are_told() -> None:
    assert codes(judged(Seen("1", commits_left=0), T0, ROOMY)) == {"no_commits_left"}
    assert codes(judged(Seen("1", commits_left=7), T0, ROOMY)) == set()


def test_boards_that_show_what_was_taken_off_are_told() -> None:
    house = House()
    shown = house.done()
    snapshot = house.store.public.read(PATH)
    house.acts.hide(shown, OLGA, "copied")
    beat(house)
    assert codes(now_of(house)) == set()
    transact(house.store.public, lambda: {PATH: snapshot}, "an old snapshot comes back")
    health = now_of(house)
    assert codes(health) == {"boards_show_too_much"}
    assert "--repair" in health.problems[0].remedy


def test_boards_that_cannot_be_read_are_told_and_the_queue_all_the_same() -> None:
    house = House()
    house.done()
    transact(house.store.public, lambda: {PATH: b"no snapshot"}, "damaged")
    beat(house)
    health = now_of(house)
    assert (health.status, codes(health)) == (Level.DOWN, {"boards_damaged"})
    assert health.submissions == {"published": 1}


def test_boards_older_than_the_newest_result_are_told() -> None:
    house = House()
    house.done()
    snapshot = house.store.public.read(PATH)
    house.clock.time += timedelta(hours=1)  # type: ignore[attr-defined]
    house.done(name="red")
    transact(house.store.public, lambda: {PATH: snapshot}, "an old snapshot comes back")
    beat(house)
    health = now_of(house)
    assert codes(health) == {"boards_behind"}
    assert health.snapshot is not None
    assert health.snapshot.behind_s > 3000


def test_of_a_private_submission_nothing_but_its_number_is_told() -> None:
    house = House()
    house.send(ADA, "secret-metric", private=True)
    told = now_of(house).model_dump_json()
    assert '"queue_length":1' in told
    assert "secret-metric" not in told
    assert "ada" not in told


def test_no_submission_is_named() -> None:
    house = House()
    sent = house.done(Account(origin=ADA.origin, name="bertha"), "open-metric")
    told = now_of(house).model_dump_json()
    assert sent not in told
    assert "bertha" not in told


@dataclass
class Failing:
    """A repository that fails, and counts how often it is asked."""

    house: House
    asked: list[str] = field(default_factory=list)
    broken: bool = False

    def __getattr__(self, name: str) -> object:
        self.asked.append(name)
        if self.broken:
            raise TransientError("store_failed", "The Hub answers with 503.", "Wait.")
        return getattr(self.house.store.public, name)


def watched(house: House, public: Failing, **more: object) -> HealthWatch:
    store = Store(public, house.store.private, house.store.live, house.clock)  # type: ignore[arg-type]
    return HealthWatch(store, Path("/"), disk=lambda _: ROOMY, **more)  # type: ignore[arg-type]


def test_a_store_that_fails_is_down_in_the_stores_own_words() -> None:
    house = House()
    public = Failing(house, broken=True)
    health = watched(house, public).health()
    assert health.status is Level.DOWN
    assert "503" in health.problems[0].message
    assert health.problems[0].remedy == "Wait."
    assert health.store is None


class SilentRelay(MemoryLive):
    def pulses(self) -> tuple[Pulse, ...]:
        raise TransientError("live_failed", "The site does not answer.")


def test_where_workers_tell_nobody_it_is_not_said_that_there_are_none() -> None:
    house = House()
    house.send()
    store = replace(house.store, live=SilentRelay(), clock=house.clock)
    health = HealthWatch(store, Path("/"), own="w1", disk=lambda _: ROOMY).health()
    assert (health.status, codes(health)) == (Level.DEGRADED, {"workers_not_known"})
    assert health.queue_length == 1


def test_a_store_that_comes_back_is_well_again() -> None:
    house = House()
    public = Failing(house, broken=True)
    watch = watched(house, public, fresh_for_s=0.0)
    assert watch.health().status is Level.DOWN
    public.broken = False
    assert watch.health().status is Level.OK


def test_a_burst_of_questions_reads_the_store_once() -> None:
    house, seconds = House(), [0.0]
    house.done()
    public = Failing(house)
    watch = watched(house, public, monotonic=lambda: seconds[0], fresh_for_s=5.0)
    first = watch.health()
    asked = len(public.asked)
    assert all(watch.health() is first for _ in range(100))
    assert len(public.asked) == asked


def test_where_nothing_was_committed_only_the_version_is_asked_for() -> None:
    house, seconds = House(), [0.0]
    house.done()
    public = Failing(house)
    watch = watched(house, public, monotonic=lambda: seconds[0], fresh_for_s=5.0)
    watch.health()
    public.asked.clear()
    seconds[0] = 6.0
    watch.health()
    assert public.asked == ["head"]


def test_a_worker_that_answers_and_does_not_beat_is_down() -> None:
    house = House()
    beat(house, "w1")
    public = Failing(house)
    assert watched(house, public, own="w1").health().status is Level.OK
    assert codes(watched(house, public, own="w2").health()) == {"this_worker_silent"}


def test_full_segments_of_the_ledger_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("ledger.chronicle", "ledger.chronicle_writing", "service.looking"):
        monkeypatch.setattr(f"leaderboard.{module}.SEGMENT_LINES", 3, raising=False)
    house = House()
    for number in range(4):
        house.send(name=f"m{number}")
    public = Failing(house)
    counts = ChronicleCounts(public)  # type: ignore[arg-type]
    before, _ = counts.read()
    assert before == {"began": 1, "received": 4, "queued": 4}
    assert public.asked.count("read") > 1
    public.asked.clear()
    house.send(name="m4")
    after, last = counts.read()
    assert after == {"began": 1, "received": 5, "queued": 5}
    assert public.asked.count("read") <= 2
    assert isinstance(last, datetime)


def test_all_that_is_read_of_a_store_is_of_one_version() -> None:
    house = House()
    house.done()
    looking = Looking(house.store)
    first: Sequence[Seen] = [looking.look(), looking.look()]
    assert first[0].statuses is first[1].statuses
    house.send(name="red")
    assert len(looking.look().statuses) == 2
