"""A store, a token or a disk that fails for a while: work waits, nothing is lost or done twice."""

from __future__ import annotations

import errno
import json
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
from huggingface_hub import constants

from benchmarks.errors import PlatformError, TransientError
from benchmarks.settings.model import FILE_ORIGINS, load
from benchmarks.sources.output import write_durably
from evaluator.scoring import column
from evaluator.worker import handoff as outbox_module
from evaluator.worker import publishing
from evaluator.worker.handoff import RunSpool
from evaluator.worker.publishing import RunPublisher
from evaluator.worker.tasks import MAX_ATTEMPTS_TO_PUBLISH, MAX_LOST, WorkerRole
from evaluator.worker.worker import Worker
from leaderboard.states import State
from leaderboard.store.hub.hub_store import HubParts, hub_store
from leaderboard.store.hub.maintenance import create
from leaderboard.store.interface import Changes, NotFoundError
from leaderboard.store.live.interface import FolderLive
from tests.kit.hub.accounts import Account
from tests.kit.hub.server import HubServer, running_hub
from tests.kit.refusals import refused
from tests.kit.worker import (
    ADA,
    ASKED,
    BOB,
    ROOT,
    SCORES,
    Breaking,
    FakeBackend,
    Killed,
    Outage,
    Rig,
    Switch,
    breaking,
    named,
    published_once,
    raising,
    wait_for,
)

DEFECT = ZeroDivisionError("a defect of ours")


@pytest.fixture
def outage() -> Outage:
    return Outage()


@pytest.fixture
def rig(tmp_path: Path, outage: Outage) -> Rig:
    rig = Rig(tmp_path, jobs=2)
    rig.store = breaking(rig.store, outage)
    return rig


def until_quiet(rig: Rig, worker: Worker) -> None:
    """Go on as `run_forever` does, but without its pauses."""
    for _ in range(10):
        try:
            if not worker.run_next():
                return
        except TransientError:
            rig.clock.move(minutes=2)
    raise AssertionError("It never came to rest.")


def entries(rig: Rig) -> set[str]:
    """What waits to be published."""
    return {path.name for path in (rig.folder / "scratch" / "outbox").glob("[!.]*")}


def finished_in_an_outage(rig: Rig, outage: Outage) -> str:
    (name,) = rig.stock([ADA.key])
    rig.when_asked(5, outage.begins)
    rig.worker("w1").run_next()
    outage.ends(rig, hours=9)
    assert entries(rig) == {name}
    return name


def run_elsewhere(rig: Rig) -> None:
    """By a worker with another disk."""
    elsewhere = replace(rig.worker("w2").scorers, scratch=rig.folder / "other" / "scratch")
    Worker("w2", rig.store, registry={"toy": rig.toy}, data=None, scorers=elsewhere).run_all()


# The store goes away --------------------------------------------------------------------------


@pytest.mark.parametrize("role", [WorkerRole.BOTH, WorkerRole.SCORE])
def test_a_run_goes_on_while_the_store_is_away_and_its_results_wait(
    rig: Rig, outage: Outage, role: WorkerRole
) -> None:
    names = first, _ = rig.stock(["hub:ada", "hub:bob"])
    rig.when_asked(1, outage.begins)
    worker = rig.worker(role=role)
    assert worker.run_next()
    assert len(rig.backend.asked) == ASKED
    assert entries(rig) == {first}
    with pytest.raises(TransientError):
        worker.run_next()
    outage.ends(rig, minutes=2)
    until_quiet(rig, worker)
    assert len(rig.backend.asked) == 2 * ASKED, "nothing was asked twice"
    assert entries(rig) == set()
    rig.worker("j1").run_all()
    assert rig.published_once(*names)
    assert rig.states(first).count(State.CLAIMED) == 1
    assert State.FAILED not in rig.states(first)


