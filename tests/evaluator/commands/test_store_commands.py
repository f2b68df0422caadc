"""`store`: the repositories of a store on the Hub made, shown, squashed, described, copied."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest
import typer

from benchmarks.command_line import run
from evaluator.commands.store import store_app
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Event, Kind, Submission
from leaderboard.states import State
from leaderboard.store.folder import folder_store
from leaderboard.store.opening import StoreName
from tests.evaluator.commands.submitting import Ended
from tests.hub.accounts import Account
from tests.hub.server import HubServer, running_hub
from tests.leaderboard.store.hub_rig import as_the_hub

NAME = "hub:lab/assay"
Run = Callable[..., Ended]


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with running_hub() as server:
        yield server


@pytest.fixture
def store(
    hub: HubServer,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> Run:
    as_the_hub(hub, monkeypatch)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)

    def called(*words: object) -> Ended:
        monkeypatch.setattr("sys.argv", ["store", *map(str, words)])
        try:
            code = run(typer.main.get_command(store_app()))
        except SystemExit as end:
            code = int(end.code or 0)
        return Ended(code, *capfd.readouterr())

    return called


def test_creating_a_store_says_what_it_did_and_is_safe_to_run_again(
    hub: HubServer, store: Run
) -> None:
    made = store("create", NAME)
    assert made.code == 0
    assert "lab/assay-requests: created, open to everyone." in made.out
    assert "lab/assay-submissions: created, private." in made.out
    private = {name: each.private for name, each in hub.repositories.items()}
    assert private == {
        "lab/assay-requests": False,
        "lab/assay-scores": False,
        "lab/assay-results": False,
        "lab/assay-submissions": True,
    }
    heads = {name: each.branches["main"] for name, each in hub.repositories.items()}
    again = store("create", NAME)
    assert again.code == 0
    assert again.out.count("was there already") == 4
    assert heads == {name: each.branches["main"] for name, each in hub.repositories.items()}


def test_a_store_may_be_for_members_only(hub: HubServer, store: Run) -> None:
    assert store("create", NAME, "--private").code == 0
    assert all(each.private for each in hub.repositories.values())


def test_a_creation_that_was_stopped_is_finished(hub: HubServer, store: Run) -> None:
    hub.spoil("/commit/", method="POST", status=403)
    stopped = store("create", NAME)
    assert (stopped.code, "HF_TOKEN" in stopped.err) == (1, True)
    assert store("create", NAME).code == 0
    opened = StoreName.parse(NAME).open()
    opened.public.commit({"a": b"1"}, parent=opened.public.head(), message="m")


def test_a_store_is_shown_with_what_it_is_read_at(hub: HubServer, store: Run) -> None:
    store("create", NAME)
    opened = StoreName.parse(NAME).open()
    changes = {"results/a/b.json": b"{}", "queue.json": b"q"}
    opened.public.commit(changes, parent=opened.public.head(), message="m")
    shown = json.loads(store("show", NAME, "--json").out)
    assert shown["version"] == hub.repositories["lab/assay-requests"].branches["main"]
    assert shown["frozen_until"] is None
    assert [(each["name"], each["private"], each["commits"]) for each in shown["repositories"]] == [
        ("lab/assay-requests", False, 3),
        ("lab/assay-scores", False, 2),
        ("lab/assay-results", False, 3),
        ("lab/assay-submissions", True, 2),
    ]
    assert all(each["head"] == each["pinned"] for each in shown["repositories"])
    assert "lab/assay-results" in store("show", NAME).out


def test_a_store_that_is_not_there_is_told_with_how_to_make_it(store: Run) -> None:
    missing = store("show", NAME)
    assert missing.code == 1
    assert f"store create {NAME}" in missing.err


def test_a_token_that_may_only_read_is_told_what_it_needs(
    hub: HubServer, store: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    store("create", NAME)
    reader = Account("ada", role="read", orgs={"lab": "read"})
    monkeypatch.setenv("HF_TOKEN", hub.enroll("hf_reader", reader))
    refused = store("squash", NAME)
    assert refused.code == 1
    assert "Set HF_TOKEN to a token of an account that may write to" in refused.err


def test_a_folder_needs_no_repositories(store: Run, tmp_path: Path) -> None:
    refused = store("show", tmp_path / "store")
    assert refused.code == 1
    assert "is a folder" in refused.err


def test_a_store_is_not_squashed_while_a_worker_holds_a_job_unless_forced(
    hub: HubServer, store: Run
) -> None:
    store("create", NAME)
    opened = StoreName.parse(NAME).open()
    _in_work(Ledger(opened), until=opened.clock() + timedelta(minutes=5))
    refused = store("squash", NAME)
    assert (refused.code, "colour-reader-1" in refused.err) == (1, True)
    assert hub.asked("super-squash", "POST") == []
    assert store("squash", NAME, "--force").code == 0
    assert len(hub.asked("super-squash", "POST")) == 4
    assert [s.state for s in Ledger(opened).statuses()] == [State.CLAIMED]


def test_a_lease_that_has_run_out_by_the_hubs_clock_holds_no_squash_up(
    hub: HubServer, store: Run
) -> None:
    store("create", NAME)
    opened = StoreName.parse(NAME).open()
    _in_work(Ledger(opened), until=opened.clock() + timedelta(minutes=5))
    hub.clock.advance(301)
    assert store("squash", NAME).code == 0


def test_the_cards_are_written_once_and_the_store_does_not_mind(hub: HubServer, store: Run) -> None:
    store("create", NAME)
    opened = StoreName.parse(NAME).open()
    changes = {"results/a/b.json": b"{}", "queue.json": b"q"}
    opened.public.commit(changes, parent=opened.public.head(), message="m")
    written = store("cards", NAME)
    assert (written.code, written.out.count("the card is written")) == (0, 4)
    for repository in hub.repositories.values():
        card = repository.files(repository.branches["main"])["README.md"].content
        assert card.startswith(b"---\n")
    assert store("cards", NAME).out.count("was there already") == 4
    opened = StoreName.parse(NAME).open()
    assert opened.public.list() == ("queue.json", "results/a/b.json")
    opened.public.commit({"results/a/b.json": b"2"}, parent=opened.public.head(), message="m")
    results = hub.repositories["lab/assay-results"]
    assert "README.md" in results.files(results.branches["main"])


def test_a_store_is_copied_to_the_hub_and_back(store: Run, tmp_path: Path) -> None:
    source = folder_store(tmp_path / "source")
    source.public.commit({"queue.json": b"q", "results/a/b.json": b"{}"}, parent="0", message="m")
    source.private.commit({"uploads/a.zip": b"zip"}, parent="0", message="m")
    store("create", NAME)
    assert store("copy", tmp_path / "source", NAME).code == 0
    copied = store("copy", NAME, tmp_path / "back")
    assert (copied.code, "public: all 2 files are the same in both." in copied.out) == (0, True)
    back = folder_store(tmp_path / "back")
    assert back.public.read("results/a/b.json") == b"{}"
    assert back.private.read("uploads/a.zip") == b"zip"


def test_a_store_is_backed_up_checked_and_put_back(store: Run, tmp_path: Path) -> None:
    source = folder_store(tmp_path / "source")
    source.public.commit({"queue.json": b"q"}, parent=source.public.head(), message="m")
    source.private.commit({"uploads/a.zip": b"zip"}, parent="0", message="m")
    backup = tmp_path / "b.tar"
    assert store("backup", tmp_path / "source", backup).code == 0
    checked = store("restore", backup)
    assert (checked.code, "whole; 2 files" in checked.out) == (0, True)
    store("create", NAME)
    assert store("restore", backup, NAME).code == 0
    assert store("copy", NAME, tmp_path / "back").code == 0
    assert folder_store(tmp_path / "back").private.read("uploads/a.zip") == b"zip"
    again = store("backup", tmp_path / "source", backup)
    assert (again.code, "[file_exists]" in again.err) == (1, True)
    damaged = tmp_path / "damaged.tar"
    damaged.write_bytes(backup.read_bytes().replace(b"zip", b"ZIP", 1))
    refused = store("restore", damaged, tmp_path / "other")
    assert (refused.code, "[bad_backup]" in refused.err) == (1, True)
    assert store("backup", tmp_path / "absent", tmp_path / "c.tar").code == 1
    assert not (tmp_path / "absent").exists()


@pytest.mark.parametrize("place", ["source/b.tar", "source/public/b.tar", "link/private/b.tar"])
def test_a_backup_does_not_become_a_part_of_the_store(
    store: Run, tmp_path: Path, place: str
) -> None:
    source = folder_store(tmp_path / "source")
    source.private.commit({"uploads/a.zip": b"zip"}, parent="0", message="m")
    (tmp_path / "link").symlink_to("source")
    refused = store("backup", "source", place)
    assert (refused.code, "[backup_in_store]" in refused.err) == (1, True)
    assert not (tmp_path / place).exists()


def test_a_store_that_went_on_is_not_set_back_by_its_backup(store: Run, tmp_path: Path) -> None:
    source = folder_store(tmp_path / "source")
    source.public.commit({"events.jsonl": b"1"}, parent=source.public.head(), message="m")
    assert store("backup", "source", "b.tar").code == 0
    source.public.commit({"events.jsonl": b"12"}, parent=source.public.head(), message="m")
    refused = store("restore", "b.tar", "source")
    assert (refused.code, "[target_not_empty]" in refused.err) == (1, True)
    assert folder_store(tmp_path / "source").public.read("events.jsonl") == b"12"


def test_a_backup_that_is_ended_leaves_nothing(
    store: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_store(tmp_path / "source")
    asked = signal.getsignal(signal.SIGTERM)

    def ended(*_: object) -> NoReturn:
        assert list(tmp_path.glob(".assay-backup-*"))
        signal.raise_signal(signal.SIGTERM)
        raise AssertionError("it went on")

    monkeypatch.setattr("leaderboard.store.backup.making.copy_store", ended)
    assert store("backup", "source", "b.tar").code != 0
    assert [path.name for path in tmp_path.iterdir() if "backup" in path.name] == []
    assert signal.getsignal(signal.SIGTERM) is asked


def test_a_copy_sets_no_store_back_unless_it_is_told_to(store: Run, tmp_path: Path) -> None:
    source = folder_store(tmp_path / "source")
    source.public.commit({"queue.json": b"old"}, parent=source.public.head(), message="m")
    assert store("copy", tmp_path / "source", tmp_path / "live").code == 0
    live = folder_store(tmp_path / "live")
    live.public.commit({"queue.json": b"new"}, parent=live.public.head(), message="m")
    refused = store("copy", tmp_path / "source", tmp_path / "live")
    assert (refused.code, "[target_not_empty]" in refused.err) == (1, True)
    assert live.public.read("queue.json") == b"new"
    assert store("copy", tmp_path / "source", tmp_path / "live", "--over").code == 0
    assert live.public.read("queue.json") == b"old"


def test_a_folder_that_is_no_store_is_not_copied(store: Run, tmp_path: Path) -> None:
    refused = store("copy", tmp_path / "absent", NAME)
    assert (refused.code, "There is no store" in refused.err) == (1, True)
    assert not (tmp_path / "absent").exists()


def _in_work(ledger: Ledger, until: datetime) -> None:
    submission = Submission(
        submission_id="colour-reader-1",
        kind=Kind.METRIC,
        name="colour",
        metrics=("colour",),
        benchmarks=("demo_croc",),
        submitter="ada",
        content_sha256="0" * 64,
        archive="uploads/0.zip",
        received_at=datetime(2026, 1, 1, tzinfo=UTC),
    )

    def event(state: State, **more: object) -> Event:
        facts = {"at": submission.received_at, "state": state, "by": "w1", **more}
        return Event.model_validate(facts)

    ledger.receive(submission, b"zip", [event(State.RECEIVED), event(State.QUEUED)])
    ledger.append(submission.submission_id, [event(State.CLAIMED, lease_until=until)])
