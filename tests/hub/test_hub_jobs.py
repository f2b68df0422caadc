"""Jobs on the test Hub, started and followed by the real client."""

from __future__ import annotations

from pathlib import Path

import pytest
from huggingface_hub import HfApi, JobStage
from huggingface_hub.errors import HfHubHTTPError

from tests.hub.accounts import Account
from tests.hub.client import api_of
from tests.hub.jobs import AsProcess, Job
from tests.hub.server import HubServer


@pytest.fixture
def client(hub: HubServer) -> HfApi:
    return api_of(hub, hub.enroll("hf_ada", Account("ada")))


def start(client: HfApi, *command: str, **more: object) -> str:
    job = client.run_job(image="python:3.12", command=list(command), **more)  # type: ignore[arg-type]
    return job.id


def test_a_job_is_a_process_with_its_own_environment(
    hub: HubServer, client: HfApi, tmp_path: Path
) -> None:
    hub.jobs.hook = AsProcess(tmp_path)
    code = "import os; print(os.environ['WHAT'], os.environ['HF_TOKEN']); print('second')"
    job = start(client, "python", "-c", code, env={"WHAT": "it"}, secrets={"HF_TOKEN": "hf_s"})
    done = client.wait_for_job(job, timeout=30, poll_interval=0.02)
    assert done.status.stage == JobStage.COMPLETED
    assert list(client.fetch_job_logs(job_id=job)) == ["it hf_s", "second"]
    assert list(client.fetch_job_logs(job_id=job, tail=1)) == ["second"]
    assert done.secrets == {"HF_TOKEN": ""}, "a secret is never told"
    assert done.environment == {"WHAT": "it"}


def test_a_job_that_fails_says_so(hub: HubServer, client: HfApi, tmp_path: Path) -> None:
    hub.jobs.hook = AsProcess(tmp_path)
    job = start(client, "python", "-c", "print('why'); raise SystemExit(3)")
    done = client.wait_for_job(job, timeout=30, poll_interval=0.02)
    assert (done.status.stage, done.status.message) == ("ERROR", "exit code 3")


def test_a_job_runs_until_it_is_cancelled_or_out_of_time(
    hub: HubServer, client: HfApi, tmp_path: Path
) -> None:
    hub.jobs.hook = AsProcess(tmp_path)
    forever = ("python", "-c", "import time; time.sleep(600)")
    cancelled, late = start(client, *forever), start(client, *forever, timeout=1)
    client.wait_for_job(cancelled, stages=[JobStage.RUNNING], timeout=30, poll_interval=0.02)
    client.cancel_job(job_id=cancelled)
    assert client.inspect_job(job_id=cancelled).status.stage == "CANCELED"
    done = client.wait_for_job(late, timeout=30, poll_interval=0.02)
    assert (done.status.stage, done.status.message) == ("ERROR", "Job timeout")


def test_jobs_are_found_by_stage_and_labels(hub: HubServer, client: HfApi) -> None:
    hub.page = 2
    hub.jobs.hook = Job.run
    for number in range(5):
        start(client, "x", labels={"app": "assay", "nonce": f"n{number}"})
    start(client, "x")
    found = list(client.list_jobs(namespace="ada", labels={"app": "assay"}))
    assert [job.labels["nonce"] for job in found if job.labels] == ["n4", "n3", "n2", "n1", "n0"]
    (one,) = client.list_jobs(namespace="ada", labels={"app": "assay", "nonce": "n3"})
    client.cancel_job(job_id=one.id)
    ended = list(client.list_jobs(namespace="ada", status="CANCELED"))
    assert [job.id for job in ended] == [one.id]
    assert list(api_of(hub).list_jobs(namespace="keeper")) == []


def test_jobs_of_others_are_closed(hub: HubServer, client: HfApi) -> None:
    job = start(client, "x")
    eve = api_of(hub, hub.enroll("hf_eve", Account("eve")))
    with pytest.raises(HfHubHTTPError) as error:
        eve.inspect_job(job_id=job, namespace="ada")
    assert error.value.response.status_code == 403
