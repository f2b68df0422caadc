"""A store on a Hub that fails: nothing is lost, doubled, half there, or old in new clothes."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from huggingface_hub import close_session
from huggingface_hub.utils import _http

from benchmarks.errors import PlatformError, TransientError
from leaderboard.store.hub.creating import create
from leaderboard.store.hub.layout import Part
from leaderboard.store.interface import ConflictError, NotFoundError, transact
from tests.hub.accounts import Account
from tests.hub.faults import Weather
from tests.hub.server import HubServer
from tests.leaderboard.store.hub_rig import NAME, created, parts_of

REQUESTS, PRIVATE = f"{NAME}-requests", f"{NAME}-submissions"


@pytest.fixture(autouse=True)
def _no_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client of the Hub rests for seconds between its own tries of an upload."""

    class _Time:
        sleep = staticmethod(lambda seconds: None)

    monkeypatch.setattr(_http, "time", _Time)


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
    with pytest.raises(PlatformError):
        repository.commit({"a": b"1"}, parent=head, message="refused at once")
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


@pytest.mark.parametrize("target", ["tree/", "commits/"])
def test_a_page_of_something_else_in_place_of_a_listing_is_asked_for_again(
    hub: HubServer, tmp_path: Path, target: str
) -> None:
    repository = created(hub, tmp_path).private
    repository.commit({"b/a": b"1"}, parent=repository.head(), message="m")
    fault = hub.spoil(f"{PRIVATE}/{target}", status=200)  # with an empty body
    other = parts_of(hub, tmp_path / "other").private
    assert other.list("b/") == ("b/a",)
    assert len(list(other.client.history(other.name))) == 3
    assert len(fault.seen) == 1


def test_a_conflict_is_told_and_changes_nothing(hub: HubServer, tmp_path: Path) -> None:
    repository = created(hub, tmp_path).private
    head = repository.head()
    hub.spoil(f"{PRIVATE}/commit/", method="POST", conflict=True)
    with pytest.raises(ConflictError):
        repository.commit({"a": b"1"}, parent=head, message="m")
    assert not repository.has("a")
    repository.commit({"a": b"1"}, parent=repository.head(), message="m")


def test_an_outage_is_an_error_and_never_an_old_file(hub: HubServer, tmp_path: Path) -> None:
    parts = created(hub, tmp_path)
    public = parts.public
    public.commit(
        {"queue.json": b"old", "snapshot.parquet": b"old"}, parent=public.head(), message="m"
    )
    assert (public.read("queue.json"), public.read("snapshot.parquet")) == (b"old", b"old")
    hub.faults.weather(Weather(1.0))
    for ask in (public.head, lambda: public.read("queue.json"), lambda: public.list("results/")):
        with pytest.raises(TransientError, match="cannot be reached") as failed:
            ask()
        assert failed.value.code == "store_unreachable"
    with pytest.raises(TransientError):
        public.commit({"queue.json": b"new"}, parent=public.decisive.name, message="m")
    hub.faults.clear()
    assert public.read("queue.json") == b"old"


def test_a_version_is_remembered_for_a_moment_only(hub: HubServer, tmp_path: Path) -> None:
    now = [0.0]
    parts = created(hub, tmp_path, fresh_for_s=2.0)
    repository = parts.private
    repository._steady = lambda: now[0]
    repository.forget_head()
    repository.commit({"a": b"1"}, parent=repository.fresh_head(), message="m")
    asked = len(hub.served)
    assert repository.read("a") == b"1"
    assert len(hub.served) == asked
    hub.faults.weather(Weather(1.0))
    now[0] = 2.5
    with pytest.raises(TransientError):
        repository.read("a")