def does_not_come(
    rig: Rig,
    archive: str,
    monkeypatch: pytest.MonkeyPatch,
    cause: OSError | None = None,
    *,
    unseen: bool = False,
) -> None:
    """One upload cannot be had, while the store answers; `unseen`: it says that there is none."""
    fetch = rig.store.private.fetch

    def fails(path: str, target: Path) -> None:
        if path == archive and unseen:
            raise NotFoundError(path)
        if path == archive:
            raise TransientError("hub_down", f"{path} does not come.") from cause
        fetch(path, target)

    monkeypatch.setattr(rig.store.private, "fetch", fails)


@pytest.mark.parametrize(("jobs", "unseen"), [(1, False), (2, False), (2, True)])
def test_one_upload_that_cannot_be_had_rests_with_its_reason_while_others_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int, unseen: bool
) -> None:
    rig = Rig(tmp_path, jobs=jobs)
    away = rig.send_scores(SCORES).submission
    rig.clock.move(minutes=1)
    there = rig.sent(named("there"), account=BOB)
    does_not_come(rig, away.archive, monkeypatch, unseen=unseen)
    worker = rig.worker()
    until_quiet(rig, worker)
    assert rig.published_once(there)
    assert rig.ended(away.submission_id) == (State.QUEUED, "files_away", "world")
    assert away.archive in rig.status(away.submission_id).reason
    monkeypatch.undo()
    rig.clock.move(minutes=1)
    worker.run_all()
    assert rig.published_once(away.submission_id)


def test_an_upload_that_does_not_fit_on_the_workers_disk_waits_for_room_and_loses_no_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path)
    sent = rig.send_scores(SCORES).submission
    does_not_come(rig, sent.archive, monkeypatch, OSError(errno.ENOSPC, "No space left on device"))
    worker = rig.worker()
    for _ in range(3):
        with pytest.raises(TransientError):
            worker.run_next()
        rig.clock.move(minutes=1)
    monkeypatch.undo()
    worker.run_all()
    assert rig.published_once(sent.submission_id)
    assert rig.states(sent.submission_id).count(State.CLAIMED) == 1


def test_an_upload_that_never_comes_ends_its_submission_by_our_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path)
    away = rig.send_scores(SCORES).submission
    does_not_come(rig, away.archive, monkeypatch)
    began, worker = rig.clock(), rig.worker()
    while rig.status(away.submission_id).unfinished:
        with suppress(TransientError):
            worker.run_next()
        rig.clock.move(seconds=15)
    assert rig.status(away.submission_id).attempts == MAX_ATTEMPTS_TO_PUBLISH
    assert rig.ended(away.submission_id) == (State.FAILED, "files_away", "platform")
    assert rig.clock() - began > timedelta(hours=1), "an outage of an hour ends nothing"


# What waits in the outbox ---------------------------------------------------------------------


@pytest.mark.parametrize("older", [False, True], ids=["now", "older"])
def test_after_a_restart_what_lies_in_the_outbox_is_published_and_not_scored(
    rig: Rig, outage: Outage, tmp_path: Path, older: bool
) -> None:
    """The same to the byte as if nothing had happened; older programs did not say it is judged."""
    name = finished_in_an_outage(rig, outage)
    if older:
        file = rig.folder / "scratch" / "outbox" / name / "entry.json"
        record = json.loads(file.read_text())
        assert record.pop("judged") is True
        file.write_text(json.dumps(record))
        entry = RunSpool(file.parent.parent, "w1").entry(name)
        assert entry is not None
        assert not entry.judged
    rig.backend = raising(DEFECT)
    rig.worker("w2").run_all()
    assert rig.backend.asked == []
    assert rig.published_once(name)
    assert (rig.status(name).by, entries(rig)) == ("w2", set())
    (tmp_path / "plain").mkdir()
    plain = Rig(tmp_path / "plain")
    assert plain.stock([ADA.key]) == (name,)
    plain.worker().run_all()
    assert rig.results(name) == plain.results(name)


