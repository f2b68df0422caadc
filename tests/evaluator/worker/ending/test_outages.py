"""A store that does not answer for a while: work waits, nothing is lost or done twice."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError, TransientError
from evaluator.worker.ending.concluding import MAX_ATTEMPTS_TO_PUBLISH
from evaluator.worker.ending.outbox import Outbox
from evaluator.worker.ending.publishing import RunPublisher
from evaluator.worker.roles import WorkerRole
from evaluator.worker.worker import Worker
from leaderboard.governance.acts import Acts
from leaderboard.ledger.ledger import Ledger
from leaderboard.states import State
from leaderboard.store.interface import Changes
from leaderboard.store.memory import memory_store
from tests.benchmarks.toy import Toy
from tests.evaluator.rig import ADA, BOB, MODULE, ROOT, FakeBackend, Rig
from tests.evaluator.worker.breaking import published_once, results
from tests.evaluator.worker.ending.going_away import (
    PER_RUN,
    Outage,
    entries,
    finished_in_an_outage,
    goes_away,
    until_quiet,
)
from tests.evaluator.worker.stock import stock

SCORES = "pair_id,score\na,1\nb,2\nc,3\n"


@pytest.mark.parametrize("role", [WorkerRole.BOTH, WorkerRole.SCORE])
def test_a_run_goes_on_while_the_store_is_away_and_its_result_waits(
    rig: Rig, outage: Outage, role: WorkerRole
) -> None:
    first, second = stock(rig.store, ["hub:ada", "hub:bob"])
    rig.backend = goes_away(rig, outage, PER_RUN // 2)
    worker = rig.worker(role=role)
    assert worker.run_next()
    assert len(rig.backend.asked) == PER_RUN
    assert entries(rig) == {first}
    (rig.folder / "scratch" / "uploads" / second).unlink()
    with pytest.raises(TransientError, match="does not answer"):
        worker.run_next()
    outage.away = False
    rig.clock.move(minutes=2)
    until_quiet(rig, worker)
    assert len(rig.backend.asked) == 2 * PER_RUN, "nothing was asked twice"
    assert entries(rig) == set()
    rig.worker("j1", role=WorkerRole.BOTH).run_all()
    assert published_once(rig.store, first)
    assert published_once(rig.store, second)
    events = Ledger(rig.store).events(first)
    assert [e.state for e in events].count(State.CLAIMED) == 1
    assert State.FAILED not in {e.state for e in events}


def test_all_that_is_claimed_is_worked_on_while_the_store_is_away(rig: Rig, outage: Outage) -> None:
    """The uploads of what was claimed for later are on this machine by then."""
    names = stock(rig.store, ["hub:ada", "hub:bob"])
    rig.backend = goes_away(rig, outage, 1)
    worker = rig.worker()
    assert worker.run_next()
    assert worker.run_next()
    assert entries(rig) == set(names)
    assert list((rig.folder / "scratch" / "uploads").iterdir()) == []
    outage.away = False
    rig.clock.move(minutes=2)
    until_quiet(rig, worker)
    assert all(published_once(rig.store, name) for name in names)
    assert len(rig.backend.asked) == 2 * PER_RUN


def does_not_come(rig: Rig, archive: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One upload cannot be had, while the store answers."""
    fetch = rig.store.private.fetch

    def fails(path: str, target: Path) -> None:
        if path == archive:
            raise TransientError("hub_down", "This file does not come.")
        fetch(path, target)

    monkeypatch.setattr(rig.store.private, "fetch", fails)


@pytest.mark.parametrize("jobs", [1, 2])
def test_one_upload_that_cannot_be_had_rests_with_its_reason_while_others_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    rig = Rig(tmp_path, store=replace(memory_store(), jobs_per_commit=jobs))
    away = rig.send_scores(SCORES).submission
    rig.clock.move(minutes=1)
    there = rig.send({**MODULE, "assay.toml": b'name = "there"'}, account=BOB).submission
    does_not_come(rig, away.archive, monkeypatch)
    worker = rig.worker()
    until_quiet(rig, worker)
    assert published_once(rig.store, there.submission_id)
    status = Ledger(rig.store).status(away.submission_id)
    assert (status.state, status.fault, status.code) == (State.QUEUED, "world", "files_away")
    assert "This file does not come." in status.reason
    monkeypatch.undo()
    rig.clock.move(minutes=1)
    worker.run_all()
    assert published_once(rig.store, away.submission_id)


