"""Who may do what on a Hub: what is missing is said, with what to do about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import PlatformError
from leaderboard.store.hub.creating import create
from leaderboard.store.interface import NotFoundError
from tests.hub.accounts import Account
from tests.hub.server import HubServer
from tests.leaderboard.store.hub_rig import NAME, created, parts_of

pytestmark = pytest.mark.usefixtures("no_rests")
REQUESTS, PRIVATE = f"{NAME}-requests", f"{NAME}-submissions"


def test_a_store_that_is_not_there_is_told_with_what_to_do(hub: HubServer, tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match=f"store create hub:{NAME}`") as refused:
        parts_of(hub, tmp_path).public.read("a")
    assert (refused.value.code, refused.value.exit_code) == ("no_store", 1)
    assert f"no store hub:{NAME}" in refused.value.message


def test_a_repository_that_is_no_store_yet_says_so(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REQUESTS, {"README.md": b"mine"})
    with pytest.raises(PlatformError, match="no store yet"):
        parts_of(hub, tmp_path).public.read("results/a/b.json")


@pytest.mark.parametrize(
    ("account", "code", "words"),
    [
        (Account("ada", role="read", orgs={"lab": "write"}), "no_store_access", "write to"),
        (Account("bob"), "no_store", "HF_TOKEN"),
        (Account("bot", only={PRIVATE: "read"}), "no_store_access", "repo.write"),
        (None, "no_store_access", "HF_TOKEN"),
    ],
    ids=["read token", "stranger", "fine-grained", "unknown token"],
)
def test_a_token_without_the_right_is_told_which_it_needs(
    hub: HubServer, tmp_path: Path, account: Account | None, code: str, words: str
) -> None:
    head = created(hub, tmp_path).private.head()
    token = hub.enroll("hf_other", account) if account else "hf_nobodys"
    repository = parts_of(hub, tmp_path, token=token, fresh_for_s=0.0).private
    with pytest.raises(PlatformError, match=words) as refused:
        repository.commit({"a": b"1"}, parent=head, message="m")
    assert (refused.value.code, refused.value.exit_code) == (code, 1)
    assert "hf_" not in str(refused.value).replace("HF_", "")


def test_a_store_is_not_created_without_the_right(hub: HubServer, tmp_path: Path) -> None:
    token = hub.enroll("hf_reader", Account("ada", role="read", orgs={"lab": "read"}))
    with pytest.raises(PlatformError, match="HF_TOKEN") as refused:
        list(create(parts_of(hub, tmp_path, token=token)))
    assert refused.value.code == "no_store_access"


def test_uploads_never_go_to_a_repository_open_to_everyone(hub: HubServer, tmp_path: Path) -> None:
    hub.add(PRIVATE, {})
    with pytest.raises(PlatformError, match="open to everyone") as refused:
        list(create(parts_of(hub, tmp_path)))
    assert refused.value.code == "submissions_public"


def test_a_rule_of_the_repository_that_drops_files_is_no_silent_loss(
    hub: HubServer, tmp_path: Path
) -> None:
    parts = created(hub, tmp_path)
    hub.repositories[PRIVATE].commit({".gitignore": b"*.log\n"})
    with pytest.raises(PlatformError, match=r"\.gitignore"):
        parts.private.commit({"a.log": b"1"}, parent=parts.private.head(), message="m")
    with pytest.raises(NotFoundError):
        parts.private.read(".gitignore")
