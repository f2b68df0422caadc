"""What is withdrawn, banned or broken: it is not run or published, and it stops nobody else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError, TransientError
from evaluator.doctoring import broken_record_rows
from evaluator.worker.tasks import MAX_LOST, Finished, WorkerRole
from leaderboard.accounts import Account
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.records import Event
from leaderboard.states import State
from leaderboard.store.interface import Changes, Repository
from tests.kit.worker import (
    ADA,
    ASKED,
    BOB,
    ROOT,
    Clock,
    Rig,
    Secret,
    on_commit,
    raising,
)


def results(rig: Rig) -> list[str]:
    repositories = (rig.store.public, rig.store.private)
    return [path for one in repositories for path in one.list() if "results/" in path]


# Withdrawn ------------------------------------------------------------------------------------


def withdrawn_meanwhile(rig: Rig, name: str, by: Account = ADA) -> None:
    def act() -> None:
        rig.acts.withdraw(name, by)
        rig.clock.move(seconds=31)

    rig.when_asked(1, act)


@pytest.mark.parametrize("by", [ADA, ROOT], ids=["author", "operator"])
@pytest.mark.parametrize("private", [False, True])
def test_a_withdrawal_stops_the_run_within_a_batch_and_all_of_it_is_forgotten(
    rig: Rig, by: Account, private: bool
) -> None:
    name = rig.sent(private=private)
    shards = rig.folder / "scratch" / "shards" / name
    (shards / "toy").mkdir(parents=True)  # of a worker that died at it
    rig.clock.move(seconds=1)
    other = rig.sent(account=BOB)
    withdrawn_meanwhile(rig, name, by)
    worker = rig.worker()
    assert worker.run_next()
    assert len(rig.backend.asked) <= 3
    assert rig.backend.closed >= 1
    assert rig.states(name)[-1] is State.WITHDRAWN
    assert (results(rig), read_snapshot(rig.store.public)) == ([], None)
    assert not shards.exists()
    assert list((rig.folder / "scratch" / "unpacked").iterdir()) == []
    assert worker.run_next()
    assert rig.state(other) is State.PUBLISHED, "the next one is left alone"


def test_a_withdrawal_after_the_last_batch_still_publishes_nothing(rig: Rig) -> None:
    name = rig.sent()
    rig.when_asked(ASKED, lambda: rig.acts.withdraw(name, ADA))
    rig.worker().run_next()
    assert len(rig.backend.asked) == ASKED
    assert (rig.state(name), results(rig)) == (State.WITHDRAWN, [])


@pytest.mark.parametrize("private", [False, True])
def test_a_withdrawal_while_results_are_being_written_leaves_none(rig: Rig, private: bool) -> None:
    rig.toy = Secret()
    name = rig.sent(private=private)
    written: list[str] = []

    def overtaken(_: Changes, message: str) -> None:
        if message.startswith("results of") and not written:
            written.extend(results(rig))
            rig.acts.withdraw(name, ADA)

    on_commit(rig.store.private, after=overtaken)
    rig.worker().run_next()
    assert written
    assert (rig.state(name), results(rig)) == (State.WITHDRAWN, [])


def test_a_scorer_that_fails_after_the_withdrawal_fails_nobody(rig: Rig) -> None:
    name = rig.sent()

    def fails() -> None:
        rig.acts.withdraw(name, ADA)
        raise SubmitterError("scorer_raised", "No.")

    rig.when_asked(1, fails)
    rig.worker().run_next()
    assert rig.state(name) is State.WITHDRAWN


def test_results_of_before_a_withdrawn_rerun_stay_in_the_history(rig: Rig) -> None:
    """As they do for everything that was published once and is withdrawn."""
    rig.toy = Secret()
    name = rig.ran()
    before = results(rig)
    rig.acts.rerun(name, ROOT, "new data")
    withdrawn_meanwhile(rig, name)
    rig.worker().run_next()
    assert results(rig) == before
    assert rig.shown().entries == {}


def test_a_worker_that_lost_a_private_submission_leaves_the_held_result_as_it_is(rig: Rig) -> None:
    name = rig.sent(private=True)
    late = rig.worker("late")
    late._claimed_jobs.take(late._claims.more())
    rig.clock.move(hours=9)
    assert rig.worker("second").run(name)
    assert rig.state(name) is State.HELD
    path = f"held/{name}/results/toy.json"
    held = rig.store.private.read(path)
    rig.clock.move(minutes=1)
    (task,) = late._claimed_jobs.to_do
    scored = late._runner.scoring.scores(task, lambda _: None)
    late._queue.add(Finished(task, scored, "", rig.clock()))
    assert late._queue.send()
    assert rig.store.private.read(path) == held


# Banned ---------------------------------------------------------------------------------------


def ban(rig: Rig) -> None:
    rig.acts.ban(ADA.key, ROOT, "It attacks the worker.")


def test_what_a_ban_found_waiting_is_never_run(rig: Rig) -> None:
    waiting = rig.sent()
    ban(rig)
    assert not rig.worker().run_next()
    assert not rig.worker().run(waiting)
    assert rig.state(waiting) is State.REJECTED
    assert rig.backend.asked == []


def test_what_a_banned_account_gets_back_is_not_claimed_but_rejected(rig: Rig) -> None:
    """A ban rejects what waits; this one was being worked on then, and is given back later."""
    given_back = rig.sent()

    def fails_for_now() -> None:
        ban(rig)
        raise TransientError("hub_down", "The Hub is down.")

    rig.when_asked(1, fails_for_now)
    worker = rig.worker()
    worker.run_next()
    assert rig.state(given_back) is State.QUEUED
    rig.clock.move(minutes=2)
    asked = len(rig.backend.asked)
    assert not worker.run_next()
    assert rig.ended(given_back) == (State.REJECTED, "banned", "submitter")
    assert "It attacks" in rig.status(given_back).reason
    assert len(rig.backend.asked) == asked


def test_what_was_scored_before_a_ban_is_judged_once_after_it(rig: Rig) -> None:
    scored = rig.sent()
    rig.worker("scorer", role=WorkerRole.SCORE).run_all()
    ban(rig)
    judge = rig.worker("judge", role=WorkerRole.JUDGE)
    assert judge.run_next()
    assert rig.state(scored) is State.PUBLISHED
    assert not judge.run_next()
    assert len(rig.states(scored)) == 7


# Banned in private: a ban is public, whose a private submission is stays private ---------------


def public_events(rig: Rig, name: str) -> list[Event]:
    """As everyone sees them, but for their times and the nonces of claims."""
    now = Clock().time
    return [
        e.model_copy(update={"at": now, "nonce": "", "lease_until": e.lease_until and now})
        for e in rig.ledger.events(name)
    ]


def test_a_banned_private_one_fails_in_its_turn_and_its_author_alone_is_told_why(
    rig: Rig, tmp_path: Path
) -> None:
    """Ada has had nothing run yet, but Bob's came first. For others it is as one that is broken."""
    first = rig.sent(account=BOB)
    rig.clock.move(seconds=1)
    name = rig.sent(private=True)
    ban(rig)
    worker = rig.worker()
    assert worker.run_next()
    assert rig.state(first) is State.PUBLISHED
    assert rig.states(name) == [State.RECEIVED, State.QUEUED]
    assert worker.run_next()
    assert len(rig.backend.asked) == ASKED, "it was not run"
    assert rig.ended(name) == (State.FAILED, "banned", "submitter")
    status = rig.ledger.whole_status(name)
    assert "It attacks" in status.reason
    assert status.hint

    (tmp_path / "other").mkdir()
    other = Rig(tmp_path / "other", backend=raising(SubmitterError("scorer_raised", "No.")))
    failing = other.sent(private=True)
    other.worker().run_all()
    assert other.ended(failing) == (State.FAILED, "scorer_raised", "submitter")
    assert public_events(rig, name) == public_events(other, failing)

    rig.acts.unban(ADA.key, ROOT, "It was a simulation.")
    assert rig.sent(private=True) == name
    assert rig.state(name) is State.QUEUED