@pytest.mark.parametrize("how", ["withdrawn", "published by another"])
def test_an_entry_of_what_is_over_meanwhile_is_dropped(rig: Rig, outage: Outage, how: str) -> None:
    name = finished_in_an_outage(rig, outage)
    if how == "withdrawn":
        rig.acts.withdraw(name, ADA)
    else:
        run_elsewhere(rig)
        assert entries(rig) == {name}, "it lies on another disk"
    before = rig.store.public.list(f"results/{name}/")
    rig.worker("w3").run_all()
    assert entries(rig) == set()
    assert rig.store.public.list(f"results/{name}/") == before
    assert bool(before) is rig.published_once(name) is (how != "withdrawn")


def test_scores_of_before_a_rerun_are_not_its_results(rig: Rig, outage: Outage) -> None:
    """It failed elsewhere meanwhile, and an operator had it run again, for example on new data."""
    name = finished_in_an_outage(rig, outage)
    rig.backend = raising(DEFECT)
    run_elsewhere(rig)
    assert rig.state(name) is State.FAILED
    rig.acts.rerun(name, ROOT, "The machine was mended.")
    rig.backend = FakeBackend(lambda n, _: n + 5.0)
    rig.worker("w3").run_all()
    assert rig.published_once(name)
    assert len(rig.backend.asked) > 0


def test_a_damaged_entry_is_scored_again_from_its_shards(rig: Rig, outage: Outage) -> None:
    name = finished_in_an_outage(rig, outage)
    scores = rig.folder / "scratch" / "outbox" / name / "toy.scores.parquet"
    scores.write_bytes(scores.read_bytes()[:-4])
    before = len(rig.backend.asked)
    rig.worker("w2").run_all()
    assert rig.published_once(name)
    assert len(rig.backend.asked) - before == ASKED - 3, "only the trust checks are repeated"


@pytest.mark.parametrize("restarted", [False, True], ids=["same worker", "restarted"])
def test_an_end_that_was_not_recorded_is_recorded_later_or_found_again(
    rig: Rig, outage: Outage, restarted: bool
) -> None:
    (name,) = rig.stock(["hub:ada"])

    def fails() -> None:
        outage.begins()
        raise DEFECT

    rig.when_asked(1, fails)
    worker = rig.worker("w1")
    worker.run_next()
    outage.ends(rig, hours=9)
    rig.backend = raising(DEFECT) if restarted else FakeBackend()
    (rig.worker("w2") if restarted else worker).run_all()
    assert rig.ended(name) == (State.FAILED, "incident", "platform")
    assert rig.status(name).by == ("w2" if restarted else "w1")


