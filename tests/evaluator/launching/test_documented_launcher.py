"""A run from the queue on the Hub through a job that is a real process, with its own token only.

Started by this project's launcher, and by the command of the document, typed as it stands there.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from benchmarks.registry import load_registry
from evaluator.launching.hub_jobs import HubJobs
from evaluator.launching.launcher import JobLauncher
from evaluator.launching.planning import JobSettings
from leaderboard.ledger.ledger import Ledger
from leaderboard.states import State
from leaderboard.store.hub import maintenance
from leaderboard.store.hub.hub_store import HubParts, hub_store
from leaderboard.store.interface import Store
from tests.conftest import REPOSITORY
from tests.kit.hub.accounts import Account
from tests.kit.hub.client import api_of
from tests.kit.hub.jobs import AsProcess, Job
from tests.kit.hub.server import HubServer
from tests.kit.processes import finished
from tests.kit.worker import ADA, LENGTHS, desk_of, module_folder

NAME = "lab/board"
JOB_TOKEN = "hf_for_jobs"
OPERATOR = "hf_for_operators"
LAUNCH = """
export ASSAY_JOB_TOKEN=hf_...
python -m evaluator worker --store hub:OWNER/NAME --launcher jobs --job-image IMAGE \
    --job-flavor l4x1 --job-hours 6 --jobs-at-once 4
"""
"""As docs/gpu-and-cluster.md has it."""

pytestmark = [pytest.mark.isolation, pytest.mark.slow]


@pytest.fixture
def hub(hub: HubServer, tmp_path: Path) -> HubServer:
    """Its jobs run on a machine of their own: folders, a home, this checkout, and no more."""
    home = tmp_path / "machine"
    home.mkdir()
    hub.enroll(OPERATOR, Account("op", orgs={"lab": "write"}))
    rights = {"requests": "write", "submissions": "write", "scores": "read", "results": "read"}
    only = {f"{NAME}-{part}": right for part, right in rights.items()}
    hub.enroll(JOB_TOKEN, Account("job", only=only))
    hub.jobs.hook = AsProcess(home, {"PYTHONPATH": str(REPOSITORY), "HOME": str(home)})
    return hub


@pytest.fixture
def store(hub: HubServer, tmp_path: Path) -> Store:
    made = HubParts(NAME, tmp_path / "making", endpoint=hub.endpoint, token=OPERATOR)
    list(maintenance.create(made))
    return hub_store(
        NAME, tmp_path / "cache", endpoint=hub.endpoint, token=OPERATOR, fresh_for_s=0.0
    )


@pytest.fixture
def sent(store: Store, tmp_path: Path) -> str:
    """The id of a module that waits."""
    module, desk = module_folder(tmp_path / "module", LENGTHS), desk_of(store, load_registry())
    return desk.submit_metric(module, account=ADA).status.submission.submission_id


@pytest.fixture
def launcher(hub: HubServer, store: Store) -> JobLauncher:
    settings = JobSettings(
        store=f"hub:{NAME}",
        image="lab/assay:1",
        namespace="lab",
        variables={"HF_ENDPOINT": hub.endpoint},
        secrets={"HF_TOKEN": JOB_TOKEN},
    )
    jobs = HubJobs.on_the_hub(settings, api_of(hub, OPERATOR))
    return JobLauncher(store, jobs, load_registry())


def test_a_job_that_dies_in_the_middle_is_followed_by_one_that_finishes(
    hub: HubServer, store: Store, sent: str, launcher: JobLauncher
) -> None:
    carry_out, pause, ledger = hub.jobs.hook, threading.Event(), Ledger(store)

    def lose_when_claimed(job: Job) -> None:
        deadline = time.monotonic() + 200
        while time.monotonic() < deadline and not job.ending.is_set():
            if ledger.whole_status(sent).state in {State.CLAIMED, State.SCORING}:
                break
            pause.wait(0.05)
        job.end("ERROR", "machine lost")

    def first_dies(job: Job) -> None:
        """The machine of the first job is lost as soon as its worker has claimed."""
        watcher = threading.Thread(target=lose_when_claimed, args=(job,))
        if len(hub.jobs.all) == 1:
            watcher.start()
        carry_out(job)
        if watcher.ident:
            watcher.join()

    hub.jobs.hook = first_dies
    for _ in range(1000):
        launcher.turn()
        if ledger.whole_status(sent).to_judge:
            break
        if all(job.ending.is_set() for job in hub.jobs.all.values()):
            hub.clock.advance(130)  # The Hub may list it late; then it rests.
        pause.wait(0.2)
    first, second = hub.jobs.all.values()
    assert second.ending.wait(60)
    assert (first.stage, second.stage) == ("ERROR", "COMPLETED")
    events = ledger.events(sent)
    (told,) = [event for event in events if event.fault == "world"]
    assert told.by == first.environment["ASSAY_WORKER"]
    assert "(machine lost)" in told.reason
    assert [event.by for event in events if event.to_judge] == [second.environment["ASSAY_WORKER"]]


def test_the_documented_command_rents_a_machine_and_judges_what_comes_back(
    hub: HubServer, store: Store, sent: str, tmp_path: Path
) -> None:
    command = LAUNCH.strip().splitlines()[1]
    words = command.replace("OWNER/NAME", NAME).replace("IMAGE", "lab/assay:1").split()[1:]
    known = {**hub.environment(OPERATOR), "ASSAY_JOB_TOKEN": JOB_TOKEN}
    done = finished(
        [sys.executable, *words, "--once"],
        cwd=tmp_path,
        env={**os.environ, **known, "PYTHONPATH": str(REPOSITORY)},
        within_s=280,
    )
    assert done.returncode == 0, done.stderr
    (job,) = hub.jobs.all.values()
    assert (job.spec["flavor"], job.spec["timeoutSeconds"]) == ("l4x1", 6 * 3600)
    assert job.labels["assay-submission"] == sent
    assert Ledger(store).status(sent).state is State.PUBLISHED, done.stderr
    posted = [each for each in hub.served if each.method == "POST" and each.status == 200]
    writes = {each.token for each in posted if "/commit/" in each.target}
    assert writes == {OPERATOR, JOB_TOKEN}
    assert JOB_TOKEN not in done.stdout + done.stderr + str(job.lines)
