"""Who may do what on the test Hub, and how often: tokens, roles, gates and limits."""

from __future__ import annotations

import pytest
from huggingface_hub import HfApi
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError
from huggingface_hub.utils._http import parse_ratelimit_headers

from tests.hub.accounts import Account
from tests.hub.client import NAME, api_of, commit, content
from tests.hub.server import HubServer


def refused(status: int) -> pytest.RaisesExc[HfHubHTTPError]:
    return pytest.raises(HfHubHTTPError, check=lambda error: error.response.status_code == status)


def client(hub: HubServer, account: Account) -> HfApi:
    return api_of(hub, hub.enroll(f"hf_{account.name}", account))


def test_who_one_is(hub: HubServer) -> None:
    ada = client(hub, Account("ada", role="read", orgs={"lab": "write"}))
    told = ada.whoami()
    assert (told["name"], told["auth"]["accessToken"]["role"]) == ("ada", "read")
    assert [(each["name"], each["roleInOrg"]) for each in told["orgs"]] == [("lab", "write")]
    with pytest.raises(HfHubHTTPError, match="Invalid user token"):
        api_of(hub, "hf_nobody").whoami()


def test_a_private_repository_is_unknown_to_strangers(hub: HubServer, api: HfApi) -> None:
    commit(api, {"a.json": b"1"})
    stranger = client(hub, Account("eve"))
    with pytest.raises(RepositoryNotFoundError):
        stranger.dataset_info(NAME)
    with pytest.raises(RepositoryNotFoundError):
        content(stranger, "a.json")
    with pytest.raises(RepositoryNotFoundError):
        api_of(hub, token=False).dataset_info(NAME)
    with refused(401):
        api_of(hub, "hf_nobody").dataset_info(NAME)
    member = client(hub, Account("ada", role="read", orgs={"lab": "read"}))
    assert content(member, "a.json") == b"1"


@pytest.mark.parametrize(
    "account",
    [
        Account("ada", role="read", orgs={"lab": "admin"}),
        Account("bob", role="write", orgs={"lab": "read"}),
        Account("dan", only={NAME: "read"}),
    ],
    ids=["a token for reading", "a reader of the organisation", "a fine-grained token"],
)
def test_who_may_read_only_may_not_write(hub: HubServer, api: HfApi, account: Account) -> None:
    reader = client(hub, account)
    assert reader.dataset_info(NAME).sha
    with refused(403):
        commit(reader, {"a.json": b"1"})
    with refused(403):
        reader.super_squash_history(NAME, repo_type="dataset")
    with refused(403):
        reader.create_repo("lab/more", repo_type="dataset")
    assert hub.tally.commits(NAME) == 0


def test_a_fine_grained_token_writes_where_it_says(hub: HubServer, api: HfApi) -> None:
    api.create_repo("lab/other", repo_type="dataset", private=True)
    writer = client(hub, Account("dan", only={NAME: "write"}))
    commit(writer, {"a.json": b"1"})
    with pytest.raises(RepositoryNotFoundError):
        commit(writer, {"a.json": b"1"}, repo="lab/other")


def test_a_gated_repository_is_known_but_closed(hub: HubServer) -> None:
    repository = hub.add("lab/gated", {"a.json": b"1"}, gated=True)
    eve = client(hub, Account("eve"))
    with pytest.raises(GatedRepoError):
        content(eve, "a.json", repo="lab/gated")
    repository.granted.add("eve")
    assert content(eve, "a.json", repo="lab/gated") == b"1"


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


def test_requests_are_limited_and_counted_by_kind(hub: HubServer, api: HfApi) -> None:
    hub.tally.reset()
    hub.request_limit.quota = 2
    api.dataset_info(NAME)
    api.dataset_info(NAME)
    with refused(429):
        api.dataset_info(NAME)
    assert hub.tally.requests("GET", NAME, "info") == 2
