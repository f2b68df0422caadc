"""Several submissions in one commit: claimed in fair order, published together, handed back."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.errors import TransientError
from evaluator.worker.roles import WorkerRole
from leaderboard.governance.acts import Acts
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.records import Event
from leaderboard.states import State
from leaderboard.store.live.interface import Pulse
from leaderboard.store.memory import memory_store
from tests.benchmarks.toy import Toy
from tests.evaluator.rig import ADA, BOB, ROOT, FakeBackend, Rig, Score
from tests.evaluator.worker.breaking import Killed, published_once
from tests.evaluator.worker.stock import stock


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, store=replace(memory_store(), jobs_per_commit=4), known_s=20.0)


def events(rig: Rig, submission_id: str) -> tuple[Event, ...]:
    return Ledger(rig.store).events(submission_id)


def in_state(rig: Rig, state: State) -> set[str]:
    statuses = Ledger(rig.store).statuses()
    return {s.submission.submission_id for s in statuses if s.state is state}


def head(rig: Rig) -> int:
    return int(rig.store.public.head())


def killing(rig: Rig, at: int) -> FakeBackend:
    """Its process dies at one of the answers."""

    def score(brightness: int, _: str) -> float:
        if len(rig.backend.asked) == at:
            raise Killed
        return float(brightness)

    return FakeBackend(score)


def test_four_submissions_take_one_commit_to_claim_and_one_to_publish(rig: Rig) -> None:
    ids = stock(rig.store, ["hub:ada", "hub:bob", "hub:eve", "hub:ada"])
    before = head(rig)
    rig.worker().run_all()
    assert head(rig) == before + 2
    assert all(published_once(rig.store, name) for name in ids)
    shown = read_snapshot(rig.store.public)
    assert shown is not None
    assert len(shown.entries) == 4
    for name in ids:
        assert [e.state for e in events(rig, name)][2:] == [
            State.CLAIMED, State.SCORING, State.SCORED, State.JUDGING, State.PUBLISHED,
        ]  # fmt: skip


def test_handing_over_and_judging_are_batched_as_well(rig: Rig) -> None:
    ids = stock(rig.store, ["hub:ada", "hub:bob", "hub:eve"])
    before = head(rig)
    rig.worker("s1", role=WorkerRole.SCORE).run_all()
    assert head(rig) == before + 2
    assert in_state(rig, State.SCORED) == set(ids)
    rig.clock.move(minutes=2)
    rig.worker("j1", role=WorkerRole.JUDGE).run_all()
    assert head(rig) == before + 4
    assert all(published_once(rig.store, name) for name in ids)
    assert rig.store.private.list("scored/") == ()


def test_private_ones_are_held_in_the_same_commits(rig: Rig) -> None:
    stock(rig.store, ["hub:ada", "hub:bob"])
    held = stock(rig.store, ["hub:ada", "hub:bob"], private=True)
    before = head(rig)
    rig.worker().run_all()
    assert head(rig) == before + 2
    assert in_state(rig, State.HELD) == set(held)
    assert all(rig.store.private.list(f"held/{name}/results/") for name in held)


def test_no_worker_takes_more_than_its_share_of_those_that_live(rig: Rig) -> None:
    stock(rig.store, [f"hub:u{n}" for n in range(6)])
    now = rig.clock()
    for n in range(2):
        rig.store.live.beat(Pulse(worker=f"o{n}", at=now, isolation_ok=True, isolation=""))
    old = now.replace(year=2025)
    rig.store.live.beat(Pulse(worker="dead", at=old, isolation_ok=True, isolation=""))
    rig.worker().run_next()
    assert len(in_state(rig, State.QUEUED)) == 4, "six wait and three live: two are its share"


def test_claims_are_fair_among_accounts(rig: Rig) -> None:
    ids = stock(rig.store, ["hub:ada", "hub:ada", "hub:ada", "hub:bob", "hub:eve"])
    rig.worker().run_next()
    assert in_state(rig, State.QUEUED) == {ids[2]}
    assert events(rig, ids[0])[-1].state is State.SCORING, "the first of all is begun at once"
    assert {events(rig, ids[n])[-1].state for n in (1, 3, 4)} == {State.CLAIMED}


def test_the_pulse_names_all_that_is_held_and_the_attempt(rig: Rig) -> None:
    ids = stock(rig.store, ["hub:ada", "hub:bob"])
    seen: list[Pulse] = []

    def listen(_: object) -> None:
        worker.heart.beat()
        seen.extend(rig.store.live.pulses())

    worker = rig.worker(listener=listen)
    worker.run_all()
    assert {pulse.submission_id for pulse in seen} == set(ids)
    assert all(set(pulse.claimed) == set(ids) for pulse in seen), "finished ones are held as well"
    assert {pulse.attempt for pulse in seen} == {1}
    worker.heart.beat()
    (last,) = rig.store.live.pulses()
    assert (last.submission_id, last.claimed, last.attempt) == ("", (), 0)


def test_what_was_not_begun_goes_back_in_one_commit_when_the_worker_stops(rig: Rig) -> None:
    ids = stock(rig.store, ["hub:ada", "hub:bob", "hub:eve"])
    stop = threading.Event()
    rig.backend = FakeBackend(lambda n, _: float(n) if len(rig.backend.asked) < 30 else _stop(stop))
    before = head(rig)
    rig.worker().run_all(stop)
    assert head(rig) == before + 3, "claims, the one that was finished, the two that were not"
    assert published_once(rig.store, ids[0])
    assert in_state(rig, State.QUEUED) == set(ids[1:])
    assert all(s.attempts == 0 for s in Ledger(rig.store).statuses()[1:])
    rig.backend = FakeBackend()
    rig.worker("w2").run_all()
    assert all(published_once(rig.store, name) for name in ids)


def _stop(stop: threading.Event) -> float:
    stop.set()
    return 1.0


def test_what_a_dead_worker_never_began_has_lost_no_attempt(rig: Rig) -> None:
    """However many workers die while others of their claims wait."""
    ids = stock(rig.store, ["hub:ada", "hub:bob"])
    for n in range(4):
        rig.backend = killing(rig, 1)
        worker = rig.worker(f"w{n}")
        with pytest.raises(Killed), worker.heart:
            worker.run_next()
        rig.clock.move(minutes=2)
    first, second = Ledger(rig.store).statuses()
    assert (first.state, first.code) == (State.FAILED, "worker_lost")
    assert (second.state, second.attempts) == (State.SCORING, 1), "the fourth began with it"
    rig.backend = FakeBackend()
    rig.worker("w9").run_all()
    assert published_once(rig.store, ids[1])


def test_giving_up_lists_who_tried_and_why_each_try_ended(rig: Rig) -> None:
    (name,) = stock(rig.store, ["hub:ada"])
    for n in range(3):
        rig.backend = killing(rig, 1)
        worker = rig.worker(f"w{n}")
        with pytest.raises(Killed), worker.heart:
            worker.run_next()
        rig.clock.move(minutes=2)
    rig.worker("w9").run_all()
    reason = Ledger(rig.store).status(name).reason
    for n in range(3):
        assert f"w{n} was silent since 2026-01-01 00:0{2 * n}:00 UTC" in reason


def test_the_reasons_of_failed_attempts_are_told_at_the_end(rig: Rig) -> None:
    (name,) = stock(rig.store, ["hub:ada"])
    worker = rig.worker()
    for text in ("The first.", "The second.", "The third."):
        rig.backend.score = _raising(TransientError("hub_down", text))
        assert worker.run_next()
        rig.clock.move(minutes=2)
    status = Ledger(rig.store).status(name)
    assert status.state is State.FAILED
    assert all(text in status.reason for text in ("The first.", "The second.", "The third."))


def _raising(error: Exception) -> Score:
    def score(*_: object) -> float:
        raise error

    return score


def test_what_is_withdrawn_before_it_is_begun_is_not_run(rig: Rig) -> None:
    ids = stock(rig.store, [ADA.key, BOB.key])

    def score(n: int, _: str) -> float:
        if len(rig.backend.asked) == 1:
            Acts(rig.store, {"toy": Toy.card}, rig.clock).withdraw(ids[1], BOB)
        return float(n)

    rig.backend = FakeBackend(score)
    rig.worker().run_all()
    assert len(rig.backend.asked) == 8 * 3
    assert in_state(rig, State.WITHDRAWN) == {ids[1]}
    assert published_once(rig.store, ids[0])


def test_what_is_withdrawn_while_it_waits_for_the_others_is_not_published(rig: Rig) -> None:
    ids = stock(rig.store, [ADA.key, BOB.key])

    def score(n: int, _: str) -> float:
        if len(rig.backend.asked) == 8 * 3 + 1:
            Acts(rig.store, {"toy": Toy.card}, rig.clock).withdraw(ids[0], ADA)
        return float(n)

    rig.backend = FakeBackend(score)
    rig.worker().run_all()
    assert in_state(rig, State.WITHDRAWN) == {ids[0]}
    assert published_once(rig.store, ids[1])
    assert rig.store.public.list(f"results/{ids[0]}/") == ()
    assert not list((rig.folder / "scratch" / "outbox").glob("*"))


def test_what_was_claimed_before_a_ban_is_not_begun_after_it(rig: Rig) -> None:
    ids = stock(rig.store, [ADA.key, BOB.key])

    def score(n: int, _: str) -> float:
        if len(rig.backend.asked) == 1:
            Acts(rig.store, {"toy": Toy.card}, rig.clock).ban(BOB.key, ROOT, "It attacks.")
        return float(n)

    rig.backend = FakeBackend(score)
    rig.worker().run_all()
    assert len(rig.backend.asked) == 8 * 3
    assert Ledger(rig.store).status(ids[1]).state is State.REJECTED


def test_a_newer_version_in_the_same_commit_takes_the_place_of_the_older(rig: Rig) -> None:
    older = rig.send(account=ADA).submission.submission_id
    rig.clock.move(seconds=1)
    files = {"assay.toml": b'name = "grey"\nversion = "2"', "scorer.py": b"class Scorer: ..."}
    newer = rig.send(files, account=ADA).submission.submission_id
    before = head(rig)
    rig.worker().run_all()
    assert head(rig) == before + 2
    assert in_state(rig, State.SUPERSEDED) == {older}
    assert in_state(rig, State.PUBLISHED) == {newer}
    shown = read_snapshot(rig.store.public)
    assert shown is not None
    assert {entry.submission_id for entry in shown.entries.values()} == {newer}


def test_equal_scores_within_one_commit_are_flagged(rig: Rig) -> None:
    ids = stock(rig.store, ["hub:ada", "hub:bob"])
    rig.worker().run_all()
    shown = read_snapshot(rig.store.public)
    assert shown is not None
    flagged = {e.submission_id: e.same_scores_as for e in shown.entries.values()}
    assert flagged == {ids[0]: {}, ids[1]: {"toy": (ids[0],)}}


def test_a_result_waits_for_no_others_longer_than_ten_minutes(rig: Rig) -> None:
    ids = stock(rig.store, ["hub:ada", "hub:bob"])
    published_meanwhile: list[bool] = []

    def listen(_: object) -> None:
        rig.clock.move(minutes=2)
        worker.heart.beat()
        published_meanwhile.append(published_once(rig.store, ids[0]))

    worker = rig.worker(listener=listen)
    worker.run_all()
    assert True in published_meanwhile
    assert all(published_once(rig.store, name) for name in ids)


def test_the_same_commits_are_named_by_what_they_do(rig: Rig) -> None:
    stock(rig.store, ["hub:ada"])
    messages: list[str] = []
    commit = rig.store.public.commit

    def noting(*args: object, message: str, **more: object) -> str:
        messages.append(message)
        return commit(*args, message=message, **more)  # type: ignore[arg-type]

    rig.store.public.commit = noting  # type: ignore[method-assign]
    rig.worker().run_all()
    assert messages[0] == "claimed+scoring by w1"
    assert messages[1].startswith("scored+judging+published m000-")
