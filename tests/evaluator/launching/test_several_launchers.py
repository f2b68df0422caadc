"""Several launchers of one store, and few commits of each."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.launching.hub_jobs import HubJobs
from evaluator.launching.launcher import JobLauncher
from evaluator.launching.planning import SeenJob
from evaluator.launching.settings import JobRequest, JobSettings
from leaderboard.governance.acts import Acts
from leaderboard.ledger.ledger import Ledger
from leaderboard.states import State
from leaderboard.store.interface import Changes, Repository
from tests.evaluator.rig import ADA, BOB, MODULE, Rig
from tests.hub.accounts import Account
from tests.hub.client import api_of
from tests.hub.jobs import Job
from tests.hub.server import HubServer, running_hub


class Counting:
    """A repository that counts its commits."""

    def __init__(self, under: Repository) -> None:
        self._under = under
        self.messages: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._under, name)

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        version = self._under.commit(changes, parent=parent, message=message)
        self.messages.append(message)
        return version


class Together(HubJobs):
    """Jobs that are asked for only when several want to start one, after all of them looked."""

    def start(self, request: JobRequest) -> SeenJob:
        """See `HubJobs`."""
        BARRIER.wait(60)
        return super().start(request)


BARRIER = threading.Barrier(3)


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with running_hub() as server:
        server.jobs.hook = Job.run
        yield server


def launcher(hub: HubServer, rig: Rig, kind: type[HubJobs] = HubJobs) -> JobLauncher:
    operator = hub.enroll("hf_operator", Account("op", orgs={"lab": "write"}))
    settings = JobSettings(
        store="hub:lab/board",
        image="lab/assay:1",
        namespace="lab",
        timeout_s=3600,
        at_most=9,
        secrets={"HF_TOKEN": "hf_for_jobs_only"},
    )
    jobs = kind.on_the_hub(settings, api_of(hub, operator))
    return JobLauncher(rig.store, jobs, {"toy": rig.toy})


def test_of_launchers_that_start_at_the_same_moment_one_job_stays(
    hub: HubServer, tmp_path: Path
) -> None:
    rig = Rig(tmp_path)
    sent = rig.send()
    several = [launcher(hub, rig, Together) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        turns = list(pool.map(JobLauncher.turn, several))
    jobs = list(hub.jobs.all.values())
    assert len(jobs) == 3
    assert [job.stage for job in jobs].count("CANCELED") == 2
    kept = min(jobs, key=lambda job: (job.created, job.job_id))
    assert kept.stage != "CANCELED"
    assert sum(turn.started for turn in turns) == 1
    assert launcher(hub, rig).turn().live == 1
    status = Ledger(rig.store).whole_status(sent.submission.submission_id)
    assert (status.state, status.attempts) == (State.QUEUED, 0)


def test_jobs_that_failed_are_recorded_in_one_commit(hub: HubServer, tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    counting = Counting(rig.store.public)
    rig.store = replace(rig.store, public=counting)  # type: ignore[arg-type]
    sent = [
        rig.send({**MODULE, "assay.toml": f'name = "{name}"'.encode()}, account=account)
        for account, name in ((ADA, "a1"), (ADA, "a2"), (BOB, "b1"), (BOB, "b2"))
    ]
    one = launcher(hub, rig)
    assert one.turn().started == 4
    for job in hub.jobs.all.values():
        job.end("ERROR", "node lost")
    counting.messages.clear()
    assert one.turn().ended == 4
    (message,) = counting.messages
    for each in sent:
        assert each.submission.submission_id in message
        status = Ledger(rig.store).whole_status(each.submission.submission_id)
        assert (status.state, status.attempts) == (State.QUEUED, 1)
        assert "(node lost)" in status.reason
    counting.messages.clear()
    assert one.turn().ended == 0
    assert counting.messages == []


def test_what_was_moved_meanwhile_is_left_alone_and_the_rest_recorded(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path)
    moved, failed = (
        rig.send({**MODULE, "assay.toml": f'name = "{name}"'.encode()}) for name in ("a1", "a2")
    )
    one = launcher(hub, rig)
    one.turn()
    for job in hub.jobs.all.values():
        job.end("ERROR", "node lost")
    name = moved.submission.submission_id
    read_log = one.jobs.lines

    def meanwhile(job: SeenJob) -> tuple[str, ...]:
        if job.submission_id == name:
            Acts(rig.store, {"toy": rig.toy.card}, rig.clock).withdraw(name, ADA)
        return read_log(job)

    monkeypatch.setattr(type(one.jobs), "lines", lambda _, job: meanwhile(job))
    assert one.turn().ended == 1
    ledger = Ledger(rig.store)
    assert ledger.whole_status(name).state is State.WITHDRAWN
    assert ledger.whole_status(failed.submission.submission_id).attempts == 1
