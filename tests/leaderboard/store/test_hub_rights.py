"""Who may do what on a Hub, and that the token goes to that Hub alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError, TransientError
from benchmarks.sources.client import at_home
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.maintenance import create
from leaderboard.store.hub.repository import HubRepository
from leaderboard.store.interface import NotFoundError
from tests.kit.hub.accounts import Account
from tests.kit.hub.client import api_of
from tests.kit.hub.server import HubServer, running_hub
from tests.kit.hub_store import NAME, PRIVATE, parts_of
from tests.kit.refusals import refused
from tests.kit.store import contents, put

pytestmark = pytest.mark.usefixtures("no_rests")


def test_a_store_that_is_not_there_is_told_with_what_to_do(hub: HubServer, tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match=f"store create hub:{NAME}`") as caught:
        parts_of(hub, tmp_path).public.read("a")
    assert (caught.value.code, caught.value.exit_code) == ("no_store", 1)


def test_a_repository_that_is_no_store_yet_says_so(hub: HubServer, tmp_path: Path) -> None:
    hub.add(f"{NAME}-requests", {"README.md": b"mine"})
    with refused("no_store", "yet"):
        parts_of(hub, tmp_path).public.read("results/a/b.json")


@pytest.mark.parametrize(
    ("account", "told"),
    [
        (Account("ada", role="read", orgs={"lab": "write"}), ("no_store_access", "write to")),
        (Account("bob"), ("no_store", "HF_TOKEN")),
        (Account("bot", only={PRIVATE: "read"}), ("no_store_access", "repo.write")),
        (None, ("no_store_access", "HF_TOKEN")),
    ],
    ids=["read token", "stranger", "fine-grained", "unknown token"],
)
def test_a_token_without_the_right_is_told_which_it_needs(
    hub: HubServer,
    private: HubRepository,
    tmp_path: Path,
    account: Account | None,
    told: tuple[str, str],
) -> None:
    token = hub.enroll("hf_other", account) if account else "hf_nobodys"
    theirs = parts_of(hub, tmp_path, token=token).private
    with pytest.raises(PlatformError, match=told[1]) as caught:
        theirs.commit({"a": b"1"}, parent=private.head(), message="m")
    assert (caught.value.code, caught.value.exit_code) == (told[0], 1)
    assert "hf_" not in str(caught.value).replace("HF_", "")


def test_the_token_of_a_scoring_host_claims_and_hands_over_and_never_writes_results(
    hub: HubServer, parts: HubParts, tmp_path: Path
) -> None:
    put(parts.public, {"results/a/b.json": b"published", "queue.parquet": b"0"})
    rights = {f"{NAME}-requests": "write", PRIVATE: "write", f"{NAME}-results": "read"}
    theirs = parts_of(hub, tmp_path / "w", token=hub.enroll("hf_w", Account("bot", only=rights)))
    put(theirs.private, {"handover/a": b"scores"})
    put(theirs.public, {"queue.parquet": b"claimed"})
    for path in ("results/a/b.json", "results/a/b.scores.parquet", "snapshot.parquet"):
        with refused("access_lost", "write to", kind=TransientError):
            put(theirs.public, {path: b"mine", "queue.parquet": b"mine"})
    assert contents(parts.public) == {"results/a/b.json": b"published", "queue.parquet": b"claimed"}


def test_a_store_is_not_created_without_the_right(hub: HubServer, tmp_path: Path) -> None:
    token = hub.enroll("hf_reader", Account("ada", role="read", orgs={"lab": "read"}))
    with refused("no_store_access", "HF_TOKEN"):
        list(create(parts_of(hub, tmp_path, token=token)))


def test_uploads_never_go_to_a_repository_open_to_everyone(hub: HubServer, tmp_path: Path) -> None:
    hub.add(PRIVATE, {})
    with refused("submissions_public"):
        list(create(parts_of(hub, tmp_path)))


def test_a_rule_that_drops_files_is_no_silent_loss(hub: HubServer, private: HubRepository) -> None:
    hub.repositories[PRIVATE].commit({".gitignore": b"*.log\n"})
    with pytest.raises(PlatformError, match=r"\.gitignore"):
        put(private, {"a.log": b"1"})
    with pytest.raises(NotFoundError):
        private.read(".gitignore")


# The token


@pytest.fixture
def elsewhere() -> Iterator[HubServer]:
    """Another server, to which nothing is to go."""
    with running_hub() as server:
        yield server


@pytest.mark.parametrize("what", ["tree", "history", "client", "upload"])
def test_an_answer_that_leads_on_elsewhere_is_not_followed(
    hub: HubServer, elsewhere: HubServer, private: HubRepository, what: str
) -> None:
    for n in range(2):
        put(private, {f"a/{n}": b"1"})
        hub.jobs.start("lab", {"labels": {"a": "b"}})
    hub.page = hub.commits_page = 1
    api, head = api_of(hub), private.head()
    hub.endpoint = elsewhere.endpoint  # what its answers name
    large = {"a.zip": bytes(300_000)}
    ask = {
        "tree": lambda: private.list("a/"),
        "history": lambda: list(private.client.history(PRIVATE)),
        "client": lambda: list(api.list_jobs(labels={"a": "b"}, namespace="lab")),
        "upload": lambda: private.commit(large, parent=head, message="m"),
    }[what]
    with refused("led_astray", elsewhere.endpoint):
        ask()
    assert elsewhere.served == []


@pytest.mark.parametrize("what", ["version", "content", "listing"])
def test_a_redirect_elsewhere_is_followed_without_the_token(
    hub: HubServer, elsewhere: HubServer, private: HubRepository, tmp_path: Path, what: str
) -> None:
    sha = put(private, {"a.json": b"1"})
    elsewhere.add(PRIVATE, {"a.json": b"1"})
    target = {"version": "/last.json", "content": "/a.json", "listing": "/tree/"}[what]
    away = {"Location": f"{elsewhere.endpoint}/web{target}"}
    hub.spoil(target, status=307, headers=away, times=50)
    ask = {
        "version": private.fresh_head,
        "content": lambda: private.fetch_at("a.json", sha, tmp_path / "copy"),
        "listing": lambda: private.list_at("", sha),
    }[what]
    with pytest.raises(Exception, match=r"."):
        ask()
    assert [each.token for each in elsewhere.served if each.token] == []
    assert elsewhere.served


@pytest.mark.parametrize(
    "other",
    [
        "http://hub.example/next", "https://hub.example:8443/next",
        "https://hub.example.evil.example/next", "https://hub.example@evil.example/next",
        "//", "https://[", "file:///etc/passwd", "https://evil.example/\x1b[31m",
    ],
)  # fmt: skip
def test_a_port_a_host_or_a_scheme_makes_another_origin(other: str) -> None:
    home = "https://hub.example/api/datasets/a/b?p=1"
    assert at_home("https://hub.example:443/next", home)
    with pytest.raises(PlatformError) as caught:
        at_home(other, home)
    assert caught.value.code == "led_astray"
    assert "\x1b" not in str(caught.value)