def test_what_was_in_work_when_the_ban_came_is_finished(rig: Rig) -> None:
    name = rig.sent(private=True)
    rig.when_asked(1, lambda: ban(rig))
    rig.worker().run_all()
    assert rig.state(name) is State.HELD


# Records that cannot be read ------------------------------------------------------------------


def rewritten(repository: Repository, path: str, change: Callable[[bytes], bytes]) -> None:
    content = change(repository.read(path))
    repository.commit({path: content}, parent=repository.head(), message="broken")


def of_a_newer_version(content: bytes) -> bytes:
    first, *rest = content.splitlines(keepends=True)
    return json.dumps(json.loads(first) | {"schema_version": 2}).encode() + b"\n" + b"".join(rest)


def cut_off(content: bytes) -> bytes:
    return content[: len(content) // 2]


def no_text(_: bytes) -> bytes:
    return b"\xff\xfe\x00"


def ended_by_its_events(content: bytes) -> bytes:
    """As if the queue had been put back, and the events had not."""
    last = Event.model_validate_json(content.splitlines()[-1])
    over = last.model_copy(update={"state": State.WITHDRAWN})
    return content + over.model_dump_json().encode() + b"\n"


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("change", "private"),
    [
        (of_a_newer_version, False), (cut_off, False), (no_text, False),
        (ended_by_its_events, False), (of_a_newer_version, True), (cut_off, True), (no_text, True),
    ],
)  # fmt: skip
def test_a_record_that_cannot_be_read_stops_nobody_else_and_is_named_to_operators(
    rig: Rig, caplog: pytest.LogCaptureFixture, change: Callable[[bytes], bytes], private: bool
) -> None:
    (broken,) = rig.stock(["hub:ada"], private=private)
    others = rig.stock(["hub:bob", "hub:eve"])
    if private:
        rewritten(rig.store.private, f"held/{broken}/submission.json", change)
    else:
        rewritten(rig.store.public, f"submissions/{broken}/events.jsonl", change)
    rig.worker().run_all()
    assert rig.published_once(*others)
    assert rig.state(broken) is State.QUEUED
    assert caplog.text.count("Passed over") == 1, "it is logged once"
    (row,) = broken_record_rows(rig.ledger)
    assert (row.part, row.broken) == (f"submission {broken}", True)
    assert row.advice


def test_what_a_dead_worker_left_with_broken_events_stops_nobody_else(rig: Rig) -> None:
    """It would be given up, and cannot."""
    ids = rig.stock(["hub:ada", "hub:bob"])
    for n in range(MAX_LOST):
        rig.worker(f"w{n}")._claims.more()
        rig.clock.move(hours=20)
    rewritten(rig.store.public, f"submissions/{ids[0]}/events.jsonl", cut_off)
    rig.worker("w9").run_all()
    assert rig.published_once(ids[1])


def test_what_is_mended_is_run(rig: Rig) -> None:
    (broken,) = rig.stock(["hub:ada"])
    path, worker = f"submissions/{broken}/events.jsonl", rig.worker()
    whole = rig.store.public.read(path)
    rewritten(rig.store.public, path, cut_off)
    worker.run_all()
    rewritten(rig.store.public, path, lambda _: whole)
    worker.run_all()
    assert rig.published_once(broken)
    assert list(broken_record_rows(rig.ledger)) == []