def test_an_upload_that_never_comes_ends_its_submission_by_our_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path)
    away = rig.send_scores(SCORES).submission
    does_not_come(rig, away.archive, monkeypatch)
    began, worker = rig.clock(), rig.worker()
    while Ledger(rig.store).status(away.submission_id).unfinished:
        with suppress(TransientError):
            worker.run_next()
        rig.clock.move(seconds=15)
    status = Ledger(rig.store).status(away.submission_id)
    assert status.attempts == MAX_ATTEMPTS_TO_PUBLISH
    assert (status.state, status.fault, status.code) == (State.FAILED, "platform", "files_away")
    assert rig.clock() - began > timedelta(hours=1), "an outage of an hour ends nothing"


def test_after_a_restart_what_lies_in_the_outbox_is_published_and_not_scored(
    rig: Rig, outage: Outage
) -> None:
    (name,) = stock(rig.store, ["hub:ada"])
    rig.backend = goes_away(rig, outage, PER_RUN - 1)
    rig.worker("w1").run_next()
    assert entries(rig) == {name}
    outage.away = False
    rig.clock.move(hours=9)
    rig.backend = FakeBackend(lambda *_: 1 / 0)
    rig.worker("w2").run_all()
    assert rig.backend.asked == []
    assert published_once(rig.store, name)
    assert Ledger(rig.store).events(name)[-1].by == "w2"
    assert entries(rig) == set()


def test_what_a_restarted_worker_publishes_is_the_same_to_the_byte(
    rig: Rig, outage: Outage, tmp_path: Path
) -> None:
    (tmp_path / "plain").mkdir()
    plain = Rig(tmp_path / "plain")
    (name,) = stock(plain.store, ["hub:ada"])
    plain.worker().run_all()
    assert stock(rig.store, ["hub:ada"]) == (name,)
    rig.backend = goes_away(rig, outage, 5)
    rig.worker("w1").run_next()
    outage.away = False
    rig.clock.move(hours=9)
    rig.worker("w2").run_all()
    assert results(rig.store, name) == results(plain.store, name)


def acts(rig: Rig) -> Acts:
    return Acts(rig.store, {"toy": Toy.card}, rig.clock)


def test_an_entry_of_what_was_withdrawn_meanwhile_is_dropped(rig: Rig, outage: Outage) -> None:
    name = finished_in_an_outage(rig, outage)
    acts(rig).withdraw(name, ADA)
    rig.worker("w2").run_all()
    assert entries(rig) == set()
    assert Ledger(rig.store).status(name).state is State.WITHDRAWN
    assert rig.store.public.list(f"results/{name}/") == ()


def test_an_entry_of_what_another_published_meanwhile_is_dropped(rig: Rig, outage: Outage) -> None:
    name = finished_in_an_outage(rig, outage)
    elsewhere = replace(rig.worker("w2").scorers, scratch=rig.folder / "other" / "scratch")
    other = Worker("w2", rig.store, registry={"toy": rig.toy}, data=None, scorers=elsewhere)
    other.run_all()
    assert published_once(rig.store, name)
    assert entries(rig) == {name}, "it lies on another disk"
    rig.worker("w3").run_all()
    assert entries(rig) == set()
    assert published_once(rig.store, name)


def test_scores_of_before_a_rerun_are_not_its_results(rig: Rig, outage: Outage) -> None:
    """It failed elsewhere meanwhile, and an operator had it run again, for example on new data."""
    name = finished_in_an_outage(rig, outage)
    elsewhere = replace(rig.worker("w2").scorers, scratch=rig.folder / "other" / "scratch")
    rig.backend.score = lambda *_: 1 / 0
    Worker("w2", rig.store, registry={"toy": rig.toy}, data=None, scorers=elsewhere).run_all()
    assert Ledger(rig.store).status(name).state is State.FAILED
    acts(rig).rerun(name, ROOT, "The machine was mended.")
    rig.backend = FakeBackend(lambda n, _: n + 5.0)
    rig.worker("w3").run_all()
    assert published_once(rig.store, name)
    assert len(rig.backend.asked) > 0


