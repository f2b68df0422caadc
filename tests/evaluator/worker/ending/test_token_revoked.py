"""A token that is revoked in the middle of a run: what is finished is kept, and published once."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub import constants

from benchmarks.errors import TransientError
from benchmarks.settings.model import FILE_ORIGINS
from benchmarks.settings.sources import load
from evaluator.worker.worker import Worker
from leaderboard.ledger.ledger import Ledger
from leaderboard.states import State
from leaderboard.store.hub.creating import create
from leaderboard.store.hub.hub_store import HubParts, hub_store
from leaderboard.store.live.folder import FolderLive
from tests.evaluator.rig import FakeBackend, Rig
from tests.evaluator.worker.breaking import published_once
from tests.evaluator.worker.ending.going_away import PER_RUN, entries, until_quiet
from tests.evaluator.worker.stock import stock
from tests.hub.accounts import Account
from tests.hub.server import HubServer, running_hub

NAME = "lab/assay"
FIRST, SECOND = "hf_first_of_the_house", "hf_second_of_the_house"


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with running_hub() as server:
        for token in (FIRST, SECOND):
            server.enroll(token, Account("lab"))
        yield server


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever this test puts into the environment is gone after it."""
    for name in ("HF_TOKEN", "HF_TOKEN_FILE", "HUGGING_FACE_HUB_TOKEN", FILE_ORIGINS):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "login"))


def rig_on(hub: HubServer, folder: Path, name: str = "w") -> Rig:
    """A store on the Hub as a worker opens it: with the token of its environment."""
    store = hub_store(NAME, folder / name, endpoint=hub.endpoint, fresh_for_s=0.0)
    live = FolderLive(folder / "live")
    return Rig(folder, store=replace(store, live=live, look_every_s=0.0, jobs_per_commit=1))


def revoked_within(hub: HubServer, rig: Rig) -> FakeBackend:
    """Takes the token away when half of a run is done."""

    def score(n: int, _: str) -> float:
        if len(rig.backend.asked) == PER_RUN // 2:
            hub.revoke(FIRST)
        return float(n)

    return FakeBackend(score)


def begun(hub: HubServer, folder: Path) -> tuple[Rig, Worker, str]:
    """A run during which the token was revoked, to its end."""
    made = HubParts(NAME, folder / "made", endpoint=hub.endpoint, token=hub.token)
    list(create(made))
    rig = rig_on(hub, folder)
    (name,) = stock(rig.store, ["hub:ada"])
    rig.backend = revoked_within(hub, rig)
    worker = rig.worker()
    with pytest.raises(TransientError) as refused:
        while worker.run_next():
            pass
    assert refused.value.code == "token_refused"
    assert len(rig.backend.asked) == PER_RUN, "the run went on to its end"
    assert entries(rig) == {name}
    return rig, worker, str(refused.value)


def published(rig: Rig, name: str) -> None:
    assert published_once(rig.store, name)
    assert len(rig.backend.asked) == PER_RUN, "nothing was asked twice"
    events = [event.state for event in Ledger(rig.store).events(name)]
    assert events.count(State.CLAIMED) == 1
    assert State.FAILED not in events
    assert entries(rig) == set()


def test_a_new_token_in_its_file_is_found_by_the_worker_that_runs(
    hub: HubServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "token"
    file.write_text(f"{FIRST}\n")
    os.environ["HF_TOKEN_FILE"] = str(file)
    load(os.environ, tmp_path)
    with caplog.at_level(logging.INFO):
        rig, worker, words = begun(hub, tmp_path)
        assert f"Write a new one into {file}" in words
        assert "What is finished is kept" in words
        (name,) = entries(rig)
        file.write_text(f"{SECOND}\n")
        until_quiet(rig, worker)
    published(rig, name)
    assert "HF_TOKEN was read again" in caplog.text
    assert FIRST not in caplog.text + words
    assert SECOND not in caplog.text + words


def test_a_new_login_is_found_by_the_worker_that_runs(hub: HubServer, tmp_path: Path) -> None:
    login = Path(constants.HF_TOKEN_PATH)
    login.write_text(FIRST)
    rig, worker, words = begun(hub, tmp_path)
    assert "hf auth login" in words
    (name,) = entries(rig)
    login.write_text(SECOND)
    until_quiet(rig, worker)
    published(rig, name)


def test_with_a_token_in_a_variable_the_next_worker_publishes_what_is_finished(
    hub: HubServer, tmp_path: Path
) -> None:
    os.environ["HF_TOKEN"] = FIRST
    rig, _, words = begun(hub, tmp_path)
    assert "start again" in words
    (name,) = entries(rig)
    os.environ["HF_TOKEN"] = SECOND
    again = rig_on(hub, tmp_path, "again")
    again.backend, again.clock.time = rig.backend, rig.clock.time
    again.clock.move(days=2)  # The first never beat: its lease decides.
    until_quiet(again, again.worker("w2"))
    assert published_once(again.store, name)
    assert len(rig.backend.asked) == PER_RUN
    assert entries(again) == set()


def test_a_token_that_was_never_good_is_a_wrong_token_and_no_outage(
    hub: HubServer, tmp_path: Path
) -> None:
    list(create(HubParts(NAME, tmp_path / "made", endpoint=hub.endpoint, token=hub.token)))
    os.environ["HF_TOKEN"] = "hf_nobodys"
    store = hub_store(NAME, tmp_path / "w", endpoint=hub.endpoint)
    with pytest.raises(Exception, match="HF_TOKEN") as refused:
        store.public.head()
    assert refused.value.code == "no_store_access"  # type: ignore[attr-defined]


def test_a_new_token_that_may_only_read_loses_nothing_either(
    hub: HubServer, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(FIRST)
    os.environ["HF_TOKEN_FILE"] = str(file)
    load(os.environ, tmp_path)
    rig, worker, _ = begun(hub, tmp_path)
    (name,) = entries(rig)
    file.write_text(hub.enroll("hf_reader_of_the_house", Account("lab", role="read")))
    for _ in range(3):
        with pytest.raises(TransientError, match="What is finished is kept") as refused:
            worker.run_next()
        assert refused.value.code == "access_lost"
    assert entries(rig) == {name}
    file.write_text(SECOND)
    until_quiet(rig, worker)
    published(rig, name)
