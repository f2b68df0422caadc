"""What goes wrong on demand, as the real client sees it."""

from __future__ import annotations

import pytest
from huggingface_hub import HfApi, get_session
from huggingface_hub.errors import HfHubHTTPError

from benchmarks.sources.client import httpx
from tests.hub.client import NAME, commit, content
from tests.hub.faults import Weather
from tests.hub.server import HubServer

COMMIT = f"/api/datasets/{NAME}/commit/*"


def titles(api: HfApi) -> list[str]:
    return [each.title for each in api.list_repo_commits(NAME, repo_type="dataset")]


@pytest.mark.parametrize("status", [409, 412, 429, 500, 503])
@pytest.mark.parametrize("done", [False, True])
def test_a_status_before_or_after_the_commit_was_made(
    hub: HubServer, api: HfApi, status: int, done: bool
) -> None:
    fault = hub.spoil(COMMIT, method="POST", status=status, done=done)
    with pytest.raises(HfHubHTTPError) as error:
        commit(api, {"a": b"1"}, message="Mine")
    assert error.value.response.status_code == status
    assert titles(api) == (["Mine", "initial commit"] if done else ["initial commit"])
    assert (fault.times, len(fault.seen)) == (0, 1)


@pytest.mark.parametrize("done", [False, True])
def test_a_lost_answer_says_nothing_of_whether_the_commit_was_made(
    hub: HubServer, api: HfApi, done: bool
) -> None:
    hub.spoil(COMMIT, drop=True, done=done)
    with pytest.raises(httpx.TransportError):
        commit(api, {"a": b"1"}, message="Mine")
    assert ("Mine" in titles(api)) is done
    commit(api, {"a": b"2"}, message="Next")
    assert titles(api)[0] == "Next"


def test_a_request_cut_on_its_way_up_is_not_carried_out(hub: HubServer, api: HfApi) -> None:
    hub.spoil(COMMIT, cut_upload_after=100)
    with pytest.raises(httpx.TransportError):
        commit(api, {"a": b"1" * 5_000_000}, message="Mine")
    assert titles(api) == ["initial commit"]


def test_an_upload_cut_midway_is_sent_again_by_the_client(
    hub: HubServer, api: HfApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    large = b"x" * 300_000
    hub.spoil("/upload/", method="PUT", cut_upload_after=1000)
    commit(api, {"a.parquet": large})
    assert [each.status for each in hub.asked("/upload/", "PUT")] == [0, 200]
    assert content(api, "a.parquet") == large


def test_a_slow_answer_comes_after_the_commit_was_made(hub: HubServer, api: HfApi) -> None:
    commit(api, {"a": b"1"})
    hub.spoil("/resolve/", reply_after_s=30.0)
    address = f"{hub.endpoint}/datasets/{NAME}/resolve/main/a"
    headers = {"authorization": f"Bearer {hub.token}"}
    with pytest.raises(httpx.TimeoutException):
        get_session().get(address, headers=headers, timeout=0.3)


def test_a_body_is_cut_on_its_way_down(hub: HubServer, api: HfApi) -> None:
    commit(api, {"a": b"1" * 5000})
    hub.spoil("/resolve/", cut_after=100)
    with pytest.raises(httpx.TransportError):
        content(api, "a")
    assert len(content(api, "a")) == 5000


def test_a_storm_of_conflicts_moves_the_branch_under_every_commit(
    hub: HubServer, api: HfApi
) -> None:
    hub.spoil(COMMIT, conflict=True, times=3)
    statuses = []
    for _ in range(4):
        parent = api.dataset_info(NAME, expand=["sha"]).sha
        try:
            commit(api, {"a": b"1"}, parent=parent, message="Mine")
            statuses.append(200)
        except HfHubHTTPError as error:
            statuses.append(error.response.status_code)
    assert statuses == [412, 412, 412, 200]
    assert titles(api) == ["Mine", "Edit", "Edit", "Edit", "initial commit"]
    assert hub.tally.commits(NAME) == 4


def test_a_share_of_all_requests_fails_half_of_them_after_the_deed(
    hub: HubServer, api: HfApi
) -> None:
    weather = hub.faults.weather(Weather(0.3, seed=7, target="/commit/"))
    assert weather is not None
    failed = made = 0
    for number in range(60):
        before = hub.tally.commits(NAME)
        try:
            commit(api, {"a": b"%d" % number})
        except (HfHubHTTPError, httpx.TransportError):
            failed += 1
            made += hub.tally.commits(NAME) - before
    hub.faults.clear()
    assert failed == weather.failed
    assert 8 <= failed <= 28
    assert 0 < made < failed
    commit(api, {"a": b"fair"})