def test_a_damaged_entry_is_scored_again_from_its_shards(rig: Rig, outage: Outage) -> None:
    name = finished_in_an_outage(rig, outage)
    scores = rig.folder / "scratch" / "outbox" / name / "toy.scores.parquet"
    scores.write_bytes(scores.read_bytes()[:-4])
    before = len(rig.backend.asked)
    rig.worker("w2").run_all()
    assert published_once(rig.store, name)
    assert len(rig.backend.asked) - before == PER_RUN - 3, "only the trust checks are repeated"


def test_an_end_that_was_not_recorded_survives_a_restart(rig: Rig, outage: Outage) -> None:
    (name,) = stock(rig.store, ["hub:ada"])

    def score(*_: object) -> float:
        outage.away = True
        raise ValueError("a defect of ours")

    rig.backend = FakeBackend(score)
    rig.worker("w1").run_next()
    outage.away = False
    rig.clock.move(hours=9)
    rig.backend = FakeBackend()
    rig.worker("w2").run_all()
    status = Ledger(rig.store).status(name)
    assert (status.state, status.code, status.by) == (State.FAILED, "incident", "w2")
    assert rig.backend.asked == []
    assert not list((rig.folder / "scratch" / "owed").iterdir())


def test_a_commit_whose_answer_is_lost_is_not_made_again(rig: Rig) -> None:
    (name,) = stock(rig.store, ["hub:ada"])
    public = rig.store.public
    commit, lost = public.commit, list[str]()

    def losing(changes: Changes, *, parent: str, message: str) -> str:
        version = commit(changes, parent=parent, message=message)
        if message not in lost:
            lost.append(message)
            raise TransientError("no_answer", "The answer was lost.")
        return version

    public.commit = losing  # type: ignore[method-assign]
    worker = rig.worker()
    until_quiet(rig, worker)
    assert len(lost) == 2, "the claim's and the publication's"
    assert published_once(rig.store, name)
    assert len(rig.backend.asked) == PER_RUN


def test_an_entry_of_an_older_program_is_one_that_was_not_judged(rig: Rig, outage: Outage) -> None:
    name = finished_in_an_outage(rig, outage)
    file = rig.folder / "scratch" / "outbox" / name / "entry.json"
    record = json.loads(file.read_text())
    assert record.pop("judged") is True
    file.write_text(json.dumps(record))
    entry = Outbox(file.parent.parent, "w1").entry(name)
    assert entry is not None
    assert not entry.judged
    rig.backend = FakeBackend(lambda *_: 1 / 0)
    rig.worker("w2").run_all()
    assert published_once(rig.store, name)


def test_a_defect_at_sending_is_borne_ten_times_with_its_reason_and_nothing_is_scored_twice(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    (name,) = stock(rig.store, ["hub:ada"])
    worker = rig.worker()

    def defect(*_: object) -> None:
        raise PlatformError("snapshot_damaged", "The boards cannot be read.")

    with monkeypatch.context() as patch:
        patch.setattr(RunPublisher, "publish", defect)
        for _ in range(3):
            worker.run_all()
            status = Ledger(rig.store).status(name)
            assert (status.state, status.code) == (State.QUEUED, "snapshot_damaged")
            assert "The boards cannot be read." in status.reason
            rig.clock.move(hours=1)
    assert len(rig.backend.asked) == PER_RUN
    worker.run_all()
    assert published_once(rig.store, name)
    assert len(rig.backend.asked) == PER_RUN
    (other,) = stock(rig.store, ["hub:bob"])
    monkeypatch.setattr(RunPublisher, "publish", defect)
    while Ledger(rig.store).status(other).unfinished:
        worker.run_next()
        rig.clock.move(hours=1)
    status = Ledger(rig.store).status(other)
    assert status.attempts == MAX_ATTEMPTS_TO_PUBLISH
    assert (status.state, status.fault) == (State.FAILED, "platform")
    assert entries(rig) == set()
