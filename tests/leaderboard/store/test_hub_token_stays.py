"""The token goes to the Hub that was named, whatever that Hub's answers lead to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError
from benchmarks.sources.client import at_home
from tests.hub.client import api_of
from tests.hub.server import HubServer, running_hub
from tests.leaderboard.store.hub_rig import NAME, created

PRIVATE = f"{NAME}-submissions"


@pytest.fixture
def elsewhere() -> Iterator[HubServer]:
    """Another server, to which nothing is to go."""
    with running_hub() as server:
        yield server


@pytest.mark.parametrize("listing", ["tree", "history"])
def test_a_listing_that_goes_on_elsewhere_is_not_followed(
    hub: HubServer, elsewhere: HubServer, tmp_path: Path, listing: str
) -> None:
    repository = created(hub, tmp_path).private
    for n in range(2):
        repository.commit({f"a/{n}": b"1"}, parent=repository.head(), message="m")
    hub.page = hub.commits_page = 1
    hub.endpoint = elsewhere.endpoint  # what its answers name
    asked = {
        "tree": lambda: repository.list("a/"),
        "history": lambda: list(repository.client.history(PRIVATE)),
    }
    with pytest.raises(PlatformError, match="the token would have gone there") as refused:
        asked[listing]()
    assert refused.value.code == "led_astray"
    assert elsewhere.endpoint in str(refused.value)
    assert elsewhere.served == []


def test_the_client_s_own_listings_are_not_followed_elsewhere_either(
    hub: HubServer, elsewhere: HubServer, tmp_path: Path
) -> None:
    created(hub, tmp_path)
    for _ in range(3):
        hub.jobs.start("lab", {"labels": {"a": "b"}})
    hub.page = 1
    api, hub.endpoint = api_of(hub), elsewhere.endpoint
    with pytest.raises(PlatformError, match="leads on to"):
        list(api.list_jobs(labels={"a": "b"}, namespace="lab"))
    assert elsewhere.served == []


def test_an_upload_is_confirmed_nowhere_else(
    hub: HubServer, elsewhere: HubServer, tmp_path: Path
) -> None:
    repository = created(hub, tmp_path).private
    hub.endpoint = elsewhere.endpoint
    with pytest.raises(PlatformError, match="leads on to"):
        repository.commit({"a.zip": bytes(300_000)}, parent=repository.head(), message="m")
    assert elsewhere.served == []


@pytest.mark.parametrize("what", ["version", "content", "listing"])
def test_a_redirect_elsewhere_is_followed_without_the_token(
    hub: HubServer, elsewhere: HubServer, tmp_path: Path, what: str
) -> None:
    repository = created(hub, tmp_path).private
    repository.commit({"a.json": b"1"}, parent=repository.head(), message="m")
    sha = repository.fresh_head()
    elsewhere.add(PRIVATE, {"a.json": b"1"})
    target = {"version": "/last.json", "content": "/a.json", "listing": "/tree/"}[what]
    away = {"Location": f"{elsewhere.endpoint}/web{target}"}
    hub.spoil(target, status=307, headers=away, times=50)
    ask = {
        "version": repository.fresh_head,
        "content": lambda: repository.fetch_at("a.json", sha, tmp_path / "copy"),
        "listing": lambda: repository.list_at("", sha),
    }[what]
    with pytest.raises(Exception, match=r"."):
        ask()
    assert [each.token for each in elsewhere.served if each.token] == []
    assert elsewhere.served


def test_a_port_a_host_or_a_scheme_makes_another_origin() -> None:
    home = "https://hub.example/api/datasets/a/b?p=1"
    assert at_home("https://hub.example:443/next", home)
    for other in (
        "http://hub.example/next",
        "https://hub.example:8443/next",
        "https://hub.example.evil.example/next",
        "https://hub.example@evil.example/next",
        "//",
        "https://[",
        "file:///etc/passwd",
        "https://evil.example/\x1b[31m",
    ):
        with pytest.raises(PlatformError) as refused:
            at_home(other, home)
        assert refused.value.code == "led_astray"
        assert "\x1b" not in str(refused.value)
