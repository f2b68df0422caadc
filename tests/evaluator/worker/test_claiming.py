"""What a worker claims: several in one commit, in fair order, no more than it has done soon."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.worker.claims import AHEAD, OVERRUN, UNTIMED_AT_ONCE, done_soon
from evaluator.worker.liveness import RunProgress
from evaluator.worker.publishing import SENT_AFTER
from evaluator.worker.tasks import MAX_LOST, WorkerRole
from evaluator.worker.worker import Worker
from leaderboard.accounts import Account, Origin
from leaderboard.ledger.audit_log import verify
from leaderboard.states import IN_WORK, State
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import Store
from leaderboard.store.live.interface import Heartbeat
from tests.kit.store import memory_store
from tests.kit.worker import (
    ADA,
    ASKED,
    BOB,
    ROOT,
    SCORES,
    FakeBackend,
    Killed,
    Rig,
    named,
    on_commit,
    raising,
    stock,
)


def rig_of(folder: Path, known_s: float | None = None, jobs: int = 8) -> Rig:
    return Rig(folder, jobs=jobs, known_s=known_s)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return rig_of(tmp_path, known_s=20.0, jobs=4)


def users(n: int, letter: str = "u") -> list[str]:
    return [f"hub:{letter}{k}" for k in range(n)]


# Several in one commit ------------------------------------------------------------------------


def test_four_submissions_take_one_commit_to_claim_and_one_to_publish(rig: Rig) -> None:
    ids = rig.stock(["hub:ada", "hub:bob"])
    held = rig.stock(["hub:ada", "hub:bob"], private=True)
    messages: list[str] = []
    on_commit(rig.store.public, lambda _, message: messages.append(message))
    rig.worker().run_all()
    claimed, published = messages
    assert claimed == "claimed+scoring by w1"
    assert published.startswith("scored+judging+published")
    assert rig.published_once(*ids)
    assert len(rig.shown().entries) == 2
    assert rig.in_state(State.HELD) == set(held)
    assert all(rig.store.private.list(f"held/{name}/results/") for name in held)
    for name in ids:
        assert rig.states(name)[2:] == [
            State.CLAIMED, State.SCORING, State.SCORED, State.JUDGING, State.PUBLISHED,
        ]  # fmt: skip


def test_handing_over_and_judging_are_batched_as_well(rig: Rig) -> None:
    ids = rig.stock(["hub:ada", "hub:bob", "hub:eve"])
    before = rig.head
    rig.worker("s1", role=WorkerRole.SCORE).run_all()
    assert (rig.head, rig.in_state(State.SCORED)) == (before + 2, set(ids))
    rig.clock.move(minutes=2)
    rig.worker("j1", role=WorkerRole.JUDGE).run_all()
    assert rig.head == before + 4
    assert rig.published_once(*ids)
    assert rig.store.private.list("scored/") == ()


def test_no_worker_takes_more_than_its_share_of_those_that_live(rig: Rig) -> None:
    rig.stock(users(6))
    rig.beats("o0")
    rig.beats("o1")
    rig.beats("dead", -365 * 24 * 3600)
    rig.worker().run_next()
    assert len(rig.in_state(State.QUEUED)) == 4, "six wait and three live: two are its share"


def test_claims_are_fair_among_accounts(rig: Rig) -> None:
    ids = rig.stock(["hub:ada", "hub:ada", "hub:ada", "hub:bob", "hub:eve"])
    rig.worker().run_next()
    assert rig.in_state(State.QUEUED) == {ids[2]}
    assert rig.in_state(State.SCORING) == {ids[0]}, "the first of all is begun at once"
    assert rig.in_state(State.CLAIMED) == {ids[1], ids[3], ids[4]}


def test_the_pulse_names_all_that_is_held_and_the_attempt(rig: Rig) -> None:
    ids = rig.stock(["hub:ada", "hub:bob"])
    seen: list[Heartbeat] = []

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
    ids = rig.stock(["hub:ada", "hub:bob", "hub:eve"])
    stop, before = threading.Event(), rig.head
    rig.when_asked(ASKED + 6, stop.set)
    rig.worker().run_all(stop)
    assert rig.head == before + 3, "claims, the one that was finished, the two that were not"
    assert rig.published_once(ids[0])
    assert rig.in_state(State.QUEUED) == set(ids[1:])
    assert all(s.attempts == 0 for s in rig.ledger.statuses()[1:])
    rig.worker("w2").run_all()
    assert rig.published_once(*ids)


def test_what_a_dead_worker_never_began_has_lost_no_attempt(rig: Rig) -> None:
    """However many workers die while others of their claims wait; who tried is listed."""
    ids = rig.stock(["hub:ada", "hub:bob"])
    for n in range(MAX_LOST + 1):
        rig.backend = raising(Killed())
        rig.dies(rig.worker(f"w{n}"))
    first, second = rig.ledger.statuses()
    assert (first.state, first.code, first.fault) == (State.FAILED, "worker_lost", "platform")
    for n in range(MAX_LOST):
        assert f"w{n} was silent since 2026-01-01 00:{2 * n:02d}:00 UTC" in first.reason
    assert (second.state, second.attempts) == (State.SCORING, 1), "the last began with it"
    rig.backend = FakeBackend()
    rig.worker("w9").run_all()
    assert rig.published_once(ids[1])


@pytest.mark.parametrize(
    ("at", "whose", "act", "asked", "state"),
    [
        (1, 1, lambda rig, name: rig.acts.withdraw(name, BOB), ASKED, State.WITHDRAWN),
        (1, 1, lambda rig, _: rig.acts.ban(BOB.key, ROOT, "No."), ASKED, State.REJECTED),
        (ASKED + 1, 0, lambda rig, name: rig.acts.withdraw(name, ADA), 2 * ASKED, State.WITHDRAWN),
    ],
    ids=["withdrawn-unbegun", "banned-unbegun", "withdrawn-unsent"],
)
def test_what_is_taken_away_while_it_waits_in_hand_is_not_published(
    rig: Rig, at: int, whose: int, act: Callable[[Rig, str], None], *, asked: int, state: State
) -> None:
    ids = rig.stock([ADA.key, BOB.key])
    rig.when_asked(at, lambda: act(rig, ids[whose]))
    rig.worker().run_all()
    assert len(rig.backend.asked) == asked
    assert rig.in_state(state) == {ids[whose]}
    assert rig.published_once(ids[1 - whose])
    assert rig.store.public.list(f"results/{ids[whose]}/") == ()
    assert not list((rig.folder / "scratch" / "outbox").glob("*"))


def test_a_newer_version_in_the_same_commit_takes_the_place_of_the_older(rig: Rig) -> None:
    older = rig.sent()
    rig.clock.move(seconds=1)
    newer = rig.sent(named("grey", "2"))
    before = rig.head
    rig.worker().run_all()
    assert rig.head == before + 2
    assert rig.in_state(State.SUPERSEDED) == {older}
    assert rig.in_state(State.PUBLISHED) == {newer}
    assert {entry.submission_id for entry in rig.shown().entries.values()} == {newer}


def test_equal_scores_within_one_commit_are_flagged(rig: Rig) -> None:
    ids = rig.stock(["hub:ada", "hub:bob"])
    rig.worker().run_all()
    flagged = {e.submission_id: e.same_scores_as for e in rig.shown().entries.values()}
    assert flagged == {ids[0]: {}, ids[1]: {"toy": (ids[0],)}}


def test_a_result_waits_for_no_others_longer_than_ten_minutes(rig: Rig) -> None:
    ids = rig.stock(["hub:ada", "hub:bob"])
    published_meanwhile: list[bool] = []

    def listen(_: object) -> None:
        rig.clock.move(minutes=2)
        worker.heart.beat()
        published_meanwhile.append(rig.published_once(ids[0]))

    worker = rig.worker(listener=listen)
    worker.run_all()
    assert True in published_meanwhile
    assert rig.published_once(*ids)


# No more than is done soon --------------------------------------------------------------------


def held(rig: Rig, by: str = "w1") -> set[str]:
    statuses = [s for s in rig.ledger.statuses() if s.state in IN_WORK and s.by == by]
    return {s.submission.submission_id for s in statuses}


@pytest.mark.parametrize(
    ("each_s", "at_once"), [(None, UNTIMED_AT_ONCE), (20.0, 8), (200.0, 4), (8 * 3600.0, 1)]
)
def test_what_is_claimed_is_done_within_a_quarter_of_an_hour_by_what_is_known(
    tmp_path: Path, each_s: float | None, at_once: int
) -> None:
    rig = rig_of(tmp_path, known_s=each_s)
    rig.stock(users(10))
    seen: list[int] = []
    rig.when_asked(1, lambda: seen.append(len(held(rig))))
    rig.worker().run_next()
    assert seen == [at_once]


def test_uploads_of_scores_are_claimed_as_many_as_fit_and_no_more_code_for_them(
    tmp_path: Path,
) -> None:
    rig = rig_of(tmp_path)
    for n in range(5):
        rig.send_scores(
            SCORES.replace("a,1", f"a,{n + 1}"), account=Account(origin=Origin.HUB, name=f"u{n}")
        )
    rig.clock.move(minutes=1)
    ids = rig.stock(users(4, "m"))
    rig.worker().run_next()
    assert held(rig) & set(ids) == set(ids[:2])
    assert len(held(rig)) == 5 + 2


@pytest.mark.slow
def test_a_worker_claims_by_what_the_first_runs_took(tmp_path: Path) -> None:
    """So that many short runs cost few commits all the same."""
    rig = rig_of(tmp_path)
    ids = rig.stock(users(18))
    before = rig.head
    rig.worker().run_all()
    assert rig.published_once(*ids)
    # 2, 8 and 8 are claimed; 8, 8 and 2 are published.
    assert rig.head - before == 6


@given(st.lists(st.none() | st.floats(0, 2000), max_size=12))
def test_of_any_line_the_first_is_taken_and_the_rest_only_as_far_as_it_is_soon_done(
    line: list[float | None],
) -> None:
    taken = line[: done_soon(line)]
    assert bool(taken) is bool(line)
    if len(taken) > 1:
        assert sum(one or 0.0 for one in taken) <= AHEAD.total_seconds()
        assert taken.count(None) <= UNTIMED_AT_ONCE


def overruns(rig: Rig, by: timedelta, meanwhile: Callable[[], None]) -> Worker:
    """A worker whose first run takes so long from its tenth answer on."""

    def act() -> None:
        rig.clock.move(seconds=by.total_seconds())
        meanwhile()

    rig.when_asked(10, act)
    return rig.worker()


def test_what_cannot_be_begun_in_time_is_left_to_a_worker_that_is_idle(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, known_s=20.0)
    ids = rig.stock(["hub:ada", "hub:bob", "hub:eve"])
    worker = overruns(rig, AHEAD + timedelta(seconds=1), lambda: rig.beats("w2"))
    worker.run_next()
    for name in ids[1:]:
        status = rig.status(name)
        assert (status.state, status.reason, status.attempts) == (State.QUEUED, OVERRUN, 0)
    rig.worker("w2").run_all()
    worker.run_all()
    assert rig.published_once(*ids)


@pytest.mark.parametrize(
    ("by", "who"),
    [(SENT_AFTER, "idle"), (AHEAD * 2, "nobody"), (AHEAD * 2, "no box"), (AHEAD * 2, "gone")],
)
def test_it_stays_in_hand_where_that_would_help_nobody(
    tmp_path: Path, by: timedelta, who: str
) -> None:
    rig = rig_of(tmp_path, known_s=20.0)
    ids = rig.stock(["hub:ada", "hub:bob", "hub:eve"])

    def beats() -> None:
        if who in ("idle", "no box"):
            rig.beats("w2", isolation_ok=who == "idle")

    if who == "gone":
        rig.beats("w2")
    worker = overruns(rig, by, beats)
    worker.run_next()
    assert held(rig)
    assert all(State.QUEUED not in rig.states(name)[2:] for name in held(rig))
    worker.run_all()
    assert rig.published_once(*ids)


# Eight workers on one store -------------------------------------------------------------------

WORKERS = 8


def by_turns(n: int) -> list[str]:
    """The first account sends most, the last one least and last."""
    shares = [n // 2, n // 4, n // 8, n // 16]
    shares.append(n - sum(shares))
    names = ("ada", "bob", "eve", "kim", "lea")
    return [f"hub:{name}" for name, k in zip(names, shares, strict=True) for _ in range(k)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "jobs", "role"),
    [
        ("memory", 8, WorkerRole.SCORE),
        ("folder", 1, WorkerRole.BOTH),
        ("folder", 4, WorkerRole.BOTH),
    ],
)
def test_eight_workers_publish_each_submission_once(
    tmp_path: Path, kind: str, jobs: int, role: WorkerRole
) -> None:
    """Or hand each over once, for a judge."""
    shared = replace(memory_store(), jobs_per_commit=jobs)

    def view() -> Store:
        """The store as another process sees it; what is in memory is shared."""
        own = folder_store(tmp_path / "store") if kind == "folder" else shared
        return replace(own, jobs_per_commit=jobs)

    rigs = [Rig(tmp_path, store=view()) for _ in range(WORKERS)]
    for rig in rigs:
        rig.clock.move(days=300)
    ids = stock(rigs[0].store, by_turns(16))
    with ThreadPoolExecutor(WORKERS) as pool:
        workers = [rig.worker(f"w{n}", role=role) for n, rig in enumerate(rigs)]
        list(pool.map(Worker.run_all, workers, timeout=300))
    if role is WorkerRole.SCORE:
        assert rigs[0].in_state(State.SCORED) == set(ids)
        rigs[0].worker("j1", role=WorkerRole.JUDGE).run_all()
    assert rigs[0].published_once(*ids)
    assert {rigs[0].states(name).count(State.CLAIMED) for name in ids} == {1}
    assert verify(rigs[0].store.public) == ()
    assert sum(len(rig.backend.asked) for rig in rigs) == len(ids) * ASKED, "nothing asked twice"


@pytest.mark.slow
def test_nobodys_second_is_begun_before_everybodys_first(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, jobs=1)
    ids = rig.stock(by_turns(16))
    begun: dict[str, None] = {}

    def listen(run: RunProgress) -> None:
        rig.clock.move(seconds=1)
        begun.setdefault(run.submission)

    rig.worker(listener=listen).run_all()
    assert sorted(begun) == sorted(ids)
    accounts = [rig.status(name).submission.account for name in begun]
    turns = [accounts[:n].count(account) for n, account in enumerate(accounts)]
    assert turns == sorted(turns)
    assert len(set(accounts[:5])) == 5
