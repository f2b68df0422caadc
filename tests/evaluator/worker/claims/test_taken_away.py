"""Submissions that are taken back while a worker has them: it stops, and nothing is left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError, TransientError
from evaluator.worker.claims.tasks import Finished
from evaluator.worker.roles import WorkerRole
from leaderboard.governance.accounts import Account
from leaderboard.governance.acts import Acts
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.states import State
from leaderboard.store.interface import Repository
from tests.benchmarks.toy import Toy
from tests.evaluator.rig import ADA, BOB, ROOT, FakeBackend, Rig

ASKED_IN_ALL = 8 * 3
"""Of a module on the toy benchmark, the trust checks included."""


class Secret(Toy):
    """Its answers are not public, so most of a result is kept in the private repository."""

    card = Toy.card.model_copy(update={"answers_public": False})


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def acts(rig: Rig) -> Acts:
    return Acts(rig.store, {"toy": Toy.card}, rig.clock)


def state(rig: Rig, submission_id: str) -> State:
    return Ledger(rig.store).status(submission_id).state


def results(repository: Repository) -> list[str]:
    return [path for path in repository.list() if "results/" in path]


def when_asked(rig: Rig, n: int, act: Callable[[], object]) -> FakeBackend:
    """A scorer during whose n-th answer something happens."""

    def score(brightness: int, _: str) -> float:
        if len(rig.backend.asked) == n:
            act()
        return float(brightness)

    return FakeBackend(score)


def withdrawn_meanwhile(rig: Rig, submission_id: str, by: Account = ADA) -> Callable[[], None]:
    def act() -> None:
        acts(rig).withdraw(submission_id, by)
        rig.clock.move(seconds=31)

    return act


@pytest.mark.parametrize("by", [ADA, ROOT])
@pytest.mark.parametrize("private", [False, True])
def test_a_withdrawal_stops_the_run_within_a_batch(rig: Rig, by: Account, private: bool) -> None:
    withdrawn = rig.send(private=private).submission.submission_id
    rig.backend = when_asked(rig, 1, withdrawn_meanwhile(rig, withdrawn, by))
    assert rig.worker().run_next()
    assert len(rig.backend.asked) <= 3
    assert rig.backend.closed >= 1
    assert state(rig, withdrawn) is State.WITHDRAWN
    assert Ledger(rig.store).events(withdrawn)[-1].state is State.WITHDRAWN
    assert results(rig.store.public) == results(rig.store.private) == []
    assert read_snapshot(rig.store.public) is None


def test_what_was_scored_of_a_withdrawn_run_is_forgotten(rig: Rig) -> None:
    withdrawn = rig.send().submission.submission_id
    shards = rig.folder / "scratch" / "shards" / withdrawn
    (shards / "toy").mkdir(parents=True)  # of a worker that died at it
    rig.backend = when_asked(rig, 1, withdrawn_meanwhile(rig, withdrawn))
    rig.worker().run_next()
    assert not shards.exists()
    assert list((rig.folder / "scratch" / "unpacked").iterdir()) == []


def test_a_withdrawal_after_the_last_batch_still_publishes_nothing(rig: Rig) -> None:
    withdrawn = rig.send().submission.submission_id
    act = acts(rig).withdraw
    rig.backend = when_asked(rig, ASKED_IN_ALL, lambda: act(withdrawn, ADA))
    rig.worker().run_next()
    assert len(rig.backend.asked) == ASKED_IN_ALL
    assert state(rig, withdrawn) is State.WITHDRAWN
    assert results(rig.store.public) == []


@pytest.mark.parametrize("private", [False, True])
def test_a_withdrawal_while_results_are_being_written_leaves_none(rig: Rig, private: bool) -> None:
    rig.toy = Secret()
    withdrawn = rig.send(private=private).submission.submission_id
    repository = rig.store.private
    commit = repository.commit

    def overtaken(*args: object, message: str, **named: object) -> str:
        version = commit(*args, message=message, **named)  # type: ignore[arg-type]
        if message.startswith("results of"):
            repository.commit = commit  # type: ignore[method-assign]
            assert results(rig.store.private)
            acts(rig).withdraw(withdrawn, ADA)
        return version

    repository.commit = overtaken  # type: ignore[method-assign]
    rig.worker().run_next()
    assert state(rig, withdrawn) is State.WITHDRAWN
    assert results(rig.store.public) == results(rig.store.private) == []


def test_a_scorer_that_fails_after_the_withdrawal_fails_nobody(rig: Rig) -> None:
    withdrawn = rig.send().submission.submission_id

    def score(*_: object) -> float:
        acts(rig).withdraw(withdrawn, ADA)
        raise SubmitterError("scorer_raised", "No.")

    rig.backend = FakeBackend(score)
    rig.worker().run_next()
    assert state(rig, withdrawn) is State.WITHDRAWN


def test_a_withdrawal_leaves_the_next_submission_alone(rig: Rig) -> None:
    withdrawn = rig.send().submission.submission_id
    rig.clock.move(seconds=1)
    other = rig.send(account=BOB).submission.submission_id
    rig.backend = when_asked(rig, 1, withdrawn_meanwhile(rig, withdrawn))
    worker = rig.worker()
    assert worker.run_next()
    assert worker.run_next()
    assert state(rig, other) is State.PUBLISHED


def test_results_of_before_a_withdrawn_rerun_stay_in_the_history(rig: Rig) -> None:
    """As they do for everything that was published once and is withdrawn."""
    rig.toy = Secret()
    known = rig.send().submission.submission_id
    rig.worker().run_next()
    before = results(rig.store.private)
    acts(rig).rerun(known, ROOT, "new data")
    rig.backend = when_asked(rig, 1, withdrawn_meanwhile(rig, known))
    rig.worker().run_next()
    assert results(rig.store.private) == before
    shown = read_snapshot(rig.store.public)
    assert shown is not None
    assert shown.entries == {}


def test_what_a_banned_account_has_waiting_is_not_claimed_but_rejected(rig: Rig) -> None:
    """A ban rejects what waits; this one was being worked on then, and is given back later."""
    given_back = rig.send().submission.submission_id

    def fails_for_now(*_: object) -> float:
        acts(rig).ban(ADA.key, ROOT, "It attacks the worker.")
        raise TransientError("hub_down", "The Hub is down.")

    rig.backend = FakeBackend(fails_for_now)
    worker = rig.worker()
    worker.run_next()
    assert state(rig, given_back) is State.QUEUED
    rig.clock.move(minutes=2)
    asked = len(rig.backend.asked)
    assert not worker.run_next()
    status = Ledger(rig.store).status(given_back)
    assert (status.state, status.code, status.fault) == (State.REJECTED, "banned", "submitter")
    assert "It attacks the worker." in status.reason
    assert len(rig.backend.asked) == asked


def test_what_a_ban_found_waiting_is_never_run(rig: Rig) -> None:
    waiting = rig.send().submission.submission_id
    acts(rig).ban(ADA.key, ROOT, "spam")
    assert not rig.worker().run_next()
    assert not rig.worker().run(waiting)
    assert state(rig, waiting) is State.REJECTED
    assert rig.backend.asked == []


def test_what_was_scored_before_a_ban_is_judged_once_after_it(rig: Rig) -> None:
    scored = rig.send().submission.submission_id
    rig.worker("scorer", role=WorkerRole.SCORE).run_all()
    acts(rig).ban(ADA.key, ROOT, "spam")
    judge = rig.worker("judge", role=WorkerRole.JUDGE)
    rounds = 0
    while rounds < 5 and judge.run_next():
        rounds += 1
    assert state(rig, scored) is State.PUBLISHED
    assert rounds < 5, "a judge goes round and round"
    assert len(Ledger(rig.store).events(scored)) == 7


def test_a_worker_that_lost_a_private_submission_leaves_the_held_result_as_it_is(rig: Rig) -> None:
    name = rig.send(private=True).submission.submission_id
    late = rig.worker("late")
    late._hand.take(late._claims.more())
    rig.clock.move(hours=9)
    second = rig.worker("second")
    assert second.run(name)
    assert state(rig, name) is State.HELD
    path = f"held/{name}/results/toy.json"
    held = rig.store.private.read(path)
    rig.clock.move(minutes=1)
    (task,) = late._hand.to_do
    scored = late._parts.one.scoring.scores(task, lambda _: None)
    late._outgoing.add(Finished(task, scored, "", rig.clock()))
    assert late._outgoing.send()
    assert rig.store.private.read(path) == held
