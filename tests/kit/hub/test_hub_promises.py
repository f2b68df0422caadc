"""What tests of stores and jobs take for granted of the test Hub.

Were it kinder than the Hub (two winners of one race, a limit that is not counted, a job that sees
more than it was given), they would pass for nothing.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from huggingface_hub import HfApi, JobStage
from huggingface_hub.errors import HfHubHTTPError, RevisionNotFoundError
from huggingface_hub.utils._http import parse_ratelimit_headers

from tests.kit.hub.accounts import Account
from tests.kit.hub.client import NAME, api_of, commit, content
from tests.kit.hub.jobs import AsProcess
from tests.kit.hub.server import HubServer


def refused(status: int) -> pytest.RaisesExc[HfHubHTTPError]:
    return pytest.raises(HfHubHTTPError, check=lambda error: error.response.status_code == status)


def head(api: HfApi) -> str:
    return str(api.dataset_info(NAME, expand=["sha"]).sha)


def status_of(error: HfHubHTTPError) -> int:
    return int(error.response.status_code)


def test_a_commit_on_an_older_parent_is_refused(api: HfApi) -> None:
    first = commit(api, {"a": b"1"}).oid
    commit(api, {"b": b"2"}, parent=first)
    with pytest.raises(HfHubHTTPError, match="A commit has happened since") as error:
        commit(api, {"c": b"3"}, parent=first)
    assert status_of(error.value) == 412
    assert "c" not in api.list_repo_files(NAME, repo_type="dataset")


def test_of_eight_writers_on_one_parent_one_wins(hub: HubServer, api: HfApi) -> None:
    parent = head(api)
    won: list[int] = []
    lost: list[int] = []

    def write(number: int) -> None:
        try:
            commit(api_of(hub), {f"{number}": b"x"}, parent=parent)
            won.append(number)
        except HfHubHTTPError as error:
            lost.append(status_of(error))

    writers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(won) == 1
    assert lost == [412] * 7


def test_older_commits_stay_readable_until_history_is_squashed(api: HfApi) -> None:
    old = commit(api, {"a": b"1", "gone": b"x"}).oid
    commit(api, {"a": b"2", "gone": None})
    assert content(api, "gone", old) == b"x"
    api.super_squash_history(NAME, repo_type="dataset", commit_message="Squash")
    assert [each.title for each in api.list_repo_commits(NAME, repo_type="dataset")] == ["Squash"]
    assert content(api, "a") == b"2"
    with pytest.raises(RevisionNotFoundError):
        content(api, "a", old)
    with pytest.raises(HfHubHTTPError) as error:
        commit(api, {"a": b"3"}, parent=old)
    assert status_of(error.value) == 412


def test_commits_beyond_the_hours_limit_are_refused_and_counted(hub: HubServer, api: HfApi) -> None:
    hub.clock.run(0)
    hub.commit_limit.quota = 3
    for number in range(3):
        commit(api, {"a": b"%d" % number})
        hub.clock.advance(600)
    with pytest.raises(HfHubHTTPError, match="rate limit") as error:
        commit(api, {"a": b"more"})
    headers = error.value.response.headers
    assert (error.value.response.status_code, headers["retry-after"]) == (429, "1800")
    limit = parse_ratelimit_headers(headers)
    assert limit is not None
    assert (limit.remaining, limit.limit, limit.window_seconds) == (0, 3, 3600)
    hub.clock.advance(1800)
    commit(api, {"a": b"more"})
    assert (hub.tally.commits(NAME), hub.tally.peak_commits()) == (4, 3)


def test_a_commit_that_is_refused_costs_nothing_of_the_limit(hub: HubServer, api: HfApi) -> None:
    hub.commit_limit.quota = 2
    first = commit(api, {"a": b"1"}).oid
    with refused(404):
        commit(api, {"none": None})
    with refused(412):
        commit(api, {"a": b"2"}, parent="0" * 40)
    commit(api, {"a": b"2"}, parent=first)
    with refused(429):
        commit(api, {"a": b"3"})


def test_requests_are_counted_by_kind(hub: HubServer, api: HfApi) -> None:
    hub.tally.reset()
    api.dataset_info(NAME)
    api.dataset_info(NAME)
    assert hub.tally.requests("GET", NAME, "info") == hub.tally.requests() == 2


def test_a_job_is_a_process_with_its_own_environment(hub: HubServer, tmp_path: Path) -> None:
    client = api_of(hub, hub.enroll("hf_ada", Account("ada")))
    hub.jobs.hook = AsProcess(tmp_path)
    code = "import os; print(os.environ['WHAT'], os.environ['HF_TOKEN']); print('second')"
    job = client.run_job(
        image="python:3.12",
        command=["python", "-c", code],
        env={"WHAT": "it"},
        secrets={"HF_TOKEN": "hf_s"},
    ).id
    done = client.wait_for_job(job, timeout=30, poll_interval=0.02)
    assert done.status.stage == JobStage.COMPLETED
    assert list(client.fetch_job_logs(job_id=job)) == ["it hf_s", "second"]
    assert list(client.fetch_job_logs(job_id=job, tail=1)) == ["second"]
    assert done.secrets == {"HF_TOKEN": ""}, "a secret is never told"
    assert done.environment == {"WHAT": "it"}
