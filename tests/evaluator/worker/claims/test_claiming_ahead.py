"""How much a worker claims at once: what it is likely to have done within a quarter of an hour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.worker.claims.giving_way import REASON
from evaluator.worker.claims.pace import AHEAD, UNTIMED_AT_ONCE, done_soon
from evaluator.worker.ending.outgoing import SENT_AFTER
from leaderboard.governance.accounts import Account, Origin
from leaderboard.ledger.ledger import Ledger
from leaderboard.states import IN_WORK, State
from leaderboard.store.live.interface import Pulse
from leaderboard.store.memory import memory_store
from tests.evaluator.rig import FakeBackend, Rig
from tests.evaluator.worker.breaking import published_once
from tests.evaluator.worker.stock import stock

SCORES = "pair_id,score\na,1\nb,2\nc,3\n"


def rig_of(folder: Path, known_s: float | None = None) -> Rig:
    return Rig(folder, store=replace(memory_store(), jobs_per_commit=8), known_s=known_s)


def user(n: int) -> Account:
    return Account(origin=Origin.HUB, name=f"u{n}")


def held(rig: Rig, by: str) -> set[str]:
    return {
        s.submission.submission_id
        for s in Ledger(rig.store).statuses()
        if s.state in IN_WORK and s.by == by
    }


def claimed_at_once(rig: Rig) -> int:
    """How many a worker has in hand when its first run begins."""
    seen: list[int] = []

    def score(n: int, _: str) -> float:
        if not seen:
            seen.append(len(held(rig, "w1")))
        return float(n)

    rig.backend = FakeBackend(score)
    rig.worker("w1").run_next()
    return seen[0]


def test_code_that_nobody_timed_is_claimed_by_twos(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    stock(rig.store, [f"hub:u{n}" for n in range(6)])
    assert claimed_at_once(rig) == UNTIMED_AT_ONCE == 2


@pytest.mark.parametrize(("each_s", "at_once"), [(20.0, 8), (200.0, 4), (8 * 3600.0, 1)])
def test_what_is_claimed_is_done_within_a_quarter_of_an_hour_by_what_is_known(
    tmp_path: Path, each_s: float, at_once: int
) -> None:
    rig = rig_of(tmp_path, known_s=each_s)
    stock(rig.store, [f"hub:u{n}" for n in range(10)])
    assert claimed_at_once(rig) == at_once


def test_uploads_of_scores_are_claimed_as_many_as_fit_a_commit(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    for n in range(5):
        rig.send_scores(SCORES.replace("a,1", f"a,{n + 1}"), account=user(n))
    rig.worker("w1").run_next()
    assert len(held(rig, "w1")) == 5


def test_among_uploads_of_scores_no_more_code_is_claimed_than_without(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    for n in range(2):
        rig.send_scores(SCORES.replace("a,1", f"a,{n + 1}"), account=user(n))
    rig.clock.move(minutes=1)
    ids = stock(rig.store, [f"hub:m{n}" for n in range(4)])
    rig.worker("w1").run_next()
    assert held(rig, "w1") & set(ids) == set(ids[:2])
    assert len(held(rig, "w1")) == 4


def test_a_worker_that_joins_finds_what_the_first_did_not_claim(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    ids = stock(rig.store, [f"hub:u{n}" for n in range(4)])
    joined: list[bool] = []

    def score(n: int, _: str) -> float:
        if not joined:
            joined.append(True)
            rig.worker("w2").run_next()
        return float(n)

    rig.backend = FakeBackend(score)
    rig.worker("w1").run_next()
    assert held(rig, "w2") == set(ids[2:])


@pytest.mark.slow
def test_a_worker_claims_by_what_the_first_runs_took(tmp_path: Path) -> None:
    """So that many short runs cost few commits all the same."""
    rig = rig_of(tmp_path)
    ids = stock(rig.store, [f"hub:u{n}" for n in range(18)])
    before = int(rig.store.public.head())
    rig.worker("w1").run_all()
    assert all(published_once(rig.store, name) for name in ids)
    # 2, 8 and 8 are claimed; 8, 8 and 2 are published.
    assert int(rig.store.public.head()) - before == 6


expected = st.lists(st.none() | st.floats(0, 2000), max_size=12)


@given(expected)
def test_of_any_line_the_first_is_taken_and_the_rest_only_as_far_as_it_is_soon_done(
    line: list[float | None],
) -> None:
    taken = line[: done_soon(line)]
    assert bool(taken) is bool(line)
    if len(taken) > 1:
        assert sum(one or 0.0 for one in taken) <= AHEAD.total_seconds()
        assert taken.count(None) <= UNTIMED_AT_ONCE


# While a run takes far longer than was expected


def idle(rig: Rig, name: str, *, isolation_ok: bool = True) -> None:
    pulse = Pulse(worker=name, at=rig.clock(), isolation_ok=isolation_ok, isolation="")
    rig.store.live.beat(pulse)


def overruns(rig: Rig, by: timedelta, meanwhile: Callable[[], None]) -> None:
    """The first run takes so long from its tenth answer on."""

    def score(n: int, _: str) -> float:
        if len(rig.backend.asked) == 10:
            rig.clock.move(seconds=by.total_seconds())
            meanwhile()
        return float(n)

    rig.backend = FakeBackend(score)


def test_what_cannot_be_begun_in_time_is_left_to_a_worker_that_is_idle(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, known_s=20.0)
    first, *later = stock(rig.store, ["hub:ada", "hub:bob", "hub:eve"])
    overruns(rig, AHEAD + timedelta(seconds=1), lambda: idle(rig, "w2"))
    worker = rig.worker("w1")
    worker.run_next()
    for name in later:
        status = Ledger(rig.store).status(name)
        assert (status.state, status.reason, status.attempts) == (State.QUEUED, REASON, 0)
    assert not list((rig.folder / "scratch" / "uploads").iterdir())
    rig.backend = FakeBackend()
    rig.worker("w2").run_all()
    worker.run_all()
    assert all(published_once(rig.store, name) for name in (first, *later))


@pytest.mark.parametrize(
    ("by", "who"),
    [(SENT_AFTER, "idle"), (AHEAD * 2, "nobody"), (AHEAD * 2, "no box"), (AHEAD * 2, "gone")],
)
def test_it_stays_in_hand_where_that_would_help_nobody(
    tmp_path: Path, by: timedelta, who: str
) -> None:
    rig = rig_of(tmp_path, known_s=20.0)
    stock(rig.store, ["hub:ada", "hub:bob"])

    def beats() -> None:
        if who in ("idle", "no box"):
            idle(rig, "w2", isolation_ok=who == "idle")

    if who == "gone":
        idle(rig, "w2")
    overruns(rig, by, beats)
    worker = rig.worker("w1")
    worker.run_next()
    states = {e.state for s in held(rig, "w1") for e in Ledger(rig.store).events(s)[2:]}
    assert State.QUEUED not in states
    worker.run_all()
    assert {s.state for s in Ledger(rig.store).statuses()} == {State.PUBLISHED}
