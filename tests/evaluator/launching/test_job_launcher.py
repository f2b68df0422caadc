"""One job of the Hub for each run: the real client starts, follows and cancels them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError, TransientError
from evaluator.launching.hub_jobs import HubJobs
from evaluator.launching.launcher import JobLauncher, Turn
from evaluator.launching.settings import WORKER, JobSettings
from evaluator.worker.roles import WorkerRole
from leaderboard.folding import attempts_of
from leaderboard.governance.acts import Acts
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Event, Status
from leaderboard.states import State
from tests.evaluator.rig import ADA, BOB, MODULE, Clock, Rig
from tests.hub.accounts import Account
from tests.hub.client import api_of
from tests.hub.faults import Weather
from tests.hub.jobs import Job
from tests.hub.server import HubServer, running_hub

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
def hub() -> Iterator[HubServer]:
    with running_hub() as server:
        server.jobs.hook = Job.run
        yield server


@pytest.fixture
def rig(hub: HubServer, tmp_path: Path) -> Rig:
    return Rig(tmp_path, clock=HubTime(hub))


def settings(**more: object) -> JobSettings:
    given: dict[str, object] = {
        "store": "hub:lab/board",
        "image": "lab/assay:1",
        "namespace": "lab",
        "timeout_s": 3600,
        "secrets": {"HF_TOKEN": SECRET},
        **more,
    }
    return JobSettings(**given)  # type: ignore[arg-type]


def launcher(hub: HubServer, rig: Rig, **more: object) -> JobLauncher:
    operator = hub.enroll("hf_operator", Account("op", orgs={"lab": "write"}))
    jobs = HubJobs.on_the_hub(settings(**more), api_of(hub, operator))
    return JobLauncher(rig.store, jobs, {"toy": rig.toy})


def started(hub: HubServer) -> list[Job]:
    return list(hub.jobs.all.values())


def submission_of(job: Job) -> str:
    return job.command[job.command.index("--submission") + 1]


def scoring(rig: Rig) -> Callable[[Job], None]:
    """What happens in a job that goes well: a worker of the scorer role hands scores over."""

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


def told(rig: Rig, sent: Status) -> Status:
    return Ledger(rig.store).whole_status(sent.submission.submission_id)


def wait_for(done: Callable[[], bool]) -> None:
    """Jobs run in threads of the server."""
    pause = threading.Event()
    for _ in range(1000):
        if done():
            return
        pause.wait(0.01)
    raise AssertionError("it did not happen within ten seconds")


def all_over(hub: HubServer) -> bool:
    return all(job.ending.is_set() for job in started(hub))


# A run that goes well ---------------------------------------------------------------------------


def test_each_run_is_one_job_and_is_judged_here(hub: HubServer, rig: Rig) -> None:
    hub.jobs.hook = scoring(rig)
    sent = [rig.send(), rig.send(account=BOB)]
    judge = rig.worker("judge", role=WorkerRole.JUDGE)
    one = launcher(hub, rig)
    one.run(threading.Event(), once=True, between=judge.run_all, poll_s=0.05)
    assert [told(rig, each).state for each in sent] == [State.PUBLISHED, State.PUBLISHED]
    assert sorted(map(submission_of, started(hub))) == sorted(
        each.submission.submission_id for each in sent
    )
    assert one.turn().idle


def test_without_a_judge_scores_wait_for_one(hub: HubServer, rig: Rig) -> None:
    hub.jobs.hook = scoring(rig)
    sent = rig.send()
    launcher(hub, rig).run(threading.Event(), once=True, poll_s=0.05)
    assert told(rig, sent).to_judge
    assert len(started(hub)) == 1


def test_a_job_is_told_what_to_score_and_nothing_of_the_answers(hub: HubServer, rig: Rig) -> None:
    sent = rig.send()
    more = {"questions": "lab/questions", "flavor": "l4x1", "variables": {"ASSAY_LIVE": "http://a"}}
    launcher(hub, rig, **more).turn()
    (job,) = started(hub)
    name = sent.submission.submission_id
    assert " ".join(job.command) == (
        f"python -m evaluator worker --role score --submission {name} --once "
        "--store hub:lab/board --questions /questions"
    )
    variables = job.spec["environment"]
    assert variables == {
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
    for name in ("m1", "m2", "m3"):
        rig.send({**MODULE, "assay.toml": f'name = "{name}"'.encode()})
    one = launcher(hub, rig, at_most=2)
    assert [one.turn().started for _ in range(3)] == [2, 0, 0]
    started(hub)[0].end("COMPLETED")
    one.turn()
    assert len(started(hub)) == 3


# Answers that are lost --------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{"drop": True}, {"status": 504}, {"status": 500}])
def test_a_start_whose_answer_was_lost_is_found_again(
    hub: HubServer, rig: Rig, how: dict[str, object]
) -> None:
    rig.send()
    hub.spoil(JOBS, method="POST", done=True, **how)
    one = launcher(hub, rig)
    assert one.turn() == Turn(started=1)
    assert one.turn() == Turn(live=1)
    assert len(started(hub)) == 1


def test_a_start_that_may_still_land_is_waited_for(hub: HubServer, rig: Rig) -> None:
    rig.send()
    hub.spoil(JOBS, method="POST", drop=True)
    one = launcher(hub, rig)
    assert one.turn() == Turn(unsure=1)
    rig.clock.move(seconds=60)
    assert one.turn() == Turn(unsure=1)
    assert started(hub) == []
    rig.clock.move(seconds=61)
    assert one.turn() == Turn(started=1)


def test_a_start_that_was_lost_while_jobs_cannot_be_listed_is_waited_for(
    hub: HubServer, rig: Rig
) -> None:
    rig.send()
    one = launcher(hub, rig)
    hub.spoil(f"{JOBS}*worker*", method="GET", status=409)  # the client repeats no 409
    hub.spoil(JOBS, method="POST", drop=True)
    assert one.turn() == Turn(unsure=1)
    assert started(hub) == []


def test_a_launcher_that_was_killed_finds_its_jobs(hub: HubServer, rig: Rig) -> None:
    rig.send()
    launcher(hub, rig).turn()
    assert launcher(hub, rig).turn() == Turn(live=1)
    assert len(started(hub)) == 1


def test_of_two_launchers_jobs_for_one_submission_one_stays(hub: HubServer, rig: Rig) -> None:
    sent = rig.send()
    one = launcher(hub, rig)
    one.turn()
    rig.clock.move(seconds=1)
    first = started(hub)[0]
    twin = dict(first.spec["labels"]) | {"assay-worker": "job-twin"}
    hub.jobs.start("lab", {**first.spec, "labels": twin})
    wait_for(lambda: all(job.stage == "RUNNING" for job in started(hub)))
    assert one.turn() == Turn(live=1, cancelled=1)
    assert [job.stage for job in started(hub)] == ["RUNNING", "CANCELED"]
    assert told(rig, sent).attempts == 0


# Jobs that fail ---------------------------------------------------------------------------------


def test_a_job_that_fails_is_an_attempt_with_a_reason_and_is_repeated_so_often(
    hub: HubServer, rig: Rig
) -> None:
    hub.jobs.hook = failing
    sent = rig.send()
    one = launcher(hub, rig)
    for number in (1, 2):
        assert one.turn().started == 1
        wait_for(lambda: all_over(hub))
        assert one.turn() == Turn(ended=1)
        status = told(rig, sent)
        assert (status.state, status.attempts, status.fault) == (State.QUEUED, number, "world")
        assert status.reason.startswith(f"Attempt {number} failed and will be repeated: Job ")
        assert status.reason.endswith(
            "failed (exit code 1). It said last: loading the model with *** | CUDA out of memory"
        )
        assert one.turn().idle, "it rests"
        rig.clock.move(minutes=number)
    one.turn()
    wait_for(lambda: all_over(hub))
    one.turn()
    status = told(rig, sent)
    assert (status.state, status.fault) == (State.FAILED, "platform")
    assert status.reason.startswith("Gave up after 3 attempts: Job ")
    rig.clock.move(minutes=60)
    assert one.turn().idle
    assert len(started(hub)) == 3


def test_a_job_killed_at_work_gives_its_submission_back(hub: HubServer, rig: Rig) -> None:
    sent = rig.send()
    one = launcher(hub, rig)
    one.turn()
    (job,) = started(hub)
    hold(rig, sent, job.environment[WORKER])
    assert one.turn() == Turn(live=1)
    job.end("ERROR", "node lost")
    rig.clock.move(minutes=3)
    assert one.turn() == Turn(ended=1)
    status = told(rig, sent)
    assert (status.state, status.attempts) == (State.QUEUED, 1)
    assert "(node lost)" in status.reason
    hub.jobs.hook = scoring(rig)
    rig.clock.move(minutes=1)
    one.run(threading.Event(), once=True, poll_s=0.05)
    assert told(rig, sent).to_judge


def test_a_job_that_is_stopped_again_and_again_is_not_repeated_for_ever(
    hub: HubServer, rig: Rig
) -> None:
    """At the end of its time a worker hands back in good order, which alone is no attempt."""
    sent = rig.send()
    one = launcher(hub, rig)
    for _ in range(3):
        one.turn()
        job = started(hub)[-1]
        hold(rig, sent, job.environment[WORKER])
        give_back(rig, sent, job.environment[WORKER])
        job.end("ERROR", "Job timeout")
        one.turn()
        rig.clock.move(minutes=3)
    assert told(rig, sent).state is State.FAILED
    assert len(started(hub)) == 3
    events = Ledger(rig.store).events(sent.submission.submission_id)
    assert len(attempts_of(events)) == 3


def test_a_job_that_ends_without_taking_its_submission_is_an_attempt(
    hub: HubServer, rig: Rig
) -> None:
    """Where the image cannot isolate code, its worker leaves the submission to others."""

    def unable(job: Job) -> None:
        job.run()
        job.say("Strangers' code is not run here.")
        job.end("COMPLETED")

    hub.jobs.hook = unable
    sent = rig.send()
    one = launcher(hub, rig)
    one.turn()
    wait_for(lambda: all_over(hub))
    one.turn()
    reason = told(rig, sent).reason
    assert "ended without handing over any scores" in reason
    assert reason.endswith("Strangers' code is not run here.")


def test_the_log_of_a_run_on_hidden_answers_is_not_told(hub: HubServer, rig: Rig) -> None:
    hub.jobs.hook = failing
    card = rig.toy.card.model_copy(update={"answers_public": False})
    rig.toy.card = card
    sent = rig.send()
    one = launcher(hub, rig)
    one.turn()
    wait_for(lambda: all_over(hub))
    one.turn()
    assert "CUDA" not in told(rig, sent).reason
    assert not hub.asked("/logs")


def test_a_job_that_fails_while_its_log_cannot_be_read_is_an_attempt_all_the_same(
    hub: HubServer, rig: Rig
) -> None:
    hub.jobs.hook = failing
    sent = rig.send()
    one = launcher(hub, rig)
    one.turn()
    wait_for(lambda: all_over(hub))
    hub.spoil("/logs", status=500, times=9)
    one.turn()
    assert told(rig, sent).reason.endswith("failed (exit code 1).")


# What is taken back, and what the Hub refuses ---------------------------------------------------


@pytest.mark.parametrize("at_work", [False, True])
def test_withdrawing_cancels_the_job(hub: HubServer, rig: Rig, at_work: bool) -> None:
    sent = rig.send()
    one = launcher(hub, rig)
    one.turn()
    (job,) = started(hub)
    if at_work:
        hold(rig, sent, job.environment[WORKER])
    withdraw(rig, sent)
    assert one.turn() == Turn(cancelled=1)
    assert job.stage == "CANCELED"
    assert one.turn().idle
    assert told(rig, sent).state is State.WITHDRAWN


def test_a_cancellation_whose_answer_was_lost_is_repeated(hub: HubServer, rig: Rig) -> None:
    sent = rig.send()
    one = launcher(hub, rig)
    one.turn()
    withdraw(rig, sent)
    hub.spoil("/cancel", drop=True)
    one.run(stop_after(2), poll_s=0.01)
    assert started(hub)[0].stage == "CANCELED"


def test_what_another_worker_took_costs_no_job(hub: HubServer, rig: Rig) -> None:
    sent = rig.send()
    one = launcher(hub, rig)
    one.turn()
    hold(rig, sent, "gpu-machine")
    assert one.turn() == Turn(cancelled=1)
    assert told(rig, sent).held_by("gpu-machine")


@pytest.mark.parametrize("status", [402, 403])
def test_what_the_hub_refuses_is_said_and_counts_as_no_attempt(
    hub: HubServer, rig: Rig, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    sent = rig.send()
    one = launcher(hub, rig)
    hub.spoil(JOBS, method="POST", status=status, times=2)
    with pytest.raises(PlatformError, match=f"refused to start a job .{status}") as error:
        one.run(threading.Event(), once=True)
    assert error.value.code == "jobs_refused"
    with caplog.at_level(logging.ERROR):
        one.run(stop_after(2), poll_s=0.01)
    assert "No jobs are started" in caplog.text
    assert (told(rig, sent).attempts, len(started(hub))) == (0, 1)


def test_a_hub_that_fails_is_asked_again(hub: HubServer, rig: Rig) -> None:
    rig.send()
    one = launcher(hub, rig)
    hub.spoil(JOBS, method="GET", drop=True)
    one.run(stop_after(2), poll_s=0.01)
    assert len(started(hub)) == 1


def test_a_judge_that_fails_for_now_ends_no_launcher(hub: HubServer, rig: Rig) -> None:
    rig.send()
    tried: list[None] = []

    def judge() -> None:
        tried.append(None)
        raise TransientError("store_unreachable", "The store does not answer.")

    launcher(hub, rig).run(stop_after(3), poll_s=0.01, between=judge)
    assert len(tried) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_with_a_fifth_of_all_requests_failing_every_run_is_handed_over_once(
    hub: HubServer, rig: Rig, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    hub.jobs.hook = scoring(rig)
    sent = [
        rig.send({**MODULE, "assay.toml": f'name = "{name}"'.encode()}, account=account)
        for account, name in ((ADA, "a1"), (ADA, "a2"), (BOB, "b1"), (BOB, "b2"))
    ]
    hub.faults.weather(Weather(0.2, seed=seed, target=JOBS))
    one = launcher(hub, rig, at_most=2)
    for _ in range(60):
        one.run(stop_after(1), poll_s=0.0)
        live = [submission_of(job) for job in started(hub) if not job.ending.is_set()]
        assert len(live) <= 3, "at most one more than allowed, whose start was not answered"
        wait_for(lambda: all_over(hub))
        rig.clock.move(seconds=30)
    for each in sent:
        events = Ledger(rig.store).events(each.submission.submission_id)
        assert [event.state for event in events if event.to_judge] == [State.SCORED]
    assert len(started(hub)) == len(sent), "none was started twice"


def hold(rig: Rig, sent: Status, worker: str) -> None:
    """A worker claims a submission."""
    now = rig.store.clock()
    claim = Event(at=now, state=State.CLAIMED, by=worker, lease_until=now)
    scoring_now = Event(at=now, state=State.SCORING, by=worker)
    Ledger(rig.store).append(sent.submission.submission_id, [claim, scoring_now])


def give_back(rig: Rig, sent: Status, worker: str) -> None:
    """A worker that is stopped hands back in good order."""
    event = Event(at=rig.store.clock(), state=State.QUEUED, by=worker, reason="stopped")
    Ledger(rig.store).append(sent.submission.submission_id, [event])


def withdraw(rig: Rig, sent: Status) -> None:
    Acts(rig.store, {"toy": rig.toy.card}, rig.clock).withdraw(sent.submission.submission_id, ADA)


class stop_after(threading.Event):  # noqa: N801 (read as a word)
    """Set once it was asked so often whether it is."""

    def __init__(self, turns: int) -> None:
        super().__init__()
        self._left = turns

    def is_set(self) -> bool:
        self._left -= 1
        return self._left < 0
