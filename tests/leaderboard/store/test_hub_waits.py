"""Nobody waits for a commit for long, nor at all where the process is to end."""

from __future__ import annotations

import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.errors import TransientError
from leaderboard.store.hub.budget import CommitBudget
from leaderboard.store.hub.hub_store import hub_store
from leaderboard.store.interface import Store, transact
from tests.hub.server import HubServer
from tests.leaderboard.store.hub_rig import NAME, created, parts_of

PRIVATE = f"{NAME}-submissions"


class Steady:
    """Seconds that pass while somebody sleeps; it can be told to let nobody sleep."""

    def __init__(self) -> None:
        self.now, self.ended = 0.0, False
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> bool:
        if not self.ended:
            self.slept.append(seconds)
            self.now += seconds
        return self.ended


def store_of(hub: HubServer, folder: Path, monkeypatch: pytest.MonkeyPatch, commits: int) -> Store:
    monkeypatch.setenv("ASSAY_COMMITS_PER_HOUR", str(commits))
    created(hub, folder / "made")
    return hub_store(NAME, folder / "used", endpoint=hub.endpoint, token=hub.token)


@pytest.mark.parametrize("how", ["wait", "ready"])
def test_who_would_wait_for_long_is_told_until_when_instead(how: str) -> None:
    steady = Steady()
    budget = CommitBudget(100, 20, steady, steady.sleep)
    budget.penalise(900.0)
    with pytest.raises(TransientError, match="the next is possible in 15 minutes") as told:
        getattr(budget, how)()
    assert told.value.code == "commits_used_up"
    assert str(pickle.loads(pickle.dumps(told.value))) == str(told.value)
    steady.now = 650.0
    getattr(budget, how)()
    assert steady.slept == [250.0]


def test_several_short_waits_do_not_make_a_long_one() -> None:
    steady = Steady()
    budget = CommitBudget(100, 20, steady, steady.sleep)

    def overtaken(seconds: float) -> None:
        steady.sleep(seconds)
        budget.penalise(200.0)

    budget._sleep = overtaken
    budget.penalise(200.0)
    with pytest.raises(TransientError, match="used up"):
        budget.wait()
    assert steady.slept == [200.0]


def test_whoever_waits_for_a_commit_is_let_go_where_the_process_is_to_end(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(hub, tmp_path, monkeypatch, 20)  # four at once, and then one in 225 s
    for n in range(4):
        transact(store.private, lambda n=n: {f"uploads/{n}": b"1"}, "m")  # type: ignore[misc]
    before = hub.tally.commits(PRIVATE)
    with ThreadPoolExecutor(3) as pool:
        waiting = [
            pool.submit(transact, store.private, lambda: {"late": b"1"}, "m") for _ in range(3)
        ]
        time.sleep(0.2)
        assert not any(each.done() for each in waiting)
        store.wait_no_more()
        for each in waiting:
            with pytest.raises(TransientError, match="used up") as told:
                each.result(60)
            assert told.value.code == "commits_used_up"
    assert hub.tally.commits(PRIVATE) == before
    assert transact(store.private, dict, "nothing to write") == store.private.head()


def test_what_may_be_committed_at_once_is_sent_on_leaving_too(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(hub, tmp_path, monkeypatch, 100)
    store.wait_no_more()
    transact(store.public, lambda: {"queue.json": b"1", "results/m/a.json": b"1"}, "m")
    assert store.public.read("results/m/a.json") == b"1"


def test_a_pause_that_the_hub_asks_for_ends_with_the_process(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(hub, tmp_path, monkeypatch, 100)
    pause = hub.spoil("/resolve/", status=429, headers={"Retry-After": "50"})
    threading.Timer(0.3, store.wait_no_more).start()
    with pytest.raises(TransientError, match="takes no more requests"):
        store.public.head()
    assert len(pause.seen) == 1


def test_a_commit_for_which_there_is_no_budget_is_certain_not_to_have_been_made(
    hub: HubServer, tmp_path: Path
) -> None:
    created(hub, tmp_path / "made")
    steady = Steady()
    budget = CommitBudget(1, 1, steady, steady.sleep)
    repository = parts_of(hub, tmp_path / "used", budget=budget).private
    made = repository.commit({"a": b"1"}, parent=repository.head(), message="m")
    with pytest.raises(TransientError, match="possible in 60 minutes") as told:
        repository.commit({"b": b"1"}, parent=made, message="m")
    assert told.value.code == "commits_used_up"
    assert repository.fresh_head() == made
