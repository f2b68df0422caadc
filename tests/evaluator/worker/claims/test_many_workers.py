"""Eight workers on one store: nothing is claimed twice, nothing published twice, the order fair."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.worker.claims.heartbeat import RunProgress
from evaluator.worker.roles import WorkerRole
from evaluator.worker.worker import Worker
from leaderboard.ledger.chronicle import verify
from leaderboard.ledger.ledger import Ledger
from leaderboard.states import State
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import Store
from leaderboard.store.memory import memory_store
from tests.evaluator.rig import Rig
from tests.evaluator.worker.breaking import published_once
from tests.evaluator.worker.stock import stock

pytestmark = pytest.mark.slow

WORKERS = 8
ACCOUNTS = ("ada", "bob", "eve", "kim", "lea")


def claims(store: Store, ids: tuple[str, ...]) -> Counter[int]:
    """How often submissions were claimed, to how many were so often."""
    events = {name: Ledger(store).events(name) for name in ids}
    return Counter(
        sum(event.state is State.CLAIMED for event in found) for found in events.values()
    )


def work_together(workers: list[Worker]) -> None:
    """Until nothing is left; each on a thread of its own."""
    threads = [threading.Thread(target=worker.run_all) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive()


def by_turns(n: int) -> list[str]:
    """The first account sends most, the last one least and last."""
    shares = [n // 2, n // 4, n // 8, n // 16]
    shares.append(n - sum(shares))
    return [f"hub:{name}" for name, k in zip(ACCOUNTS, shares, strict=True) for _ in range(k)]


def test_eight_workers_and_two_hundred_submissions_hand_over_each_once(tmp_path: Path) -> None:
    rig = Rig(tmp_path, store=replace(memory_store(), jobs_per_commit=8))
    ids = stock(rig.store, by_turns(200))
    before = int(rig.store.public.head())
    work_together([rig.worker(f"w{n}", role=WorkerRole.SCORE) for n in range(WORKERS)])
    assert claims(rig.store, ids) == {1: 200}
    statuses = Ledger(rig.store).statuses()
    assert all(status.to_judge for status in statuses)
    assert verify(rig.store.public) == ()
    commits = int(rig.store.public.head()) - before
    assert commits <= 2 * (200 // 8 + WORKERS), "two commits for eight, and some at the end"


def folder_of(place: Path) -> Store:
    return folder_store(place / "store")


@pytest.mark.parametrize(
    ("made", "jobs"),
    [(lambda _: memory_store(), 8), (folder_of, 1), (folder_of, 4)],
    ids=["memory-8", "folder-1", "folder-4"],
)
def test_eight_workers_publish_each_submission_once(
    tmp_path: Path, made: Callable[[Path], Store], jobs: int
) -> None:
    store = replace(made(tmp_path), jobs_per_commit=jobs)
    rigs = [Rig(tmp_path, store=_own_view(made, tmp_path, store)) for _ in range(WORKERS)]
    rigs[0].clock.move(days=300)
    for rig in rigs:
        rig.clock.time = rigs[0].clock.time
    ids = stock(rigs[0].store, by_turns(16))
    work_together([rig.worker(f"w{n}") for n, rig in enumerate(rigs)])
    assert all(published_once(store, name) for name in ids)
    assert claims(store, ids) == {1: len(ids)}
    assert verify(store.public) == ()
    asked = sum(len(rig.backend.asked) for rig in rigs)
    assert asked == len(ids) * 8 * 3, "nothing was asked twice"


def _own_view(made: Callable[[Path], Store], place: Path, shared: Store) -> Store:
    """A store as another process sees it; what is in memory is shared."""
    own = made(place)
    kept_apart = not isinstance(own.public, type(memory_store().public))
    return replace(own if kept_apart else shared, jobs_per_commit=shared.jobs_per_commit)


def test_nobodys_second_is_begun_before_everybodys_first(tmp_path: Path) -> None:
    rig = Rig(tmp_path, store=replace(memory_store(), jobs_per_commit=1))
    ids = stock(rig.store, by_turns(16))
    begun: list[str] = []

    def listen(run: RunProgress) -> None:
        rig.clock.move(seconds=1)
        begun.append(run.submission)

    worker = rig.worker(listener=listen)
    worker.run_all()
    order = list(dict.fromkeys(begun))
    assert sorted(order) == sorted(ids)
    accounts = {
        s.submission.submission_id: s.submission.account for s in Ledger(rig.store).statuses()
    }
    turns, had = list[int](), Counter[str]()
    for name in order:
        turns.append(had[accounts[name]])
        had[accounts[name]] += 1
    assert turns == sorted(turns)
    assert len({accounts[name] for name in order[:5]}) == 5
