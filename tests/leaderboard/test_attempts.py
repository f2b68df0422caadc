"""What counts as an attempt at a run, and what is told of each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from leaderboard.folding import asked_at, attempts_of
from leaderboard.records import Event
from leaderboard.states import NOT_BEGUN, TO_JUDGE, State

T0 = datetime(2026, 1, 1, tzinfo=UTC)
Step = tuple[str, str, Mapping[str, object]]
START: list[Step] = [("received", "ada", {}), ("queued", "ada", {})]


def events(*steps: Step) -> list[Event]:
    return [
        Event.model_validate({"at": T0 + timedelta(minutes=n), "state": state, "by": by, **more})
        for n, (state, by, more) in enumerate(steps)
    ]


def test_each_attempt_says_who_made_it_and_why_it_ended() -> None:
    found = attempts_of(
        events(
            *START,
            ("claimed", "w1", {}),
            ("scoring", "w1", {}),
            ("claimed", "w2", {"reason": "w1 was silent since noon."}),
            ("queued", "w2", {"fault": "world", "reason": "The Hub is down."}),
            ("claimed", "w3", {}),
        )
    )
    assert [(a.number, a.by, a.why) for a in found] == [
        (1, "w1", "w1 was silent since noon."),
        (2, "w2", "The Hub is down."),
        (3, "w3", ""),
    ]
    assert [a.ended_at is None for a in found] == [False, False, True]


def test_what_was_claimed_and_never_begun_was_no_attempt() -> None:
    claims: list[Step] = [("claimed", f"w{n}", {"code": NOT_BEGUN} if n else {}) for n in range(5)]
    (only,) = attempts_of(events(*START, *claims))
    assert (only.number, only.by) == (1, "w4")


def test_handing_back_undoes_its_own_attempt_and_no_other() -> None:
    crash: list[Step] = [("claimed", "w1", {}), ("scoring", "w1", {})]
    back: list[Step] = [
        ("claimed", "w2", {"reason": "silent"}),
        ("queued", "w2", {"reason": "stopped"}),
    ]
    (first,) = attempts_of(events(*START, *crash, *back))
    assert (first.by, first.why) == ("w1", "silent")


def test_a_rerun_and_a_hand_over_begin_a_new_count() -> None:
    done: list[Step] = [
        ("claimed", "w1", {}),
        ("scoring", "w1", {}),
        ("scored", "w1", {"code": TO_JUDGE}),
    ]
    assert attempts_of(events(*START, *done)) == ()
    judged: list[Step] = [("judging", "j1", {"lease_until": T0}), ("published", "j1", {})]
    assert len(attempts_of(events(*START, *done, *judged))) == 1
    assert attempts_of(events(*START, *done, *judged, ("queued", "olga", {}))) == ()


def test_a_run_was_asked_for_when_it_was_queued_last_by_no_worker_that_held_it() -> None:
    tries: list[Step] = [
        ("claimed", "w1", {}),
        ("queued", "w1", {"fault": "world"}),
        ("claimed", "w2", {}),
    ]
    first = events(*START, *tries)
    assert asked_at(first) == first[1].at
    ended = events(*START, *tries, ("failed", "w2", {}), ("queued", "olga", {}))
    assert asked_at(ended) == ended[-1].at
    assert State.QUEUED is ended[-1].state
