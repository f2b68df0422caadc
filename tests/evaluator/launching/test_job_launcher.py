"""One job of the Hub for each run: the real client starts, follows and cancels them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import PlatformError, TransientError
from evaluator.launching.hub_jobs import HubJobs
from evaluator.launching.launcher import JobLauncher, LaunchRound
from evaluator.launching.planning import WORKER, JobRequest, JobSettings, SeenJob
from evaluator.worker.tasks import WorkerRole
from leaderboard.records import Event, Status
from leaderboard.replay import attempts_of
from leaderboard.states import State
from tests.kit.hub.accounts import Account
from tests.kit.hub.client import api_of
from tests.kit.hub.faults import Weather
from tests.kit.hub.jobs import Job
from tests.kit.hub.server import HubServer
from tests.kit.toy import Toy
from tests.kit.worker import ADA, BOB, Clock, Rig, Secret, named, wait_for

JOBS = "/api/jobs/lab"
SECRET = "hf_for_jobs_only"


class HubTime(Clock):
    """The time of the test Hub, which moves only when it is moved."""

    def __init__(self, hub: HubServer) -> None:
        super().__init__()
        self._hub = hub
        hub.clock.run(0)

    def __call__(self) -> object:  # type: ignore[override]
        return self._hub.clock.now()

    def move(self, **by: float) -> None:
        self._hub.clock.advance(by.get("minutes", 0.0) * 60 + by.get("seconds", 0.0))


@pytest.fixture
def hub(hub: HubServer) -> HubServer:
    """Its jobs start at once, and run until a test ends them."""
    hub.jobs.hook = Job.run
    return hub


@pytest.fixture
def rig(hub: HubServer, tmp_path: Path) -> Rig:
    return Rig(tmp_path, clock=HubTime(hub))


def launcher(hub: HubServer, rig: Rig, kind: type[HubJobs] = HubJobs, **more: Any) -> JobLauncher:
    given: dict[str, Any] = {
        "store": "hub:lab/board",
        "image": "lab/assay:1",
        "namespace": "lab",
        "timeout_s": 3600,
        "secrets": {"HF_TOKEN": SECRET},
        **more,
    }
    operator = hub.enroll("hf_operator", Account("op", orgs={"lab": "write"}))
    jobs = kind.on_the_hub(JobSettings(**given), api_of(hub, operator))
    return JobLauncher(rig.store, jobs, {"toy": rig.toy})


def started(hub: HubServer) -> list[Job]:
    return list(hub.jobs.all.values())


def submission_of(job: Job) -> str:
    return job.command[job.command.index("--submission") + 1]


def told(rig: Rig, name: str) -> Status:
    return rig.ledger.whole_status(name)


def four(rig: Rig) -> list[str]:
    sent = ((ADA, "a1"), (ADA, "a2"), (BOB, "b1"), (BOB, "b2"))
    return [rig.sent(named(name), account=account) for account, name in sent]


def all_over(hub: HubServer) -> bool:
    return all(job.ending.is_set() for job in started(hub))


def once(one: JobLauncher, hub: HubServer) -> LaunchRound:
    """Start what can be, wait until it is over, and account for it."""
    assert one.turn().started == 1
    wait_for(lambda: all_over(hub))
    return one.turn()


class stop_after(threading.Event):  # noqa: N801 (read as a word)
    """Set once it was asked so often whether it is."""

    def __init__(self, turns: int) -> None:
        super().__init__()
        self._left = turns

    def is_set(self) -> bool:
        self._left -= 1
        return self._left < 0


# What happens in a job ------------------------------------------------------------------------


def scoring(rig: Rig) -> Callable[[Job], None]:
    """A worker of the scorer role hands scores over."""

    def hook(job: Job) -> None:
        job.run()
        worker = rig.worker(job.environment[WORKER], role=WorkerRole.SCORE)
        done = worker.run(submission_of(job))
        job.end("COMPLETED" if done else "ERROR")

    return hook


def failing(job: Job) -> None:
    job.run()
    job.say(f"loading the model with {job.environment['HF_TOKEN']}")
    job.say("\x1b[31mCUDA out of memory")
    job.end("ERROR", "exit code 1")


def unable(job: Job) -> None:
    """Where the image cannot isolate code, its worker leaves the submission to others."""
    job.run()
    job.say("No box here.")
    job.end("COMPLETED")


def hold(rig: Rig, name: str, worker: str) -> None:
    """A worker claims a submission."""
    now = rig.store.clock()
    claim = Event(at=now, state=State.CLAIMED, by=worker, lease_until=now)
    rig.ledger.append(name, [claim, Event(at=now, state=State.SCORING, by=worker)])


# A run that goes well -------------------------------------------------------------------------


def test_each_run_is_one_job_and_is_judged_here(hub: HubServer, rig: Rig) -> None:
    """Without a judge its scores wait for one."""
    hub.jobs.hook = scoring(rig)
    judge = rig.worker("judge", role=WorkerRole.JUDGE)
    first, one = rig.sent(), launcher(hub, rig)
    one.run(threading.Event(), once=True, poll_s=0.05)
    assert told(rig, first).to_judge
    second = rig.sent(account=BOB)
    one.run(threading.Event(), once=True, between=judge.run_all, poll_s=0.05)
    assert {rig.state(name) for name in (first, second)} == {State.PUBLISHED}
    assert [submission_of(job) for job in started(hub)] == [first, second]
    assert one.turn().idle


def test_a_job_is_told_what_to_score_and_nothing_of_the_answers(hub: HubServer, rig: Rig) -> None:
    name = rig.sent()
    more: dict[str, Any] = {
        "questions": "lab/questions",
        "flavor": "l4x1",
        "variables": {"ASSAY_LIVE": "http://a"},
    }
    launcher(hub, rig, **more).turn()
    (job,) = started(hub)
    assert " ".join(job.command) == (
        f"python -m evaluator worker --role score --submission {name} --once "
        "--store hub:lab/board --questions /questions"
    )
    assert job.spec["environment"] == {
        "ASSAY_STORE": "hub:lab/board",
        "ASSAY_LIVE": "http://a",
        WORKER: job.labels["assay-worker"],
    }
    assert job.spec["secrets"] == {"HF_TOKEN": SECRET}
    (volume,) = job.spec["volumes"]
    assert (volume["source"], volume["readOnly"]) == ("lab/questions", True)
    spec = (job.spec["dockerImage"], job.spec["flavor"], job.spec["timeoutSeconds"])
    assert spec == ("lab/assay:1", "l4x1", 3600)


def test_no_more_jobs_run_than_allowed(hub: HubServer, rig: Rig) -> None:
    four(rig)
    one = launcher(hub, rig, at_most=2)
    assert [one.turn().started for _ in range(3)] == [2, 0, 0]
    started(hub)[0].end("COMPLETED")
    one.turn()
    assert len(started(hub)) == 3


# Answers that are lost ------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{"drop": True}, {"status": 504}, {"status": 500}])
def test_a_start_whose_answer_was_lost_is_found_again(
    hub: HubServer, rig: Rig, how: dict[str, object]
) -> None:
    rig.send()
    hub.spoil(JOBS, method="POST", done=True, **how)
    one = launcher(hub, rig)
    assert one.turn() == LaunchRound(started=1)
    assert one.turn() == LaunchRound(live=1)
    assert launcher(hub, rig).turn() == LaunchRound(live=1), "nor does a launcher that follows it"
    assert len(started(hub)) == 1


@pytest.mark.parametrize("listed", [True, False])
def test_a_start_that_may_still_land_is_waited_for(hub: HubServer, rig: Rig, listed: bool) -> None:
    """Also where jobs cannot be listed when it was lost."""
    rig.send()
    one = launcher(hub, rig)
    if not listed:
        hub.spoil(f"{JOBS}*worker*", method="GET", status=409)  # the client repeats no 409
    hub.spoil(JOBS, method="POST", drop=True)
    assert one.turn() == LaunchRound(unsure=1)
    rig.clock.move(seconds=60)
    assert one.turn() == LaunchRound(unsure=1)
    assert started(hub) == []
    rig.clock.move(seconds=61)
    assert one.turn() == LaunchRound(started=1)


# Several launchers ----------------------------------------------------------------------------


def test_of_two_launchers_jobs_for_one_submission_one_stays(hub: HubServer, rig: Rig) -> None:
    name = rig.sent()
    one = launcher(hub, rig)
    one.turn()
    rig.clock.move(seconds=1)
    first = started(hub)[0]
    twin = dict(first.spec["labels"]) | {"assay-worker": "job-twin"}
    hub.jobs.start("lab", {**first.spec, "labels": twin})
    wait_for(lambda: all(job.stage == "RUNNING" for job in started(hub)))
    assert one.turn() == LaunchRound(live=1, cancelled=1)
    assert [job.stage for job in started(hub)] == ["RUNNING", "CANCELED"]
    assert told(rig, name).attempts == 0


BARRIER = threading.Barrier(3)


class Together(HubJobs):
    """Jobs that are asked for only when several want to start one, after all of them looked."""

    def start(self, request: JobRequest) -> SeenJob:
        BARRIER.wait(60)
        return super().start(request)


def test_of_launchers_that_start_at_the_same_moment_one_job_stays(hub: HubServer, rig: Rig) -> None:
    name = rig.sent()
    several = [launcher(hub, rig, Together) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        turns = list(pool.map(JobLauncher.turn, several))
    first, *others = sorted(started(hub), key=lambda job: (job.created, job.job_id))
    assert first.stage != "CANCELED"
    assert [job.stage for job in others] == ["CANCELED"] * 2
    assert sum(turn.started for turn in turns) == 1
    assert launcher(hub, rig).turn().live == 1
    assert (told(rig, name).state, told(rig, name).attempts) == (State.QUEUED, 0)


# Jobs that fail -------------------------------------------------------------------------------


def test_a_job_that_fails_is_an_attempt_with_a_reason_and_is_repeated_so_often(
    hub: HubServer, rig: Rig
) -> None:
    hub.jobs.hook = failing
    name, one = rig.sent(), launcher(hub, rig)
    for number in (1, 2, 3):
        assert once(one, hub) == LaunchRound(ended=1)
        status = told(rig, name)
        assert (status.state, status.fault) == (
            (State.QUEUED, "world") if number < 3 else (State.FAILED, "platform")
        )
        assert status.attempts == number
        assert "failed (exit code 1). It said last: loading the model with *** | CUDA out of memory" in status.reason  # fmt: skip
        assert one.turn().idle, "it rests"
        rig.clock.move(minutes=number)
    rig.clock.move(minutes=60)
    assert one.turn().idle
    assert len(started(hub)) == 3


@pytest.mark.parametrize(
    ("hook", "toy", "logs", "reason"),
    [
        pytest.param(unable, Toy(), True, "No box here.", id="takes nothing"),
        pytest.param(failing, Secret(), True, "(exit code 1).", id="hidden answers"),
        pytest.param(failing, Toy(), False, "(exit code 1).", id="no log"),
    ],
)
def test_a_job_that_hands_nothing_over_is_an_attempt_of_which_no_more_is_told_than_may_be(
    hub: HubServer, rig: Rig, hook: Callable[[Job], None], toy: Toy, *, logs: bool, reason: str
) -> None:
    hub.jobs.hook, rig.toy = hook, toy
    if not logs:
        hub.spoil("/logs", status=500, times=9)
    name = rig.sent()
    once(launcher(hub, rig), hub)
    assert (told(rig, name).state, told(rig, name).attempts) == (State.QUEUED, 1)
    assert told(rig, name).reason.endswith(reason)
    assert bool(hub.asked("/logs")) is toy.card.answers_public


def test_a_job_killed_at_work_gives_its_submission_back(hub: HubServer, rig: Rig) -> None:
    name, one = rig.sent(), launcher(hub, rig)
    one.turn()
    (job,) = started(hub)
    hold(rig, name, job.environment[WORKER])
    assert one.turn() == LaunchRound(live=1)
    job.end("ERROR", "node lost")
    rig.clock.move(minutes=3)
    assert one.turn() == LaunchRound(ended=1)
    assert (told(rig, name).state, told(rig, name).attempts) == (State.QUEUED, 1)
    assert "(node lost)" in told(rig, name).reason
    hub.jobs.hook = scoring(rig)
    rig.clock.move(minutes=1)
    one.run(threading.Event(), once=True, poll_s=0.05)
    assert told(rig, name).to_judge


def test_a_job_that_is_stopped_again_and_again_is_not_repeated_for_ever(
    hub: HubServer, rig: Rig
) -> None:
    """At the end of its time a worker hands back in good order, which alone is no attempt."""
    name, one = rig.sent(), launcher(hub, rig)
    for _ in range(3):
        one.turn()
        job = started(hub)[-1]
        worker = job.environment[WORKER]
        hold(rig, name, worker)
        back = Event(at=rig.store.clock(), state=State.QUEUED, by=worker, reason="stopped")
        rig.ledger.append(name, [back])
        job.end("ERROR", "Job timeout")
        one.turn()
        rig.clock.move(minutes=3)
    assert told(rig, name).state is State.FAILED
    assert len(started(hub)) == len(attempts_of(rig.ledger.events(name))) == 3


def test_jobs_that_failed_are_recorded_in_one_commit_but_for_what_moved_meanwhile(
    hub: HubServer, rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    (moved, *failed), one = four(rig), launcher(hub, rig)
    assert one.turn().started == 4
    for job in started(hub):
        job.end("ERROR", "node lost")
    before, read_log = rig.head, one.jobs.lines

    def meanwhile(_: HubJobs, job: SeenJob) -> tuple[str, ...]:
        if job.submission_id == moved:
            rig.acts.withdraw(moved, ADA)
        return read_log(job)

    monkeypatch.setattr(type(one.jobs), "lines", meanwhile)
    assert one.turn().ended == 3
    assert rig.head == before + 2, "it was withdrawn, and the others recorded"
    assert told(rig, moved).state is State.WITHDRAWN
    for name in failed:
        assert (told(rig, name).state, told(rig, name).attempts) == (State.QUEUED, 1)
        assert "(node lost)" in told(rig, name).reason
    assert one.turn().ended == 0
    assert rig.head == before + 2


# What is taken back, and what the Hub refuses -------------------------------------------------


@pytest.mark.parametrize("how", ["it waits", "at work", "lost answer"])
def test_withdrawing_cancels_the_job(hub: HubServer, rig: Rig, how: str) -> None:
    name, one = rig.sent(), launcher(hub, rig)
    one.turn()
    (job,) = started(hub)
    if how == "at work":
        hold(rig, name, job.environment[WORKER])
    rig.acts.withdraw(name, ADA)
    if how == "lost answer":
        hub.spoil("/cancel", drop=True)
        one.run(stop_after(2), poll_s=0.01)
    else:
        assert one.turn() == LaunchRound(cancelled=1)
    assert job.stage == "CANCELED"
    assert one.turn().idle
    assert told(rig, name).state is State.WITHDRAWN


def test_what_another_worker_took_costs_no_job(hub: HubServer, rig: Rig) -> None:
    name, one = rig.sent(), launcher(hub, rig)
    one.turn()
    hold(rig, name, "gpu-machine")
    assert one.turn() == LaunchRound(cancelled=1)
    assert told(rig, name).held_by("gpu-machine")


@pytest.mark.parametrize("status", [402, 403])
def test_what_the_hub_refuses_is_said_and_counts_as_no_attempt(
    hub: HubServer, rig: Rig, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    name, one = rig.sent(), launcher(hub, rig)
    hub.spoil(JOBS, method="POST", status=status, times=2)
    with pytest.raises(PlatformError, match=str(status)) as error:
        one.run(threading.Event(), once=True)
    assert error.value.code == "jobs_refused"
    with caplog.at_level(logging.ERROR):
        one.run(stop_after(2), poll_s=0.01)
    assert str(status) in caplog.text
    assert (told(rig, name).attempts, len(started(hub))) == (0, 1)


def test_a_hub_or_a_judge_that_fails_for_now_ends_no_launcher(hub: HubServer, rig: Rig) -> None:
    rig.send()
    tried: list[None] = []

    def judge() -> None:
        tried.append(None)
        raise TransientError("store_unreachable", "The store does not answer.")

    hub.spoil(JOBS, method="GET", drop=True)
    launcher(hub, rig).run(stop_after(4), poll_s=0.01, between=judge)
    assert len(tried) >= 2
    assert len(started(hub)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_with_a_fifth_of_all_requests_failing_every_run_is_handed_over_once(
    hub: HubServer, rig: Rig, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    hub.jobs.hook = scoring(rig)
    sent = four(rig)
    hub.faults.weather(Weather(0.2, seed=seed, target=JOBS))
    one = launcher(hub, rig, at_most=2)
    for _ in range(60):
        one.run(stop_after(1), poll_s=0.0)
        live = [submission_of(job) for job in started(hub) if not job.ending.is_set()]
        assert len(live) <= 3, "at most one more than allowed, whose start was not answered"
        wait_for(lambda: all_over(hub))
        rig.clock.move(seconds=30)
    for name in sent:
        handed = [event.state for event in rig.ledger.events(name) if event.to_judge]
        assert handed == [State.SCORED]
    assert len(started(hub)) == len(sent), "none was started twice"