def test_a_defect_at_sending_is_borne_ten_times_with_its_reason_and_nothing_is_scored_twice(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    (name,) = rig.stock(["hub:ada"])
    worker = rig.worker()

    def defect(*_: object) -> None:
        raise PlatformError("snapshot_damaged", "Unreadable.")

    with monkeypatch.context() as patch:
        patch.setattr(RunPublisher, "publish", defect)
        for _ in range(3):
            worker.run_all()
            assert rig.ended(name)[:2] == (State.QUEUED, "snapshot_damaged")
            assert "Unreadable." in rig.status(name).reason
            rig.clock.move(hours=1)
    worker.run_all()
    assert rig.published_once(name)
    assert len(rig.backend.asked) == ASKED
    (other,) = rig.stock(["hub:bob"])
    monkeypatch.setattr(RunPublisher, "publish", defect)
    while rig.status(other).unfinished:
        worker.run_next()
        rig.clock.move(hours=1)
    status = rig.status(other)
    assert (status.state, status.fault) == (State.FAILED, "platform")
    assert (status.attempts, entries(rig)) == (MAX_ATTEMPTS_TO_PUBLISH, set())


# The process dies -----------------------------------------------------------------------------


@dataclass
class DyingAtPublication(Breaking):
    """A process that dies whenever it is about to publish."""

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        if any(path.startswith("results/") for path in changes):
            raise Killed
        return super().commit(changes, parent=parent, message=message)


def dies(rig: Rig, times: range) -> None:
    """So many workers, and the last is long gone."""
    for number in times:
        with pytest.raises(Killed):
            rig.worker(f"w{number}").run_all()
        rig.clock.move(hours=9)


@pytest.fixture
def deadly_judging(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(publishing, "judge", judge)


def test_scores_that_their_judging_does_not_survive_get_no_more_attempts_than_code(
    rig: Rig, deadly_judging: None
) -> None:
    (name,) = rig.stock(["hub:ada"])
    dies(rig, range(MAX_LOST))
    assert entries(rig) == {name}
    rig.worker("last").run_all()
    assert rig.ended(name)[:2] == (State.FAILED, "worker_lost")


def test_what_was_judged_once_outlives_more_deaths_than_what_runs_may_cause(
    rig: Rig, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its publication, and at a later judging."""
    (name,) = rig.stock(["hub:ada"])
    plain = rig.store
    rig.store = replace(plain, public=DyingAtPublication(plain.public, Switch()))
    dies(rig, range(MAX_LOST + 1))
    asked = list(rig.backend.asked)
    assert asked
    rig.store = plain
    request.getfixturevalue("deadly_judging")
    dies(rig, range(MAX_LOST + 1, MAX_ATTEMPTS_TO_PUBLISH - 1))
    monkeypatch.undo()
    rig.worker("last").run_all()
    assert published_once(plain, name)
    assert rig.backend.asked == asked


# The disk is full -----------------------------------------------------------------------------


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def half_full(path: Path, content: bytes) -> None:
    """It fills in the middle of every second file."""
    if any(path.parent.iterdir()):
        path.write_bytes(content[: len(content) // 2])
        full()
    write_durably(path, content)


@pytest.mark.parametrize(
    ("module", "name", "write"),
    [
        (column, "replace_durably", full),
        (outbox_module, "write_durably", full),
        (outbox_module, "write_durably", half_full),
    ],
    ids=["shard", "outbox", "half"],
)
def test_a_full_disk_stops_the_work_and_fails_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, module: object, name: str, *, write: object
) -> None:
    (submission,) = rig.stock(["hub:ada"])
    worker = rig.worker()
    with monkeypatch.context() as patch:
        patch.setattr(module, name, write)
        for _ in range(4):
            with pytest.raises(TransientError) as caught:
                worker.run_next()
            assert caught.value.code in {"disk_failed", "disk_low"}
            assert entries(rig) == set(), "no half of an entry"
    assert rig.state(submission) is State.SCORING
    assert worker.run_next()
    until_quiet(rig, worker)
    assert rig.published_once(submission)
    assert rig.states(submission).count(State.CLAIMED) == 1


@dataclass
class NoRoom:
    """A disk that has room again after a while."""

    until: int
    looked: int = 0

    def check(self) -> None:
        self.looked += 1
        if self.looked <= self.until:
            raise TransientError("disk_low", "There is less than 1 GiB left.")


@contextmanager
def at_work(worker: Worker, poll_s: float) -> Iterator[threading.Event]:
    """On a thread of its own, until the block ends; the event stops it."""
    stop = threading.Event()
    thread = threading.Thread(target=worker.run_forever, args=(stop,), kwargs={"poll_s": poll_s})
    thread.start()
    yield stop
    stop.set()
    thread.join(60)
    assert not thread.is_alive()


def test_a_worker_without_room_claims_nothing_says_so_and_goes_on_later(rig: Rig) -> None:
    (name,) = rig.stock(["hub:ada"])
    waiting = rig.worker(disk=NoRoom(until=10**6))
    with pytest.raises(TransientError):
        waiting.run_next()
    assert waiting._step(1.0) > 0.0
    waiting.heart.beat()
    (pulse,) = rig.store.live.pulses()
    assert pulse.stage.startswith("waiting")
    assert rig.state(name) is State.QUEUED
    disk = NoRoom(until=1)
    with at_work(rig.worker(disk=disk), 0.05):
        wait_for(lambda: rig.published_once(name))
    assert disk.looked >= 2


def test_a_worker_that_is_woken_looks_at_once(rig: Rig) -> None:
    wake = threading.Event()
    with at_work(rig.worker(wake=wake), 3600.0):
        wait_for(lambda: bool(rig.store.live.pulses()))
        (name,) = rig.stock(["hub:ada"])
        wake.set()
        wait_for(lambda: rig.published_once(name))


# The token is revoked in the middle of a run --------------------------------------------------

NAME = "lab/assay"
FIRST, SECOND = "hf_first_of_the_house", "hf_second_of_the_house"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    """Whatever a test of it puts into the environment is gone after it."""
    for name in ("HF_TOKEN", "HF_TOKEN_FILE", "HUGGING_FACE_HUB_TOKEN", FILE_ORIGINS):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "login"))
    with running_hub() as server:
        for token in (FIRST, SECOND):
            server.enroll(token, Account("lab"))
        list(create(HubParts(NAME, tmp_path / "made", endpoint=server.endpoint, token=server.token)))  # fmt: skip
        yield server


def rig_on(hub: HubServer, folder: Path, name: str = "w") -> Rig:
    """A store on the Hub as a worker opens it: with the token of its environment."""
    store = hub_store(NAME, folder / name, endpoint=hub.endpoint, fresh_for_s=0.0)
    live = FolderLive(folder / "live")
    return Rig(folder, store=replace(store, live=live, look_every_s=0.0, jobs_per_commit=1))


def revoked(hub: HubServer, folder: Path) -> tuple[Rig, Worker, str, str]:
    """A run during which the token was revoked, to its end; its id and what the worker said."""
    rig = rig_on(hub, folder)
    (name,) = rig.stock(["hub:ada"])
    rig.when_asked(ASKED // 2, lambda: hub.revoke(FIRST))
    worker = rig.worker()
    with refused("token_refused", kind=TransientError) as caught:
        while worker.run_next():
            pass
    assert len(rig.backend.asked) == ASKED, "the run went on to its end"
    assert entries(rig) == {name}
    return rig, worker, name, str(caught.value)


@pytest.mark.parametrize("where", ["token", "login"])
def test_a_new_token_is_found_by_the_worker_that_runs(
    hub: HubServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, where: str
) -> None:
    """One that may only read loses nothing either."""
    file = tmp_path / where
    file.write_text(f"{FIRST}\n")
    if where == "token":
        os.environ["HF_TOKEN_FILE"] = str(file)
        load(os.environ, tmp_path)
    with caplog.at_level(logging.INFO):
        rig, worker, name, words = revoked(hub, tmp_path)
        assert (str(file) if where == "token" else "hf auth login") in words
        file.write_text(hub.enroll("hf_reader_of_the_house", Account("lab", role="read")))
        for _ in range(3):
            with refused("access_lost", kind=TransientError):
                worker.run_next()
        assert entries(rig) == {name}
        file.write_text(f"{SECOND}\n")
        until_quiet(rig, worker)
    assert rig.published_once(name)
    assert len(rig.backend.asked) == ASKED, "nothing was asked twice"
    assert rig.states(name).count(State.CLAIMED) == 1
    assert State.FAILED not in rig.states(name)
    assert entries(rig) == set()
    assert ("HF_TOKEN was read again" in caplog.text) is (where == "token")
    assert not [token for token in (FIRST, SECOND) if token in caplog.text + words]


def test_with_a_token_in_a_variable_the_next_worker_publishes_what_is_finished(
    hub: HubServer, tmp_path: Path
) -> None:
    os.environ["HF_TOKEN"] = FIRST
    rig, _, name, words = revoked(hub, tmp_path)
    assert "start again" in words
    os.environ["HF_TOKEN"] = SECOND
    again = rig_on(hub, tmp_path, "again")
    again.backend, again.clock.time = rig.backend, rig.clock.time
    again.clock.move(days=2)  # The first never beat: its lease decides.
    until_quiet(again, again.worker("w2"))
    assert again.published_once(name)
    assert len(rig.backend.asked) == ASKED
    assert entries(again) == set()
