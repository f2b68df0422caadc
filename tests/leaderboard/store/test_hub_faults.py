"""A Hub that fails: commits are made once or not at all, reads are never old in new clothes."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import close_session
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from benchmarks.errors import TransientError
from leaderboard.store.hub.budget import CommitBudget
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.layout import Part
from leaderboard.store.hub.repository import HubRepository
from leaderboard.store.interface import NotFoundError, Repository, transact
from tests.kit.hub.faults import Fault, Weather
from tests.kit.hub.server import HubServer
from tests.kit.hub_store import NAME, NOWHERE, PRIVATE, created, parts_of
from tests.kit.refusals import refused
from tests.kit.store import put

pytestmark = pytest.mark.usefixtures("no_rests")
LARGE = bytes(range(256)) * 8000


@contextmanager
def as_soon_as_met(fault: Fault, act: Callable[[], object]) -> Iterator[None]:
    """Act in another thread once a request met the fault, which waits until that is done."""

    def run() -> None:
        assert fault.met.wait(60)
        act()
        fault.released.set()

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join()


# Commits


PAGE = "https://hub/datasets/lab/assay/commit/1"
MISSHAPEN_COMMITS: list[Any] = [
    {},
    None,
    "x",
    [1],
    {"commitUrl": 5, "commitOid": "1"},
    {"commitUrl": "x", "commitOid": "1"},
    {"commitUrl": PAGE, "commitOid": 5},
]
NO_LISTINGS: list[Any] = [{}, None, {"error": "x"}, "x", [1], [None], [[]], [{}], ["x"]]
MISSHAPEN_FILES: list[Any] = [
    [{"type": "file", "path": "a/x"}],
    [{"type": "file", "path": 5, "oid": "1"}],
    [{"type": "file", "path": "a/x", "oid": "1", "lfs": {}}],
]


def instead(answer: object, **more: Any) -> dict[str, Any]:
    """A fault: what was asked is carried out, and this is answered."""
    return {"status": 200, "body": json.dumps(answer).encode(), "done": True, **more}


def test_a_commit_whose_answer_is_of_another_shape_is_found_in_the_history(
    hub: HubServer, private: HubRepository, subtests: pytest.Subtests
) -> None:
    for number, answer in enumerate(MISSHAPEN_COMMITS, 1):
        with subtests.test(answer=answer):
            before, content = hub.tally.commits(PRIVATE), b"%d" % number
            hub.spoil(f"{PRIVATE}/commit/", method="POST", **instead(answer))
            assert put(private, {"a": content}) == hub.repositories[PRIVATE].branches["main"]
            assert (hub.tally.commits(PRIVATE), private.read("a")) == (before + 1, content)


def test_a_history_of_another_shape_is_not_one_without_our_commit(
    hub: HubServer, private: HubRepository, subtests: pytest.Subtests
) -> None:
    """Else the commit that landed would be taken for a lost race, and the change made twice."""
    calls: list[str] = []

    def change() -> dict[str, bytes]:
        calls.append(f"log/{len(calls):02}.json")
        return {calls[-1]: b"1"}

    for number, answer in enumerate([*NO_LISTINGS, [{"id": 5}]], 1):
        with subtests.test(answer=answer):
            hub.spoil(f"{PRIVATE}/commit/", method="POST", status=502, done=True)
            hub.spoil(f"{PRIVATE}/commits/", times=99, **instead(answer))
            with refused("commit_unknown", kind=TransientError):
                transact(private, change, "m")
            assert (len(calls), private.list("log/")) == (number, tuple(calls))
        hub.faults.clear()


@pytest.mark.parametrize("target", ["/tree/", "/paths-info/"])
def test_a_listing_of_another_shape_is_asked_for_again_and_never_an_empty_store(
    hub: HubServer,
    private: HubRepository,
    tmp_path: Path,
    target: str,
    subtests: pytest.Subtests,
) -> None:
    put(private, {"a/x": b"1"})
    for number, answer in enumerate([*NO_LISTINGS, *MISSHAPEN_FILES]):
        other = parts_of(hub, tmp_path / str(number)).private
        ask = {"/tree/": lambda: other.list("a/"), "/paths-info/": lambda: other.has("a/x")}[target]  # noqa: B023
        with subtests.test(answer=answer):
            hub.spoil(target, times=4, **instead(answer))
            with refused("store_unreachable", kind=TransientError):
                ask()
            hub.spoil(target, **instead(answer))
            assert ask() in (("a/x",), True)


def test_a_file_that_is_listed_twice_is_one(
    hub: HubServer, private: HubRepository, tmp_path: Path
) -> None:
    twice = [{"type": "file", "path": "a/x", "oid": "1"}] * 2
    hub.spoil("/tree/", **instead(twice))
    assert parts_of(hub, tmp_path / "other").private.list("a/") == ("a/x",)


@pytest.mark.parametrize("answer", [{}, {"files": [{}]}, {"files": None}], ids=json.dumps)
def test_an_answer_of_another_shape_before_a_commit_is_asked_for_again(
    hub: HubServer, private: HubRepository, answer: object
) -> None:
    hub.spoil(f"{PRIVATE}/preupload/", **instead(answer))
    put(private, {"a": b"1"})
    assert private.read("a") == b"1"


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
def test_a_commit_is_made_exactly_once(
    hub: HubServer, private: HubRepository, fault: dict[str, Any]
) -> None:
    before = hub.tally.commits(PRIVATE)
    hub.spoil(f"{PRIVATE}/commit/", method="POST", **fault)
    assert put(private, {"a": b"1"}) == hub.repositories[PRIVATE].branches["main"]
    assert (hub.tally.commits(PRIVATE), private.read("a")) == (before + 1, b"1")


def test_a_commit_seen_late_is_not_made_again(hub: HubServer, private: HubRepository) -> None:
    """The first is still under way while the second is sent: the parent lets one of them in."""
    before = hub.tally.commits(PRIVATE)
    hub.spoil(f"{PRIVATE}/commit/", method="POST", drop=True, done=True)
    hub.spoil(f"{PRIVATE}/commits/", method="GET", status=503, times=4)
    assert put(private, {"a": b"1"}) == hub.repositories[PRIVATE].branches["main"]
    assert hub.tally.commits(PRIVATE) == before + 1


def test_a_lost_answer_after_which_others_committed_is_found_in_the_history(
    hub: HubServer, private: HubRepository, tmp_path: Path
) -> None:
    head, other = private.head(), parts_of(hub, tmp_path / "other").private
    hub.spoil(f"{PRIVATE}/commit/", method="POST", drop=True, done=True)
    looked = hub.spoil(f"{PRIVATE}/commits/", method="GET", wait_s=60.0)
    with as_soon_as_met(looked, lambda: put(other, {"b": b"2"})):
        made = private.commit({"a": b"1"}, parent=head, message="m")
    assert private.read_at("a", made) == b"1"
    assert private.fresh_head() != made
    assert private.list() == ("a", "b")


@pytest.mark.parametrize("target", ["/resolve/", "/paths-info/", "/preupload/", "/commit/"])
def test_closed_connections_cost_nothing(
    hub: HubServer, private: HubRepository, target: str
) -> None:
    """The client of the Hub does so where it cannot connect, for all threads at once."""
    with as_soon_as_met(hub.spoil(f"{PRIVATE}{target}", wait_s=60.0), close_session):
        put(private, {"a": b"1"})
    assert (private.read("a"), hub.tally.commits(PRIVATE)) == (b"1", 2)


def test_a_refusal_after_a_lost_try_is_no_certain_end(
    hub: HubServer, private: HubRepository
) -> None:
    put(private, {"a": b"0"})
    hub.spoil(f"{PRIVATE}/commit/", status=403)
    with refused("access_lost", kind=TransientError):
        put(private, {"a": b"1"})
    hub.spoil(f"{PRIVATE}/commit/", drop=True)
    hub.spoil(f"{PRIVATE}/commit/", status=403)
    with refused("commit_unknown", kind=TransientError):
        put(private, {"a": b"1"})


def test_files_are_put_back_in_bad_weather(hub: HubServer, parts: HubParts, tmp_path: Path) -> None:
    results = parts.repositories[Part.RESULTS]
    files = {f"results/{n}/a.json": f"{n}".encode() for n in range(30)}
    files["results/0/a.scores.parquet"] = b"large"
    base = put(results, files)
    half = dict.fromkeys((*files, "results/new/a.json"), b"half")
    results.commit_onto(base, half, "half")
    fresh = parts_of(hub, tmp_path / "fresh", pauses=[0.01] * 8).repositories[Part.RESULTS]
    weather = Weather(0.33, seed=1)
    hub.faults.weather(weather)
    made = fresh.commit_onto(base, {"results/mine/a.json": b"1"}, "mine")
    assert weather.failed > 10
    hub.faults.clear()
    assert {path: fresh.read_at(path, made) for path in files} == files
    assert not fresh.has_at("results/new/a.json", made)


@pytest.mark.parametrize("fault", [{"status": 503}, {"drop": True}], ids=["503", "dropped"])
def test_what_fails_before_a_commit_is_sent_leaves_no_doubt_and_costs_no_commit(
    hub: HubServer, parts: HubParts, tmp_path: Path, fault: dict[str, Any]
) -> None:
    name, path = f"{NAME}-results", "results/0/a.scores.parquet"
    results = parts.repositories[Part.RESULTS]
    base = put(results, {path: b"whole"})
    results.commit_onto(base, {path: b"half"}, "half")
    before, budget = hub.tally.commits(name), CommitBudget()
    mine = parts_of(hub, tmp_path / "other", budget=budget).repositories[Part.RESULTS]
    hub.spoil(f"{name}/paths-info/main", times=500, **fault)
    with refused("store_unreachable", kind=TransientError):
        mine.commit_onto(base, {"results/1/a.json": b"1"}, "mine")
    assert (hub.tally.commits(name), budget.left()) == (before, 99)


@pytest.mark.parametrize("target", ["/preupload/", "/objects/batch", "/upload/", "/verify"])
def test_an_upload_is_whole_in_the_end(
    hub: HubServer, private: HubRepository, tmp_path: Path, target: str
) -> None:
    (tmp_path / "big").write_bytes(LARGE)
    faults = hub.spoil(target, cut_upload_after=100), hub.spoil(target, status=503)
    put(private, {"a.zip": tmp_path / "big"})
    assert private.read("a.zip") == LARGE
    assert all(fault.seen for fault in faults)


def test_a_slow_answer_is_given_up(
    hub: HubServer, private: HubRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, before = private.head(), hub.tally.commits(PRIVATE)
    monkeypatch.setattr("benchmarks.sources.client._COMMIT_READ_S", 0.3)
    hub.spoil(f"{PRIVATE}/commit/", method="POST", reply_after_s=30.0)
    made = private.commit({"a": b"1"}, parent=head, message="m")
    assert (made, hub.tally.commits(PRIVATE)) == (private.fresh_head(), before + 1)


def test_files_of_equal_content_go_up_together(hub: HubServer, parts: HubParts) -> None:
    for round_ in range(5):
        content = bytes([round_]) * 200_000
        files = {f"boards/{round_}-{name}.parquet": content for name in range(4)}
        put(parts.public, files)
        assert all(parts.public.read(path) == content for path in files)
    assert [each.status for each in hub.served if each.method == "PUT"] == [200] * 5


# Reads


@pytest.mark.parametrize("target", ["tree/", "commits/"])
def test_an_empty_page_in_place_of_a_listing_is_asked_for_again(
    hub: HubServer, private: HubRepository, tmp_path: Path, target: str
) -> None:
    put(private, {"b/a": b"1"})
    fault = hub.spoil(f"{PRIVATE}/{target}", status=200)
    other = parts_of(hub, tmp_path / "other").private
    assert other.list("b/") == ("b/a",)
    assert len(list(other.client.history(other.name))) == 3
    assert len(fault.seen) == 1


def test_an_outage_is_an_error_and_never_an_old_file(hub: HubServer, parts: HubParts) -> None:
    public = parts.public
    old = {"queue.json": b"old", "snapshot.parquet": b"old"}
    put(public, old)
    assert {path: public.read(path) for path in old} == old
    hub.faults.weather(Weather(1.0))
    for ask in (public.head, lambda: public.read("queue.json"), lambda: public.list("results/")):
        with refused("store_unreachable", kind=TransientError):
            ask()
    with pytest.raises(TransientError):
        public.commit({"queue.json": b"new"}, parent=public.decisive.name, message="m")
    hub.faults.clear()
    assert public.read("queue.json") == b"old"


def test_a_version_is_remembered_for_a_moment_only(hub: HubServer, tmp_path: Path) -> None:
    now = [0.0]
    private = created(hub, tmp_path, fresh_for_s=2.0).private
    private._steady = lambda: now[0]
    private.forget_head()
    put(private, {"a": b"1"})
    asked = len(hub.served)
    assert (private.read("a"), len(hub.served)) == (b"1", asked)
    hub.faults.weather(Weather(1.0))
    now[0] = 2.5
    with pytest.raises(TransientError):
        private.read("a")


def test_a_file_that_another_names_is_looked_for_at_a_fresh_version_before_it_is_called_absent(
    hub: HubServer, tmp_path: Path
) -> None:
    """A worker sees the queue of one repository before the upload of another."""
    writer = created(hub, tmp_path / "writer").private
    reader = parts_of(hub, tmp_path / "reader", fresh_for_s=3600.0).private
    reader.head()
    put(writer, {"uploads/1": b"one"})
    assert reader.read("uploads/1") == b"one"
    put(writer, {"uploads/2": b"two"})
    reader.fetch("uploads/2", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"two"
    put(writer, {"uploads/3": b"three"})
    assert reader.has("uploads/3")
    assert not reader.has("uploads/4")
    with pytest.raises(NotFoundError):
        reader.fetch("uploads/4", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_an_answer_to_what_was_asked_before_a_change_is_not_remembered_after_it(
    hub: HubServer, parts: HubParts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = parts_of(hub, tmp_path / "reader", fresh_for_s=60.0).private
    old, ask = private.fresh_head(), private.client.head

    def told_meanwhile(name: str) -> str:
        answer = ask(name)
        put(parts.private, {"a": b"1"})
        private.forget_head()  # a webhook
        return answer

    monkeypatch.setattr(private.client, "head", told_meanwhile)
    assert private.fresh_head() == old
    monkeypatch.undo()
    assert private.head() != old
    assert private.read("a") == b"1"


CUTS = st.lists(st.integers(0, len(LARGE) - 1), max_size=3)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CUTS)
@example([0, 1, 700_000])
def test_a_download_goes_on_wherever_it_is_cut(
    hub: HubServer, private: HubRepository, tmp_path: Path, cuts: list[int]
) -> None:
    if not private.has("a.zip"):
        put(private, {"a.zip": LARGE})
    for cut in cuts:
        hub.spoil("/content/", method="GET", cut_after=cut)
    before = hub.sent("/content/")
    (tmp_path / "copy").unlink(missing_ok=True)
    parts_of(hub, NOWHERE).private.fetch("a.zip", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == LARGE
    assert hub.sent("/content/") - before < len(LARGE) + len(cuts) * 65536 + 1, "from where it was"
    hub.faults.clear()


def test_a_failed_download_leaves_no_file(
    hub: HubServer, private: HubRepository, tmp_path: Path
) -> None:
    put(private, {"a.zip": LARGE})
    hub.spoil("/content/", method="GET", cut_after=10, times=50)
    with pytest.raises(TransientError):
        private.fetch("a.zip", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_hub_that_wants_a_pause_gets_it(hub: HubServer, parts: HubParts, tmp_path: Path) -> None:
    slept: list[float] = []
    private = parts_of(hub, tmp_path, sleep=slept.append).private
    hub.spoil(f"{PRIVATE}/resolve/", status=429, headers={"Retry-After": "7"})
    head = private.head()
    limit = {"RateLimit": '"commits";r=0;t=31', "Retry-After": "2"}
    hub.spoil(f"{PRIVATE}/commit/", status=429, headers=limit)
    private.commit({"a": b"1"}, parent=head, message="m")
    assert slept == [7.0, 32.0]


def test_a_hub_in_need_of_rest_is_left_alone(
    hub: HubServer, parts: HubParts, tmp_path: Path
) -> None:
    budget = CommitBudget()
    private = parts_of(hub, tmp_path, budget=budget).private
    hub.commit_limit.quota = 1
    put(private, {"a": b"0"})
    hub.commit_limit.says = "rate limit for repository commits ({quota} per hour)"
    asked = len(hub.asked(f"{PRIVATE}/commit/", "POST"))
    with refused("store_busy", kind=TransientError):
        put(private, {"a": b"1"})
    assert len(hub.asked(f"{PRIVATE}/commit/", "POST")) == asked + 1
    assert budget.delay() > 3000


# Many writers


def together(work: Callable[[int], None], n: int) -> None:
    with ThreadPoolExecutor(n) as pool:
        list(pool.map(work, range(n)))


def add(store: Repository, name: str) -> None:
    """One line of a log that all write, and two files of its own."""

    def change() -> dict[str, bytes]:
        done = store.read("log") if store.has("log") else b""
        files = {f"results/{name}/a.json": b"{}", f"results/{name}/a.scores.parquet": name.encode()}
        return {"log": done + f"{name}\n".encode(), **files}

    transact(store, change, "add", attempts=500, sleep=lambda _: None)


def assert_each_landed_once(parts: HubParts, names: list[str]) -> None:
    assert Counter(parts.public.read("log").decode().split()) == Counter(names)
    assert len(parts.public.list("results/")) == 2 * len(names)
    for name in names:
        assert parts.public.read(f"results/{name}/a.scores.parquet") == name.encode()


@pytest.mark.slow
def test_bad_weather_loses_and_doubles_nothing(
    hub: HubServer, parts: HubParts, tmp_path: Path
) -> None:
    hub.faults.weather(Weather(0.2, seed=3))

    def write(worker: int) -> None:
        public = parts_of(hub, tmp_path / str(worker), pauses=[0.01] * 20).public
        for turn in range(4):
            add(public, f"{worker}-{turn}")

    together(write, 3)
    hub.faults.clear()
    names = [f"{worker}-{turn}" for worker in range(3) for turn in range(4)]
    assert_each_landed_once(parts_of(hub, tmp_path / "reader"), names)


@pytest.mark.slow
def test_of_eight_writers_each_lands_once_and_no_reader_sees_half_a_commit(
    hub: HubServer, parts: HubParts, tmp_path: Path
) -> None:
    def write(worker: int) -> None:
        public = parts_of(hub, tmp_path / str(worker)).public
        for turn in range(3):
            add(public, f"{worker}-{turn}")

    stop, seen = threading.Event(), set()

    def watch() -> None:
        reader = parts_of(hub, tmp_path / "watching")
        requests, results = (reader.repositories[part] for part in (Part.REQUESTS, Part.RESULTS))
        while not stop.is_set():
            version = reader.public.version(reader.public.fresh_head())
            listed = results.list_at("results/", version.pins.results)
            lines = requests.read_at("log", version.sha).decode().split() if listed else []
            assert {path.split("/")[1] for path in listed} == set(lines)
            seen.add(len(lines))

    with ThreadPoolExecutor(1) as watching:
        watched = watching.submit(watch)
        together(write, 8)
        stop.set()
        watched.result()
    assert len(seen) > 3
    names = [f"{worker}-{turn}" for worker in range(8) for turn in range(3)]
    assert_each_landed_once(parts_of(hub, tmp_path / "reader"), names)
    assert hub.tally.commits(f"{NAME}-requests") == 1 + len(names)
