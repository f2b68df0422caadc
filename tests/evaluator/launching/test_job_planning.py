"""Which jobs are started, cancelled and accounted for, as a function of what is known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from evaluator.commands.worker_making import name_of_worker
from evaluator.launching.launcher import new_name
from evaluator.launching.planning import Plan, SeenJob, accounted, plan
from leaderboard.folding import fold
from leaderboard.records import Event, Kind, Status, Submission
from leaderboard.states import TO_JUDGE, State

T0 = datetime(2031, 1, 1, tzinfo=UTC)
LEASE = T0 + timedelta(hours=8)


def at(minutes: float) -> datetime:
    return T0 + timedelta(minutes=minutes)


def event(minutes: float, state: State, by: str = "ada", **more: object) -> Event:
    return Event.model_validate({"at": at(minutes), "state": state, "by": by, **more})


RECEIVED = (event(0, State.RECEIVED), event(0, State.QUEUED))


def claimed(worker: str, minutes: float = 1) -> tuple[Event, ...]:
    claim = event(minutes, State.CLAIMED, worker, lease_until=LEASE)
    return (claim, event(minutes, State.SCORING, worker))


def status(
    name: str, *later: Event, account: str = "ada", kind: Kind = Kind.METRIC, sent: float = 0
) -> Status:
    submission = Submission(
        submission_id=f"{name}-00000000",
        kind=kind,
        name=name,
        metrics=(name,),
        benchmarks=("toy",),
        submitter=account,
        account=account,
        content_sha256="0" * 64,
        archive="a.zip",
        received_at=at(sent),
    )
    return fold(submission, (*RECEIVED, *later))


def job(
    name: str, worker: str = "job-1", *, stage: str = "RUNNING", made: float = 1, number: int = 1
) -> SeenJob:
    return SeenJob(f"j{number}", f"{name}-00000000", worker, stage, "", at(made))


def planned(
    statuses: list[Status], live: list[SeenJob], *, minutes: float = 30, at_most: int = 4
) -> Plan:
    return plan(statuses, live, at(minutes), at_most=at_most, time_s=3600)


def startable(found: Plan) -> list[str]:
    return names(found.waiting[: found.room])


def names(statuses: tuple[Status, ...]) -> list[str]:
    return [each.submission.name for each in statuses]


def test_a_worker_on_a_machine_that_is_called_like_a_job_is_left_in_peace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "job-7")
    assert planned([status("m", *claimed(name_of_worker({})))], []).lost == ()
    assert names(planned([status("m", *claimed(new_name()))], []).lost) == ["m"]


def test_what_waits_gets_a_job_in_the_order_of_its_turn() -> None:
    waiting = [
        status("a1", sent=0),
        status("a2", sent=1),
        status("b1", account="bob", sent=2),
    ]
    assert startable(planned(waiting, [])) == ["a1", "b1", "a2"]


def test_no_more_jobs_than_allowed_are_live() -> None:
    waiting = [status(f"m{n}", sent=n) for n in range(5)]
    live = [job("m0"), job("m1", "job-2", number=2)]
    assert startable(planned(waiting, live, at_most=3)) == ["m2"]
    assert startable(planned(waiting, live, at_most=2)) == []
    assert startable(planned(waiting, live, at_most=1)) == []


def test_scores_files_and_what_rests_or_is_unwanted_get_none() -> None:
    resting = status(
        "r", *claimed("job-9", 29), event(29.9, State.QUEUED, "job-9", fault="world", reason="x")
    )
    waiting = [status("s", kind=Kind.SCORES), resting]
    assert startable(planned(waiting, [])) == []
    assert startable(planned(waiting, [], minutes=40)) == ["r"]
    found = plan(
        waiting, [], at(40), at_most=4, time_s=60, wanted=lambda each: each.submission.name != "r"
    )
    assert startable(found) == []


def test_a_submission_with_a_live_job_gets_no_second_one() -> None:
    for stage in ("SCHEDULING", "RUNNING"):
        found = planned([status("m")], [job("m", stage=stage)])
        assert (found.waiting, found.cancel, found.live) == ((), (), 1)


@pytest.mark.parametrize(
    "later",
    [
        (event(2, State.WITHDRAWN),),
        (*claimed("job-1"), event(2, State.WITHDRAWN)),
        (*claimed("job-1"), event(2, State.FAILED, "job-1", reason="x")),
        claimed("w-elsewhere"),
    ],
    ids=["withdrawn", "withdrawn at work", "failed", "another worker has it"],
)
def test_a_job_nobody_needs_is_cancelled(later: tuple[Event, ...]) -> None:
    found = planned([status("m", *later)], [job("m")])
    assert [each.job.job_id for each in found.cancel] == ["j1"]
    assert found.live == 0


def test_a_job_of_no_submission_is_cancelled() -> None:
    assert len(planned([], [job("m")]).cancel) == 1


def test_a_job_that_handed_over_may_end_by_itself() -> None:
    handed = event(5, State.SCORED, "job-1", code=TO_JUDGE)
    assert planned([status("m", *claimed("job-1"), handed)], [job("m")]).cancel == ()


def test_of_two_jobs_for_one_submission_the_one_that_has_it_stays() -> None:
    both = [job("m", "job-1", made=1), job("m", "job-2", made=2, number=2)]
    waits = planned([status("m")], both).cancel
    assert [each.job.job_id for each in waits] == ["j2"]
    held = planned([status("m", *claimed("job-2", 3))], both).cancel
    assert [each.job.job_id for each in held] == ["j1"]


def test_a_job_that_outlives_its_time_is_cancelled() -> None:
    held = status("m", *claimed("job-1"))
    assert planned([held], [job("m")], minutes=1 + 74).cancel == ()
    assert len(planned([held], [job("m")], minutes=1 + 76).cancel) == 1


def test_what_a_dead_job_holds_is_lost() -> None:
    held = status("m", *claimed("job-1"))
    assert names(planned([held], []).lost) == ["m"]
    assert planned([held], [job("m")]).lost == ()
    assert planned([held], [], minutes=2).lost == (), "the Hub may not list it yet"
    assert planned([status("m", *claimed("w-elsewhere"))], []).lost == ()


def test_a_job_that_did_nothing_is_not_accounted_for() -> None:
    assert not accounted(job("m", stage="ERROR"), RECEIVED)
    assert not accounted(job("m", stage="COMPLETED"), RECEIVED)
    given_back = (*RECEIVED, *claimed("job-1"), event(2, State.QUEUED, "job-1", reason="stopped"))
    assert not accounted(job("m", stage="ERROR"), given_back)
    assert accounted(job("m", stage="CANCELED"), RECEIVED)


def test_a_job_whose_end_the_events_tell_is_accounted_for() -> None:
    ended = job("m", stage="COMPLETED")
    failed = event(2, State.QUEUED, "job-1", reason="x", fault="world")
    handed = event(2, State.SCORED, "job-1", code=TO_JUDGE)
    judged = event(3, State.JUDGING, "judge", lease_until=LEASE)
    again = event(4, State.QUEUED, "judge", reason="damaged", fault="world")
    assert accounted(ended, (*RECEIVED, *claimed("job-1"), failed))
    assert accounted(ended, (*RECEIVED, *claimed("job-1"), handed, judged, again))
    rerun = (
        *RECEIVED,
        *claimed("job-1"),
        event(2, State.FAILED, "job-1", reason="x"),
        event(9, State.QUEUED, "root"),
    )
    assert accounted(ended, rerun)