def test_an_answer_to_what_was_asked_before_a_change_is_not_remembered_after_it(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = created(hub, tmp_path, fresh_for_s=60.0).private
    old, ask = repository.fresh_head(), repository.client.head

    def told_meanwhile(name: str) -> str:
        answer = ask(name)
        other = parts_of(hub, tmp_path / "other").private
        other.commit({"a": b"1"}, parent=other.head(), message="m")
        repository.forget_head()  # a webhook
        return answer

    monkeypatch.setattr(repository.client, "head", told_meanwhile)
    assert repository.fresh_head() == old
    monkeypatch.undo()
    assert repository.head() != old
    assert repository.read("a") == b"1"


@pytest.mark.parametrize("cut", [0, 1, 700_000, 1_500_000])
def test_a_download_that_is_cut_goes_on_where_it_stopped(
    hub: HubServer, tmp_path: Path, cut: int
) -> None:
    repository = created(hub, tmp_path).private
    content = bytes(range(256)) * 8000
    repository.commit({"a.zip": content}, parent=repository.head(), message="m")
    hub.spoil("/content/", method="GET", cut_after=cut, times=2)
    repository.fetch("a.zip", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == content
    assert hub.sent("/content/") < len(content) + 3 * 65536


def test_a_download_that_fails_for_good_leaves_no_file(hub: HubServer, tmp_path: Path) -> None:
    repository = created(hub, tmp_path).private
    repository.commit({"a.zip": bytes(300_000)}, parent=repository.head(), message="m")
    hub.spoil("/content/", method="GET", cut_after=10, times=50)
    with pytest.raises(TransientError):
        repository.fetch("a.zip", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


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


def test_a_hub_that_fails_a_fifth_of_all_requests_loses_and_doubles_nothing(
    hub: HubServer, tmp_path: Path
) -> None:
    created(hub, tmp_path)
    hub.faults.weather(Weather(0.2, seed=3))

    def add(worker: int) -> None:
        public = parts_of(hub, tmp_path / str(worker), pauses=[0.01] * 20).public
        for turn in range(4):
            name = f"results/{worker}-{turn}"

            def change(name: str = name) -> dict[str, bytes]:
                done = public.read("log").decode() if public.has("log") else ""
                return {
                    "log": f"{done}{name}\n".encode(),
                    f"{name}/a.json": b"{}",
                    f"{name}/a.scores.parquet": name.encode(),
                }

            transact(public, change, "add", attempts=200, sleep=lambda _: None)

    _together(add, 3)
    hub.faults.clear()
    public = parts_of(hub, tmp_path / "reader").public
    lines = public.read("log").decode().split()
    assert Counter(lines) == Counter(f"results/{w}-{t}" for w in range(3) for t in range(4))
    assert len(public.list("results/")) == 24
    for line in lines:
        assert public.read(f"{line}/a.scores.parquet") == line.encode()


def test_eight_writers_at_once_each_land_exactly_once(hub: HubServer, tmp_path: Path) -> None:
    created(hub, tmp_path)

    def add(worker: int) -> None:
        public = parts_of(hub, tmp_path / str(worker)).public
        for turn in range(3):

            def change(turn: int = turn) -> dict[str, bytes]:
                done = public.read("log").decode() if public.has("log") else ""
                return {
                    "log": f"{done}{worker}-{turn}\n".encode(),
                    f"results/{worker}-{turn}/a.json": b"{}",
                }

            transact(public, change, "add", attempts=500)

    stop, seen = threading.Event(), set()
    reader = parts_of(hub, tmp_path / "watching")

    def watch() -> None:
        while not stop.is_set():
            version = reader.public.version(reader.public.fresh_head())
            decisive, results = (reader.repositories[p] for p in (Part.REQUESTS, Part.RESULTS))
            listed = results.list_at("results/", version.of(Part.RESULTS))
            lines = decisive.read_at("log", version.sha).decode().split() if listed else []
            assert {path.split("/")[1] for path in listed} == set(lines), "half a commit"
            seen.add(len(lines))

    with ThreadPoolExecutor(1) as watching:
        watched = watching.submit(watch)
        _together(add, 8)
        stop.set()
        watched.result()
    assert len(seen) > 3
    public = parts_of(hub, tmp_path / "reader").public
    assert Counter(public.read("log").decode().split()) == Counter(
        f"{w}-{t}" for w in range(8) for t in range(3)
    )
    assert len(public.list("results/")) == 24
    assert hub.tally.commits(REQUESTS) == 1 + 24


def test_a_hub_that_asks_for_a_pause_gets_it(hub: HubServer, tmp_path: Path) -> None:
    slept: list[float] = []
    created(hub, tmp_path)
    repository = parts_of(hub, tmp_path, sleep=slept.append).private
    hub.spoil(f"{PRIVATE}/resolve/", status=429, headers={"Retry-After": "7"})
    repository.head()
    assert slept == [7.0]
    slept.clear()
    hub.spoil(
        f"{PRIVATE}/commit/",
        status=429,
        headers={"RateLimit": '"commits";r=0;t=31', "Retry-After": "2"},
    )
    repository.commit({"a": b"1"}, parent=repository.head(), message="m")
    assert slept == [32.0]


def test_a_hub_that_asks_for_a_long_pause_is_left_alone(hub: HubServer, tmp_path: Path) -> None:
    class Budget:
        told: float = 0.0

        def wait(self) -> None:
            pass

        def ready(self, commits: int = 1) -> None:
            pass

        def delay(self, commits: int = 1) -> float:
            return 0.0

        def penalise(self, seconds: float) -> None:
            self.told = seconds

    budget = Budget()
    created(hub, tmp_path)
    repository = parts_of(hub, tmp_path, budget=budget).private
    hub.commit_limit.quota = 1
    repository.commit({"a": b"0"}, parent=repository.head(), message="m")
    hub.commit_limit.says = "rate limit for repository commits ({quota} per hour)"
    head, asked = repository.head(), len(hub.asked(f"{PRIVATE}/commit/", "POST"))
    with pytest.raises(TransientError, match="takes no more requests") as refused:
        repository.commit({"a": b"1"}, parent=head, message="m")
    assert refused.value.code == "store_busy"
    assert len(hub.asked(f"{PRIVATE}/commit/", "POST")) == asked + 1
    assert budget.told > 3000


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


# Who may do what


def test_a_store_that_is_not_there_is_told_with_what_to_do(hub: HubServer, tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match=f"store create hub:{NAME}`") as refused:
        parts_of(hub, tmp_path).public.read("a")
    assert (refused.value.code, refused.value.exit_code) == ("no_store", 1)
    assert f"no store hub:{NAME}" in refused.value.message


def test_a_repository_that_is_no_store_yet_says_so(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REQUESTS, {"README.md": b"mine"})
    with pytest.raises(PlatformError, match="no store yet"):
        parts_of(hub, tmp_path).public.read("results/a/b.json")


@pytest.mark.parametrize(
    ("account", "code", "words"),
    [
        (Account("ada", role="read", orgs={"lab": "write"}), "no_store_access", "write to"),
        (Account("bob"), "no_store", "HF_TOKEN"),
        (Account("bot", only={PRIVATE: "read"}), "no_store_access", "repo.write"),
        (None, "no_store_access", "HF_TOKEN"),
    ],
    ids=["read token", "stranger", "fine-grained", "unknown token"],
)
def test_a_token_without_the_right_is_told_which_it_needs(
    hub: HubServer, tmp_path: Path, account: Account | None, code: str, words: str
) -> None:
    head = created(hub, tmp_path).private.head()
    token = hub.enroll("hf_other", account) if account else "hf_nobodys"
    repository = parts_of(hub, tmp_path, token=token, fresh_for_s=0.0).private
    with pytest.raises(PlatformError, match=words) as refused:
        repository.commit({"a": b"1"}, parent=head, message="m")
    assert (refused.value.code, refused.value.exit_code) == (code, 1)
    assert "hf_" not in str(refused.value).replace("HF_", "")


def test_a_store_is_not_created_without_the_right(hub: HubServer, tmp_path: Path) -> None:
    token = hub.enroll("hf_reader", Account("ada", role="read", orgs={"lab": "read"}))
    with pytest.raises(PlatformError, match="HF_TOKEN") as refused:
        list(create(parts_of(hub, tmp_path, token=token)))
    assert refused.value.code == "no_store_access"


def test_uploads_never_go_to_a_repository_open_to_everyone(hub: HubServer, tmp_path: Path) -> None:
    hub.add(PRIVATE, {})
    with pytest.raises(PlatformError, match="open to everyone") as refused:
        list(create(parts_of(hub, tmp_path)))
    assert refused.value.code == "submissions_public"


def test_a_rule_of_the_repository_that_drops_files_is_no_silent_loss(
    hub: HubServer, tmp_path: Path
) -> None:
    parts = created(hub, tmp_path)
    hub.repositories[PRIVATE].commit({".gitignore": b"*.log\n"})
    with pytest.raises(PlatformError, match=r"\.gitignore"):
        parts.private.commit({"a.log": b"1"}, parent=parts.private.head(), message="m")
    with pytest.raises(NotFoundError):
        parts.private.read(".gitignore")


def _together(work: object, n: int) -> None:
    errors: list[BaseException] = []

    def run(worker: int) -> None:
        try:
            work(worker)  # type: ignore[operator]
        except BaseException as error:  # noqa: BLE001 (told by the test)
            errors.append(error)

    threads = [threading.Thread(target=run, args=(worker,)) for worker in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
