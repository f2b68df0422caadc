"""A ban is public; whose a private submission is stays private, though it is not run any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from leaderboard.governance.acts import Acts
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Event
from leaderboard.states import State
from tests.benchmarks.toy import Toy
from tests.evaluator.rig import ADA, BOB, ROOT, FakeBackend, Rig


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def ban(rig: Rig) -> None:
    Acts(rig.store, {"toy": Toy.card}, rig.clock).ban(ADA.key, ROOT, "It attacks.")


def private(rig: Rig) -> str:
    return rig.send(private=True).submission.submission_id


def broken(*_: object) -> float:
    raise SubmitterError("scorer_raised", "It divides by zero.")


def seen(rig: Rig, submission_id: str) -> list[Event]:
    """Its public events but for their times and the nonces of claims."""
    return [
        event.model_copy(
            update={
                "at": rig.clock(),
                "nonce": "",
                "lease_until": event.lease_until and rig.clock(),
            }
        )
        for event in Ledger(rig.store).events(submission_id)
    ]


def test_it_is_not_run_and_its_author_is_told_why(rig: Rig) -> None:
    name = private(rig)
    ban(rig)
    rig.worker().run_all()
    assert rig.backend.asked == []
    status = Ledger(rig.store).whole_status(name)
    assert (status.state, status.code, status.fault) == (State.FAILED, "banned", "submitter")
    assert "It attacks." in status.reason
    assert status.hint == "Send it again once the ban is lifted."


def test_for_everyone_else_it_fails_as_one_that_is_broken(rig: Rig, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Rig(tmp_path / "other")
    other.backend = FakeBackend(broken)
    banned, failing = private(rig), private(other)
    ban(rig)
    rig.worker().run_all()
    other.worker().run_all()
    assert Ledger(other.store).whole_status(failing).code not in ("", "banned")
    assert seen(rig, banned) == seen(other, failing)


def test_it_is_moved_when_its_turn_comes_and_not_before(rig: Rig) -> None:
    """Ada has had nothing run yet, but Bob's came first."""
    first = rig.send(account=BOB).submission.submission_id
    rig.clock.move(seconds=1)
    name = private(rig)
    ban(rig)
    worker = rig.worker()
    assert worker.run_next()
    ledger = Ledger(rig.store)
    assert ledger.status(first).state is State.PUBLISHED
    assert [event.state for event in ledger.events(name)] == [State.RECEIVED, State.QUEUED]
    assert worker.run_next()
    assert ledger.status(name).state is State.FAILED


def test_what_was_in_work_when_the_ban_came_is_finished(rig: Rig) -> None:
    name = private(rig)

    def score(n: int, _: str) -> float:
        if len(rig.backend.asked) == 1:
            ban(rig)
        return float(n)

    rig.backend = FakeBackend(score)
    rig.worker().run_all()
    assert Ledger(rig.store).status(name).state is State.HELD


def test_once_the_ban_is_lifted_it_can_be_sent_again(rig: Rig) -> None:
    name = private(rig)
    ban(rig)
    rig.worker().run_all()
    Acts(rig.store, {"toy": Toy.card}, rig.clock).unban(ADA.key, ROOT, "It was a simulation.")
    again = rig.desk.submit_metric(rig.module(), account=ADA, private=True)
    assert again.status.submission.submission_id == name
    assert again.status.state is State.QUEUED
