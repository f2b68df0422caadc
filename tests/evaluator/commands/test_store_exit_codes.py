"""How commands end that are given a store of the Hub: a wrong name or token is theirs to mend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.evaluator.commands.submitting import SCORES, Run
from tests.hub.accounts import Account
from tests.hub.server import HubServer, running_hub
from tests.leaderboard.store.hub_rig import as_the_hub

NAME = "hub:lab/asay"
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("status", "--store", NAME),
    ("status", "m-1", "--store", NAME),
    ("report", "m-1", "--store", NAME),
    ("quota", "--store", NAME),
    ("rerun", "m-1", "--reason", "why", "--store", NAME),
    ("ledger", "--store", NAME),
    ("submit", "s.csv", "--kind", "scores", "--benchmark", "toy", "--store", NAME, "--no-wait"),
    ("store", "show", NAME),
    ("store", "squash", NAME),
    ("store", "copy", NAME, "copied"),
)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    """Named by the environment; nobody rests between two tries."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.csv").write_text(SCORES)
    monkeypatch.setattr("leaderboard.store.hub.client.random.uniform", lambda *_: 0.0)
    with running_hub() as server:
        as_the_hub(server, monkeypatch)
        yield server


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_store_that_is_not_there_is_told_with_the_command_that_makes_it(
    hub: HubServer, run: Run, words: tuple[str, ...]
) -> None:
    ended = run(*words)
    assert ended.code == 1, ended.err
    assert "no_store" in ended.err
    assert f"no store {NAME}" in ended.err
    assert f"store create {NAME}" in ended.err
    assert hub.repositories == {}


@pytest.mark.parametrize(
    ("account", "scope"),
    [
        (None, "repo.content.read"),
        (Account("bot", only={"lab/asay-requests": "read"}), "repo.write"),
    ],
    ids=["401", "403"],
)
def test_a_token_that_may_not_is_told_the_scope_it_needs(
    hub: HubServer,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    account: Account | None,
    scope: str,
) -> None:
    assert run("store", "create", NAME).code == 0
    token = hub.enroll("hf_narrow", account) if account else "hf_nobodys"
    monkeypatch.setenv("HF_TOKEN", token)
    words = ("status", "--store", NAME) if account is None else ("store", "cards", NAME)
    ended = run(*words)
    assert ended.code == 1, ended.err
    assert "no_store_access" in ended.err
    assert scope in ended.err
    assert token not in ended.out + ended.err


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_an_outage_is_nobody_s_slip(hub: HubServer, run: Run, words: tuple[str, ...]) -> None:
    assert run("store", "create", NAME).code == 0
    hub.spoil("/", status=503, times=10_000)
    ended = run(*words)
    assert ended.code == 3, ended.err
    assert "store_unreachable" in ended.err
