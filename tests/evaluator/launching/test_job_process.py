"""A run from the queue on the Hub through a job that is a real process, with its own token only."""

from __future__ import annotations

import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.registry import load_registry
from evaluator.isolation.bubblewrap.backend import Bubblewrap
from evaluator.launching.hub_jobs import HubJobs
from evaluator.launching.launcher import JobLauncher
from evaluator.launching.settings import JobSettings
from evaluator.submission.receiving.desk import SubmissionDesk
from leaderboard.desk import Gate
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Status
from leaderboard.states import State
from leaderboard.store.hub import creating
from leaderboard.store.hub.hub_store import HubParts, hub_store
from leaderboard.store.interface import Store
from tests.evaluator.rig import ADA
from tests.hub.accounts import Account
from tests.hub.client import api_of
from tests.hub.jobs import AsProcess, Job
from tests.hub.server import HubServer, running_hub

REPOSITORY = Path(__file__).resolve().parents[3]
NAME = "lab/board"
JOB_TOKEN = "hf_for_jobs"
OPERATOR = "hf_for_operators"
SCORER = """
class Scorer:
    def score(self, images, prompts):
        return [float(len(prompt)) for prompt in prompts]
"""

pytestmark = [pytest.mark.isolation, pytest.mark.slow]


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with running_hub() as server:
        server.enroll(OPERATOR, Account("op", orgs={"lab": "write"}))
        rights = {"requests": "write", "submissions": "write", "scores": "read", "results": "read"}
        only = {f"{NAME}-{part}": right for part, right in rights.items()}
        server.enroll(JOB_TOKEN, Account("job", only=only))
        yield server


@pytest.fixture
def store(hub: HubServer, tmp_path: Path) -> Store:
    made = HubParts(NAME, tmp_path / "making", endpoint=hub.endpoint, token=OPERATOR)
    list(creating.create(made))
    return hub_store(
        NAME, tmp_path / "cache", endpoint=hub.endpoint, token=OPERATOR, fresh_for_s=0.0
    )


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


def image(folder: Path) -> AsProcess:
    """A machine of its own: its folders, its home, this checkout, and no more."""
    home = folder / "machine"
    home.mkdir()
    return AsProcess(home, {"PYTHONPATH": str(REPOSITORY), "HOME": str(home)})


def send(store: Store, folder: Path) -> Status:
    module = folder / "module.zip"
    with zipfile.ZipFile(module, "w") as archive:
        archive.writestr("assay.toml", 'name = "lengths"\nbenchmarks = ["demo_ts2"]\n')
        archive.writestr("scorer.py", SCORER)
    desk = SubmissionDesk(store, load_registry(), None, lambda: Gate(True), store.clock)
    return desk.submit_metric(module, account=ADA).status


def test_a_job_scores_in_a_box_and_hands_over_with_its_own_token(
    bubblewrap: Bubblewrap, hub: HubServer, store: Store, tmp_path: Path
) -> None:
    hub.jobs.hook = image(tmp_path)
    sent = send(store, tmp_path)
    launcher(hub, store).run(threading.Event(), once=True, poll_s=0.2)
    (job,) = hub.jobs.all.values()
    said = "\n".join(line for _, line in job.lines)
    assert job.stage == "COMPLETED", said
    status = Ledger(store).whole_status(sent.submission.submission_id)
    assert status.to_judge, said
    assert status.by == job.environment["ASSAY_WORKER"]
    writes = {
        each.token
        for each in hub.served
        if each.method == "POST" and "/commit/" in each.target and each.status == 200
    }
    assert writes == {OPERATOR, JOB_TOKEN}
    assert JOB_TOKEN not in said


def test_a_job_that_dies_in_the_middle_is_followed_by_one_that_finishes(
    bubblewrap: Bubblewrap, hub: HubServer, store: Store, tmp_path: Path
) -> None:
    carry_out = image(tmp_path)

    def first_dies(job: Job) -> None:
        """The machine of the first job is lost as soon as its worker has claimed."""
        if len(hub.jobs.all) > 1:
            carry_out(job)
            return
        watcher = threading.Thread(target=lose_when_claimed, args=(store, sent, job))
        watcher.start()
        carry_out(job)
        watcher.join()

    sent = send(store, tmp_path)
    hub.jobs.hook = first_dies
    one = launcher(hub, store)
    pause = threading.Event()
    for _ in range(1000):
        one.turn()
        status = Ledger(store).whole_status(sent.submission.submission_id)
        if status.to_judge:
            break
        if all(job.ending.is_set() for job in hub.jobs.all.values()):
            hub.clock.advance(130)  # The Hub may list it late; then it rests.
        pause.wait(0.2)
    first, second = hub.jobs.all.values()
    assert second.ending.wait(60)
    assert (first.stage, second.stage) == ("ERROR", "COMPLETED")
    events = Ledger(store).events(sent.submission.submission_id)
    (told,) = [event for event in events if event.fault == "world"]
    assert told.by == first.environment["ASSAY_WORKER"]
    assert "(machine lost)" in told.reason
    assert [event.by for event in events if event.to_judge] == [second.environment["ASSAY_WORKER"]]


def lose_when_claimed(store: Store, sent: Status, job: Job) -> None:
    ledger, pause = Ledger(store), threading.Event()
    for _ in range(600):
        state = ledger.whole_status(sent.submission.submission_id).state
        if state in {State.CLAIMED, State.SCORING}:
            break
        pause.wait(0.05)
    job.end("ERROR", "machine lost")
