"""A commit on a Hub that fails: it is made once or not at all, and never in doubt without a word."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from huggingface_hub import close_session

from benchmarks.errors import TransientError
from leaderboard.store.hub.layout import Part
from leaderboard.store.interface import ConflictError
from tests.hub.faults import Weather
from tests.hub.server import HubServer
from tests.leaderboard.store.hub_rig import NAME, created, parts_of

pytestmark = pytest.mark.usefixtures("no_rests")
PRIVATE = f"{NAME}-submissions"


@pytest.mark.parametrize(
    "fault",
    [
        {"drop": True, "done": True},
        {"status": 503, "done": True},
        {"drop": True},
        {"status": 500},
        {"cut_upload_after": 10},
        {"cut_after": 5},
    ],
    ids=["answer lost", "503 after", "dropped", "500", "upload cut", "answer cut"],
)
def test_a_commit_whose_answer_fails_is_made_exactly_once(
    hub: HubServer, tmp_path: Path, fault: dict[str, object]
) -> None:
    repository = created(hub, tmp_path).private
    before = hub.tally.commits(PRIVATE)
    hub.spoil(f"{PRIVATE}/commit/", method="POST", **fault)
    made = repository.commit({"a": b"1"}, parent=repository.head(), message="m")
    assert hub.tally.commits(PRIVATE) == before + 1
    assert made == hub.repositories[PRIVATE].branches["main"]
    assert repository.read("a") == b"1"


def test_a_commit_that_lands_after_its_answer_was_given_up_is_not_made_again(
    hub: HubServer, tmp_path: Path
) -> None:
    """The first is still under way while the second is sent: the parent lets one of them in."""
    repository = created(hub, tmp_path).private
    before, head = hub.tally.commits(PRIVATE), repository.head()
    hub.spoil(f"{PRIVATE}/commit/", method="POST", drop=True, done=True)
    # The history answers late, and once without the commit, as if it had not landed yet.
    hub.spoil(f"{PRIVATE}/commits/", method="GET", status=503, times=4)
    made = repository.commit({"a": b"1"}, parent=head, message="m")
    assert made == hub.repositories[PRIVATE].branches["main"]
    assert hub.tally.commits(PRIVATE) == before + 1


def test_a_lost_answer_after_which_others_committed_is_found_in_the_history(
    hub: HubServer, tmp_path: Path
) -> None:
    parts = created(hub, tmp_path)
    repository, head = parts.private, parts.private.head()
    other = parts_of(hub, tmp_path / "other").private
    hub.spoil(f"{PRIVATE}/commit/", method="POST", drop=True, done=True)
    looked = hub.spoil(f"{PRIVATE}/commits/", method="GET", wait_s=0.5)

    def overtake() -> None:
        while not looked.seen:
            time.sleep(0.01)
        other.commit({"b": b"2"}, parent=other.fresh_head(), message="other")

    thread = threading.Thread(target=overtake)
    thread.start()
    made = repository.commit({"a": b"1"}, parent=head, message="m")
    thread.join()
    assert repository.read_at("a", made) == b"1"
    assert repository.fresh_head() != made
    assert repository.list() == ("a", "b")


@pytest.mark.parametrize("target", ["/resolve/", "/paths-info/", "/preupload/", "/commit/"])
def test_connections_that_another_thread_closes_cost_nothing(
    hub: HubServer, tmp_path: Path, target: str
) -> None:
    """The client of the Hub does so where it cannot connect, for all threads at once."""
    repository = created(hub, tmp_path).private
    slow = hub.spoil(f"{PRIVATE}{target}", wait_s=0.2)

    def close() -> None:
        while not slow.seen:
            time.sleep(0.01)
        close_session()

    thread = threading.Thread(target=close)
    thread.start()
    repository.commit({"a": b"1"}, parent=repository.head(), message="m")
    thread.join()
    assert repository.read("a") == b"1"
    assert hub.tally.commits(PRIVATE) == 2


def test_a_refusal_after_a_try_that_may_still_land_is_no_certain_end(
    hub: HubServer, tmp_path: Path
) -> None:
    repository = created(hub, tmp_path).private
    head = repository.head()
    hub.spoil(f"{PRIVATE}/commit/", status=403)
    with pytest.raises(TransientError) as refused:
        repository.commit({"a": b"1"}, parent=head, message="refused at once")
    assert refused.value.code == "access_lost"
    hub.spoil(f"{PRIVATE}/commit/", drop=True)
    hub.spoil(f"{PRIVATE}/commit/", status=403)
    with pytest.raises(TransientError) as caught:
        repository.commit({"a": b"1"}, parent=head, message="refused later")
    assert caught.value.code == "commit_unknown"


def test_a_commit_that_puts_many_files_back_survives_a_hub_that_fails_a_third_of_all_reads(
    hub: HubServer, tmp_path: Path
) -> None:
    results = created(hub, tmp_path).repositories[Part.RESULTS]
    files = {f"results/{n}/a.json": f"{n}".encode() for n in range(30)}
    large = {"results/0/a.scores.parquet": b"large"}
    base = results.commit({**files, **large}, parent=results.head(), message="base")
    half = dict.fromkeys((*files, *large), b"half")
    results.commit_onto(base, {**half, "results/new/a.json": b"half"}, "half")
    fresh = parts_of(hub, tmp_path / "fresh", pauses=[0.01] * 8).repositories[Part.RESULTS]
    weather = Weather(0.33, seed=1)
    hub.faults.weather(weather)
    made = fresh.commit_onto(base, {"results/mine/a.json": b"1"}, "mine")
    assert weather.failed > 10
    hub.faults.clear()
    assert {path: fresh.read_at(path, made) for path in (*files, *large)} == {**files, **large}
    assert not fresh.has_at("results/new/a.json", made)


@pytest.mark.parametrize("fault", [{"status": 503}, {"drop": True}], ids=["503", "dropped"])
def test_what_fails_before_a_commit_is_sent_leaves_no_doubt_and_costs_no_commit(
    hub: HubServer, tmp_path: Path, fault: dict[str, object]
) -> None:
    class Counted:
        made = 0

        def wait(self) -> None:
            self.made += 1

        def ready(self, commits: int = 1) -> None: ...

        def delay(self, commits: int = 1) -> float:
            return 0.0

        def penalise(self, seconds: float) -> None: ...

    name, path = f"{NAME}-results", "results/0/a.scores.parquet"
    results = created(hub, tmp_path).repositories[Part.RESULTS]
    base = results.commit({path: b"whole"}, parent=results.head(), message="base")
    results.commit_onto(base, {path: b"half"}, "half")
    before, budget = hub.tally.commits(name), Counted()
    mine = parts_of(hub, tmp_path / "mine", budget=budget).repositories[Part.RESULTS]
    hub.spoil(f"{name}/paths-info/main", times=500, **fault)
    with pytest.raises(TransientError) as caught:
        mine.commit_onto(base, {"results/1/a.json": b"1"}, "mine")
    assert caught.value.code == "store_unreachable"
    assert (hub.tally.commits(name), budget.made) == (before, 1)


def test_a_conflict_is_told_and_changes_nothing(hub: HubServer, tmp_path: Path) -> None:
    repository = created(hub, tmp_path).private
    head = repository.head()
    hub.spoil(f"{PRIVATE}/commit/", method="POST", conflict=True)
    with pytest.raises(ConflictError):
        repository.commit({"a": b"1"}, parent=head, message="m")
    assert not repository.has("a")
    repository.commit({"a": b"1"}, parent=repository.head(), message="m")


@pytest.mark.parametrize("target", ["/preupload/", "/objects/batch", "/upload/", "/verify"])
def test_an_upload_whose_steps_fail_is_whole_in_the_end(
    hub: HubServer, tmp_path: Path, target: str
) -> None:
    repository = created(hub, tmp_path).private
    content = bytes(range(256)) * 8000
    (tmp_path / "big").write_bytes(content)
    faults = hub.spoil(target, cut_upload_after=100), hub.spoil(target, status=503)
    repository.commit({"a.zip": tmp_path / "big"}, parent=repository.head(), message="m")
    assert repository.read("a.zip") == content
    assert all(fault.seen for fault in faults)


def test_a_slow_answer_is_given_up_and_the_commit_found(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = created(hub, tmp_path).private
    head = repository.head()
    monkeypatch.setattr("benchmarks.sources.client._COMMIT_READ_S", 0.3)
    before = hub.tally.commits(PRIVATE)
    hub.spoil(f"{PRIVATE}/commit/", method="POST", reply_after_s=30.0)
    made = repository.commit({"a": b"1"}, parent=head, message="m")
    assert (made, hub.tally.commits(PRIVATE)) == (repository.fresh_head(), before + 1)
